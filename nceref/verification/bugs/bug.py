"""Known bugs as programs: the record of one, and the harness that gives a program the gradients of autodiff.

A mutant is the code as its author wrote it, in plain NumPy: a function of the canonical inputs of a loss, by name,
that returns the value under the mean, in the dtype that it gets. It imports NumPy and the words of this module only, so
that it cannot share a mistake with what must find it.

>>> from nceref.verification.bugs.bug import Mutant, log_softmax, target, unit
>>> def keys_as_constants(queries, keys, *, temperature):
...     logits = unit(queries) @ stop(unit(keys)).T / temperature
...     return -np.mean(np.diagonal(log_softmax(logits)))
>>> mutant = Mutant(
...     id="info-nce-detached-keys",
...     sentence="The keys are detached as in MoCo, although they come from the encoder that is trained.",
...     thread="owner/repository#1",
...     losses=("info_nce",),
...     named=("keys-detached",),
...     program=keys_as_constants,
... )
>>> value, grads = target(mutant, "info_nce")(np.eye(3), np.ones((3, 3)), temperature=0.5)
>>> bool(np.all(grads["keys"] == 0))
True

The gradient is taken by complex step, one entry at a time, so a program must keep complex numbers: no ``abs``, no
``np.linalg.norm``, no cast to a real dtype, `peak` for a row maximum, `stop` where the author detached.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, wraps
from types import MappingProxyType
from typing import Any

import numpy as np

Program = Callable[..., Any]
Gradients = dict[str, Any]

# The step, relative to the row. Its square, even over a squared temperature of 0.001, vanishes beside the real part;
# it is large enough for gradients that are almost too small for float32, and for programs that cast to float32.
_STEP_BITS: Mapping[str, int] = MappingProxyType({"f": 24, "d": 50})


@dataclass(frozen=True, eq=False)
class Mutant:
    """A loss as somebody wrote it, and what a right diagnosis says about it.

    Attributes
    ----------
    id : str
        Kebab-case words.
    sentence : str
        What is wrong, for a reader.
    thread : str
        Where it was reported, ``owner/repository#number``; empty where there is no thread.
    losses : tuple of str
        The losses that it was meant to be.
    named : tuple of str
        Ids of the conventions that make up a right diagnosis, more than one for several bugs at once; empty for a
        correct variant.
    program : callable
        The code, a function of the canonical inputs by name.
    held_out : bool
        Written by someone who did not see the search; scored apart.
    settings : mapping
        Conventions that the author intended, as `nceref.verify` takes them.
    gradients : callable or None
        ``gradients(grads, inputs)``: what autodiff gives in place of the complex step's gradients, where it would
        differ, such as NaN.
    seen : str
        Where it was seen if there is no thread, such as ``optax 0.2.8``.
    also : tuple of str
        Other ids, joined by ``+``, that say the very same thing.
    dtypes : tuple of str
        The formats in which the program is wrong.
    """

    id: str
    sentence: str
    thread: str
    losses: tuple[str, ...]
    named: tuple[str, ...]
    program: Program
    held_out: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    gradients: Callable[[Gradients, Mapping[str, Any]], Gradients] | None = None
    seen: str = ""
    also: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float64", "float32")


def target(mutant: Mutant, loss: str) -> Callable[..., tuple[float, Gradients]]:
    """The mutant as a NumPy target: its value, and the gradient by every input of `loss` that gets one.

    Parameters
    ----------
    mutant : Mutant
    loss : str
        One of its losses; says which inputs get a gradient.

    Returns
    -------
    callable
        With the signature of the program.
    """
    from nceref.losses import differentiable, get_loss

    shown = inspect.signature(mutant.program)
    wanted = [name for name in differentiable(get_loss(loss).declaration) if name in shown.parameters]

    @wraps(mutant.program)
    def run(*args: Any, **kwargs: Any) -> tuple[float, Gradients]:
        inputs = in_one_dtype(shown.bind(*args, **kwargs).arguments)
        with np.errstate(all="ignore"):
            value = float(np.real(mutant.program(**inputs)))
            grads = slopes(mutant.program, inputs, [name for name in wanted if inputs.get(name) is not None])
            return value, mutant.gradients(grads, inputs) if mutant.gradients else grads

    return run


def in_one_dtype(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Float scalars as numbers of the dtype of the float arrays: a float64 scalar would lift float32 to float64."""
    floats = [x.dtype for x in inputs.values() if isinstance(x, np.ndarray) and x.ndim and x.dtype.kind == "f"]
    dtype = np.result_type(*floats) if floats else np.dtype(np.float64)
    return {name: dtype.type(x) if _is_float(x) else x for name, x in inputs.items()}


def _is_float(x: Any) -> bool:
    return isinstance(x, float | np.floating) or (isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype.kind == "f")


def slopes(program: Program, inputs: Mapping[str, Any], names: Iterable[str]) -> Gradients:
    """The gradient of a program by the named inputs: Im f(x + i h) / h, one entry at a time."""
    wanted = list(names)
    # All arrays are complex, whichever moves: real and complex quotients are rounded in different ways, so that x - y
    # would not be 0 where x = y.
    points = {name: _complex(inputs[name]) for name in wanted}
    given = {**inputs, **{name: point for name, point in points.items() if point.ndim}}
    return {name: _slope(program, given, name, np.asarray(inputs[name]), points[name]) for name in wanted}


def _complex(x: Any) -> Any:
    return np.array(x, dtype=np.result_type(x, np.complex64))


def _slope(program: Program, given: Mapping[str, Any], name: str, x: Any, point: Any) -> Any:
    steps, out = _steps(x).reshape(-1), np.empty(x.size, dtype=x.dtype)
    entries = point.reshape(-1).imag
    for i, step in enumerate(steps):
        entries[i] = step
        out[i] = np.imag(program(**{**given, name: point if x.ndim else point[()]})) / step
        entries[i] = 0
    return out.reshape(x.shape)[()]


def _steps(x: Any) -> Any:
    """Powers of two, so that dividing by them is exact, far below the largest entry of each row."""
    size = np.max(np.abs(x), axis=-1, keepdims=True) if x.ndim else np.abs(x)
    exponent = np.frexp(np.where(size > 0, size, 1))[1] - _STEP_BITS[x.dtype.char]
    return np.broadcast_to(np.ldexp(np.ones_like(x, shape=()), exponent), x.shape)


@cache
def mutants() -> Mapping[str, Mutant]:
    """The catalogue of known bugs, by id."""
    return _collected("nceref.verification.bugs.wrong", "MUTANTS")


@cache
def variants() -> Mapping[str, Mutant]:
    """Correct programs that look different from the reference, by id."""
    return _collected("nceref.verification.bugs.right", "VARIANTS")


def _collected(package: str, attribute: str) -> Mapping[str, Mutant]:
    """All entries of all files of a folder."""
    import importlib

    from nceref import registry
    from nceref.errors import DeclarationError

    found: dict[str, Mutant] = {}
    for name in registry.names(package):
        for mutant in getattr(importlib.import_module(f"{package}.{name}"), attribute):
            if found.setdefault(mutant.id, mutant) is not mutant:
                msg = f"{package}.{name} declares {mutant.id!r}, which is there already"
                raise DeclarationError(msg)
    return MappingProxyType(found)


# The words of a framework, for real and for complex arrays.


def stop(x: Any) -> Any:
    """Detached: a number without its derivative."""
    return np.real(x)


def peak(x: Any, axis: int = -1) -> Any:
    """The largest entry along an axis, which is kept, and detached as everybody does."""
    return np.max(np.real(x), axis=axis, keepdims=True)


def unit(x: Any, axis: int = -1) -> Any:
    """Rows scaled to length 1."""
    return x / np.sqrt(np.sum(x * x, axis=axis, keepdims=True))


def logsumexp(x: Any, axis: int = -1) -> Any:
    """Log of the sum of exponentials along an axis, shifted by the largest entry."""
    top = peak(x, axis)
    return (top + np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True))).squeeze(axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """Log-probabilities along an axis."""
    x = x - peak(x, axis)
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


def softplus(x: Any) -> Any:
    """Log of 1 + e^x without overflow."""
    up = np.real(x) > 0
    return np.where(up, x, 0) + np.log1p(np.exp(np.where(up, -x, x)))


def cross_entropy(logits: Any, target: Any) -> Any:
    """Mean of -log softmax at the target's index."""
    return -np.mean(log_softmax(logits)[np.arange(len(logits)), target])
