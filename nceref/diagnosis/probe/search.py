"""Which ways of doing the stages of a loss predict what a target gives: one, or several in different stages."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import islice
from math import log2
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch, by_row
from nceref.diagnosis.dense.ways.way import INTEGER, REAL, Stage, Way
from nceref.diagnosis.expressions import Expression, Product, expression_of, has_expression, is_plain, value_of
from nceref.diagnosis.roots import Solver


def number(c: float) -> Expression:
    """A number as a constant that is the same at every call."""
    return (Product(c),)


ONE = number(1.0)
INTEGERS = tuple(number(float(c)) for c in (*range(1, 11), 16, 32, 64, 128))
_NUMBERS = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0)
_USUAL = tuple(map(number, _NUMBERS))
"""Numbers that a constant is tried as where other stages are changed too."""
_TEMPERATURES: tuple[Expression, ...] = tuple((Product(1.0, (("T", power),)),) for power in (1, -1))
"""What it is tried as beside them where the loss has a temperature."""
_USUAL_EPSILONS = tuple(map(number, (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)))
"""Numbers beside these where a constant is added or is the least that is left."""
_SMALLER = tuple(number(-c) for c in _NUMBERS)
_IS_SHIFT = re.compile(r"\{c\}(/T)? larger")
_IS_EPSILON = re.compile(r"\+ \{c\}(?=$|[,)])|, \{c\}\)")
_SIMPLE = (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 10.0)
"""Numbers that are tried as they are, since two roots between points of the grid hide each other."""
_SHARES = (*np.geomspace(1e-8, 1e-2, 7), *np.geomspace(0.02, 50, 18), 100.0, 1e3, *_SIMPLE)
_GRID = sorted(float(s * x) for x in _SHARES for s in (1, -1))
_NEAR = 0.01
"""The share of the room to which a constant is solved for: most are no expression."""
_FEW, _ENOUGH = 3, 4
"""Calls from which on it is known of most constants, and of all, whether they are any expression; on the latter, arrays
that are equal are one."""
_ENTRIES = 2000
"""Pairs of rows whose numbers take as long as what every evaluation of a stage takes."""
_AT_ONCE = 20_000
"""Pairs of rows that go through the stages at once: more would leave the cache of a processor."""
_LOOKED_AT = 3
"""Choices for which it is looked at what a way makes of each alone."""
_OF_PAIRS, _OF_LOSSES = 2, 1
"""Axes of the constants of all rows."""
_TRIED = (-2.0, 0.1, 0.75, 10.0)
"""Constants with which it is looked at which of these a way takes."""
SURPRISE = 8.0
"""Bits by which the calls must say more than what tells one of the combinations that were tried from the others."""
REFUSED = (ValueError, IndexError, KeyError, FloatingPointError, ZeroDivisionError, OverflowError, TypeError)
"""What a way raises that does not fit the shapes, or that a loss has no arrays for."""

_ROUNDED = 1e-12
"""Relative distance at which rows are taken for equal that are computed beside others, and alone."""

Choice = Mapping[int, int]
"""The number of the way of each stage that is not done as in the reference."""
Chosen = tuple[int, Expression]
"""The number of a way of one stage, and its constant."""


@dataclass(frozen=True)
class Replacement:
    """Parts that are not done as in the reference: number of the stage, of the way, and its constant."""

    changes: tuple[tuple[int, int], ...]
    constant: Expression | None = None


@dataclass(eq=False)
class TargetCall:
    """One call: what the stages batch on, what the target gave, and sizes and scalars by letter.

    `effort` counts the evaluations of stages, each as one, and more for large calls.
    """

    stages: Sequence[Stage]
    directions: Sequence[DenseBatch]
    y: float
    room: float
    symbols: Mapping[str, float]
    effort: float = 0.0
    _kept: dict[tuple[tuple[int, int, Expression], ...], list[Sequence[DenseBatch]]] = field(default_factory=dict)
    _sums: dict[int, Any] = field(default_factory=dict)
    _on_grid: dict[tuple[int, int], Any] = field(default_factory=dict)
    _axes: dict[tuple[int, int], int] = field(default_factory=dict)
    _by_itself: dict[tuple[int, int, int, int], bool] = field(default_factory=dict)
    _copies: dict[int, dict[int, Sequence[DenseBatch]]] = field(default_factory=dict)

    def before(self, choice: Choice, c: Expression = ONE, keep: bool = False) -> DenseBatch:
        """The batches before the last stage; `keep` keeps what the stages gave for choices of one more stage."""
        last = len(self.stages) - 1
        items = self._items(choice, c)
        known = next((items[:m] for m in (1, 0) if items[:m] in self._kept), None)
        stages = [self.directions] if known is None else self._kept[known]
        start = 0 if known is None else items[len(known)][0] if len(items) > len(known) else last
        out = [*stages[:start], *self._through(stages[start], choice, start, last, self.number(c))]
        if keep:
            self._kept[items] = out
        return out[-1][0].above(*out[-1][1:])

    def number(self, c: Expression) -> float:
        """The number that a constant is at this call."""
        return float(value_of(c, self.symbols))

    def _items(self, choice: Choice, c: Expression) -> tuple[tuple[int, int, Expression], ...]:
        """The changes before the last stage in order, each with its constant; 1 where it has none."""
        changes = sorted((k, n) for k, n in choice.items() if k < len(self.stages) - 1)
        return tuple((k, n, c if self.stages[k].ways[n].constant else ONE) for k, n in changes)

    def _through(
        self, batches: Sequence[DenseBatch], choice: Choice, start: int, stop: int, c: Any = 1.0
    ) -> list[Sequence[DenseBatch]]:
        """The batches before the stage `start`, and after each stage from it on."""
        self.effort += (stop - start) * sum(1 + w.own.size / _ENTRIES for w in batches)
        out = [batches]
        for k in range(start, stop):
            way = self.stages[k].ways[choice.get(k, 0)]
            out.append([w.after(self.stages[k].name, way.of(w, c)) for w in out[-1]])
        return out

    def tried(self, choice: Choice, c: Expression = ONE) -> float:
        """The value with these ways; NaN where one does not fit the shapes."""
        try:
            return float(self.reduced(self.before(choice, c), choice.get(len(self.stages) - 1, 0), c))
        except REFUSED:
            return np.nan

    def reduced(self, batch: DenseBatch, n: int, c: Expression = ONE) -> Any:
        """The value that a way of the last stage makes of what is before it; NaN where it does not fit the shapes."""
        self.effort += 1
        try:
            return self.stages[-1].ways[n].of(batch, self.number(c))
        except REFUSED:
            return np.nan

    def after(self, k: int, n: int, c: Expression = ONE) -> list[Any]:
        """The result of one way of a stage, in each direction; all before it is as in the reference."""
        return [self.stages[k].ways[n].of(w, self.number(c)) for w in self._kept[()][k]]

    def has_constant(self, k: int, one: Chosen) -> bool:
        """Whether a way of a stage has a constant."""
        return bool(self.stages[k].ways[one[0]].constant)

    def rows(self, k: int, ways: Sequence[Chosen], beside: tuple[int, Chosen] | None = None) -> Any:
        """Row losses with each of some ways of a stage, (ways, rows); NaN where one does not fit the shapes.

        `beside`: an earlier stage and its way, which is kept. What all ways give is one batch from where on the
        reference does each row by itself. NaN as well where the last stage adds no rows up.
        """
        out = np.full((len(ways), self._size), np.nan)
        if not _linear(self.stages):
            return out
        before = self._kept[() if beside is None else ((beside[0], *beside[1]),)][k]
        start = max(k + 1, self._by_rows)
        made = dict(self._with_each(k, dict(enumerate(ways)), start, before))
        for group, batches in self._joined(made, k, start):
            with suppress(*REFUSED):
                out[group] = self._rows_of(batches, start, len(group))
        return out

    def rows_of_pairs(self, k: int, kept: Sequence[Chosen], other: int, ways: Sequence[Chosen]) -> Any:
        """Row losses with each of some ways of a stage and each of some of a later one, (ways, other ways, rows).

        The choices of the first are kept. NaN where two ways do not fit, and where the first has a constant and the
        other looks at more than its row: one by one these would take as long as all others.
        """
        out = np.full((len(kept), len(ways), self._size), np.nan)
        if not _linear(self.stages):
            return out
        apart = np.zeros(len(ways), dtype=bool)
        made = {at: self._kept[((k, *one),)][other] for at, one in enumerate(kept)}
        for group, batches in self._joined(made, k, other):
            alone, copies = [made[at] for at in group], {1: batches}
            todo = [*_by_way(ways)]
            for n, places in todo:
                constants = [self.number(ways[place][1]) for place in places]
                try:
                    rows = self._with_each_constant(copies, alone, other, n, constants, k)
                    out[np.ix_(group, places)] = np.swapaxes(rows, 0, 1)
                except REFUSED:
                    # Each constant by itself, where not all at once.
                    todo += [(n, [place]) for place in places if len(places) > 1]
                    apart[places] |= len(places) == 1
        left = [ways[place] for place in map(int, np.flatnonzero(apart))]
        for at, one in enumerate(kept if left else ()):
            if not self.has_constant(k, one):
                out[at, apart] = self.rows(other, left, (k, one))
        return out

    def with_constants(self, choice: Choice, constants: Sequence[float]) -> Any:
        """The value with a way and each of some constants; the last stage is as in the reference, or adds rows up."""
        last, linear = len(self.stages) - 1, _linear(self.stages)
        (k, n), end = min(choice.items()), (choice.get(last, 0), ONE)
        if k == last or end not in linear:
            return np.array([self.tried(choice, number(c)) for c in constants])
        if (k, n) not in self._on_grid:
            self._on_grid.clear()
            self._on_grid[k, n] = self._rows_with_constants(k, n, constants)
        return self._on_grid[k, n] @ self.sums({})[linear.index(end)]

    def _rows_with_constants(self, k: int, n: int, constants: Sequence[float]) -> Any:
        """Row losses with a way and each of some constants, (constants, rows)."""
        copies = self._copies.setdefault(k, {})
        with suppress(*REFUSED):
            return self._with_each_constant(copies, [self._kept[()][k]], k, n, constants)[:, 0]
        return self.rows(k, [(n, number(c)) for c in constants])

    def _with_each_constant(
        self,
        copies: dict[int, Sequence[DenseBatch]],
        alone: Sequence[Sequence[DenseBatch]],
        k: int,
        n: int,
        constants: Sequence[float],
        earlier: int = -1,
    ) -> Any:
        """Row losses of batches with a way of a stage and each of some constants, (constants, batches, rows).

        `copies`: all these batches below one another, so many times; filled as they are needed. `earlier`: the stage in
        which the batches differ.
        """
        axes = self._axes_of_constants(k, n) if len(constants) > 1 else 0
        out = []
        for part in np.array_split(constants, -(-len(constants) * len(alone) // max(self._few, len(alone)))):
            count, each = len(part), np.repeat(part, len(alone))
            if count not in copies:
                copies[count] = [by_row(w) for w in zip(*(count * [*alone]), strict=True)]
            c = self._of_rows(each, axes) if axes else float(part[0])
            out.append(self._rows_at_once(copies[count], count * [*alone], k, n, c, each, earlier))
        return np.concatenate([rows.reshape(-1, len(alone), self._size) for rows in out])

    def _of_rows(self, each: Any, axes: int) -> Any:
        """The constant of each batch for all of its rows, a vector or a column."""
        c = np.repeat(each, len(self.directions[0].own))
        return c[:, None] if axes == _OF_PAIRS else c

    def _axes_of_constants(self, k: int, n: int) -> int:
        """Whether a way takes a constant for each row of pairs, or for each row loss; `ValueError` where neither.

        It is tried on few rows: what is not for all rows of pairs may become a table of all rows with one another.
        """
        if (k, n) not in self._axes:
            alone = len(_TRIED) * [self._kept[()][k]]
            batches = [by_row(w) for w in zip(*alone, strict=True)]
            self._axes[k, n] = 0
            for axes in (_OF_PAIRS, _OF_LOSSES):
                with suppress(*REFUSED):
                    self._rows_at_once(batches, alone, k, n, self._of_rows(_TRIED, axes), _TRIED)
                    self._axes[k, n] = axes
                    break
        if not self._axes[k, n]:
            raise ValueError
        return self._axes[k, n]

    def _rows_at_once(
        self,
        batches: Sequence[DenseBatch],
        alone: Sequence[Sequence[DenseBatch]],
        k: int,
        n: int,
        c: Any,
        each: Any,
        earlier: int = -1,
    ) -> Any:
        """Row losses of batches that are joined, with a way of a stage, (batches, rows).

        `alone`: each of them. `c`: the constant, or those of all rows; `each`: of each batch. `earlier`: the stage in
        which they differ: what others of them have in common is not seen. Raises `ValueError` where the way looks at
        more than its row, which makes it another one beside others.
        """
        if k + 1 < self._by_rows:
            raise ValueError
        name, count, way = self.stages[k].name, len(alone), (k, n, np.ndim(c), earlier)
        if not self._by_itself.get(way, True):
            raise ValueError
        done = self._through(batches, {k: n}, k, k + 1, c)[-1]
        if way not in self._by_itself:
            few = range(0, count, max(count // _LOOKED_AT, 1))
            one = {at: self._through(alone[at], {k: n}, k, k + 1, each[at])[-1] for at in few}
            same = (_are_rows_of(w[name], {at: x[d][name] for at, x in one.items()}, count) for d, w in enumerate(done))
            self._by_itself[way] = all(same)
            if not self._by_itself[way]:
                raise ValueError
        return self._rows_of(done, k + 1, count)

    @property
    def _few(self) -> int:
        """The most batches that are joined."""
        entries: int = sum(w.own.size for w in self.directions)
        return max(_AT_ONCE // entries, 1)

    @cached_property
    def _size(self) -> int:
        """The number of rows, of all directions."""
        return sum(len(w.own) for w in self.directions)

    def _joined(
        self, made: Mapping[int, Sequence[DenseBatch]], start: int, stop: int
    ) -> Iterator[tuple[list[int], Sequence[DenseBatch]]]:
        """Batches below one another, each with its places: those to which some stages gave the same shapes."""
        alike: dict[Any, list[int]] = {}
        for at, batches in made.items():
            alike.setdefault(_shapes(batches[0], self.stages[start:stop]), []).append(at)
        few = self._few
        for group in (found[at : at + few] for found in alike.values() for at in range(0, len(found), few)):
            yield group, [by_row(each) for each in zip(*(made[at] for at in group), strict=True)]

    def _rows_of(self, batches: Sequence[DenseBatch], start: int, count: int) -> Any:
        """Row losses of what is on hand before a stage, (count, rows): that many batches below one another."""
        done = self._through(batches, {}, start, len(self.stages) - 1)[-1]
        return np.concatenate([w["rows"].reshape(count, -1) for w in done], axis=1)

    def _with_each(
        self, k: int, ways: Mapping[int, Chosen], stop: int, before: Sequence[DenseBatch]
    ) -> Iterator[tuple[int, Sequence[DenseBatch]]]:
        """The batches before the stage `stop` with each way of another one that fits the shapes, and its place.

        `before`: the batches before that one.
        """
        for at, (n, c) in ways.items():
            with suppress(*REFUSED):
                yield at, self._through(before, {k: n}, k, stop, self.number(c))[-1]

    @cached_property
    def _by_rows(self) -> int:
        """The first stage from which on the reference does each row by itself, whatever was done before."""
        for k in range(len(self.stages) - 2, 0, -1):
            few = ((other, {n: (n, ONE) for n, _ in self.stages[other].alone[:4]}) for other in range(k))
            each = (self._with_each(other, ways, k, self._kept[()][other]) for other, ways in few)
            made = [batches[0] for one in each for _, batches in one]
            made = [w for w in made if _shapes(w, self.stages[:k]) == _shapes(made[0], self.stages[:k])]
            of = self.stages[k].ways[0].of
            try:
                if not _are_rows_of(of(by_row(made), 1.0), {at: of(w, 1.0) for at, w in enumerate(made)}, len(made)):
                    return k + 1
            except REFUSED:
                return k + 1
        return 1

    def usual(self, way: Way) -> Sequence[Expression]:
        """Constants that are tried of a way beside other changes: 1 where it has none."""
        if way.constant != REAL:
            return _integers(way)
        if _IS_EPSILON.search(way.text):
            return (*_USUAL_EPSILONS, *_USUAL)
        # What is larger may be smaller.
        shifts = _SMALLER if _IS_SHIFT.search(way.text) else ()
        return (*_USUAL, *shifts, *(_TEMPERATURES if "T" in self.symbols else ()))

    def forget(self, choice: Choice, c: Expression) -> None:
        """Drop what was kept of a choice."""
        self._kept.pop(self._items(choice, c), None)

    @cached_property
    def reference(self) -> float:
        """The value of the reference."""
        return self.tried({})

    @cached_property
    def bits(self) -> float:
        """The logarithm of how much more the target differs from the reference than roundings may."""
        return log2(max(1.0, abs(self.y - self.reference) / self.room))

    def sums(self, choice: Choice) -> Any:
        """Weights of the rows in each way of adding them up, (ways, rows): what `_linear` lists.

        They may depend on who is a positive, and then hold for other choices, and for weights of positives that have a
        constant, nearly always.
        """
        plain = (one for one in choice.items() if not self.stages[one[0]].ways[one[1]].constant)
        key = next((n for k, n in plain if self.stages[k].name == "positives"), 0)
        if key not in self._sums:
            batch, ends = self.before(choice if key else {}), _linear(self.stages)
            basis = batch.after("rows", np.eye(len(batch["rows"])))
            # Most look at no other stage, and have the weights that they have in the reference.
            out = self.sums({}).copy() if key else np.zeros((len(ends), len(basis["rows"])))
            for at in self._of_others if key else range(len(ends)):
                out[at] = self.reduced(basis, *ends[at])
            self._sums[key] = out
        return self._sums[key]

    @cached_property
    def _of_others(self) -> list[int]:
        """The places of the ways of adding rows up that look at other stages: they give no number of rows alone."""
        batch = self.before({})
        alone = replace(batch, done={"rows": np.eye(len(batch["rows"]))})
        return [at for at, end in enumerate(_linear(self.stages)) if np.any(np.isnan(self.reduced(alone, *end)))]

    def is_near(self, table: Any) -> Any:
        """Whether a weighted sum of the rows of some pair is the target's value, for each way of the first stage.

        `table`: see `rows_of_pairs`. Weights are those of the positives of the reference: of others too that is nearly
        always so.
        """
        if not _linear(self.stages):
            return np.ones(len(table), dtype=bool)
        # In small batches many ways leave out the same rows, and those of one way stay in the cache.
        sums = np.unique(self.sums({}), axis=0).T
        return np.array([np.any(self.agrees(rows @ sums)) for rows in table], dtype=bool)

    def agrees(self, v: Any) -> Any:
        """Whether a value is that of the target."""
        return np.abs(v - self.y) <= self.room


@lru_cache(maxsize=32)
def _linear(stages: Sequence[Stage]) -> tuple[Chosen, ...]:
    """Ways of the last stage that add the rows up with weights, each with every constant."""
    ways = enumerate(stages[-1].ways)
    return tuple((n, c) for n, way in ways if way.linear for c in _integers(way))


def _integers(way: Way) -> Sequence[Expression]:
    """Numbers that are tried as the constant of a way: 1 where it has none, nothing where it is solved for."""
    return {INTEGER: INTEGERS, REAL: ()}.get(way.constant, (ONE,))


def _shapes(batch: DenseBatch, stages: Sequence[Stage]) -> tuple[Any, ...]:
    """The shapes of what some stages gave."""
    return tuple(np.shape(x) for stage in stages for x in _arrays(batch[stage.name]))


def _by_way(ways: Sequence[Chosen]) -> Iterable[tuple[int, list[int]]]:
    """The number of each way, and where it stands with its constants."""
    places: dict[int, list[int]] = {}
    for place, (n, _) in enumerate(ways):
        places.setdefault(n, []).append(place)
    return places.items()


def _arrays(result: Any) -> tuple[Any, ...]:
    """The result of a stage, which may be one array or several."""
    return result if isinstance(result, tuple) else (result,)


def _are_rows_of(joined: Any, alone: Mapping[int, Any], count: int) -> bool:
    """Whether a stage gave to batches that are joined what it gives to each alone, of some of them by their places."""
    for x, *each in zip(_arrays(joined), *map(_arrays, alone.values()), strict=True):
        # A number stands for all rows.
        whole = np.reshape(x, (count, -1))[list(alone)] if np.ndim(x) else np.reshape(x, (1, 1))
        # What a product rounds depends on its shape and on the processor, most of all where it is next to 0.
        largest = np.max(np.abs(whole), axis=1, keepdims=True, initial=0.0, where=np.isfinite(whole))
        near = np.isclose(
            whole, np.reshape(each, (len(each), -1)), rtol=_ROUNDED, atol=_ROUNDED * largest, equal_nan=True
        )
        if not np.all(near):
            return False
    return True


def effort(calls: Sequence[TargetCall]) -> float:
    """The effort of some calls, in evaluations of a stage."""
    return sum(b.effort for b in calls)


def one_change(calls: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """One way of one stage, of those that predict all calls.

    `calls`: at least four for a constant to be recognized. `most`: effort after which no more are tried. It is a
    count: seconds would make what is found depend on the machine.
    """
    with np.errstate(all="ignore"):
        for b in calls:
            b.before({}, keep=True)
        yield from _single(calls)
        yield from _switched(calls)
        yield from _constants(calls, most)


def _fitting(
    calls: Sequence[TargetCall], choice: Choice, lasts: Iterable[Chosen], c: Expression = ONE
) -> Iterator[Replacement]:
    """A choice with those ways of the last stage, each with a constant, that predict all calls; `c`: of the choice."""
    stages, left = calls[0].stages, list(lasts)
    # The first call was mostly looked at before.
    for b in (*calls[1:], calls[0]):
        if left:
            try:
                batch = b.before(choice, c)
            except REFUSED:
                return
            left = [(n, own) for n, own in left if b.agrees(b.reduced(batch, n, own))]
    for n, own in left:
        changes = tuple(sorted({**choice, **({len(stages) - 1: n} if n else {})}.items()))
        has = any(stages[k].ways[way].constant for k, way in changes)
        yield Replacement(changes, own if has else None)


def _single(calls: Sequence[TargetCall]) -> Iterator[Replacement]:
    # What is done to rows says more than which weights would do the same.
    last = len(calls[0].stages) - 1
    for k, stage in reversed(list(enumerate(calls[0].stages))):
        for n, way in stage.alone:
            choice, of_last = ({}, n) if k == last else ({k: n}, 0)
            fits = (fit for c in _integers(way) for fit in _fitting(calls, choice, [(of_last, c)], c))
            yield from islice(fits, 1 if n else 0)


def _switched(calls: Sequence[TargetCall]) -> Iterator[Replacement]:
    """Two ways that share the rows, by a condition: all pairs of them at once, from the rows of each."""
    for k, stage in enumerate(calls[0].stages):
        if stage.switch is None:
            continue
        fits: Any = True
        for b in calls:
            rows = np.array([b.before({k: n})["rows"] for n in stage.switch.single])
            (batch,) = b._kept[()][k]
            masks = np.array([f(batch) for f in stage.switch.above])
            first, second = rows @ masks.T.astype(float), rows @ (~masks).T.astype(float)
            size = 1.0 if adds_rows_up(b.stages) else len(rows[0])
            fits = fits & (np.abs(first[:, None, :] + second[None, :, :] - size * b.y) <= b.room * size)
        chosen = [stage.switch.number(*map(int, at)) for at in np.argwhere(fits)]
        for n in sorted(chosen, key=lambda n: len(stage.ways[n].text)):
            yield Replacement(((k, n),))


def adds_rows_up(stages: Sequence[Stage]) -> bool:
    """Whether the rows are added up in the reference."""
    return stages[-1].ways[0].text.startswith("sum")


def _constants(calls: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """One other way with a constant that is solved for; a plain number says more than what stands for another one."""
    found: list[Replacement] = []
    for fit in _with_constants(calls, most):
        if fit.constant is not None and is_plain(fit.constant):
            yield fit
        else:
            found.append(fit)
    yield from found


def _with_constants(calls: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """One other way with a constant that is solved for, the last stages first."""
    stages = calls[0].stages
    for k, stage in reversed(list(enumerate(stages))):
        for n, way in stage.alone:
            if way.constant == REAL and effort(calls) < most:
                yield from _solved(calls, {k: n})
                # A sum for a mean often stands beside another probability or another row loss.
                if k == len(stages) - 2 or stage.name == "probabilities":
                    yield from _solved(calls, {k: n, len(stages) - 1: 1})


_POWERS = (0, -1, 1)
"""Powers of the scale with which a constant may go from call to call: of several roots, that is the one."""


def _solved(calls: Sequence[TargetCall], choice: Choice) -> Iterator[Replacement]:
    solvers = [_solver(b, choice) for b in calls]
    where = [b.symbols for b in calls]
    scales = [b.directions[0].scale for b in calls]
    for c in solvers[0].roots():
        for power in _POWERS if len({*scales}) > 1 else _POWERS[:1]:
            numbers = [c]
            for solver, scale in zip(solvers[1:], scales[1:], strict=True):
                if (near := solver.nearest(c * (scale / scales[0]) ** power)) is None:
                    break
                numbers.append(near)
                # What is no expression at some calls is none at all of them.
                count = len(numbers)
                if _FEW <= count <= _ENOUGH and not has_expression(numbers, _off(numbers), where[:count]):
                    break
            else:
                expression = expression_of(numbers, _off(numbers), where)
                if expression and _holds(calls, choice, expression):
                    yield Replacement(tuple(sorted(choice.items())), expression)
                    return


def _off(numbers: Sequence[float]) -> list[float]:
    return [1e-8 * max(abs(x), 1e-4) for x in numbers]


def _holds(calls: Sequence[TargetCall], choice: Choice, expression: Expression) -> bool:
    return all(b.agrees(b.tried(choice, expression)) for b in calls)


def _solver(call: TargetCall, choice: Choice) -> Solver:
    """The constants of a way with which the value of one call is the target's."""
    return Solver(
        lambda c: call.tried(choice, number(c)) - call.y,
        _GRID,
        call.room,
        _NEAR,
        points=True,
        whole=lambda: call.with_constants(choice, _GRID) - call.y,
    )


def several_changes(calls: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """Two or three stages done otherwise, at most one of them with a constant, a usual number; after `one_change`."""
    stages = calls[0].stages
    constants = sum(len(calls[0].usual(way)) for stage in stages for _, way in stage.alone)
    tried = len(_linear(stages)) * constants**2 / 2
    # One of so many combinations may fit calls that say little.
    if sum(b.bits for b in calls) < log2(tried + 1) + SURPRISE:
        return
    with np.errstate(all="ignore"):
        for b in calls:
            b.before({}, keep=True)
        # One way with all that the last stage makes of it, before two ways with all that it makes of them.
        for k in reversed(range(len(stages) - 1)):
            ways = [(n, c) for n, way in stages[k].alone if n for c in calls[0].usual(way)]
            for n, c, lasts in _lasts(calls[0], {}, k, ways, calls[0].rows(k, ways), bent=True):
                yield from _fitting(calls, {k: n}, [last for last in lasts if last[0]], c)
        yield from _pairs(calls, most)


def _pairs(calls: Sequence[TargetCall], most: float) -> Iterator[Replacement]:
    """Two ways of different stages, at once; then these with another way of the last stage, or with a third one."""
    first, kinds = calls[0], _different(calls)
    plain = {k: [one for one in kinds[k] if not first.has_constant(k, one)] for k in kinds}
    three: list[Replacement] = []
    # Later stages cost least. One of two ways may have a constant.
    for k in reversed(kinds):
        numbered = [one for one in kinds[k] if one not in plain[k]]
        for chosen, others in ((plain[k], kinds), (numbered, plain)):
            if effort(calls) > most:
                break
            kept = []
            for n, c in reversed(chosen):
                with suppress(*REFUSED):
                    first.before({k: n}, c, keep=True)
                    kept.append((n, c))
            tables = {at: first.rows_of_pairs(k, kept, at, others[at]) for at in others if k < at and kept}
            near = {other: first.is_near(table) for other, table in tables.items()}
            for at, one in enumerate(kept):
                rows = {other: table[at] for other, table in tables.items()}
                fits = list(_beside(calls, k, one, others, rows, [other for other in rows if near[other][at]]))
                yield from (fit for fit in fits if len(fit.changes) == 2)
                three += [fit for fit in fits if len(fit.changes) > 2]
                first.forget({k: one[0]}, one[1])
    yield from sorted(three, key=lambda fit: _length(first.stages, fit))


def _beside(
    calls: Sequence[TargetCall],
    k: int,
    one: Chosen,
    ways: Mapping[int, Sequence[Chosen]],
    rows: Mapping[int, Any],
    near: Sequence[int],
) -> Iterator[Replacement]:
    """Formulas with a way of a stage and ways of later ones.

    `rows`: row losses with each of these beside it. `near`: stages of which one may give the target's value.
    """
    first, (n, c) = calls[0], one
    for other in near:
        for m, own, lasts in _lasts(first, {k: n}, other, ways[other], rows[other], c):
            yield from _fitting(calls, {k: n, other: m}, lasts, c if first.has_constant(k, one) else own)
    for choice in _added(first, {k: n}, ways, rows, c):
        yield from _fitting(calls, choice, [(0, c)], c)


def _length(stages: Sequence[Stage], fit: Replacement) -> int:
    return sum(len(stages[k].ways[n].text) for k, n in fit.changes)


def _different(calls: Sequence[TargetCall]) -> dict[int, list[Chosen]]:
    """Ways of all stages but the last, with usual numbers: of those that are the same numbers on some calls, one."""
    out: dict[int, list[Chosen]] = {}
    stages = calls[0].stages
    few = sorted(calls, key=lambda b: b.directions[0].own.size)[:_ENOUGH]
    for k, stage in enumerate(stages[:-1]):
        seen = set()
        # What is said shortest, but the reference before all.
        for n, way in sorted(stage.alone, key=lambda one: (one[0] > 0, bool(one[1].constant), len(one[1].text))):
            for c in calls[0].usual(way) if way.plain and way.constant != INTEGER else ():
                try:
                    numbers = [x for b in few for x in b.after(k, n, c)]
                except REFUSED:
                    continue
                arrays = [np.asarray(x, float) for one in numbers for x in _arrays(one)]
                key = tuple((x.shape, np.round(x, _DIGITS).tobytes()) for x in arrays)
                if key not in seen and n:
                    out.setdefault(k, []).append((n, c))
                seen.add(key)
    return {k: sorted(chosen, key=lambda one: (one[0], few[0].number(one[1]))) for k, chosen in out.items()}


_DIGITS = 9
"""Digits after the point in which equal arrays agree."""


def _lasts(
    call: TargetCall,
    choice: Choice,
    k: int,
    ways: Sequence[Chosen],
    rows: Any,
    beside: Expression = ONE,
    bent: bool = False,
) -> Iterator[tuple[int, Expression, list[Chosen]]]:
    """Ways of a stage beside a choice, each with what the last stage makes the target's value of, with a constant.

    `rows`: what `TargetCall.rows` gave of them. `beside`: the constant of the choice. `bent`: whether ways of the last
    stage are tried that add up no rows; where none does, all are.
    """
    last, linear = call.stages[-1], _linear(call.stages)
    # Weights of rows may depend on who is a positive.
    together = linear and call.stages[k].name != "positives"
    usual = call.usual if together else _integers
    curved = [(n, c) for n, way in last.alone if not way.linear for c in usual(way)] if bent or not linear else []
    ends = [*linear, *curved]
    has = any(call.stages[other].ways[n].constant for other, n in choice.items())

    def bent_at(batch: DenseBatch) -> Any:
        """Whether the ways that add no rows up give the value, (ways or 1, ways of the last stage)."""
        near = [np.atleast_1d(call.agrees(call.reduced(batch, *end))) for end in curved]
        return np.stack(np.broadcast_arrays(*near), axis=-1) if near else np.zeros((1, 0), dtype=bool)

    # What adds no rows up looks at nothing else that a choice changes.
    at_once = bent_at(call.before(choice, beside).after("rows", rows)) if linear else None
    for part in [slice(len(ways))] if together else [slice(at, at + 1) for at in range(len(ways))]:
        choices = [(choice, beside)] if together else [({**choice, k: n}, beside if has else c) for n, c in ways[part]]
        try:
            if at_once is None:
                fits = bent_at(call.before(*choices[0]))
            else:
                near = call.agrees(rows[part] @ call.sums(choices[0][0]).T)
                fits = np.hstack([near, np.broadcast_to(at_once, (len(ways), len(curved)))[part]])
        except REFUSED:
            continue
        for at in map(int, np.flatnonzero(np.any(fits, axis=1))):
            n, c = ways[part][at]
            numbered = call.has_constant(k, ways[part][at])
            own, taken = c if numbered else beside, has or numbered
            found = [ends[end] for end in map(int, np.flatnonzero(fits[at]))]
            # One constant at most.
            yield n, c, [(end, own if taken else c) for end, c in found if not (taken and last.ways[end].constant)]


def _added(
    call: TargetCall, choice: Choice, ways: Mapping[int, Sequence[Chosen]], rows: Mapping[int, Any], c: Expression
) -> Iterator[Choice]:
    """A choice with another denominator and other positives: the rows are a difference of what they give.

    `ways`, `rows`: ways of each stage, and row losses with each of them beside the choice. `c`: its constant; the
    others have none. What else a row may be fails afterwards.
    """
    names = {stage.name: k for k, stage in enumerate(call.stages)}
    k, other = (names.get(name, -1) for name in ("positives", "denominator"))
    if k in rows and other in rows:
        plain = {at: [p for p, one in enumerate(ways[at]) if not call.has_constant(at, one)] for at in (k, other)}
        total = call.sums({})[0]
        own = float(call.before(choice, c)["rows"] @ total)
        each = {at: rows[at][plain[at]] @ total for at in plain}
        for p, d in np.argwhere(call.agrees(each[k][:, None] + each[other] - own)):
            yield {**choice, k: ways[k][plain[k][p]][0], other: ways[other][plain[other][d]][0]}
