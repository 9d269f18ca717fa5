"""Which ways of doing the parts of a loss predict what a target gives: one other way, or two."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from nceref.diagnosis.probe.expressions import Expression, expression_of, has_expression, value_of
from nceref.diagnosis.probe.parts.work import INTEGER, REAL, LossPart, PartWay, Work, joined
from nceref.diagnosis.roots import roots

_INTEGERS = tuple(range(1, 11))
_LARGE = (16, 32, 64, 128)
_SHARES = (*np.geomspace(1e-8, 1e-2, 7), *np.geomspace(0.02, 50, 18), 100.0, 1e3)
_GRID = sorted(float(s * x) for x in _SHARES for s in (1, -1))
_NEAR = 0.01
"""The share of the room to which a constant is solved for: most are no expression."""
_ENOUGH = 4
"""Calls from which on it is known whether a constant is any expression."""
_ENTRIES = 2000
"""Pairs of rows whose numbers take as long as what every evaluation of a part takes."""


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

    works: Sequence[Work]
    y: float
    room: float
    symbols: Mapping[str, float]
    effort: float = 0.0
    _kept: dict[tuple[tuple[int, int], ...], list[Sequence[Work]]] = field(default_factory=dict)

    def value(self, parts: Sequence[LossPart], choice: Mapping[int, int], c: float = 1.0, keep: bool = False) -> float:
        """The value with these ways; NaN where they have none."""
        stages, at = self._kept.get((), [self.works]), 0
        if len(stages) > 1:
            at = min(choice, default=len(parts) - 1)
            first = min(choice.items(), default=(0, 0))
            if len(choice) > 1 and (first,) in self._kept:
                stages, at = self._kept[(first,)], sorted(choice)[1]
        works, out = stages[at], [*stages[: at + 1]]
        self.effort += (len(parts) - at) * sum(1 + w.own.size / _ENTRIES for w in works)
        for k in range(at, len(parts)):
            if parts[k].joined and len(works) > 1:
                works = [joined(works)]
            way = parts[k].ways[choice.get(k, 0)]
            works = [w.after(parts[k].name, way.of(w, c)) for w in works]
            out.append(works)
        if keep:
            self._kept[tuple(sorted(choice.items()))] = out
        return float(works[0][parts[-1].name])

    def tried(self, parts: Sequence[LossPart], choice: Mapping[int, int], c: float = 1.0, keep: bool = False) -> float:
        """As `value`; NaN where a way does not fit the shapes."""
        try:
            return self.value(parts, choice, c, keep)
        except (ValueError, IndexError, KeyError, FloatingPointError, ZeroDivisionError, OverflowError, TypeError):
            return np.nan

    def forget(self, choice: Mapping[int, int]) -> None:
        """Drop what was kept of a choice."""
        self._kept.pop(tuple(sorted(choice.items())), None)

    def works_after(self, parts: Sequence[LossPart], k: int) -> Work:
        """What is on hand before a part, all as in the reference; of the only direction."""
        self.tried(parts, {}, keep=True)
        return self._kept[()][k][0]

    def rows(self, parts: Sequence[LossPart], choice: Mapping[int, int]) -> Any:
        """Row losses."""
        self.tried(parts, choice, keep=True)
        works = self._kept.get(tuple(sorted(choice.items())))
        self.forget(choice)
        size = len(self.works[0].own)
        return np.full(size, np.nan) if works is None else works[-1][0]["rows"]

    def size(self, parts: Sequence[LossPart]) -> float:
        """What the sum of the rows is divided by in the reference."""
        return float(len(self.works[0].own)) if parts[-1].ways[0].text.startswith("mean") else 1.0

    def agrees(self, v: float) -> bool:
        """Whether a value is that of the target."""
        return abs(v - self.y) <= self.room


def effort(batches: Sequence[TargetCall]) -> float:
    """What was spent on some calls, in evaluations of a part."""
    return sum(b.effort for b in batches)


def explained(parts: Sequence[LossPart], batches: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """Choices that predict all batches, those with the fewest changes first.

    `batches`: at least four for a constant to be recognized. `most`: effort after which no more are tried. It is a
    count: seconds would make what is found depend on the machine.
    """
    with np.errstate(all="ignore"):
        for b in batches:
            b.tried(parts, {}, keep=True)
        yield from _single(parts, batches)
        yield from _switched(parts, batches)
        yield from _constants(parts, batches, most)
        yield from _double(parts, batches, most)


def _single(parts: Sequence[LossPart], batches: Sequence[TargetCall]) -> Iterator[Replacement]:
    # What is done to rows says more than which weights would do the same.
    for k, part in reversed(list(enumerate(parts))):
        for n, way in part.alone:
            if way.constant != REAL:
                yield from _matching(parts, batches, {k: n}, way)


def _switched(parts: Sequence[LossPart], batches: Sequence[TargetCall]) -> Iterator[Replacement]:
    """Two ways that share the rows, by a condition: all pairs of them at once, from the rows of each."""
    for k, part in enumerate(parts):
        if part.switch is None:
            continue
        fits: Any = True
        for b in batches:
            rows = np.array([b.rows(parts, {k: n}) for n in part.switch.single])
            masks = np.array([f(b.works_after(parts, k)) for f in part.switch.above])
            first, second = rows @ masks.T.astype(float), rows @ (~masks).T.astype(float)
            total = b.size(parts) * b.y
            off = np.abs(first[:, None, :] + second[None, :, :] - total)
            near = off <= b.room * b.size(parts)
            fits = fits & near
        chosen = [part.switch.number(*map(int, at)) for at in np.argwhere(fits)]
        for n in sorted(chosen, key=lambda n: len(part.ways[n].text)):
            yield Replacement(((k, n),))


def _matching(
    parts: Sequence[LossPart], batches: Sequence[TargetCall], choice: dict[int, int], way: PartWay
) -> Iterator[Replacement]:
    """The choice itself, or with the integers that fit."""
    integers = (*_INTEGERS, *_LARGE) if way.constant == INTEGER else (1,)
    for c in integers:
        if all(b.agrees(b.tried(parts, choice, c)) for b in batches):
            number = _number(float(c)) if way.constant else None
            yield Replacement(tuple(sorted(choice.items())), number)
            return


def _number(c: float) -> Expression:
    from nceref.diagnosis.probe.expressions import Product

    return (Product(c),)


def _constants(parts: Sequence[LossPart], batches: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """One other way with a constant that is solved for."""
    for k, part in reversed(list(enumerate(parts))):
        for n, way in part.alone:
            if way.constant == REAL and effort(batches) < most:
                yield from _solved(parts, batches, {k: n})
                # A sum for a mean often stands beside another row loss.
                if k == len(parts) - 2:
                    yield from _solved(parts, batches, {k: n, k + 1: 1})


def _solved(parts: Sequence[LossPart], batches: Sequence[TargetCall], choice: dict[int, int]) -> Iterator[Replacement]:
    solvers = [_Solver(parts, b, choice) for b in batches]
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
            if expression and _holds(parts, batches, choice, expression):
                yield Replacement(tuple(sorted(choice.items())), expression)
                return


def _off(numbers: Sequence[float]) -> list[float]:
    return [1e-8 * max(abs(x), 1e-4) for x in numbers]


def _holds(
    parts: Sequence[LossPart], batches: Sequence[TargetCall], choice: dict[int, int], expression: Expression
) -> bool:
    return all(b.agrees(b.tried(parts, choice, value_of(expression, b.symbols))) for b in batches)


class _Solver:
    """The constant of a way with which the value of one call is the target's."""

    def __init__(self, parts: Sequence[LossPart], batch: TargetCall, choice: dict[int, int]) -> None:
        self.room = batch.room
        # The grid is the same for every constant of the first call.
        self.gap = lru_cache(None)(lambda c: batch.tried(parts, choice, c) - batch.y)

    def roots(self, start: int = 0, stop: int | None = None) -> Iterator[float]:
        """Those between points of the grid."""
        grid = _GRID[start:stop]
        return roots(self.gap, grid, [self.gap(x) for x in grid], self.room, _NEAR)

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


def _double(parts: Sequence[LossPart], batches: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """Two parts done otherwise, neither with a constant."""
    first, *rest = batches
    # Later parts cost least.
    for k, part in reversed(list(enumerate(parts))):
        for n, way in part.alone:
            if n == 0 or way.constant or not way.plain:
                continue
            if effort(batches) > most:
                return
            first.tried(parts, {k: n}, keep=True)
            for choice in _beside(parts, k, n):
                if first.agrees(first.tried(parts, choice)) and all(b.agrees(b.tried(parts, choice)) for b in rest):
                    yield Replacement(tuple(sorted(choice.items())))
            first.forget({k: n})


def _beside(parts: Sequence[LossPart], k: int, n: int) -> Iterator[dict[int, int]]:
    for other in range(k + 1, len(parts)):
        for m, way in parts[other].alone:
            if m and not way.constant and way.plain:
                yield {k: n, other: m}
