"""Logits: how two things are compared, block by block, and how a gradient flows back to the inputs.

Each kind of logits has a `shape` (n, m), `symmetric` (whether s_ij = s_ji), `block(rows, columns)` and `gradient()`, an
accumulator with `add(rows, columns, g)` for a block g = d value / d logits and `finish()`, which returns the gradients
by input name. Where the logits are symmetric, g may hold the slopes of block (columns, rows) as well, transposed.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from array_api_compat import device

from nceref.embeddings import Gradients, Rows, merge
from nceref.namespaces import array_namespace

Array = Any


@dataclass(frozen=True)
class Factor:
    """A positive number that multiplies similarities, and its derivatives by the scalars it is made of."""

    value: float = 1.0
    slopes: Mapping[str, float] = field(default_factory=dict)


ONE = Factor()
"""No factor."""


def divided_by(temperature: float, name: str = "temperature") -> Factor:
    """1 / temperature."""
    inverse = 1 / temperature
    return Factor(inverse, {name: -inverse * inverse})


def times(scale: float, name: str) -> Factor:
    """The scale itself."""
    return Factor(scale, {name: 1.0})


@dataclass(frozen=True, eq=False)
class Offset:
    """A number, or one per candidate, added to the logits.

    With a `name` it gets a gradient.
    """

    value: Any
    name: str | None = None


class Accumulator:
    """What every accumulator does: the gradients of the factor and of the offset, and sharing work among threads.

    Arrays by anchor are written by one thread each, which owns the row, and are shared; `sums` names the arrays by
    candidate, to which all threads add: each fork has its own, and `join` adds them up.
    """

    sums: tuple[str, ...] = ()
    a: Array
    b: Array
    x: Array

    def __init__(self, logits: Any) -> None:
        self.logits = logits
        self.offset: Any = 0.0
        for name in self.sums:
            setattr(self, name, None)

    def zeros(self, name: str) -> Array:
        raise NotImplementedError(name)

    def fork(self) -> Any:
        """An accumulator for one thread."""
        twin = copy(self)
        for name in self.sums:
            setattr(twin, name, twin.zeros(name))
        return twin

    def join(self, fork: Any) -> None:
        """Take in what a fork gathered."""
        self.offset = self.offset + fork.offset
        for name in self.sums:
            mine, theirs = getattr(self, name), getattr(fork, name)
            setattr(self, name, theirs if mine is None else mine + theirs)

    def add_offset(self, columns: slice, g: Array) -> None:
        offset = self.logits.offset
        if offset is None or offset.name is None:
            return
        xp = array_namespace(g)
        if isinstance(offset.value, float):
            self.offset = self.offset + xp.sum(g)
            return
        if isinstance(self.offset, float):
            self.offset = xp.zeros(offset.value.shape, dtype=g.dtype, device=device(g))
        self.offset[columns] += xp.sum(g, axis=0)

    def finish_scalars(self, by_factor: Any) -> Gradients:
        grads = {name: slope * by_factor for name, slope in self.logits.factor.slopes.items()}
        offset = self.logits.offset
        if offset is not None and offset.name is not None:
            grads[offset.name] = self.offset
        return grads


def _shift(s: Array, offset: Offset | None, columns: slice) -> Array:
    if offset is None:
        return s
    return s + (offset.value if isinstance(offset.value, float) else offset.value[None, columns])


@dataclass(frozen=True, eq=False)
class Dot:
    """factor * <anchor, candidate> + offset."""

    anchors: Rows
    candidates: Rows
    factor: Factor = ONE
    offset: Offset | None = None

    @property
    def symmetric(self) -> bool:
        return self.anchors is self.candidates and self.offset is None

    @property
    def shape(self) -> tuple[int, int]:
        return self.anchors.values.shape[0], self.candidates.values.shape[0]

    @property
    def like(self) -> Array:
        return self.anchors.values

    def block(self, rows: slice, columns: slice) -> Array:
        xp = array_namespace(self.like)
        s = (self.factor.value * self.anchors.values[rows, :]) @ xp.matrix_transpose(self.candidates.values[columns, :])
        return _shift(s, self.offset, columns)

    def gradient(self) -> "_DotGradient":
        return _DotGradient(self)


class _DotGradient(Accumulator):
    """dA = factor G B, dB = factor G' A, d factor = <A, G B>."""

    sums = ("b",)

    def __init__(self, logits: Dot) -> None:
        super().__init__(logits)
        self.a = array_namespace(logits.like).zeros_like(logits.like)

    def zeros(self, name: str) -> Array:
        return array_namespace(self.a).zeros_like(self.logits.candidates.values)

    def add(self, rows: slice, columns: slice, g: Array) -> None:
        xp = array_namespace(g)
        self.a[rows, :] += g @ self.logits.candidates.values[columns, :]
        self.b[columns, :] += xp.matrix_transpose(g) @ self.logits.anchors.values[rows, :]
        self.add_offset(columns, g)

    def finish(self) -> Gradients:
        xp = array_namespace(self.a)
        a, b, factor = self.logits.anchors, self.logits.candidates, self.logits.factor.value
        scalars = self.finish_scalars(xp.sum(a.values * self.a))
        if a is b:
            return merge(scalars, a.pull(factor * (self.a + self.b)))
        return merge(merge(scalars, a.pull(factor * self.a)), b.pull(factor * self.b))


@dataclass(frozen=True, eq=False)
class Given:
    """factor * values + offset, for logits that the caller computed."""

    source: Rows
    factor: Factor = ONE
    offset: Offset | None = None
    symmetric = False

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.source.values.shape
        return n, m

    @property
    def like(self) -> Array:
        return self.source.values

    def block(self, rows: slice, columns: slice) -> Array:
        return _shift(self.factor.value * self.source.values[rows, columns], self.offset, columns)

    def gradient(self) -> "_GivenGradient":
        return _GivenGradient(self)


class _GivenGradient(Accumulator):
    """d values = factor G, d factor = <values, G>."""

    def __init__(self, logits: Given) -> None:
        super().__init__(logits)
        self.g = array_namespace(logits.like).zeros_like(logits.like)

    def add(self, rows: slice, columns: slice, g: Array) -> None:
        self.g[rows, columns] = g
        self.add_offset(columns, g)

    def finish(self) -> Gradients:
        xp = array_namespace(self.g)
        grads = self.finish_scalars(xp.sum(self.logits.source.values * self.g))
        return merge(grads, self.logits.source.pull(self.logits.factor.value * self.g))
