"""Logits: how two things are compared, block by block, and how a gradient flows back to the inputs.

Every kind of logits, here and in `distances`, has these.

    shape                  (n, m)
    symmetric              whether s_ij = s_ji
    bound                  no |s_ij| is larger
    like                   an array of the library, dtype and device of the logits
    block(rows, columns)   -> (rows, columns)   a fresh array of logits
    gradient(mirrored)     -> accumulator       takes slopes block by block, returns gradients by input name

An accumulator has `add(rows, columns, g)` for a block g = d value / d logits, `fork` and `join` for threads, and
`finish`. Where blocks are `mirrored`, which only symmetric logits can be, each pair of blocks comes once, and g holds
the slopes of block (columns, rows) as well, transposed; a block on the diagonal, too, comes with both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nceref.engine.embeddings import Gradients, Rows, merge
from nceref.engine.namespaces import array_namespace, device

Array = Any


@dataclass(frozen=True)
class Factor:
    """A positive number that multiplies similarities, and its derivatives by the scalars it is made of.

    Attributes
    ----------
    value : float
        The number.
    slopes : mapping of str to float
        D value / d scalar by the name of the input; empty where it gets no gradient.
    """

    value: float = 1.0
    slopes: Mapping[str, float] = field(default_factory=dict)


ONE = Factor()
"""No factor."""


def divided_by(temperature: float, name: str = "temperature") -> Factor:
    """The factor 1 / temperature; `name` is the input that gets the gradient."""
    inverse = 1 / temperature
    return Factor(inverse, {name: -inverse * inverse})


def times(scale: float, name: str) -> Factor:
    """The scale itself as a factor; `name` is the input that gets the gradient."""
    return Factor(scale, {name: 1.0})


@dataclass(frozen=True, eq=False)
class Offset:
    """What is added to the logits.

    Attributes
    ----------
    value : float or array
        (m,), one number a candidate, or one for all.
    name : str or None
        The input that gets its gradient; None: it is a constant.
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
        # All forks are made before the first join: each starts from an offset of 0.
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name in self.sums:
            setattr(twin, name, twin.zeros(name))
        return twin

    def join(self, fork: Any) -> None:
        """Take in what a fork gathered."""
        self.offset = self.offset + fork.offset
        for name in self.sums:
            mine, theirs = getattr(self, name), getattr(fork, name)
            if mine is None:
                # The first fork's array becomes the sum; the original needs none of its own.
                setattr(self, name, theirs)
            else:
                mine += theirs

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


def _shifted(s: Array, offset: Offset | None, columns: slice) -> Array:
    """The fresh array s with the offset added in place."""
    if offset is not None:
        s += offset.value if isinstance(offset.value, float) else offset.value[None, columns]
    return s


def _largest(offset: Offset | None) -> float:
    if offset is None:
        return 0.0
    if isinstance(offset.value, float):
        return abs(offset.value)
    xp = array_namespace(offset.value)
    return float(xp.max(xp.abs(offset.value)))


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
    def bound(self) -> float:
        return self.factor.value * self.anchors.longest * self.candidates.longest + _largest(self.offset)

    @property
    def shape(self) -> tuple[int, int]:
        return self.anchors.values.shape[0], self.candidates.values.shape[0]

    @property
    def like(self) -> Array:
        return self.anchors.values

    def block(self, rows: slice, columns: slice) -> Array:
        # The factor goes into the rows, which are fewer numbers than the block where D is below its width.
        s = (self.factor.value * self.anchors.values[rows, :]) @ self.candidates.values[columns, :].T
        return _shifted(s, self.offset, columns)

    def reordered(self, rows: Array, columns: Array) -> "Dot":
        """The same logits with anchors and candidates in another order; there must be no offset by candidate."""
        anchors = self.anchors.reordered(rows)
        return replace(
            self, anchors=anchors, candidates=anchors if self.symmetric else self.candidates.reordered(columns)
        )

    def gradient(self, mirrored: bool) -> "_DotGradient | _MirroredDotGradient":
        return _MirroredDotGradient(self) if mirrored else _DotGradient(self)


class _MirroredDotGradient(Accumulator):
    """dZ = factor (G + G') Z, d factor = <Z, (G + G') Z> / 2."""

    sums = ("x",)

    def zeros(self, name: str) -> Array:
        return array_namespace(self.logits.like).zeros_like(self.logits.like)

    def add(self, rows: slice, columns: slice, g: Array) -> None:
        z = self.logits.like
        self.x[rows, :] += g @ z[columns, :]
        # On the diagonal g is G + G' already.
        if rows != columns:
            self.x[columns, :] += g.T @ z[rows, :]

    def finish(self) -> Gradients:
        z = self.logits.anchors
        # Before the factor goes into x: the derivative by the factor is without it.
        scalars = self.finish_scalars(_inner(z.values, self.x) / 2)
        self.x *= self.logits.factor.value
        return merge(scalars, z.vjp(self.x))


class _DotGradient(Accumulator):
    """dA = factor G B, dB = factor G' A, d factor = <A, G B>."""

    sums = ("b",)

    def __init__(self, logits: Dot) -> None:
        super().__init__(logits)
        self.a = array_namespace(logits.like).zeros_like(logits.like)

    def zeros(self, name: str) -> Array:
        return array_namespace(self.a).zeros_like(self.logits.candidates.values)

    def add(self, rows: slice, columns: slice, g: Array) -> None:
        self.a[rows, :] += g @ self.logits.candidates.values[columns, :]
        self.b[columns, :] += g.T @ self.logits.anchors.values[rows, :]
        self.add_offset(columns, g)

    def finish(self) -> Gradients:
        a, b, factor = self.logits.anchors, self.logits.candidates, self.logits.factor.value
        # Before the factor goes into a: the derivative by the factor is without it.
        scalars = self.finish_scalars(_inner(a.values, self.a))
        self.a *= factor
        self.b *= factor
        if a is b:
            # The way back through the normalization is linear: once for the sum.
            self.a += self.b
            return merge(scalars, a.vjp(self.a))
        return merge(merge(scalars, a.vjp(self.a)), b.vjp(self.b))


def _inner(x: Array, y: Array) -> Any:
    """<X, Y> of two matrices, without their product."""
    xp = array_namespace(x)
    return xp.sum(xp.vecdot(x, y, axis=-1))


@dataclass(frozen=True, eq=False)
class Given:
    """factor * values + offset, for logits that the caller computed."""

    source: Rows
    factor: Factor = ONE
    offset: Offset | None = None
    symmetric = False

    @property
    def bound(self) -> float:
        xp = array_namespace(self.source.values)
        return self.factor.value * float(xp.max(xp.abs(self.source.values))) + _largest(self.offset)

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.source.values.shape
        return n, m

    @property
    def like(self) -> Array:
        return self.source.values

    def block(self, rows: slice, columns: slice) -> Array:
        return _shifted(self.factor.value * self.source.values[rows, columns], self.offset, columns)

    def gradient(self, mirrored: bool) -> "_GivenGradient":
        return _GivenGradient(self)


class _GivenGradient(Accumulator):
    """d values = factor G, d factor = <values, G>."""

    def __init__(self, logits: Given) -> None:
        super().__init__(logits)
        self.g = array_namespace(logits.like).zeros_like(logits.like)

    def add(self, rows: slice, columns: slice, g: Array) -> None:
        # Assigned, not added: each block comes once.
        self.g[rows, columns] = g
        self.add_offset(columns, g)

    def finish(self) -> Gradients:
        grads = self.finish_scalars(_inner(self.logits.source.values, self.g))
        self.g *= self.logits.factor.value
        return merge(grads, self.logits.source.vjp(self.g))
