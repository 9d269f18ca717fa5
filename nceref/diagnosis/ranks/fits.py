"""Whether readings of the ranks predict the value of every rank, and with which factors the gradient that it leaves."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.diagnosis.ranks.parts import JOINED, RankCase, RankReading

POWERS = (0, 1, -1, 2, -2)
"""Of the number of ranks, the most usual first."""
SHARES = ("all", "own", "own mean")
"""Which rows a rank's value is of: the mean over all; its part of that, times the number of ranks; its own mean."""
CARRIED = 8.0
"""Bounds by which a gradient may be off whose factors were fitted."""
_ALIKE = 1e-6
_SEEN = 30.0
"""Bounds that a part must have to be seen."""
ROLES = ("anchors", "own candidates", "candidates of other ranks")
UNSEEN = -99
"""Stands for the power of a part that no case shows."""
Powers = tuple[int | None, ...]
"""By role, the power of the number of ranks that a part comes with; None where it is missing, or `UNSEEN`."""


@dataclass(frozen=True)
class ValueFit:
    """An explanation of the values of all ranks: readings by rank, a share, and a power of the number of ranks."""

    readings: tuple[RankReading, ...]
    share: str
    power: int

    @property
    def plain(self) -> bool:
        """Whether the ranks read the joined batch as they should."""
        return all(r == JOINED or (r.kind == "place" and r.place == k) for k, r in enumerate(self.readings))

    @property
    def signature(self) -> tuple[Any, ...]:
        """The part that is the same whatever the number of ranks is."""
        kinds = {(r.kind, r.masks) for r in self.readings}
        return tuple(sorted(kinds)), self.share, self.power


def shares(case: RankCase, reading: RankReading, rank: int, share: str) -> Any:
    """Weight of each row in what a rank's value is, by its share of the rows."""
    key = "share", reading, rank, share
    if key not in case.known:
        case.known[key] = _shares(case, reading, rank, share)
    return case.known[key]


def _shares(case: RankCase, reading: RankReading, rank: int, share: str) -> Any:
    weights = case.weights(reading, rank)
    if share == "all" or reading.kind == "shard":
        return weights
    samples = case.anchors(reading, rank)[0]
    mine = np.where(np.isin(samples, case.shards[rank]), weights, 0.0)
    if share == "own mean":
        return mine / (np.sum(mine) or 1.0)
    # Rows that are of no sample are on every rank.
    each = len(case.shards[rank]) / case.count
    return case.contract.world_size * np.where(samples < 0, each * weights, mine)


def _value(case: RankCase, reading: RankReading, rank: int, share: str) -> tuple[float, float]:
    """A rank's value before any factor, and how far a rank may be from it."""
    key = "value", reading, rank, share
    if key not in case.known:
        rows, plain = case.rows(reading, rank), case.rows(JOINED, 0)
        unit = 1 / case.contract.world_size if case.contract.value == "sum" else 1.0
        value = float(shares(case, reading, rank, share) @ rows.values) * unit
        bound = float(np.max(case.probe.bounds.value)) if case.probe.bounds else 0.0
        growth = max(1.0, (1 + rows.size) / (1 + plain.size)) * (1 if share == "all" else case.contract.world_size)
        case.known[key] = value, unit * (growth * bound + 16 * case.unit * (1 + rows.size) * (1 + rows.noise))
    known: tuple[float, float] = case.known[key]
    return known


def fits_value(case: RankCase, rank: int, reading: RankReading, share: str, power: int) -> bool:
    """Whether a rank's value is what a reading gives."""
    value, allowed = _value(case, reading, rank, share)
    factor = float(case.contract.world_size) ** power
    off = abs(float(case.answers[rank].value) - factor * value)
    return off <= factor * allowed


def value_fits(cases: Sequence[RankCase]) -> Iterator[ValueFit]:
    """Every reading that predicts the values of all ranks on all cases, the right one first."""
    count = cases[0].contract.world_size
    # The mean over the own rows says something else only where it differs from the own part.
    differ = any(_means_differ(case) for case in cases)
    possible = SHARES if differ else SHARES[:2]
    for power in POWERS:
        yield from (f for share in possible if (f := _holding(cases, (JOINED,) * count, share, power)))
    for reading in cases[0].readings:
        for share in _possible(cases[0], reading, possible):
            for power in POWERS:
                if fit := _holding(cases, (reading,) * count, share, power):
                    yield fit
    for masks in cases[0].masks:
        for share in possible[1:]:
            for power in POWERS:
                if fit := _places(cases, masks, share, power):
                    yield fit


def _possible(case: RankCase, reading: RankReading, every: tuple[str, ...]) -> tuple[str, ...]:
    if reading.kind == "shard":
        return ("own",)
    # An input of which each rank has all rows in an order of its own is that of a loss of all rows.
    if reading.kind == "first":
        return ("all",) if reading.masks in case.arrays else every[1:]
    # Whose candidates are not those of all has no others' anchors either.
    return every[1:] if reading.kind == "without" else every


def _holding(cases: Sequence[RankCase], readings: tuple[RankReading, ...], share: str, power: int) -> ValueFit | None:
    right = all(fits_value(c, k, reading, share, power) for c in cases for k, reading in enumerate(readings))
    return ValueFit(readings, share, power) if right else None


def _means_differ(case: RankCase) -> bool:
    totals = [np.sum(shares(case, JOINED, k, "own")) for k in range(case.contract.world_size)]
    return bool(np.ptp(totals) > 1e-9)


def _places(cases: Sequence[RankCase], masks: str, share: str, power: int) -> ValueFit | None:
    """The one place that predicts the values of each rank, its own first; None unless another is among them."""
    readings = []
    count = cases[0].contract.world_size
    for rank in range(count):
        places = (rank, *(k for k in range(count) if k != rank))
        options = (RankReading("place", place, masks) for place in places)
        fit = next((r for r in options if all(fits_value(c, rank, r, share, power) for c in cases)), None)
        if fit is None:
            return None
        readings.append(fit)
    if all(r.place == k for k, r in enumerate(readings)):
        return None
    return ValueFit(tuple(readings), share, power)


def parts(case: RankCase, fit: ValueFit, name: str, rank: int) -> tuple[Any, Any, Any]:
    """The part of the gradient that a rank should leave by its rows of an input, by role; the sum is right.

    `fit`: how the ranks read the batch. `name`: an input that is split. Result: of its rows as anchors, as candidates
    of the rank's own anchors, as candidates of the anchors of other ranks.
    """
    each = [parts_from(case, fit, name, rank, other) for other in range(len(fit.readings))]
    anchors, candidates, elsewhere = (sum(three[role] for three in each) for role in range(len(ROLES)))
    return anchors, candidates, elsewhere


def parts_from(case: RankCase, fit: ValueFit, name: str, rank: int, other: int) -> tuple[Any, Any, Any]:
    """The part that the value of one rank adds to `parts` of another, or of itself; parameters as there."""
    own, shape, reading = case.shards[rank], np.shape(case.inputs[name]), fit.readings[other]
    nothing = np.zeros((len(own), *shape[1:]))
    if reading.kind == "shard" and other != rank:
        return nothing, nothing, nothing
    weights, slopes = _upstream(case, fit, other), case.slopes(reading, other, name)[own]
    if _differentiates_all(fit, reading):
        return (slopes @ weights, nothing, nothing) if other == rank else (nothing, nothing, slopes @ weights)
    samples, anchors, views = case.anchors(reading, other)
    if other != rank:
        # Rows that are of no sample are shared by all ranks.
        return slopes @ np.where(samples < 0, weights, 0.0), nothing, slopes @ np.where(samples < 0, 0.0, weights)
    is_anchor = (own[:, None] == samples) & (anchors == (*case.arrays, name).index(name))
    if len(shape) > 2:
        is_anchor = is_anchor[:, None, :] & (np.arange(shape[1])[:, None] == views)
    is_anchor = is_anchor.reshape(*is_anchor.shape[:-1], *(1,) * (slopes.ndim - is_anchor.ndim), -1)
    # Rows that are of no sample have no anchor: they are wholly the rank's own.
    is_anchor = is_anchor | (samples < 0)
    return np.where(is_anchor, slopes, 0.0) @ weights, np.where(is_anchor, 0.0, slopes) @ weights, nothing


def _differentiates_all(fit: ValueFit, reading: RankReading) -> bool:
    """Whether each rank differentiates all rows, of a batch of its own."""
    return fit.share == "all" and reading.by_rank


def _upstream(case: RankCase, fit: ValueFit, rank: int) -> Any:
    """Weight of each row in the sum of what all ranks differentiate, for the gradient to be right."""
    reading = fit.readings[rank]
    share = "all" if _differentiates_all(fit, reading) else "own mean" if fit.share == "own mean" else "own"
    return case.contract.divisor / case.contract.world_size * shares(case, reading, rank, share)


def shared_part(case: RankCase, fit: ValueFit, name: str, rank: int) -> Any:
    """The part of the gradient that a rank's own rows should leave by an input that all ranks have."""
    return case.slopes(fit.readings[rank], rank, name) @ _upstream(case, fit, rank)


def room(case: RankCase, name: str, rank: int, wanted: Sequence[Any]) -> Any:
    """The allowed distance of the gradient that a rank leaves from what is expected, by entry."""
    bound = np.asarray(case.probe.bounds.grads[name]) if case.probe.bounds else np.zeros(())
    reference = np.asarray(case.probe.grads[name])
    if name in case.split:
        bound = bound[case.rows_given[case.shards[rank]]]
    largest = max(float(np.max(np.abs(part), initial=0.0)) for part in wanted)
    growth = max(1.0, largest / (case.contract.divisor * float(np.max(np.abs(reference), initial=0.0)) + 1e-300))
    return case.contract.divisor * np.minimum(growth, 1e6) * bound + 64 * case.unit * largest


def powers(cases: Sequence[RankCase], fit: ValueFit, name: str) -> Powers | None:
    """The power of the number of ranks that each part of a gradient comes with, on all cases.

    `name`: an input that is split. Result: by role. None where no powers predict the gradients.
    """
    left = [(c, k, parts(c, fit, name, k)) for c in cases if name in c.probe.grads for k in range(len(c.answers))]
    return fitted_powers(left, name) if left else None


def fitted_powers(left: Sequence[tuple[RankCase, int, Sequence[Any]]], name: str) -> Powers | None:
    """The power of the number of ranks that each part comes with, on all that ranks have left.

    `left`: a case, a rank, and the parts that its gradient may have. `name`: an input that is split. Result: by part.
    None where no powers predict the gradients.
    """
    count, parts_of_one = left[0][0].contract.world_size, len(left[0][2])
    gots = [np.asarray(c.answers[k].grads[name], dtype=np.float64) for c, k, _ in left]
    rooms = [room(c, name, k, each) for c, k, each in left]
    columns = [
        np.concatenate([np.ravel(t[2][i] / r) for t, r in zip(left, rooms, strict=True)]) for i in range(parts_of_one)
    ]
    got = np.concatenate([np.ravel(g / r) for g, r in zip(gots, rooms, strict=True)])
    seen = [i for i, column in enumerate(columns) if float(np.max(np.abs(column), initial=0.0)) > _SEEN]
    solution = _solved(np.stack([columns[i] for i in seen], axis=1), got) if seen else None
    if solution is None:
        return None
    named = [_power(x, count) for x in solution]
    if any(power == math.inf for power in named):
        return None
    factors = [0.0 if p is None else float(count) ** p for p in named]
    off = np.abs(got - sum(f * columns[i] for f, i in zip(factors, seen, strict=True)))
    if not np.all(off <= CARRIED * (1 + sum(factors))):
        return None
    by_part: Mapping[int, Any] = dict(zip(seen, named, strict=True))
    return tuple(by_part.get(i, UNSEEN) for i in range(parts_of_one))


def _solved(matrix: Any, got: Any) -> Any:
    """Least squares; None where two parts cannot be kept apart."""
    sizes = np.linalg.norm(matrix, axis=0)
    scaled = matrix / sizes
    if np.linalg.svd(scaled, compute_uv=False)[-1] <= _ALIKE:
        return None
    return np.linalg.lstsq(scaled, got, rcond=None)[0] / sizes


def _power(x: float, count: int) -> Any:
    """The power of a number of ranks that a factor is, None for 0; infinite for any other."""
    if abs(x) < 1e-4:
        return None
    near = round(math.log(x) / math.log(count)) if x > 0 and count > 1 else 99
    return near if abs(near) <= 2 and abs(x / float(count) ** near - 1) < 1e-3 else math.inf


@dataclass(frozen=True)
class SharedFit:
    """The gradient by an input that all ranks have: the power of its sum over the ranks, and who leaves nothing.

    Attributes
    ----------
    power : int or None
        Of the number of ranks; None where every rank leaves 0.
    without : tuple of int
        Ranks that leave 0 where others do not.
    partial : bool
        Whether the others leave their own parts only, so that those of the first are missing in the sum.
    """

    power: int | None
    without: tuple[int, ...] = ()
    partial: bool = False

    @property
    def signature(self) -> tuple[Any, ...]:
        """The part that is the same whatever the number of ranks is."""
        return self.power, 0 in self.without, bool(self.without), self.partial


def shared_fit(cases: Sequence[RankCase], fit: ValueFit, name: str) -> SharedFit | None:
    """The synchronization of the gradient by a shared input; None where no power predicts it.

    `name`: a scalar, or an array that is not split.
    """
    count = cases[0].contract.world_size
    seen = [c for c in cases if name in c.probe.grads]
    left = [[np.asarray(a.grads[name], dtype=np.float64) for a in c.answers] for c in seen]
    mine = [[shared_part(c, fit, name, k) for k in range(count)] for c in seen]
    rooms = [count * room(c, name, 0, own) for c, own in zip(seen, mine, strict=True)]
    without = tuple(k for k in range(count) if all(not np.any(leaves[k]) for leaves in left))

    def holds(factor: float, ranks: Sequence[int]) -> bool:
        sums = ((sum(x), factor * sum(own[k] for k in ranks), r) for x, own, r in zip(left, mine, rooms, strict=True))
        return all(bool(np.all(np.abs(got - expected) <= (1 + factor) * r)) for got, expected, r in sums)

    if len(without) == count:
        return SharedFit(0 if holds(0.0, ()) and holds(1.0, range(count)) else None)
    for ranks in (range(count), [k for k in range(count) if k not in without]):
        for power in POWERS:
            if holds(float(count) ** power, ranks):
                return SharedFit(power, without, len(ranks) < count)
    return None
