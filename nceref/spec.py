"""The parts of the declaration of a loss: frozen data without behavior."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal


@dataclass(frozen=True)
class Source:
    """A source of a formula: the work, the passage in it, and the kind of text that was read."""

    work: str
    place: str
    read: Literal["paper", "authors' code", "third-party code", "third-party note", "source text", "derived here"]

    def __str__(self) -> str:
        return f"{self.work}, {self.place} [{self.read}]"


@dataclass(frozen=True)
class Array:
    """A float array argument. Equal letters in `shape` mean equal sizes across all arguments.

    Attributes
    ----------
    shape : tuple of str
        One letter a dimension; a tuple of tuples where several numbers of dimensions are accepted.
    constant : bool
        A declared constant: it gets no gradient.
    embedding : bool
        Rows that ``normalize="l2"`` scales to unit length.
    low : float or None
        Every entry must be greater (or, with `closed`, at least).
    like : str
        What generated test inputs look like: ``"embedding"``, ``"vector"``, ``"counts"``, ``"prior"``, ``"weights"``.
    """

    name: str
    shape: tuple[str, ...]
    meaning: str
    required: bool = True
    positional: bool = True
    constant: bool = False
    embedding: bool = True
    low: float | None = None
    closed: bool = False
    alternative: tuple[str, ...] | None = None
    like: str = "embedding"


@dataclass(frozen=True)
class Labels:
    """An integer array argument; with `classes`, entries index that dimension: 0 <= label < classes."""

    name: str
    shape: tuple[str, ...]
    meaning: str
    required: bool = True
    positional: bool = True
    classes: str | None = None


@dataclass(frozen=True)
class Scalar:
    """A float argument with its symbol, its domain and a typical range.

    `default` is ``...`` where the argument must be given. `constant` scalars (hyperparameters) get no gradient.
    """

    name: str
    symbol: str
    meaning: str
    default: Any = ...
    low: float = float("-inf")
    high: float = float("inf")
    low_closed: bool = False
    high_closed: bool = False
    constant: bool = False
    typical: tuple[float, float] = (0.1, 1.0)
    optional: bool = False


@dataclass(frozen=True)
class Choice:
    """A named policy: one of a few words, or a truth value."""

    name: str
    options: tuple[Any, ...]
    default: Any
    meaning: str


Parameter = Array | Labels | Scalar | Choice


@dataclass(frozen=True)
class Relation:
    """A statement about two losses, with its evidence: `sides(losses, inputs)` returns two things that must be equal.

    `other` names the neighbor; `inputs` are arguments of the loss that declares the relation. With ``kind="<="`` the
    left side must not exceed the right one. `given` is the hypothesis, as that of a property.
    """

    other: str
    statement: str
    sides: Callable[[Any, Any], tuple[Any, Any]]
    kind: Literal["==", "<="] = "=="
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Expectation:
    """A number that the loss should read in a named situation, with the claim or derivation behind it.

    `at(sizes)` receives the sizes and scalars of `nceref expect` as attributes and returns a float, or None where
    the situation cannot arise for these sizes. Where the formula depends on whether D, the features of an embedding,
    is known, a situation is declared twice: with `dim` True for a given D, and with `dim` False. `assumes` names what
    the batch must be made of, such as "balanced classes", where the number is no statement about every batch.
    """

    situation: Literal["chance", "collapse", "optimum", "lower bound", "upper bound"]
    formula: str
    because: str
    at: Callable[[Any], float | None]
    dim: bool | None = None
    assumes: str = ""


@dataclass(frozen=True)
class Kink:
    """A place at which a gradient does not exist, and the subgradient that is returned there.

    `near(inputs, eps)` is true for arguments on the kink or within rounding of it, in a format of that precision. Where
    the value itself `jumps`, rounding decides what it is, and none is compared.
    """

    name: str
    where: str
    subgradient: str
    near: Callable[[Mapping[str, Any], float], bool]
    jumps: bool = False


_WANTED: Mapping[str, str] = {
    "rows": "what reduction='none' returns, such as '(N,)', or '' for one number",
    "sign": "which values occur, such as '>= 0' or 'either sign'",
    "unit": "of the values, such as 'nats', or '' for a plain number",
}
"""Fields that only the author of a loss can know: they have no default, since that would state them."""


def always(*names: str) -> dict[str, Mapping[str, Any]]:
    """Properties that hold for all settings."""
    return dict.fromkeys(names, MappingProxyType({}))


@dataclass(frozen=True, eq=False, kw_only=True)
class Loss:
    """One loss: the formula that judges, the program that is judged, and what is declared about both.

    Compared by identity: there is one declaration of each, and two callables are never equal by content.

    Attributes
    ----------
    formula : callable
        ``formula(m, **arguments)``: the textbook definition over the number system `m`; returns the row values
        (a row without a positive that a policy leaves out is None), or one number for a loss without rows.
    plan : callable
        ``plan(**arguments)``: who is compared with whom and the head over the row statistics, a `Plan`;
        float arrays come in one dtype, float32 or float64.
    properties : mapping
        Exactly those properties that hold, by name, each with its hypothesis: a mapping from parameters to the value,
        or tuple of values, for which it holds, ``{}`` if it always does. ``None`` is not given, ``...`` is given. Names
        alone are properties without a hypothesis.
    rows, sign, unit : str
        Shape of the row values, empty for a loss without rows; the sign of the values; their unit, empty for a plain
        number. None of them has a default.
    mean_over : str or None
        The argument whose length divides the sum of the rows in the mean; None: the number of rows.
    single : bool
        Whether a batch of one sample has a loss; False where there would be no negative or no positive.
    variants : tuple of mappings
        Argument sets that the checks go through: a value, ``...`` for a generated array, or "views" for the
        alternative shape. Properties are checked for all of them, and for changes of the first one.
    lowest_temperature : float
        Below it nothing is judged: the loss, written as it is, leaves the range of floats there. Where it is not even
        defined, the scalar has a `low` of its own instead.
    known_as : tuple of str
        Names of classes in released packages that compute it, such as "SupConLoss".
    decomposition : callable or None
        ``decomposition(statistics, arguments)``: row values of named parts that add up to the loss.
    """

    name: str
    summary: str
    text: str
    latex: str
    gradient: str
    parameters: tuple[Parameter, ...]
    sources: tuple[Source, ...]
    formula: Callable[..., Any]
    plan: Callable[..., Any]
    properties: Mapping[str, Mapping[str, Any]]
    rows: str = ...  # type: ignore[assignment]
    sign: str = ...  # type: ignore[assignment]
    unit: str = ...  # type: ignore[assignment]
    relations: tuple[Relation, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    kinks: tuple[Kink, ...] = ()
    notes: str = ""
    mean_over: str | None = None
    single: bool = True
    lowest_temperature: float = 0.0
    known_as: tuple[str, ...] = ()
    decomposition: Callable[[Any, Any], Mapping[str, Any]] | None = None
    variants: tuple[Mapping[str, Any], ...] = (MappingProxyType({}),)

    def __post_init__(self) -> None:
        """Raise TypeError for what is not declared, by its name."""
        for name, meaning in _WANTED.items():
            if not isinstance(getattr(self, name), str):
                msg = f"the loss {self.name!r} must declare `{name}`: {meaning}"
                raise TypeError(msg)
        properties: Any = self.properties
        if not isinstance(properties, Mapping):
            object.__setattr__(self, "properties", always(*properties))

    @property
    def has_rows(self) -> bool:
        """Whether ``reduction="none"`` means anything for this loss."""
        return bool(self.rows)

    def jumps_near(self, inputs: Mapping[str, Any], eps: float) -> bool:
        """Whether the value jumps within rounding of these arguments; those that are left out are as by default."""
        given = {**{p.name: getattr(p, "default", None) for p in self.parameters}, **inputs}
        return any(kink.jumps and kink.near(given, eps) for kink in self.kinks)

    @property
    def differentiable(self) -> list[str]:
        """Names of the inputs that get a gradient when they are given."""
        return [p.name for p in self.parameters if isinstance(p, Array | Scalar) and not p.constant]
