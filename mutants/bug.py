"""The catalogue of known bugs: the decorators that enter a program, and the harness that differentiates it.

A program is the code as its author wrote it, in plain NumPy: a function of the canonical inputs of a loss, by name,
that returns the value under the mean, in the dtype that it gets. It imports NumPy and this module only, so that it
cannot share a mistake with what must find it. Its name, with dashes, is its id, and its docstring is the sentence that
describes it.

>>> from mutants.bug import bug, log_softmax, target, unit
>>> @bug("info_nce", named="keys-detached", thread="owner/repository#1")
... def info_nce_detached_keys(queries, keys, *, temperature):
...     "The keys are detached as in MoCo, although they come from the encoder that is trained."
...     logits = unit(queries) @ stop(unit(keys)).T / temperature
...     return -np.mean(np.diagonal(log_softmax(logits)))
>>> program = info_nce_detached_keys.entry
>>> program.id
'info-nce-detached-keys'
>>> value, grads = target(program)(np.eye(3), np.ones((3, 3)), temperature=0.5)
>>> bool(np.all(grads["keys"] == 0))
True

The gradient is taken by complex step, each entry by itself, so a program must keep complex numbers: no ``abs``, no
``np.linalg.norm``, no cast to a real dtype, `peak` for a row maximum, `stop` where the author detached.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from types import MappingProxyType
from typing import Any

import numpy as np

from mutants.batched import BatchedArray

Function = Callable[..., Any]
Gradients = dict[str, Any]

DTYPES = ("float64", "float32")

CONSTRUCTED = "no program: constructed for this catalogue"
"""In the place of a program in which a bug was seen."""

_FRAMEWORK = "with_"
"""What the name of a file starts with that has programs with gradients of their own; the framework follows."""

MOST_ENTRIES = 300
"""Most entries of an argument: larger ones would take too many complex steps, so only the value is returned."""

# The step, relative to the row. Its square, even over a squared temperature of 0.001, vanishes beside the real part;
# it is large enough for gradients that are almost too small for float32, and for programs that cast to float32.
_STEP_BITS: Mapping[str, int] = MappingProxyType({"f": 24, "d": 50})


@dataclass(frozen=True, eq=False)
class Program:
    """A loss as somebody wrote it, and the diagnosis that is right for it.

    Attributes
    ----------
    function : callable
        The code, a function of the canonical inputs by name.
    loss : str
        The loss that it was meant to be.
    named : tuple of str
        Ids of the conventions that make up a right diagnosis, more than one for several bugs at once; empty for a
        correct program.
    thread : str
        Public thread that reports it, ``owner/repository#number``; empty where there is none.
    seen : str
        Program in which it was seen if there is no thread, such as ``optax 0.2.8``.
    also : tuple of str
        Other ids, joined by ``+``, that mean the very same thing.
    settings : mapping
        Conventions that the author intended, as `nceref.verify` takes them.
    dtypes : tuple of str
        The formats in which the program is wrong.
    gradients : callable or None
        ``gradients(grads, inputs)``: what autodiff gives in place of the complex step's gradients, where it would
        differ, such as NaN.
    options : mapping
        Options of `nceref.verify` that the author of a program on several ranks means, such as ``{"value": "each"}``.
    wrong : tuple of str
        Of a program with gradients of its own, the inputs whose gradient is not that of its value.
    """

    function: Function
    loss: str
    named: tuple[str, ...]
    thread: str
    seen: str
    also: tuple[str, ...]
    settings: Mapping[str, Any]
    dtypes: tuple[str, ...]
    gradients: Callable[[Gradients, Mapping[str, Any]], Gradients] | None
    options: Mapping[str, Any]
    wrong: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The name of the function, in kebab case."""
        return self.function.__name__.replace("_", "-")

    @property
    def sentence(self) -> str:
        """The sentence for a reader: what is wrong, or what shape a correct program has."""
        return self.function.__doc__ or ""

    @property
    def held_out(self) -> bool:
        """Whether it was written without a look at the search, as its file's name states; it is scored apart."""
        return self.function.__module__.rpartition(".")[2].startswith("held_out_")

    @property
    def distributed(self) -> bool:
        """Whether it is what one of several ranks runs, in PyTorch."""
        return ".distributed." in self.function.__module__

    @property
    def framework(self) -> str:
        """The framework of a program with gradients of its own, as its file's name states; empty for any other."""
        name = self.function.__module__.rpartition(".")[2]
        return name.removeprefix(_FRAMEWORK) if name.startswith(_FRAMEWORK) else ""

    @property
    def address(self) -> str:
        """The function's address as a target: ``package.module:name``."""
        return f"{self.function.__module__}:{self.function.__name__}"


def bug(
    loss: str,
    *,
    named: str = "",
    thread: str = "",
    seen: str = "",
    also: tuple[str, ...] = (),
    settings: Mapping[str, Any] | None = None,
    dtypes: tuple[str, ...] = DTYPES,
    gradients: Callable[[Gradients, Mapping[str, Any]], Gradients] | None = None,
    options: Mapping[str, Any] | None = None,
    wrong: tuple[str, ...] = (),
) -> Callable[[Function], Any]:
    """Enter a wrong program into the catalogue.

    `loss` is the loss that it was meant to be. `named` is the id of the convention that is the right diagnosis, or
    several ids, joined by ``+``, for several bugs at once. The other arguments are fields of `Program`. The decorator
    returns the function itself, so that another program can call it, and keeps the record in its attribute ``entry``.
    """

    def enter(function: Any) -> Any:
        ids = tuple(filter(None, named.split("+")))
        function.entry = Program(
            function, loss, ids, thread, seen, also, settings or {}, dtypes, gradients, options or {}, wrong
        )
        return function

    return enter


def correct(
    loss: str, *, settings: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None
) -> Callable[[Function], Any]:
    """Enter a correct program, which must never be called wrong; parameters and result as those of `bug`."""
    return bug(loss, named="", settings=settings, options=options)


@cache
def bugs() -> Mapping[str, Program]:
    """The wrong programs, by id."""
    return _collected("mutants.wrong")


@cache
def correct_programs() -> Mapping[str, Program]:
    """The correct programs that look different from the reference, by id."""
    return _collected("mutants.right")


@cache
def independent_programs() -> Mapping[str, Program]:
    """Wrong and correct programs of the second catalogue, whose authors have not read the search, by id."""
    folder = "mutants.independent"
    return MappingProxyType({**_collected(f"{folder}.wrong"), **_collected(f"{folder}.right")})


@cache
def distributed_programs() -> Mapping[str, Program]:
    """Wrong and correct programs on several ranks, in PyTorch, by id; their import needs ``torch``."""
    folder = "mutants.distributed"
    return MappingProxyType({**_collected(f"{folder}.wrong"), **_collected(f"{folder}.right")})


@cache
def gradient_programs() -> Mapping[str, Program]:
    """Programs with gradients of their own, wrong and correct, in the frameworks that are installed, by id."""
    folders = (f"mutants.gradients.{name}" for name in ("wrong", "triples", "right"))
    return MappingProxyType({id: program for folder in folders for id, program in _collected(folder).items()})


def _collected(package: str) -> Mapping[str, Program]:
    """The programs of all files of a folder, in the order of the files, but those of missing frameworks."""
    import importlib
    from importlib.util import find_spec

    from nceref import registry
    from nceref.errors import DeclarationError

    collected: dict[str, Program] = {}
    for name in registry.names(package):
        if name.startswith(_FRAMEWORK) and find_spec(name.removeprefix(_FRAMEWORK)) is None:
            continue
        for value in vars(importlib.import_module(f"{package}.{name}")).values():
            program = getattr(value, "entry", None)
            # A program that another file imports is there twice, and the same.
            if isinstance(program, Program) and collected.setdefault(program.id, program) is not program:
                msg = f"{package}.{name} declares {program.id!r}, which is there already"
                raise DeclarationError(msg)
    return MappingProxyType(collected)


def target(program: Program) -> Callable[..., Any]:
    """A program as a NumPy target: its value, and the gradient by every input of its loss that gets one.

    The target has the signature of the program. A program with gradients of its own is a target as it stands.
    """
    if program.framework:
        return program.function
    from nceref.losses import differentiable, get_loss

    function, signature = program.function, inspect.signature(program.function)
    wanted = [name for name in differentiable(get_loss(program.loss).declaration) if name in signature.parameters]

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> tuple[float, Mapping[str, Any]]:
        inputs = in_one_dtype(signature.bind(*args, **kwargs).arguments)

        def gradients() -> Gradients:
            with np.errstate(all="ignore"):
                grads = slopes(function, inputs, [name for name in wanted if inputs.get(name) is not None])
                return program.gradients(grads, inputs) if program.gradients else grads

        with np.errstate(all="ignore"):
            value = float(np.real(function(**inputs)))
        return value, {} if any(np.size(x) > MOST_ENTRIES for x in inputs.values()) else _WhenRead(gradients)

    return run


class _WhenRead(Mapping[str, Any]):
    """Gradients that are computed when one is read: of many calls, the value alone is wanted."""

    def __init__(self, compute: Callable[[], Gradients]) -> None:
        self._computed = cache(compute)

    def __getitem__(self, name: str) -> Any:
        return self._computed()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._computed())

    def __len__(self) -> int:
        return len(self._computed())


def in_one_dtype(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs whose float scalars have the dtype of the float arrays: a float64 scalar would lift float32 to float64."""
    floats = [x.dtype for x in inputs.values() if isinstance(x, np.ndarray) and x.ndim and x.dtype.kind == "f"]
    dtype = np.result_type(*floats) if floats else np.dtype(np.float64)
    return {name: dtype.type(x) if _is_float(x) else x for name, x in inputs.items()}


def _is_float(x: Any) -> bool:
    return isinstance(x, float | np.floating) or (isinstance(x, np.ndarray) and x.ndim == 0 and x.dtype.kind == "f")


def slopes(function: Function, inputs: Mapping[str, Any], names: Iterable[str]) -> Gradients:
    """The gradient of a program by the named inputs: Im f(x + i h) / h, each entry moved by itself.

    `inputs` are all its arguments, by name. Each gradient has the shape and the dtype of its argument.
    """
    wanted = list(names)
    # All arrays are complex, whichever moves: real and complex quotients are rounded in different ways, so that x - y
    # would not be 0 where x = y.
    points = {name: _complex(inputs[name]) for name in wanted}
    given = {**inputs, **{name: point for name, point in points.items() if point.ndim}}
    steps = {name: _steps(np.asarray(inputs[name])).reshape(-1) for name in wanted}
    out = _in_one_call(function, given, {name: x for name, x in points.items() if x.ndim}, steps)
    for name in wanted:
        if name not in out:
            out[name] = _one_by_one(function, given, name, points[name], steps[name])
    likes = {name: np.asarray(inputs[name]) for name in wanted}
    return {n: np.asarray(out[n] / steps[n], dtype=x.dtype).reshape(x.shape)[()] for n, x in likes.items()}


def _complex(x: Any) -> Any:
    # In the order of C: entries are moved through a view of it.
    return np.array(x, dtype=np.result_type(x, np.complex64), order="C")


def _in_one_call(
    function: Function, given: Mapping[str, Any], points: Mapping[str, Any], steps: Mapping[str, Any]
) -> dict[str, Any]:
    """The change of the loss by each entry, from copies of all arrays, or of one array at a time where possible."""
    together = len(points) > 1 and sum(x.size for x in points.values()) ** 2 <= MOST_COPIED
    moved = _moved(function, given, points, steps) if together and function not in _APART else None
    if moved is None and together:
        _APART.add(function)
    if moved is None:
        alone = ((name, _moved(function, given, {name: x}, steps)) for name, x in points.items())
        return {name: one[name] for name, one in alone if one is not None}
    return moved


MOST_COPIED = 2**20
"""Entries of the copies of all arrays: more would not stay in the cache."""
_APART: set[Function] = set()
"""Programs that cannot be run on copies of all arrays at once."""


def _moved(
    function: Function, given: Mapping[str, Any], points: Mapping[str, Any], steps: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The change of the loss by each entry of some arrays; None for a program that cannot run on all copies at once."""
    count, start = sum(x.size for x in points.values()), 0
    copies, spans = {}, {}
    for name, point in points.items():
        copies[name], spans[name] = np.repeat(point[None], count, axis=0), slice(start, start + point.size)
        # Of the copies of this array each has one entry moved, and those of the other arrays none.
        own = copies[name].reshape(count, point.size)[spans[name]]
        np.einsum("ii->i", own.imag)[:] = steps[name]
        start += point.size
    try:
        result = function(**{**given, **{name: BatchedArray(x) for name, x in copies.items()}})
    except Exception:  # whatever it is, it comes again where the program is run on one copy
        return None
    if np.ndim(result):
        return None
    imaginary = np.imag(result.copies if isinstance(result, BatchedArray) else result)
    moved = np.broadcast_to(imaginary, (count,))
    return {name: moved[span] for name, span in spans.items()}


def _one_by_one(function: Function, given: Mapping[str, Any], name: str, point: Any, steps: Any) -> Any:
    out = np.empty_like(steps)
    # A view of the point: each entry is moved, and put back, in place.
    entries = point.reshape(-1).imag
    for i, step in enumerate(steps):
        entries[i] = step
        out[i] = np.imag(function(**{**given, name: point if point.ndim else point[()]}))
        entries[i] = 0
    return out


def _steps(x: Any) -> Any:
    """Powers of two, so that dividing by them is exact, far below the largest entry of each row."""
    size = np.max(np.abs(x), axis=-1, keepdims=True) if x.ndim else np.abs(x)
    exponent = np.frexp(np.where(size > 0, size, 1))[1] - _STEP_BITS[x.dtype.char]
    return np.broadcast_to(np.ldexp(np.ones_like(x, shape=()), exponent), x.shape)


# The functions of a framework, for real and for complex arrays.


def stop(x: Any) -> Any:
    """The number without its derivative, as ``detach`` returns it."""
    return np.real(x)


def peak(x: Any, axis: int = -1) -> Any:
    """The largest entry along an axis, which is kept, and detached, as is usual."""
    return np.max(np.real(x), axis=axis, keepdims=True)


def unit(x: Any, axis: int = -1) -> Any:
    """Rows scaled to length 1."""
    return x / np.sqrt(np.sum(x * x, axis=axis, keepdims=True))


def logsumexp(x: Any, axis: int = -1) -> Any:
    """Log of the sum of exponentials along an axis, shifted by the largest entry; -inf of none, as in frameworks."""
    top = peak(x, axis)
    # -inf - (-inf) would be NaN.
    top = np.where(np.isfinite(top), top, 0)
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
