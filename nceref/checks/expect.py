"""What a loss should read in named situations (chance, collapse, optimum, bounds), given the sizes of a run."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from nceref.checks.random_rows import Estimate
from nceref.checks.situations import Sizes
from nceref.engine.arguments import checked_number, domain, integer, one_of
from nceref.engine.entry_point import entry_point
from nceref.engine.parameters import LOGIT_SCALE, TEMPERATURE
from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.output.text import printable, shown
from nceref.output.words import alike, as_code, did_you_mean
from nceref.spec import Array, Choice, Expectation, Loss, Scalar

# Sizes that are no parameter of any loss: the least value, what they count, and an example.
COUNTS = {
    "n": (1, "samples in the batch", 256),
    "dim": (1, "features of an embedding", 128),
    "classes": (1, "classes", 10),
    "views": (1, "views of a sample", 2),
    "queue": (0, "rows in the queue", 65536),
    "hard_negatives": (0, "hard negatives of a query", 4),
    "positives": (0, "positives of an anchor", 8),
}
MOST = 10**15
"""Of everything that is counted: larger integers are no floats any more."""
_DEFAULTS = {"dim": None, "classes": 10, "views": 1, "hard_negatives": 0}

# A number of features for which the integrals are quick.
_MANY = 1_000_000
_UNIT_ROWS = "rows of length 1"

# From low to high, where two are equal.
_RANKS = ("lower bound", "optimum", "collapse", "chance", "upper bound")


@dataclass(frozen=True)
class Reading:
    """A named situation with the value of the loss in it; None where it cannot arise, or where `dim` is missing.

    `because` names the derivation or claim; where a value is None for the sizes given, it has what that would need.
    A value that had to be drawn is off by about `error`, and `because` says what that is where it shows. `spread` is
    the standard deviation of one batch around the value, the mean over batches; None where it is not known. `assumes`
    names what the batch must be made of, such as "balanced classes"; empty where the value holds for every batch.
    """

    situation: str
    value: float | None
    formula: str
    because: str
    needs_dim: bool = False
    error: float = 0.0
    spread: float | None = None
    assumes: str = ""

    @property
    def exact(self) -> bool:
        """Whether the error, if any, is below the digits that are printed."""
        return self.value is None or self.error <= 5e-8 * abs(self.value)

    @property
    def reason(self) -> str:
        """Why it reads that, after what the batch must be made of."""
        return f"{self.assumes}: {self.because}" if self.assumes and self.value is not None else self.because


@dataclass(frozen=True)
class ExpectedReadings:
    """All readings of one loss, rising, and the settings they were computed from.

    Attributes
    ----------
    settings : mapping
        Every size and scalar that the readings depend on.
    defaults : frozenset of str
        Those of them that were not given.
    conventions : str
        Reduction, length of the rows and unit.
    address : str
        What `get_loss` finds the loss by.
    """

    loss: str
    sign: str
    settings: Mapping[str, Any]
    defaults: frozenset[str]
    readings: tuple[Reading, ...]
    conventions: str = ""
    address: str = ""

    @property
    def normalized(self) -> bool:
        """Whether the readings are those of rows of length 1; else the loss takes scores."""
        return _UNIT_ROWS in self.conventions


@entry_point
def expected_readings(name: str, given: Mapping[str, Any]) -> ExpectedReadings:
    """Evaluate every expectation of a loss.

    `name`: name of a loss. `given`: sizes (`n`, `dim`, `classes`, `views`, `queue`, `positives`) and parameters of the
    loss, as numbers or as text. `temperature` may be given instead of `logit_scale`, and the reverse. Result: for the
    mean reduction and, where the loss normalizes its embeddings, for rows of length 1. Raises `InputError` for an
    unknown name, a value outside its domain, a value that is missing, or one that changes nothing.
    """
    known_loss = get_loss(name)
    loss = known_loss.declaration
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        msg = f"`given` must map sizes and scalars to numbers, got {shown(given)}"
        raise InputError(msg)
    checked = {key: _checked(loss, key, value) for key, value in _one_scale(loss, given).items()}
    sizes = Sizes({**_defaults(loss), **checked}, scaled=any(p.name == "logit_scale" for p in loss.parameters))
    known = sizes.values["dim"] is not None
    readings = [_reading(e, sizes) for e in loss.expectations if e.dim in (None, known)]
    readings = _bounded(readings, loss, sizes)
    # Given or not, it chooses between an exact mean and its limit.
    if any(e.dim is not None for e in loss.expectations):
        sizes.read.add("dim")
    # Both change how far one batch of random rows is off chance, where they change no mean.
    if _takes_rows(loss):
        sizes.read.update(checked.keys() & {"n", "dim"})
    _refuse_missing(loss, sizes.missing)
    _refuse_unread(loss, checked, sizes)
    settings = {key: sizes.values[key] for key in sorted(sizes.read, key=_order)}
    # Readings without a value come last.
    readings.sort(key=lambda r: (math.inf if r.value is None else r.value, _RANKS.index(r.situation)))
    defaults = frozenset(settings) - frozenset(checked)
    return ExpectedReadings(
        loss.name, loss.sign, settings, defaults, tuple(readings), _conventions(loss), known_loss.address
    )


def _takes_rows(loss: Loss) -> bool:
    """Whether a loss takes embeddings, not scores."""
    return any(p.name == "normalize" for p in loss.parameters)


def _conventions(loss: Loss) -> str:
    parts = (
        "mean reduction" if loss.has_rows else "one number",
        _UNIT_ROWS if _takes_rows(loss) else "",
        f"in {loss.unit}" if loss.unit else "no unit",
    )
    return ", ".join(filter(None, parts))


def _read_with_dim(loss: Loss, sizes: Sizes) -> set[str]:
    """The sizes that readings would depend on if `dim` were given, any one: such values may be given without it."""
    probe = Sizes({**sizes.values, "dim": _MANY}, sizes.scaled)
    for expectation in loss.expectations:
        if expectation.dim:
            with suppress(OverflowError):
                expectation.at(probe)
    return probe.read


def _order(name: str) -> tuple[int, str]:
    return (list(COUNTS).index(name) if name in COUNTS else len(COUNTS), name)


def _one_scale(loss: Loss, given: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the temperature of a loss that has a logit scale into that scale, and the reverse."""
    out = {key: value for key, value in given.items() if value is not None}
    names = {p.name for p in loss.parameters}
    for own, other, inverse in (
        ("logit_scale", "temperature", TEMPERATURE),
        ("temperature", "logit_scale", LOGIT_SCALE),
    ):
        if other in out and own in names and other not in names:
            if own in out:
                msg = f"{loss.name} takes `temperature` = 1 / `logit_scale`; give one of them"
                raise InputError(msg)
            out[own] = 1 / _number(inverse, out.pop(other))
    return out


def _defaults(loss: Loss) -> dict[str, Any]:
    parameters = {p.name: p.default for p in loss.parameters if isinstance(p, Scalar | Choice) and p.default is not ...}
    queue = [p for p in loss.parameters if isinstance(p, Array) and p.name == "queue"]
    return {**_DEFAULTS, **parameters, **({} if queue and queue[0].required else {"queue": 0})}


def _checked(loss: Loss, name: str, value: Any) -> Any:
    if name in COUNTS:
        return _count(name, value)
    parameters = {p.name: p for p in loss.parameters if isinstance(p, Scalar | Choice)}
    if name not in parameters:
        known = [*parameters, *COUNTS]
        hint = did_you_mean(alike(printable(name), known), as_code) or f"it takes {', '.join(map(as_code, known))}"
        msg = f"{loss.name} has no size or scalar `{printable(name)}`; {hint}"
        raise InputError(msg)
    parameter = parameters[name]
    return _choice(parameter, value) if isinstance(parameter, Choice) else _number(parameter, value)


def _count(name: str, value: Any) -> int:
    least, meaning, _ = COUNTS[name]
    number = _number(Scalar(name, "", ""), value)
    return integer(f"`{name}`, the number of {meaning},", int(number) if number.is_integer() else number, least, MOST)


def _choice(parameter: Choice, value: Any) -> Any:
    words = {str(option): option for option in parameter.options}
    return words[value] if isinstance(value, str) and value in words else one_of(parameter.name, value, words.values())


def _number(parameter: Scalar, value: Any) -> float:
    """A number of the parameter's domain, given as one or as text."""
    try:
        return checked_number(parameter, float(value) if isinstance(value, str) else value)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
    msg = f"`{parameter.name}` must be a number, got {shown(value)}"
    raise InputError(msg)


def _reading(expectation: Expectation, sizes: Sizes) -> Reading:
    # A record of its own: what this reading looked up, and why it has no value.
    alone = Sizes(sizes.values, sizes.scaled)
    try:
        value = expectation.at(alone)
    except OverflowError:
        alone.absent("leaves the range of 64-bit floats, or takes too long to add up")
        value = None
    sizes.read.update(alone.read)
    if value is not None and not math.isfinite(value):
        alone.absent("needs a negative: there is none to compare with")
        value = None
    needs_dim = value is None and not alone.reasons and "dim" in alone.read and sizes.values["dim"] is None
    because = expectation.because
    if value is None and not needs_dim:
        because = ", and ".join(dict.fromkeys(alone.reasons)) or "does not arise for these sizes"
    out = Reading(expectation.situation, value, expectation.formula, because, needs_dim, assumes=expectation.assumes)
    if isinstance(value, Estimate):
        out = replace(out, value=float(value), error=value.error, spread=value.spread)
        out = out if out.exact else replace(out, because=f"{because}; {value.how}")
    return out


def _bounded(readings: list[Reading], loss: Loss, sizes: Sizes) -> list[Reading]:
    """The readings with an optimum that needs more dimensions as lower bound, where it is the larger one.

    Rows with zeros added have the same similarities: what no batch reads in many dimensions, none reads in few. The
    bound of every batch stays where the optimum assumes more.
    """
    by_situation = {reading.situation: reading for reading in readings}
    best = next((e for e in loss.expectations if e.situation == "optimum" and e.dim is None), None)
    if best is None or by_situation["optimum"].value is not None:
        return readings
    value = best.at(Sizes({**sizes.values, "dim": None}, sizes.scaled))
    lower = by_situation.get("lower bound")
    if value is None or not math.isfinite(value) or (lower and lower.value is not None and value <= lower.value):
        return readings
    because = f"no batch in D dimensions reads less than the best one in more: {best.because}"
    bound = Reading("lower bound", float(value), best.formula, because, assumes=best.assumes)
    return [*(r for r in readings if best.assumes or r.situation != "lower bound"), bound]


def _refuse_missing(loss: Loss, missing: set[str]) -> None:
    if not missing:
        return
    scalars = {p.name: p for p in loss.parameters if isinstance(p, Scalar)}
    needed, options = [], []
    for name in sorted(missing, key=_order):
        needed.append(f"`{name}` ({COUNTS[name][1] if name in COUNTS else domain(scalars[name])})")
        options.append(option(name, COUNTS[name][2] if name in COUNTS else scalars[name].typical[0]))
    msg = f"{loss.name} needs {' and '.join(needed)}; give, for example, {' '.join(options)}"
    raise InputError(msg)


def option(name: str, value: Any) -> str:
    """The option of `nceref expect` that gives a value."""
    own = name in ("n", "dim", "temperature", "logit_scale")
    return f"--{name.replace('_', '-')} {value}" if own else f"--set {name}={value}"


def _refuse_unread(loss: Loss, checked: Mapping[str, Any], sizes: Sizes) -> None:
    """Refuse what was given and changes nothing, where a user would believe that it does.

    A policy, or an optional scalar such as a base temperature, changes the loss but no declared expectation: the
    readings hold for its default alone.
    """
    read = sizes.read
    if sizes.values["dim"] is None and not checked.keys() <= read:
        # That takes as long as the readings, and most that is given was read by these.
        read = read | _read_with_dim(loss, sizes)
    parameters = {p.name: p for p in loss.parameters if isinstance(p, Scalar | Choice)}
    for name in sorted(checked.keys() - read):
        parameter = parameters.get(name)
        if parameter is None or not (isinstance(parameter, Choice) or parameter.optional):
            reads = ", ".join(f"`{r}`" for r in sorted(read, key=_order)) or "nothing"
            msg = f"no reading of {loss.name} depends on `{name}`; they depend on {reads}; leave `{name}` out"
            raise InputError(msg)
        if checked[name] != parameter.default:
            msg = f"the readings of {loss.name} are known for {name}={parameter.default!r} only, got {checked[name]!r}"
            raise InputError(msg)
