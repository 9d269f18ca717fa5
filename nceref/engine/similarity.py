"""Logits: how two things are compared, block by block, and how a gradient flows back to the inputs.

Every kind of logits, here and in `distances`, has these.

    shape                  (n, m)
    symmetric              whether s_ij = s_ji
    bound                  no |s_ij| is larger
    like                   an array of the library, dtype and device of the logits
    block(rows, columns)   -> (rows, columns)   a fresh array of logits
    sides                  (rows, ...)          what is compared
    paired                                      row i is compared with row i, or with everything that there is, alone
    window(rows, columns)  -> logits            the same over a block, without what is compared
    filled(*rows)          -> logits            the same of these rows
    gradient(mirrored)     -> accumulator       takes slopes block by block, returns gradients by input name

An accumulator has `add(rows, columns, g)` for a block g = d value / d logits, `fork` and `join` for threads, and
`finish(exponent)`, where 2^exponent is what all g were divided by: gradients are multiplied by it last. Where blocks
are `mirrored`, which only symmetric logits can be, each pair of blocks comes once, and g holds the slopes of block
(columns, rows) as well, transposed; a block on the diagonal, too, comes with both.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nceref.engine.arrays import check_finite
from nceref.engine.chunks import ChunkedRows
from nceref.engine.embeddings import NOTHING, Gradients, Rows, merge
from nceref.engine.namespaces import array_namespace, as_scalar, device, number_format
from nceref.engine.scaling import shifted, times_power
from nceref.engine.ties import Copies, settled

Array = Any


@dataclass(frozen=True)
class Factor:
    """A positive number that multiplies similarities: a scalar, or its inverse.

    Attributes
    ----------
    scalar : float
        The number that it is made of, > 0.
    power : int
        1, or -1 where similarities are divided by it.
    name : str or None
        The input that gets its gradient; None: it is a constant.
    """

    scalar: float = 1.0
    power: int = 1
    name: str | None = None

    def times_power(self, exponent: int) -> float:
        """The factor times 2^exponent; the inverse of a tiny scalar may be too large for a number by itself."""
        mantissa, own = math.frexp(self.scalar)
        # Not a power: its last digit is not that of a quotient.
        return shifted(mantissa if self.power == 1 else 1 / mantissa, self.power * own + exponent)

    def multiply(self, x: Array, exponent: int) -> Array:
        """The array times the factor times 2^exponent, in place where that is a number of its format."""
        by = self.times_power(exponent)
        if not _is_number(by, x):
            return self.multiplied(x, exponent)
        x *= by
        return x

    def multiplied(self, x: Array, exponent: int) -> Array:
        """The product as a fresh array."""
        by = self.times_power(exponent)
        if _is_number(by, x):
            return by * x
        mantissa, own = math.frexp(self.scalar)
        return times_power(x * (mantissa if self.power == 1 else 1 / mantissa), self.power * own + exponent)

    def gradient(self, inner: Any, exponent: int) -> Any:
        """D value / d scalar, from d value / d factor, which is inner times 2^exponent."""
        if self.power == 1:
            return times_power(inner, exponent)
        mantissa, own = math.frexp(self.scalar)
        # -inner / scalar^2, whose square may leave the range alone.
        return times_power(-inner / mantissa / mantissa, exponent - 2 * own)


def _is_number(x: float, like: Array) -> bool:
    """Whether the format of an array has such a number; an infinite factor times a row of zeros would be NaN."""
    number = number_format(array_namespace(like), like.dtype)
    return bool(number.smallest <= x <= number.largest)


ONE = Factor()
"""The factor 1."""


def divided_by(temperature: float, name: str = "temperature") -> Factor:
    """The factor 1 / temperature; `name` is the input that gets the gradient."""
    return Factor(temperature, -1, name)


def times(scale: float, name: str) -> Factor:
    """The scale itself as a factor; `name` is the input that gets the gradient."""
    return Factor(scale, 1, name)


@dataclass(frozen=True, eq=False)
class Offset:
    """A term that is added to the logits.

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
    """The common part of accumulators: the gradients of the factor and of the offset, and sharing work among threads.

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

    def finish_scalars(self, by_factor: Any, own: int, exponent: int) -> Gradients:
        """Gradients of the offset, and of the factor, by which d g is by_factor times 2^own."""
        factor = self.logits.factor
        grads = {} if factor.name is None else {factor.name: factor.gradient(as_scalar(by_factor), own + exponent)}
        offset = self.logits.offset
        if offset is not None and offset.name is not None:
            grads[offset.name] = times_power(self.offset, exponent)
        return grads


def offset_of(offset: Offset | None, columns: slice) -> Offset | None:
    """The offset of some candidates."""
    if offset is None or isinstance(offset.value, float):
        return offset
    return replace(offset, value=offset.value[columns])


def _shifted(s: Array, offset: Offset | None, columns: slice) -> Array:
    """The fresh array s with the offset added in place."""
    if offset is not None:
        s += offset.value if isinstance(offset.value, float) else offset.value[None, columns]
    return s


def in_range(s: Array, bound: float) -> Array:
    """The logits, checked, since a statistic may make a finite number of an infinite one.

    Where the bound of |s| is a number of the format, they are not looked through. Raises `RangeError` if a logit is
    infinite or NaN.
    """
    if not bound <= number_format(array_namespace(s), s.dtype).largest:
        check_finite(s, "a logit")
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
    """factor * <anchor, candidate> + offset; with `copies`, equal for candidates that are (see `ties`)."""

    anchors: Rows
    candidates: Rows
    factor: Factor = ONE
    offset: Offset | None = None
    copies: Copies | None = None
    paired = False

    @property
    def symmetric(self) -> bool:
        return self.anchors is self.candidates and self.offset is None

    @property
    def sides(self) -> tuple[Any, ...]:
        return self.anchors, self.candidates

    def window(self, rows: slice, columns: slice) -> "Dot":
        return replace(self, anchors=NOTHING, candidates=NOTHING, offset=offset_of(self.offset, columns))

    def filled(self, *rows: Rows, copies: Copies | None = None) -> "Dot":
        return replace(self, anchors=rows[0], candidates=rows[-1], copies=copies)

    @property
    def exponents(self) -> tuple[int, int]:
        """Exponents of the powers of two that balanced anchors and candidates were divided by."""
        return self.anchors.balanced[1], self.candidates.balanced[1]

    @property
    def scale(self) -> float:
        """The factor of products of balanced rows."""
        return self.factor.times_power(sum(self.exponents))

    @cached_property
    def bound(self) -> float:
        return self.scale * self.anchors.longest * self.candidates.longest + _largest(self.offset)

    @property
    def shape(self) -> tuple[int, int]:
        return self.anchors.values.shape[0], self.candidates.values.shape[0]

    @property
    def like(self) -> Array:
        return self.anchors.values

    def block(self, rows: slice, columns: slice) -> Array:
        # The factor goes into the rows, which are fewer numbers than the block where D is below its width.
        a = self.factor.multiplied(self.anchors.balanced[0][rows, :], sum(self.exponents))
        b = self.candidates.balanced[0]
        s = a @ b[columns, :].T
        if self.copies is not None:
            s = settled(s, a, b, self.copies, columns)
        return in_range(_shifted(s, self.offset, columns), self.bound)

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
        z = self.logits.anchors.balanced[0]
        self.x[rows, :] += g @ z[columns, :]
        # On the diagonal g is G + G' already.
        if rows != columns:
            self.x[columns, :] += g.T @ z[rows, :]

    def finish(self, exponent: int) -> Gradients:
        z, (own, _) = self.logits.anchors, self.logits.exponents
        # Before the factor goes into x: the derivative by the factor is without it.
        scalars = self.finish_scalars(_inner(z.balanced[0], self.x) / 2, 2 * own, exponent)
        return merge(scalars, z.vjp(self.logits.factor.multiply(self.x, own), exponent))


class _DotGradient(Accumulator):
    """dA = factor G B, dB = factor G' A, d factor = <A, G B>."""

    sums = ("b",)

    def __init__(self, logits: Dot) -> None:
        super().__init__(logits)
        self.a = array_namespace(logits.like).zeros_like(logits.like)

    def zeros(self, name: str) -> Array:
        return array_namespace(self.a).zeros_like(self.logits.candidates.values)

    def add(self, rows: slice, columns: slice, g: Array) -> None:
        self.a[rows, :] += g @ self.logits.candidates.balanced[0][columns, :]
        self.b[columns, :] += g.T @ self.logits.anchors.balanced[0][rows, :]
        self.add_offset(columns, g)

    def finish(self, exponent: int) -> Gradients:
        a, b, factor = self.logits.anchors, self.logits.candidates, self.logits.factor
        of_a, of_b = self.logits.exponents
        # Before the factor goes into a: the derivative by the factor is without it.
        scalars = self.finish_scalars(_inner(a.balanced[0], self.a), of_a + of_b, exponent)
        by_a, by_b = factor.multiply(self.a, of_b), factor.multiply(self.b, of_a)
        if a is b:
            # The way back through the normalization is linear: once for the sum.
            by_a += by_b
            return merge(scalars, a.vjp(by_a, exponent))
        return merge(merge(scalars, a.vjp(by_a, exponent)), b.vjp(by_b, exponent))


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
    paired = True

    @property
    def sides(self) -> tuple[Any, ...]:
        return (self.source,)

    def window(self, rows: slice, columns: slice) -> "Given":
        return replace(self, source=NOTHING)

    def filled(self, *rows: Rows) -> "Given":
        return replace(self, source=rows[0])

    @property
    def scale(self) -> float:
        """The factor of the balanced values."""
        return self.factor.times_power(self.source.balanced[1])

    @cached_property
    def bound(self) -> float:
        if isinstance(self.source, ChunkedRows):
            return math.inf
        xp = array_namespace(self.like)
        return self.scale * float(xp.max(xp.abs(self.source.balanced[0]))) + _largest(self.offset)

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.source.values.shape
        return n, m

    @property
    def like(self) -> Array:
        return self.source.values

    def block(self, rows: slice, columns: slice) -> Array:
        values, exponent = self.source.balanced
        s = _shifted(self.factor.multiplied(values[rows, columns], exponent), self.offset, columns)
        return in_range(s, self.bound)

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

    def finish(self, exponent: int) -> Gradients:
        values, own = self.logits.source.balanced
        grads = self.finish_scalars(_inner(values, self.g), own, exponent)
        return merge(grads, self.logits.source.vjp(self.logits.factor.multiply(self.g, 0), exponent))
