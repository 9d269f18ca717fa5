"""Explains a value in a training log by what the loss should read: 'why am I stuck at log(2N - 1)?'."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import groupby
from typing import Any

from nceref.checks.expect import ExpectedReadings, Reading
from nceref.errors import InputError
from nceref.output.text import printable, shown

ADVICE = {
    "chance": "independent random rows read this: nothing is learned yet, or the pairs do not belong together",
    "collapse": "equal rows read this: the embeddings are all alike, or the temperature hides their differences",
    "optimum": "no embeddings of this batch do better: nothing is left to gain",
    "lower bound": "no batch reads less",
    "upper bound": "no batch reads more",
}

_ADVICE_OF_SCORES = {
    "chance": "logits that tell nothing apart read this: nothing is learned yet",
    "collapse": "equal logits read this: the model tells nothing apart",
}

# A value is taken for a named one if so many digits agree (all, where it has fewer, but at least two), for a multiple
# of one if more do.
_SAME, _LEAST = 3, 2

# Standard deviations of the mean of n cosines of random rows, over the temperature, that a batch may be off chance.
_SCATTER = 5

# Standard deviations of one batch that are chance.
_SINGLE = 3

_ORIGIN = frozenset({"chance", "collapse"})


@dataclass(frozen=True)
class Location:
    """The place of a value, in sentences; `possible` is False outside the bounds and below the optimum."""

    value: float
    sentences: tuple[str, ...]
    possible: bool = True


def locate(expected: ExpectedReadings, value: str) -> Location:
    """Say which situation a value is, or which ones it lies between.

    `expected`: what the loss should read, see `expected_readings`. `value`: a number as it is printed in a log: its
    digits say how precisely it is known. Raises `InputError` if `value` is no finite number.
    """
    x = _decimal(value)
    known = [r for r in expected.readings if r.value is not None]
    digits = {r.situation: shared_digits(x, r.value or 0.0) for r in known}
    best = max(digits.values(), default=0)
    enough = max(_LEAST, min(_SAME, _precision(x)))
    same = [r for r in known if x == Decimal(repr(r.value)) or digits[r.situation] == best >= enough]
    batch = tuple(_one_batch(expected, float(x)))
    if same:
        chance = any(r.situation == "chance" for r in same)
        return Location(float(x), (*_equal(expected, value, same, best), *(() if chance else batch)))
    multiples = tuple(_multiples(expected, x))
    if outside := _outside(expected, value, known):
        return Location(float(x), (*multiples, *outside), possible=False)
    if unlike := _unlike_assumed(expected, value, known):
        return Location(float(x), (*multiples, unlike))
    if batch:
        return Location(float(x), (*(multiples or (f"{value} {_where(value, known)}.",)), *batch))
    return Location(float(x), multiples or (_between(expected, value, known),))


def _one_batch(expected: ExpectedReadings, x: float) -> Iterator[str]:
    """The distance of a value from chance, which is the mean over many batches, where one batch is usually as far."""
    for reading in expected.readings:
        if reading.situation != "chance" or reading.value is None or not reading.spread:
            continue
        off = (x - reading.value) / reading.spread
        if abs(off) <= _SINGLE:
            side = "above" if off > 0 else "below"
            yield (
                f"One batch of random rows may be that far from the mean over many: it is {abs(off):.1f} standard "
                f"deviations of one batch ({reading.spread:.2g}) {side} chance ({reading.value:.7g})."
            )


def shared_digits(x: Decimal, value: float) -> int:
    """The significant digits on which x and a value agree: at most those of x; with the value 0 all or none."""
    # The shortest decimal that is this float, not all digits of its binary fraction.
    y = Decimal(repr(value))
    if not y:
        return 0 if x else _precision(x)
    for digits in range(_precision(x), 0, -1):
        if 2 * abs(x - y) <= Decimal(1).scaleb(y.adjusted() - digits + 1):
            return digits
    return 0


def _decimal(value: str) -> Decimal:
    try:
        x = Decimal(str(value).strip() if isinstance(value, str | int | float) else "")
    except (InvalidOperation, ValueError):
        msg = f"`value` must be a number, got {shown(value)}"
        raise InputError(msg) from None
    if not math.isfinite(float(x)):
        msg = f"`value` must be finite, got {printable(value)}; no loss reads that: look for a log of 0 or an overflow"
        raise InputError(msg)
    return x


def _precision(x: Decimal) -> int:
    return len(x.as_tuple().digits)


def _equal(expected: ExpectedReadings, value: str, same: Sequence[Reading], digits: int) -> Iterator[str]:
    yield f"{value} is {_named(same)}, {f'to {digits} digits' if digits >= _LEAST else 'exactly'}."
    situations = [r.situation for r in same]
    advice = ADVICE if expected.normalized else ADVICE | _ADVICE_OF_SCORES
    yield from (f"{situation}: {advice[situation]}." for situation in situations)
    if {r.situation for r in same} >= _ORIGIN and _without_dim(expected):
        yield "In D dimensions random rows read more than equal ones: give --dim to separate chance from collapse."


def _named(readings: Sequence[Reading]) -> str:
    """Situations with their value: ``collapse and chance (6.23637)``."""
    groups = [list(group) for _, group in groupby(readings, key=lambda r: r.value)]
    return " and ".join(f"{' and '.join(r.situation for r in group)} ({group[0].value:.7g})" for group in groups)


def _without_dim(expected: ExpectedReadings) -> bool:
    return expected.settings.get("dim", 0) is None


def _outside(expected: ExpectedReadings, value: str, known: Sequence[Reading]) -> tuple[str, ...]:
    """Sentences if no batch reads the value, by more than float32 or the digits printed may round."""
    x, slack = float(value), _rounding(expected, value, known)
    values = {r.situation: r.value for r in _of_every_batch(known) if r.value is not None}
    for reading in _of_every_batch(known):
        limit = reading.value or 0.0
        below = reading.situation == "lower bound" and x < limit - slack
        if below or (reading.situation == "upper bound" and x > limit + slack):
            side = "below" if below else "above"
            cure = "another reduction, or rows that are not of length 1" if expected.normalized else "another reduction"
            return (f"{value} is {side} the {_named([reading])}: another loss, {cure}.", *_zero(value))
    optimum = values.get("optimum")
    if optimum is not None and x < optimum - slack:
        single = x >= values.get("lower bound", -math.inf) - _printed(value)
        meaning = f"no batch reads that{', only a single row' if single else ''}"
        meaning += "; or there are fewer negatives than assumed"
        return (f"{value} {_where(value, known)}: {meaning}.", *_zero(value))
    return ()


def _of_every_batch(known: Sequence[Reading]) -> list[Reading]:
    """Readings that assume nothing of the batch."""
    return [r for r in known if not r.assumes]


def _unlike_assumed(expected: ExpectedReadings, value: str, known: Sequence[Reading]) -> str:
    """A sentence if only batches of another make than a reading assumes are below it."""
    slack = _rounding(expected, value, known)
    limits = [r for r in known if r.assumes and r.situation in ("optimum", "lower bound")]
    below = next((r for r in limits if float(value) < (r.value or 0.0) - slack), None)
    return f"{value} {_where(value, known)}: no batch of {below.assumes} reads that, others may." if below else ""


def _zero(value: str) -> Iterator[str]:
    if float(value) == 0:
        yield "0.0000 in a log may also be the rounding of a tiny loss, in print or in float32: print more digits."


def _rounding(expected: ExpectedReadings, value: str, known: Sequence[Reading]) -> float:
    """The most that a value may be off: half a unit of its last digit after the point, and one of float32.

    Logits are about half of the largest reading, and float32 numbers of that size a quarter of the unit apart or more.
    A mean over 2 n rows of their differences is 0, or at least that over 2 n: what lies between is no rounding.
    """
    unit = 2.0**-23 * max((abs(r.value or 0.0) for r in known), default=0.0)
    rounded = not float(value) or abs(float(value)) >= unit / 8 / (expected.settings.get("n") or 1)
    return _printed(value) + (unit if rounded else 2.0**-23 * abs(float(value)))


def _printed(value: str) -> float:
    """Half a unit of the last digit after the point."""
    places = _decimal(value).as_tuple().exponent
    return 0.5 * 10.0**places if isinstance(places, int) and places < 0 else 0.0


def _where(value: str, known: Sequence[Reading]) -> str:
    """The readings that a value lies between: ``lies between optimum (0.1) and chance (2.3)``."""
    x = float(value)
    below = [r for r in known if r.value is not None and r.value < x]
    above = [r for r in known if r.value is not None and r.value > x]
    ends = [_named([r for r in side if r.value == side[end].value]) for side, end in ((below, -1), (above, 0)) if side]
    if not ends:
        return "cannot be placed: no reading is known for these sizes"
    return f"lies between {' and '.join(ends)}" if len(ends) == 2 else f"is {'above' if below else 'below'} {ends[0]}"


def _between(expected: ExpectedReadings, value: str, known: Sequence[Reading]) -> str:
    """The place of the value and its meaning; blame is laid only on what random rows do not read."""
    x = float(value)
    values = {r.situation: r.value for r in known if r.value is not None}
    below, above = ({s for s, v in values.items() if v < x}, {s for s, v in values.items() if v > x})
    meaning = ""
    if above & {"optimum", "lower bound"} and not below & _ORIGIN:
        lowest = min(v for v in (values.get("optimum"), values.get("lower bound")) if v is not None)
        how = "to the digits given" if x >= lowest - _printed(value) else "where float32 rounds: print more digits"
        meaning = f"as low as it gets, {how}"
    elif above & _ORIGIN and any(r.needs_dim and r.situation == "chance" for r in expected.readings):
        meaning = "less than equal rows; what random rows read depends on --dim"
    elif above & _ORIGIN:
        learned = _LEARNED if "optimum" in values else _BETTER
        learned = learned if expected.normalized else _BETTER_SCORES
        meaning = ("between random rows and equal ones" if below & _ORIGIN else learned) + _unsure(expected, x)
    elif below & _ORIGIN:
        meaning = _above_all(expected, x, values.get("chance"))
    return f"{value} {_where(value, known)}{f': {meaning}' if meaning else ''}."


_LEARNED = (
    "positives are told from negatives, and there is room for more; a collapse onto a few points may read that too"
)
_BETTER = "better than random rows and equal ones; the optimum is not known for these sizes"
_BETTER_SCORES = "better than chance; how low it can get depends on the data"


def _unsure(expected: ExpectedReadings, x: float) -> str:
    """A sentence on what would tell a value below chance from one batch of random rows."""
    chance = next((r for r in expected.readings if r.situation == "chance" and r.value is not None), None)
    if chance is None or chance.value is None or chance.spread is not None or not expected.normalized:
        return ""
    if missing := _missing(expected):
        return f"; one batch of random rows may read that too: give {missing}"
    near = x >= chance.value - _scatter(expected.settings)
    return "; or about chance: batches of random rows scatter that much" if near else ""


def _missing(expected: ExpectedReadings) -> str:
    """The options without which the scatter of one batch is not known."""
    return " and ".join(f"--{name}" for name in ("n", "dim") if expected.settings.get(name) is None)


def _above_all(expected: ExpectedReadings, x: float, chance: float | None) -> str:
    """The meaning of a value above those of random and of equal rows."""
    if chance is None:
        return "more than equal rows; random rows may read that too, and what they read is not known for these sizes"
    if _without_dim(expected):
        return "more than equal rows; random rows may read that in few dimensions: give --dim"
    if not expected.normalized:
        return "more than chance: large random logits read that, and so do wrong targets or a flipped sign"
    spread = next((r.spread for r in expected.readings if r.situation == "chance"), None)
    if spread is None and x <= chance + _scatter(expected.settings):
        if missing := _missing(expected):
            return f"more than chance; one batch of random rows may read that too: give {missing}"
        return "about chance: batches of random rows scatter that much"
    if spread and x <= chance + _SCATTER * spread:
        off = f"{(x - chance) / spread:.1f} standard deviations of one batch ({spread:.2g})"
        return f"more than all but a few batches of random rows read, {off} above chance"
    return "worse than guessing; look for a wrong positive, shuffled pairs or a flipped sign"


def _scatter(settings: Mapping[str, Any]) -> float:
    """The usual distance of a random batch from chance; sizes that no reading depends on may be as small as 1."""
    scale = settings.get("logit_scale") or settings.get("scale") or 1 / settings.get("temperature", 1.0)
    return float(_SCATTER * scale / math.sqrt(settings.get("dim") or 1) / math.sqrt(settings.get("n") or 1))


def _multiples(expected: ExpectedReadings, x: Decimal) -> Iterator[str]:
    """Conventions under which the value is a named one after all."""
    known = [r for r in expected.readings if r.value and not r.situation.endswith("bound")]
    for value, group in groupby(known, key=lambda r: r.value or 0.0):
        named = _named(list(group))
        for factor, words in _conventions(expected).items():
            if shared_digits(x, factor * value) > _SAME:
                yield f"{x} is {words.format(named)}."


def _conventions(expected: ExpectedReadings) -> dict[float, str]:
    """Factors between implementations of what is called the same loss, and how they come about."""
    twice = "twice {}: two directions are added, not averaged" if expected.normalized else "twice {}"
    out = {2.0: twice, 0.5: "half of {}", 1 / math.log(2): "{} in bits"}
    n, scale = expected.settings.get("n"), expected.settings.get("logit_scale")
    t = 1 / scale if scale else expected.settings.get("temperature")
    if n:
        sums = {count: f"{count} times {{}}: a sum over rows, not a mean" for count in (n, 2 * n)}
        out |= {**sums, 1 / n: f"{{}} divided by {n}: divided by N once too often"}
    if t:
        out |= {t: "{} times the temperature", 1 / t: "{} divided by the temperature"}
    return out
