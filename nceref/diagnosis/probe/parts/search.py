"""Which ways of doing the parts of a loss predict what a target gives: one other way, or several in different parts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import log2
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch
from nceref.diagnosis.dense.ways.way import REAL, Stage
from nceref.diagnosis.probe.expressions import Expression, Product, expression_of, has_expression, value_of
from nceref.diagnosis.roots import roots

INTEGERS = (*range(1, 11), 16, 32, 64, 128)
_SIMPLE = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 10.0)
"""Numbers that are tried as they are, since two roots between points of the grid hide each other."""
_SHARES = (*np.geomspace(1e-8, 1e-2, 7), *np.geomspace(0.02, 50, 18), 100.0, 1e3, *_SIMPLE)
_GRID = sorted(float(s * x) for x in _SHARES for s in (1, -1))
_NEAR = 0.01
"""The share of the room to which a constant is solved for: most are no expression."""
_ENOUGH = 4
"""Calls from which on it is known whether a constant is any expression, and on which arrays that are equal are one."""
_ENTRIES = 2000
"""Pairs of rows whose numbers take as long as what every evaluation of a part takes."""
SURPRISE = 8.0
"""Bits by which the calls must say more than what tells one of the combinations that were tried from the others."""
_REFUSED = (ValueError, IndexError, KeyError, FloatingPointError, ZeroDivisionError, OverflowError, TypeError)
"""What a way raises that does not fit the shapes, or that a loss has no arrays for."""

Choice = Mapping[int, int]
"""The number of the way of each part that is not done as in the reference."""


@dataclass(frozen=True)
class Replacement:
    """Parts that are not done as in the reference: number of the part, of the way, and its constant."""

    changes: tuple[tuple[int, int], ...]
    constant: Expression | None = None


@dataclass(eq=False)
class TargetCall:
    """One call: what the parts work on, what the target gave, and sizes and scalars by letter.

    `effort` counts the evaluations of parts, each as one, and more for large batches.
    """

    parts: Sequence[Stage]
    works: Sequence[DenseBatch]
    y: float
    room: float
    symbols: Mapping[str, float]
    effort: float = 0.0
    _kept: dict[tuple[tuple[int, int], ...], list[Sequence[DenseBatch]]] = field(default_factory=dict)
    _sums: dict[int, Any] = field(default_factory=dict)

    def before(self, choice: Choice, c: float = 1.0, keep: bool = False) -> DenseBatch:
        """What is on hand before the last part; `keep` keeps what the parts gave for choices of one more part."""
        last = len(self.parts) - 1
        items = tuple(sorted((k, n) for k, n in choice.items() if k < last))
        known = next((items[:m] for m in (1, 0) if items[:m] in self._kept), None)
        stages = [self.works] if known is None else self._kept[known]
        start = 0 if known is None else items[len(known)][0] if len(items) > len(known) else last
        out = [*stages[: start + 1]]
        works = out[-1]
        self.effort += (last - start) * sum(1 + w.own.size / _ENTRIES for w in works)
        for k in range(start, last):
            way = self.parts[k].ways[choice.get(k, 0)]
            works = [w.after(self.parts[k].name, way.of(w, c)) for w in works]
            out.append(works)
        if keep:
            self._kept[items] = out
        return works[0].above(*works[1:])

    def tried(self, choice: Choice, c: float = 1.0) -> float:
        """The value with these ways; NaN where one does not fit the shapes."""
        try:
            return float(self.reduced(self.before(choice, c), choice.get(len(self.parts) - 1, 0), c))
        except _REFUSED:
            return np.nan

    def reduced(self, work: DenseBatch, n: int, c: float = 1.0) -> Any:
        """What a way of the last part makes of what is on hand before it; NaN where it does not fit the shapes."""
        self.effort += 1
        try:
            return self.parts[-1].ways[n].of(work, c)
        except _REFUSED:
            return np.nan

    def after(self, k: int, n: int, c: float = 1.0) -> list[Any]:
        """What one way of a part gives, in each direction; all before it is as in the reference."""
        return [self.parts[k].ways[n].of(w, c) for w in self._kept[()][k]]

    def forget(self, choice: Choice) -> None:
        """Drop what was kept of a choice."""
        self._kept.pop(tuple(sorted(choice.items())), None)

    @cached_property
    def reference(self) -> float:
        """The value of the reference."""
        return self.tried({})

    @cached_property
    def bits(self) -> float:
        """How much more the target differs from the reference than roundings may, as a logarithm."""
        return log2(max(1.0, abs(self.y - self.reference) / self.room))

    def sums(self, choice: Choice) -> Any:
        """Weights of the rows in each way of adding them up, (ways, rows): what `_linear` lists.

        They may depend on who is a positive, and then hold for other choices nearly always.
        """
        key = next((choice[k] for k, part in enumerate(self.parts) if part.name == "positives" and k in choice), 0)
        if key not in self._sums:
            work = self.before(choice)
            basis = work.after("rows", np.eye(len(work["rows"])))
            size = len(basis["rows"])
            self._sums[key] = np.array([np.zeros(size) + self.reduced(basis, n, c) for n, c in _linear(self.parts)])
        return self._sums[key]

    def agrees(self, v: Any) -> Any:
        """Whether a value is that of the target."""
        return np.abs(v - self.y) <= self.room


@lru_cache(maxsize=32)
def _linear(parts: Sequence[Stage]) -> tuple[tuple[int, int], ...]:
    """Ways of the last part that add the rows up with weights, each with every constant."""
    ways = enumerate(parts[-1].ways)
    return tuple((n, c) for n, way in ways if way.linear for c in (INTEGERS if way.constant else (1,)))


def effort(batches: Sequence[TargetCall]) -> float:
    """What was spent on some calls, in evaluations of a part."""
    return sum(b.effort for b in batches)


def one_change(batches: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """One way of one part, of those that predict all batches.

    `batches`: at least four for a constant to be recognized. `most`: effort after which no more are tried. It is a
    count: seconds would make what is found depend on the machine.
    """
    with np.errstate(all="ignore"):
        for b in batches:
            b.before({}, keep=True)
        yield from _single(batches)
        yield from _switched(batches)
        yield from _constants(batches, most)


def _fitting(batches: Sequence[TargetCall], candidates: Iterable[tuple[Choice, int]]) -> Iterator[Replacement]:
    """Those choices, each with an integer, that predict all batches."""
    parts = batches[0].parts
    for choice, c in candidates:
        if all(b.agrees(b.tried(choice, c)) for b in batches):
            has = any(parts[k].ways[n].constant for k, n in choice.items())
            yield Replacement(tuple(sorted(choice.items())), (Product(float(c)),) if has else None)


def _single(batches: Sequence[TargetCall]) -> Iterator[Replacement]:
    # What is done to rows says more than which weights would do the same.
    for k, part in reversed(list(enumerate(batches[0].parts))):
        for n, way in part.alone:
            if n and way.constant != REAL:
                fits = _fitting(batches, (({k: n}, c) for c in (INTEGERS if way.constant else (1,))))
                yield from list(fits)[:1]


def _switched(batches: Sequence[TargetCall]) -> Iterator[Replacement]:
    """Two ways that share the rows, by a condition: all pairs of them at once, from the rows of each."""
    for k, part in enumerate(batches[0].parts):
        if part.switch is None:
            continue
        fits: Any = True
        for b in batches:
            rows = np.array([b.before({k: n})["rows"] for n in part.switch.single])
            (work,) = b._kept[()][k]
            masks = np.array([f(work) for f in part.switch.above])
            first, second = rows @ masks.T.astype(float), rows @ (~masks).T.astype(float)
            size = 1.0 if part_sums(b.parts) else len(rows[0])
            fits = fits & (np.abs(first[:, None, :] + second[None, :, :] - size * b.y) <= b.room * size)
        chosen = [part.switch.number(*map(int, at)) for at in np.argwhere(fits)]
        for n in sorted(chosen, key=lambda n: len(part.ways[n].text)):
            yield Replacement(((k, n),))


def part_sums(parts: Sequence[Stage]) -> bool:
    """Whether the rows are added up in the reference."""
    return parts[-1].ways[0].text.startswith("sum")


def _constants(batches: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """One other way with a constant that is solved for."""
    parts = batches[0].parts
    for k, part in reversed(list(enumerate(parts))):
        for n, way in part.alone:
            if way.constant == REAL and effort(batches) < most:
                yield from _solved(batches, {k: n})
                # A sum for a mean often stands beside another row loss.
                if k == len(parts) - 2:
                    yield from _solved(batches, {k: n, k + 1: 1})


def _solved(batches: Sequence[TargetCall], choice: Choice) -> Iterator[Replacement]:
    solvers = [_Solver(b, choice) for b in batches]
    where = [b.symbols for b in batches]
    for c in solvers[0].roots():
        numbers = [c]
        for solver in solvers[1:]:
            if (near := solver.nearest(c)) is None:
                break
            numbers.append(near)
            # What is no expression at some calls is none at all of them.
            if len(numbers) == _ENOUGH and not has_expression(numbers, _off(numbers), where[:_ENOUGH]):
                break
        else:
            expression = expression_of(numbers, _off(numbers), where)
            if expression and _holds(batches, choice, expression):
                yield Replacement(tuple(sorted(choice.items())), expression)
                return


def _off(numbers: Sequence[float]) -> list[float]:
    return [1e-8 * max(abs(x), 1e-4) for x in numbers]


def _holds(batches: Sequence[TargetCall], choice: Choice, expression: Expression) -> bool:
    return all(b.agrees(b.tried(choice, value_of(expression, b.symbols))) for b in batches)


class _Solver:
    """The constant of a way with which the value of one call is the target's."""

    def __init__(self, batch: TargetCall, choice: Choice) -> None:
        self.room = batch.room
        # The grid is the same for every constant of the first call.
        self.gap = lru_cache(None)(lambda c: batch.tried(choice, c) - batch.y)

    def roots(self, start: int = 0, stop: int | None = None) -> Iterator[float]:
        """Those at points of the grid, and between them."""
        grid = _GRID[start:stop]
        gaps = [self.gap(x) for x in grid]
        yield from (x for x, gap in zip(grid, gaps, strict=True) if abs(gap) <= self.room)
        yield from roots(self.gap, grid, gaps, self.room, _NEAR)

    def nearest(self, c: float) -> float | None:
        """The same constant, or the root that is nearest."""
        if abs(self.gap(c)) <= self.room:
            return c
        best = None
        # Most are near, and few points of the grid are asked then.
        for far, k in sorted((max(low - c, c - high, 0.0), k) for k, (low, high) in enumerate(pairwise(_GRID))):
            if best is not None and far > abs(best - c):
                break
            for root in self.roots(k, k + 2):
                best = root if best is None or abs(root - c) < abs(best - c) else best
        return best


def several_changes(batches: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """Two or three parts done otherwise, none with a constant to be solved for; after `one_change`."""
    with np.errstate(all="ignore"):
        # One way with all that the last part makes of it, before two ways with all that it makes of them.
        for k, n, c in _atoms(batches[0].parts):
            yield from _surprising(batches, _reduced(batches[0], {k: n}, c, True))
        yield from _pairs(batches, most)


def _pairs(batches: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    first, last = batches[0], len(batches[0].parts) - 1
    kinds = _different(batches)
    three: list[tuple[Choice, int]] = []
    # Later parts cost least.
    for k, n in reversed(kinds):
        if effort(batches) > most:
            break
        try:
            first.before({k: n}, keep=True)
        except _REFUSED:
            continue
        rows: dict[int, list[tuple[int, Any]]] = {}
        for other, m in kinds:
            if k < other < last:
                fits = list(_reduced(first, {k: n, other: m}, rows=rows.setdefault(other, [])))
                three += [fit for fit in fits if len(fit[0]) > 2]
                yield from _surprising(batches, [fit for fit in fits if len(fit[0]) == 2])
        three += _added(first, {k: n}, rows)
        first.forget({k: n})
    yield from _surprising(batches, sorted(three, key=lambda fit: _length(first.parts, fit[0])))


def _length(parts: Sequence[Stage], choice: Choice) -> int:
    return sum(len(parts[k].ways[n].text) for k, n in choice.items())


def _atoms(parts: Sequence[Stage]) -> Iterator[tuple[int, int, int]]:
    """Ways of all parts but the last, with each integer where they have one; later parts first."""
    for k in reversed(range(len(parts) - 1)):
        for n, way in parts[k].alone:
            if n and way.constant != REAL:
                yield from ((k, n, c) for c in (INTEGERS if way.constant else (1,)))


def _different(batches: Sequence[TargetCall]) -> list[tuple[int, int]]:
    """Ways without a constant, of all parts but the last: of those that are the same numbers on some calls, one."""
    out, parts = [], batches[0].parts
    few = sorted(batches, key=lambda b: b.works[0].own.size)[:_ENOUGH]
    for k, part in enumerate(parts[:-1]):
        seen = set()
        # What is said shortest, but the reference before all.
        for n, way in sorted(part.alone, key=lambda one: (one[0] > 0, len(one[1].text))):
            if way.constant or not way.plain:
                continue
            try:
                numbers = [x for b in few for x in b.after(k, n)]
            except _REFUSED:
                continue
            arrays = [np.asarray(x, float) for one in numbers for x in (one if isinstance(one, tuple) else (one,))]
            key = tuple((x.shape, np.round(x, _DIGITS).tobytes()) for x in arrays)
            if key not in seen and n:
                out.append((k, n))
            seen.add(key)
    return sorted(out)


_DIGITS = 9
"""Digits after the point in which equal arrays agree."""


def _reduced(
    call: TargetCall, choice: Choice, c: float = 1, curved: bool = False, rows: list[Any] | None = None
) -> Iterator[tuple[Choice, int]]:
    """What the last part makes of a choice, where it is the target's value, with an integer.

    `curved`: whether ways are tried that add up no rows; where none does, all are. `rows`: is given the row losses.
    """
    last, linear = len(call.parts) - 1, _linear(call.parts)
    taken = any(call.parts[k].ways[n].constant for k, n in choice.items())
    try:
        work = call.before(choice, c)
        near = np.flatnonzero(call.agrees(call.sums(choice) @ work["rows"])) if linear else ()
    except _REFUSED:
        return
    if rows is not None and linear:
        rows.append((max(choice.items())[1], work["rows"]))
    for n, number in (linear[at] for at in near):
        if not (taken and call.parts[last].ways[n].constant):
            yield {**choice, **({last: n} if n else {})}, int(c if taken else number)
    for n, way in call.parts[last].alone if curved or not linear else ():
        if not (way.linear or way.constant) and call.agrees(call.reduced(work, n)):
            yield {**choice, **({last: n} if n else {})}, int(c)


def _added(call: TargetCall, choice: Choice, rows: Mapping[int, list[Any]]) -> Iterator[tuple[Choice, int]]:
    """A choice with another denominator and other positives: the rows are a difference of what they give.

    `rows`: row losses with one more way of a part, by the number of the part. What else a row may be fails afterwards.
    """
    names = {part.name: k for k, part in enumerate(call.parts)}
    first, second = (names.get(name, -1) for name in ("positives", "denominator"))
    if rows.get(first) and rows.get(second):
        x, y = (np.array([r for _, r in rows[k]]) for k in (first, second))
        total = call.sums({})[0]
        own = float(call.before(choice)["rows"] @ total)
        for p, d in np.argwhere(call.agrees((x @ total)[:, None] + y @ total - own)):
            yield {**choice, first: rows[first][p][0], second: rows[second][d][0]}, 1


def _surprising(batches: Sequence[TargetCall], fits: Iterable[tuple[Choice, int]]) -> Iterator[Replacement]:
    """Those that predict all calls, if these say enough to tell one of so many combinations from the others."""
    parts = batches[0].parts
    tried = len(_linear(parts)) * sum(len(part.alone) for part in parts) ** 2 / 2
    if sum(b.bits for b in batches) >= log2(tried + 1) + SURPRISE:
        yield from _fitting(batches, ((choice, c) for choice, c in fits if len(choice) > 1))
