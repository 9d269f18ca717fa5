"""Every declared loss as a callable, such as `losses.nt_xent`; a declaration is imported with its first use.

A loss of one's own is one file of the same kind, anywhere: ``get_loss("my_rince.py:LOSS")`` executes it.

>>> import numpy as np
>>> from nceref import losses
>>> same = np.ones((4, 3))
>>> round(losses.nt_xent(same, same, temperature=0.1), 6) == round(float(np.log(7)), 6)
True
"""

import inspect
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from nceref import registry
from nceref.engine import passes
from nceref.engine.anatomy import Anatomy, anatomy
from nceref.engine.arguments import choose_reduction, domain
from nceref.engine.arrays import check_finite, promoted
from nceref.engine.bound_loss import BoundLoss
from nceref.engine.entry_point import entry_point
from nceref.engine.libraries import bound_by_library
from nceref.engine.namespaces import array_namespace, as_scalar
from nceref.errors import InputError
from nceref.output.markdown_parts import typeset
from nceref.output.text import printable, shown
from nceref.output.words import letters
from nceref.spec import Array, Choice, Labels, Loss, Parameter, Scalar, Source

FAMILY = "nceref.family"


class LossFunction:
    """One loss, callable on arrays; every attribute of its declaration can be read from it.

    Parameters
    ----------
    declaration : Loss
        The file in `nceref.family` that states the loss.
    address : str
        What `get_loss` finds it by; default: its name.
    """

    def __init__(self, declaration: Loss, address: str = "") -> None:
        self.declaration = declaration
        self.address = address or declaration.name
        self.__name__ = declaration.name
        self.__qualname__ = declaration.name
        self.__doc__ = document(declaration)
        self.__signature__ = signature(declaration)

    def __reduce__(self) -> Any:
        # By name: declarations hold lambdas, which pickle refuses.
        return get_loss, (self.address,)

    def __repr__(self) -> str:
        return f"<nceref loss {self.name}: {self.declaration.summary}>"

    def _repr_mimebundle_(self, **types: Any) -> dict[str, str]:
        """The formula, for a notebook."""
        return typeset(repr(self), f"`{self.name}`: {self.declaration.summary}", self.latex)

    @property
    def name(self) -> str:
        """Name in the registry."""
        return self.declaration.name

    @property
    def formula(self) -> Any:
        """The textbook definition, generic over number systems (see `nceref.exact`)."""
        return self.declaration.formula

    @property
    def latex(self) -> str:
        """The formula in LaTeX."""
        return self.declaration.latex

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources that the formula was read in."""
        return self.declaration.sources

    @property
    def properties(self) -> frozenset[str]:
        """Names of the properties that hold, no more and no fewer, some for the settings of `declaration` alone."""
        return frozenset(self.declaration.properties)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Arguments with their shapes and domains."""
        return self.declaration.parameters

    @entry_point
    def __call__(self, /, *arrays: Any, reduction: str = "mean", compute: bool = True, **arguments: Any) -> Any:
        """Value of the loss: a float, or the array of row values with ``reduction="none"``."""
        reduction = choose_reduction(self.declaration, reduction)
        return bound_by_library(self.declaration, arrays, arguments, compute).value(reduction)

    @entry_point
    def value_and_grad(
        self, /, *arrays: Any, reduction: str = "mean", cotangent: Any = None, compute: bool = True, **arguments: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Value, and its gradient by every differentiable input.

        Parameters
        ----------
        *arrays, **arguments
            The arguments of the loss.
        reduction : {"mean", "sum", "none"}
            With "none" the value is the array of row values, times the anchor weights where there are any, and
            `cotangent` must be given.
        cotangent : array, optional
            One number a row: the gradient is that of sum(cotangent * rows). Only with ``reduction="none"``.
        compute : bool
            Of arrays of Dask, whether they are computed now; else value and gradients are collections of Dask.

        Returns
        -------
        value : float or array
            In nats.
        grad : dict
            One entry for every float array that was given and for every float scalar, defaults included, unless it is
            a declared constant; in the shape and dtype of the input.

        Raises
        ------
        InputError
            For any argument that the loss cannot take.
        """
        reduction = choose_reduction(self.declaration, reduction)
        return bound_by_library(self.declaration, arrays, arguments, compute).value_and_grad(reduction, cotangent)

    @entry_point
    def anatomy(self, /, *arrays: Any, **arguments: Any) -> Anatomy:
        """Logits, probabilities, slopes, relative penalties and row values of a small batch."""
        bound = bound_by_library(self.declaration, arrays, arguments).in_memory()
        with bound.naming_arguments():
            return anatomy(bound.plan)

    @entry_point
    def decompose(self, /, *arrays: Any, **arguments: Any) -> dict[str, Any]:
        """Means of the named parts of the loss, for losses that declare a decomposition (PaCo)."""
        if self.declaration.decomposition is None:
            known = [name for name, loss in all_losses().items() if loss.declaration.decomposition is not None]
            msg = f"{self.name} declares no decomposition; these do: {', '.join(known)}"
            raise InputError(msg)
        bound = bound_by_library(self.declaration, arrays, arguments).in_memory()
        with bound.naming_arguments():
            parts = self.declaration.decomposition(passes.statistics(bound.plan), promoted(bound.arguments))
            means = {name: as_scalar(array_namespace(rows).mean(rows)) for name, rows in parts.items()}
            for name, mean in means.items():
                check_finite(mean, f"the part {name}")
        return means


def input_gradients(bound: BoundLoss, evaluation: passes.Evaluation, cotangent: Any = None) -> dict[str, Any]:
    """Gradients of an evaluation by the inputs that have one, in their dtypes.

    Parameters
    ----------
    bound : BoundLoss
        What was evaluated, with ``keep=True``.
    evaluation : Evaluation
    cotangent : array, optional
        One number a row; without it the gradient is that of the reduced value.

    Raises
    ------
    InputError
        If a gradient leaves the range of its dtype.
    """
    return bound.gradients(evaluation, cotangent)


def differentiable(declaration: Loss) -> list[str]:
    """Names of the inputs that get a gradient when they are given."""
    return declaration.differentiable


def signature(declaration: Loss) -> inspect.Signature:
    """The signature that `help` and editors show."""
    shown = []
    for p in declaration.parameters:
        positional = isinstance(p, Array | Labels) and p.positional
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if positional else inspect.Parameter.KEYWORD_ONLY
        shown.append(inspect.Parameter(p.name, kind, default=default_of(p)))
    shown.append(inspect.Parameter("reduction", inspect.Parameter.KEYWORD_ONLY, default="mean"))
    shown.append(inspect.Parameter("compute", inspect.Parameter.KEYWORD_ONLY, default=True))
    # Positional ones first, as a signature has to be; a stable sort keeps the declared order otherwise.
    return inspect.Signature(sorted(shown, key=lambda p: p.kind))


def default_of(p: Parameter) -> Any:
    """The default of a parameter, `inspect.Parameter.empty` where it must be given."""
    if isinstance(p, Array | Labels):
        return inspect.Parameter.empty if p.required else None
    return inspect.Parameter.empty if isinstance(p, Scalar) and p.default is ... else p.default


def document(declaration: Loss) -> str:
    """The docstring of a loss, made from its declaration."""
    lines = [declaration.summary, "", declaration.text, "", "Parameters", "----------"]
    for p in declaration.parameters:
        lines += [f"{p.name} : {describe(p)}", f"    {p.meaning}"]
    lines += ['reduction : {"mean", "sum", "none"}' if declaration.has_rows else 'reduction : {"mean"}']
    lines += [f'    Row shape of "none": {declaration.rows}.' if declaration.has_rows else "    The loss has no rows."]
    lines += ["compute : bool, default True", "    Of arrays of Dask, whether the value is computed now."]
    lines += ["", "Returns", "-------", "float", "    In nats; a 0-d array for arrays that are not NumPy's.", ""]
    lines += ["Raises", "------", "InputError", "    For any argument that the loss cannot take.", ""]
    if declaration.notes:
        lines += ["Notes", "-----", declaration.notes, ""]
    lines += ["References", "----------", *(f".. [{i}] {s}" for i, s in enumerate(declaration.sources, 1))]
    return "\n".join(lines)


def describe(p: Parameter) -> str:
    """Type, shape and domain of a parameter in a few words."""
    if isinstance(p, Choice):
        return "{" + ", ".join(repr(option) for option in p.options) + "}"
    if isinstance(p, Scalar):
        constant = ", constant" if p.constant else ""
        return f"float, {domain(p)}{constant}" + ("" if p.default is ... else f", default {p.default}")
    shapes = [p.shape] + ([p.alternative] if isinstance(p, Array) and p.alternative else [])
    shape = " or ".join(f"({', '.join(s)}{',' if len(s) == 1 else ''})" for s in shapes)
    entries = {"counts": "float or int", "mask": "float or bool"}
    kind = "int array" if isinstance(p, Labels) else f"{entries.get(p.like, 'float')} array"
    constant = ", constant" if isinstance(p, Array) and p.constant else ""
    return f"{kind} {shape}{constant}" + ("" if p.required else ", optional")


def get_loss(name: str) -> LossFunction:
    """The loss of that name, or a loss of one's own.

    Parameters
    ----------
    name : str
        A name of the package, one under which it is released, such as ``NTXentLoss``, or ``file.py:LOSS`` or
        ``package.module:LOSS`` for a declaration, ``nceref.spec.Loss``, outside of it. The file is executed.

    Raises
    ------
    InputError
        If there is none; the message names the nearest ones, or the file, the attribute and what was expected there.
    """
    text = str.__str__(name) if isinstance(name, str) else shown(name)
    if not registry.names_object(text):
        return _get_loss(text)
    file = Path(text.rpartition(":")[0])
    # A file that has changed is another loss.
    return _own_loss(text, file.resolve(), file.stat().st_mtime_ns if file.is_file() else 0)


@cache
def _get_loss(name: str) -> LossFunction:
    known = registry.discover(FAMILY, "LOSS", Loss)
    if name not in known and (own := _released_as(name, known.values())):
        return _get_loss(own)
    if transform := _TRANSFORMS.get(letters(name).removesuffix("loss")):
        msg = f"no loss named {shown(name)}: it is made of one, see nceref.transforms.{transform} and docs/losses.md"
        raise InputError(msg)
    return LossFunction(registry.pick("loss", name, known, "nceref losses"))


_TRANSFORMS = {
    "matryoshka": "matryoshka",
    "gradcache": "accumulated",
    "gradientcaching": "accumulated",
    "gradientaccumulation": "accumulated",
}
"""Names by which people know what a transform of a loss computes."""


def _released_as(name: str, known: Iterable[Loss]) -> str:
    """The loss that packages release under a name, ``NTXentLoss`` or one that it is known as; empty for none."""
    plain = letters(name)
    for loss in known:
        own = letters(loss.name)
        if plain in (own, f"{own}loss", *map(letters, loss.known_as)):
            return loss.name
    return ""


@cache
def _own_loss(text: str, file: Path, changed: int) -> LossFunction:
    declaration = registry.own_loss(text)
    known = registry.names(FAMILY)
    if declaration.name in known and declaration is not get_loss(declaration.name).declaration:
        msg = f"`loss`: {printable(text)} has the name of a loss of the package, {declaration.name!r}; give it another"
        raise InputError(msg)
    return get_loss(declaration.name) if declaration.name in known else LossFunction(declaration, text)


def all_losses() -> dict[str, LossFunction]:
    """Every loss by name, sorted."""
    return {name: get_loss(name) for name in registry.names(FAMILY)}


def __getattr__(name: str) -> LossFunction:
    if name in registry.names(FAMILY):
        return get_loss(name)
    msg = str(registry.unknown("loss", name, registry.names(FAMILY), "nceref losses"))
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return ["LossFunction", "all_losses", "get_loss", *registry.names(FAMILY)]
