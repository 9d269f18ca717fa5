"""Where a value that somebody reads belongs among what a loss should read: 'why am I stuck at log(2N - 1)?'."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import groupby

from nceref.errors import InputError
from nceref.expect import Outlook, Reading

ADVICE = {
    "chance": "independent random rows read this: nothing is learned yet, or the pairs do not belong together",
    "collapse": "equal rows read this: the embeddings are all alike, or the temperature hides their differences",
    "optimum": "no embeddings of this batch do better: nothing is left to gain",
    "lower bound": "no rows of length 1 read less",
    "upper bound": "no rows of length 1 read more",
}

# A value is taken for a named one if so many digits agree (all, where it has fewer), for a multiple of one if more do.
_SAME = 3

_ORIGIN = frozenset({"chance", "collapse"})


@dataclass(frozen=True)
class Place:
    """Where a value belongs, in sentences; `possible` is False outside the bounds."""

    value: float
    sentences: tuple[str, ...]
    possible: bool = True


def locate(found: Outlook, value: str) -> Place:
    """Say which situation a value is, or which ones it lies between.

    Parameters
    ----------
    found : Outlook
    value : str
        A number as it is printed in a log: its digits say how precisely it is known.

    Returns
    -------
    Place

    Raises
    ------
    InputError
        If `value` is no finite number.
    """
    x = _decimal(value)
    known = [r for r in found.readings if r.value is not None]
    digits = {r.situation: shared_digits(x, r.value or 0.0) for r in known}
    best = max(digits.values(), default=0)
    if best >= min(_SAME, _precision(x)):
        return Place(float(x), tuple(_equal(found, value, [r for r in known if digits[r.situation] == best], best)))
    multiples = tuple(_multiples(found, x))
    if outside := _outside(value, known):
        return Place(float(x), (*multiples, outside), possible=False)
    return Place(float(x), multiples or (_between(found, value, known),))


def shared_digits(x: Decimal, value: float) -> int:
    """On how many significant digits x and a value agree: at most the digits of x; with the value 0 all or none."""
    y = Decimal(repr(value))
    if not y:
        return 0 if x else _precision(x)
    for digits in range(_precision(x), 0, -1):
        if 2 * abs(x - y) <= Decimal(1).scaleb(y.adjusted() - digits + 1):
            return digits
    return 0


def _decimal(value: str) -> Decimal:
    try:
        x = Decimal(str(value).strip())
    except InvalidOperation:
        msg = f"`value` must be a number, got {value!r}"
        raise InputError(msg) from None
    if not x.is_finite():
        msg = f"`value` must be finite, got {value}; no loss reads that: look for a log of 0 or an overflow"
        raise InputError(msg)
    return x


def _precision(x: Decimal) -> int:
    return len(x.as_tuple().digits)


def _equal(found: Outlook, value: str, same: Sequence[Reading], digits: int) -> Iterator[str]:
    count = f"{digits} digit{'s' if digits > 1 else ''}"
    yield f"{value} is {_named(same)}, to {count}."
    yield from (f"{r.situation}: {ADVICE[r.situation]}." for r in same)
    if {r.situation for r in same} >= _ORIGIN and _without_dim(found):
        yield "In D dimensions random rows read more than equal ones: --dim tells chance from collapse."


def _named(readings: Sequence[Reading]) -> str:
    """Situations with their value: ``collapse and chance (6.23637)``."""
    groups = [list(group) for _, group in groupby(readings, key=lambda r: r.value)]
    return " and ".join(f"{' and '.join(r.situation for r in group)} ({group[0].value:.7g})" for group in groups)


def _without_dim(found: Outlook) -> bool:
    return found.settings.get("dim", 0) is None


def _outside(value: str, known: Sequence[Reading]) -> str:
    """A sentence if the value is beyond a bound by more than float32 may round."""
    x = float(value)
    resolution = 2.0**-23 * max((abs(r.value or 0.0) for r in known), default=0.0)
    for reading in known:
        limit = reading.value or 0.0
        below = reading.situation == "lower bound" and x < limit - resolution
        if below or (reading.situation == "upper bound" and x > limit + resolution):
            side, cure = (
                "below" if below else "above",
                "another loss, another reduction, or rows that are not of length 1",
            )
            return f"{value} is {side} the {_named([reading])}: {cure}."
    return ""


def _between(found: Outlook, value: str, known: Sequence[Reading]) -> str:
    x = float(value)
    below = [r for r in known if r.value is not None and r.value < x]
    above = [r for r in known if r.value is not None and r.value > x]
    ends = [_named([r for r in side if r.value == side[end].value]) for side, end in ((below, -1), (above, 0)) if side]
    where = f"lies between {' and '.join(ends)}" if len(ends) == 2 else f"is {'above' if below else 'below'} {ends[0]}"
    return (
        f"{value} {where}{_meaning({r.situation for r in below}, {r.situation for r in above}, _without_dim(found))}."
    )


def _meaning(below: set[str], above: set[str], without_dim: bool) -> str:
    """What it means to lie above some situations and below others."""
    origin_below, origin_above = below & _ORIGIN, above & _ORIGIN
    if "optimum" in above and "optimum" not in below and not origin_below:
        return ": no batch reads that, only a single row; or there are fewer negatives than assumed"
    if origin_above and origin_below:
        return ": between random rows and equal ones"
    if origin_above:
        return ": positives are told from negatives, and there is room for more"
    if origin_below and without_dim:
        return ": more than equal rows; random rows may read that in few dimensions, which --dim will tell"
    return ": worse than guessing; look for a wrong positive, shuffled pairs or a flipped sign" if origin_below else ""


def _multiples(found: Outlook, x: Decimal) -> Iterator[str]:
    """Conventions under which the value is a named one after all."""
    known = [r for r in found.readings if r.value and not r.situation.endswith("bound")]
    for value, group in groupby(known, key=lambda r: r.value or 0.0):
        named = _named(list(group))
        for factor, words in _conventions(found).items():
            if shared_digits(x, factor * value) > _SAME:
                yield f"{x} is {words.format(named)}."


def _conventions(found: Outlook) -> dict[float, str]:
    """Factors between implementations of what is called the same loss, and how they come about."""
    out = {2.0: "twice {}: two directions are added, not averaged", 0.5: "half of {}", 1 / math.log(2): "{} in bits"}
    n, scale = found.settings.get("n"), found.settings.get("logit_scale")
    t = 1 / scale if scale else found.settings.get("temperature")
    if n:
        sums = {count: f"{count} times {{}}: a sum over rows, not a mean" for count in (n, 2 * n)}
        out |= {**sums, 1 / n: f"{{}} divided by {n}: divided by N once too often"}
    if t:
        out |= {t: "{} times the temperature", 1 / t: "{} divided by the temperature"}
    return out
