"""Which ways of doing the parts of a loss predict what a target gives: one other way, or two."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from nceref.verification.probe.expressions import Expression, expression_of, has_expression, value_of
from nceref.verification.probe.parts.work import INTEGER, REAL, LossPart, PartWay, Work, joined

_INTEGERS = tuple(range(1, 11))
_LARGE = (16, 32, 64, 128)
_SOLVED = 60
"""Steps of the search for a constant."""
_GRID = np.sort(
    [s * x for x in (*np.geomspace(1e-8, 1e-2, 7), *np.geomspace(0.02, 50, 18), 100.0, 1e3) for s in (1, -1)]
)
_CELLS = tuple(pairwise(range(len(_GRID))))
_ENOUGH = 4
"""Batches after which it is asked whether there is an expression at all."""
Gap = Callable[[int], float]


@dataclass(frozen=True)
class Replacement:
    """Parts that are not done as in the reference: number of the part, of the way, and its constant."""

    changes: tuple[tuple[int, int], ...]
    constant: Expression | None = None


@dataclass(eq=False)
class TargetCall:
    """One call: what the parts work on, what the target gave, and sizes and scalars by letter."""

    works: Sequence[Work]
    y: float
    room: float
    symbols: Mapping[str, float]
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


def explained(parts: Sequence[LossPart], batches: Sequence[TargetCall], end: float) -> Iterator[Replacement]:
    """Choices that predict all batches, those with the fewest changes first.

    Parameters
    ----------
    parts : sequence of LossPart
    batches : sequence of TargetCall
        At least four for a constant to be recognized.
    end : float
        Of the processor's time, after which no more are tried.
    """
    with np.errstate(all="ignore"):
        for b in batches:
            b.tried(parts, {}, keep=True)
        yield from _single(parts, batches)
        yield from _switched(parts, batches)
        yield from _constants(parts, batches, end)
        yield from _double(parts, batches, end)


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
    from nceref.verification.probe.expressions import Product

    return (Product(c),)


def _constants(parts: Sequence[LossPart], batches: Sequence[TargetCall], end: float) -> Iterator[Replacement]:
    """One other way with a constant that is solved for."""
    for k, part in reversed(list(enumerate(parts))):
        for n, way in part.alone:
            if way.constant == REAL and time.process_time() < end:
                yield from _solved(parts, batches, {k: n})
                # A sum for a mean often stands beside another row loss.
                if k == len(parts) - 2:
                    yield from _solved(parts, batches, {k: n, k + 1: 1})


def _solved(parts: Sequence[LossPart], batches: Sequence[TargetCall], choice: dict[int, int]) -> Iterator[Replacement]:
    for c in _roots(parts, batches[0], choice):
        numbers = _numbers(parts, batches, choice, c)
        if len(numbers) < len(batches):
            continue
        expression = expression_of(numbers, _off(numbers), [b.symbols for b in batches])
        if expression and _holds(parts, batches, choice, expression):
            yield Replacement(tuple(sorted(choice.items())), expression)
            return


def _numbers(parts: Sequence[LossPart], batches: Sequence[TargetCall], choice: dict[int, int], c: float) -> list[float]:
    """The constant of each batch; of fewer where one has none, or where the first ones follow no expression."""
    numbers = [c]
    for b in batches[1:]:
        if (x := _near(parts, b, choice, c)) is None:
            break
        numbers.append(x)
        if len(numbers) == _ENOUGH and not has_expression(
            numbers, _off(numbers), [b.symbols for b in batches[:_ENOUGH]]
        ):
            break
    return numbers


def _off(numbers: Sequence[float]) -> list[float]:
    return [1e-8 * max(abs(x), 1e-4) for x in numbers]


def _holds(
    parts: Sequence[LossPart], batches: Sequence[TargetCall], choice: dict[int, int], expression: Expression
) -> bool:
    return all(b.agrees(b.tried(parts, choice, value_of(expression, b.symbols))) for b in batches)


def _roots(parts: Sequence[LossPart], batch: TargetCall, choice: dict[int, int]) -> Iterator[float]:
    """Constants between neighbors of the grid at which the value is the target's."""
    gap = _gaps(parts, batch, choice)
    for cell in _CELLS:
        root = _root(parts, batch, choice, cell, gap)
        if root is not None:
            yield root


def _gaps(parts: Sequence[LossPart], batch: TargetCall, choice: dict[int, int]) -> Gap:
    """How far the value is from the target's, by the number of the constant on the grid."""
    return cache(lambda k: batch.tried(parts, choice, float(_GRID[k])) - batch.y)


def _root(
    parts: Sequence[LossPart], batch: TargetCall, choice: dict[int, int], cell: tuple[int, int], gap: Gap
) -> float | None:
    """The constant between two neighbors of the grid, whose gaps are asked by their numbers."""
    x, y = map(gap, cell)
    if not (np.isfinite(x) and np.isfinite(y) and x * y <= 0 and x != y):
        return None
    a, b = _GRID[list(cell)]
    return _bisected(parts, batch, choice, a, b, x, y)


def _bisected(
    parts: Sequence[LossPart], batch: TargetCall, choice: dict[int, int], a: float, b: float, fa: float, fb: float
) -> float | None:
    """Regula falsi with bisection (Illinois): the root of the gap between two constants."""
    for _ in range(_SOLVED):
        c = b - fb * (b - a) / (fb - fa) if fb != fa else 0.5 * (a + b)
        fc = batch.tried(parts, choice, c) - batch.y
        if not np.isfinite(fc):
            return None
        if abs(fc) <= 0.02 * batch.room or abs(b - a) <= 1e-15 * abs(b):
            return float(c) if abs(fc) <= batch.room else None
        if fc * fb < 0:
            a, fa = b, fb
        else:
            fa *= 0.5
        b, fb = c, fc
    return None


def _near(parts: Sequence[LossPart], batch: TargetCall, choice: dict[int, int], c: float) -> float | None:
    """The constant of another batch: the same, or the root that is nearest."""
    if batch.agrees(batch.tried(parts, choice, c)):
        return c
    gap = _gaps(parts, batch, choice)
    # From the cell that the constant lies in outwards: no root is nearer than its cell.
    apart = [max(_GRID[k] - c, c - _GRID[m], 0.0) for k, m in _CELLS]
    best = None
    for n in np.argsort(apart, kind="stable"):
        if best is not None and abs(best - c) <= apart[n]:
            break
        root = _root(parts, batch, choice, _CELLS[n], gap)
        if root is not None and (best is None or abs(root - c) < abs(best - c)):
            best = root
    return best


def _double(parts: Sequence[LossPart], batches: Sequence[TargetCall], end: float) -> Iterator[Replacement]:
    """Two parts done otherwise, neither with a constant."""
    first, *rest = batches
    # Later parts cost least.
    for k, part in reversed(list(enumerate(parts))):
        for n, way in part.alone:
            if n == 0 or way.constant or not way.plain:
                continue
            if time.process_time() > end:
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
