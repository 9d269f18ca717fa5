"""Gradients of dense NumPy code as it stands: variables that record what is computed of them, and go back through it.

A variable takes part in NumPy's calls by the protocols of NEP 13 and NEP 18. What has no rule here is an error, and no
constant. No loss, bound or proof uses it: it differentiates what somebody else may have computed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count as numbers
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

Array = Any
Pull = Callable[[Array], Array]
"""From the gradient of a result to that of one of its arguments."""
Factors = Mapping[str, Any]
"""By the name of an edge, what multiplies the gradient that passes it in place of what usually does."""

TO_THE_FIRST: ContextVar[bool] = ContextVar("TO_THE_FIRST", default=False)
"""Whether the first of several equal maxima gets the whole gradient, as of `torch.max` along an axis; else all share
it, as of `torch.amax`."""
_serial = numbers()


class Variable(NDArrayOperatorsMixin):
    """An array with the arguments that it was computed from, each with the way back to it."""

    __slots__ = ("edge", "parents", "serial", "tied", "value")

    def __init__(
        self, value: Array, parents: Sequence[tuple["Variable", Pull]] = (), edge: "_Edge | None" = None
    ) -> None:
        self.value = np.asarray(value)
        self.parents, self.edge, self.serial, self.tied = tuple(parents), edge, next(_serial), False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.value.size

    @property
    def T(self) -> "Variable":  # noqa: N802
        """The axes in reverse order, as of an array."""
        return Variable(self.value.T, [(self, lambda g: g.T)])

    def __len__(self) -> int:
        return len(self.value)

    def __array__(self, *given: Any, **options: Any) -> Any:
        msg = "a variable would become a constant here; use detached"
        raise TypeError(msg)

    def __getitem__(self, index: Any) -> "Variable":
        def pull(g: Array) -> Array:
            whole = np.zeros(self.shape)
            np.add.at(whole, index, g)
            return whole

        return Variable(self.value[index], [(self, pull)])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        values = [detached(x) for x in inputs]
        if method != "__call__" or options:
            return NotImplemented
        if ufunc in _DECIDING:
            return ufunc(*values)
        if ufunc is np.matmul:
            return _recorded(values[0] @ values[1], inputs, _products(*values))
        if ufunc not in _DERIVATIVES:
            return NotImplemented
        y = ufunc(*values)
        derivatives = zip(_DERIVATIVES[ufunc], values, strict=True)
        pulls = [_elementwise(derivative, y, values, x) for derivative, x in derivatives]
        return _recorded(y, inputs, pulls)

    def __array_function__(self, func: Any, types: Any, args: Any, options: Any) -> Any:
        if func in _OF_SHAPES:
            return func(*(detached(x) for x in args), **options)
        return _RULES[func](*args, **options) if func in _RULES else NotImplemented


def detached(x: Any) -> Any:
    """The same numbers as constants."""
    return x.value if isinstance(x, Variable) else x


@dataclass(frozen=True, eq=False)
class _Edge:
    """A place that a gradient passes, under some names, by a factor."""

    names: tuple[str, ...]
    where: Array = None
    passes: float = 1.0

    def passed(self, g: Array, factors: Factors) -> Array | None:
        """The rest of a gradient behind an edge; None for nothing, since what passes nothing passes no NaN either."""
        named = [factors[name] for name in self.names if name in factors]
        factor: Any = math.prod(named) if named else self.passes
        if np.ndim(factor):
            # A factor of each row, whatever a row is made of.
            factor = np.reshape(factor, np.shape(factor) + (1,) * (g.ndim - np.ndim(factor)))
        elif factor == 1:
            return g
        elif factor == 0 and self.where is None:
            return None
        kept = np.where(factor == 0, 0.0, factor * g)
        return kept if self.where is None else np.where(self.where, kept, g)


def edge(x: Any, *names: str, where: Array = None, passes: float = 1.0) -> Any:
    """The same numbers, whose gradient passes by a factor that `Graph.gradients` may be given under a name.

    `names`: empty ones are none. `where`: the entries that the factor is for. `passes`: the factor otherwise.
    """
    # Most calls are of constants.
    if not isinstance(x, Variable) or not (names := tuple(filter(None, names))):
        return x
    return Variable(x.value, [(x, _same)], _Edge(names, where, passes))


def edges(x: Any, parts: Callable[[], Mapping[str, Array]], name: str) -> Any:
    """Edges as of `edge` for each of some parts of the entries, which are made only where there is a gradient.

    `parts`: by their names, which stand in the place of ``{}`` in `name`.
    """
    if isinstance(x, Variable):
        for part, where in parts().items():
            x = edge(x, name.format(part), where=where)
    return x


def joined(x: Any, *others: Any) -> Any:
    """The numbers of one result, whose gradient goes on to others that stand for it as well."""
    return recorded(detached(x), [(one, _same) for one in (x, *others)])


def stage(y: Any, x: Any, *names: str) -> Any:
    """A stage from `x` to `y`; by the factor 0 its gradient passes straight through, without its derivative."""
    if not isinstance(y, Variable) or not isinstance(x, Variable):
        return y
    return joined(edge(y, *names), edge(x, *(f"past {name}" for name in names), passes=0.0))


def _same(g: Array) -> Array:
    return g


def recorded(value: Array, pulls: Sequence[tuple[Any, Pull]]) -> Any:
    """A result that NumPy did not compute, with the way back to each of its arguments; constants have none."""
    parents = [(x, pull) for x, pull in pulls if isinstance(x, Variable)]
    return Variable(value, parents) if parents else value


class Graph:
    """The way back from a result to some of the variables that it was computed from."""

    def __init__(self, output: Any, leaves: Sequence[Variable]) -> None:
        self.output, self.leaves = output, leaves
        known: dict[int, Variable] = {}
        waiting = [output] if isinstance(output, Variable) else []
        while waiting:
            one = waiting.pop()
            if one.serial not in known:
                known[one.serial] = one
                waiting += [parent for parent, _ in one.parents]
        self._order = [known[serial] for serial in sorted(known, reverse=True)]
        edges = [one.edge for one in reversed(self._order) if one.edge]
        self.edges = {name: one.passes for one in edges for name in one.names}
        self.tied = any(one.tied for one in self._order)

    def gradients(self, factors: Factors | None = None, cotangent: Array = 1.0) -> list[Array]:
        """Gradients by the leaves, of the result times a cotangent, with factors on edges."""
        found = {self.output.serial: np.broadcast_to(cotangent, self.output.shape)} if self._order else {}
        return self._back(found, 0, factors or {})

    def varied(self, usual: Factors) -> Callable[[Factors], list[Array]]:
        """The function of `gradients` by unusual factors; what precedes the first of them is computed once."""
        before: dict[int, dict[int, Array]] = {}
        places: dict[str, int] = {}
        for k, one in enumerate(self._order):
            for name in one.edge.names if one.edge else ():
                places.setdefault(name, k)
        found = {self.output.serial: np.broadcast_to(1.0, self.output.shape)} if self._order else {}
        plain = self._back(found, 0, usual, before)

        def gradients(factors: Factors) -> list[Array]:
            begin = min((places[name] for name in factors if name in places), default=None)
            return plain if begin is None else self._back(dict(before[begin]), begin, {**usual, **factors})

        return gradients

    def _back(
        self,
        found: dict[int, Array],
        begin: int,
        factors: Factors,
        before: dict[int, dict[int, Array]] | None = None,
    ) -> list[Array]:
        """Gradients by the leaves, from what was found before a place in the order; `before` gets that of each edge."""
        with np.errstate(all="ignore"):
            for k, one in enumerate(self._order[begin:], begin):
                if before is not None and one.edge:
                    before[k] = dict(found)
                g = found.get(one.serial) if one.parents else None
                if g is None:
                    continue
                # Most edges have the factor 1, and there are thousands of gradients.
                if one.edge and (one.edge.passes != 1 or not factors.keys().isdisjoint(one.edge.names)):
                    g = one.edge.passed(g, factors)
                    if g is None:
                        continue
                for parent, pull in one.parents:
                    own = pull(g)
                    known = found.get(parent.serial)
                    found[parent.serial] = own if known is None else known + own
        return [found[x.serial] if x.serial in found else np.zeros(x.shape) for x in self.leaves]


def _recorded(value: Array, inputs: Sequence[Any], pulls: Sequence[Pull]) -> Any:
    return recorded(value, list(zip(inputs, pulls, strict=True)))


def _products(a: Array, b: Array) -> tuple[Pull, Pull]:
    """The ways back through a product of matrices, either of which may be a vector."""
    rows, columns = a.reshape(-1, a.shape[-1]), b.reshape(b.shape[0], -1)

    def of(g: Array) -> Array:
        return np.reshape(g, (len(rows), columns.shape[1]))

    return lambda g: np.reshape(of(g) @ columns.T, a.shape), lambda g: np.reshape(rows.T @ of(g), b.shape)


def _elementwise(derivative: Callable[..., Array] | float, y: Array, values: Sequence[Array], x: Array) -> Pull:
    shape = np.shape(x)
    if isinstance(derivative, float):
        return lambda g: _summed_to(np.multiply(derivative, g), shape)
    known: Array = None

    def pull(g: Array) -> Array:
        nonlocal known
        # The same for every gradient that passes, and there are thousands.
        known = derivative(y, *values) if known is None else known
        # Where nothing arrives nothing goes on, also where the derivative is infinite: a masked entry.
        passed = np.where(g == 0, 0.0, g * known)
        return _summed_to(passed, shape)

    return pull


def _summed_to(g: Array, shape: tuple[int, ...]) -> Array:
    """A gradient of an array that was broadcast, as that of the array itself."""
    if g.shape == shape:
        return g
    g = np.sum(g, axis=tuple(range(g.ndim - len(shape)))) if g.ndim > len(shape) else g
    stretched = tuple(k for k, size in enumerate(shape) if size != g.shape[k])
    return np.sum(g, axis=stretched, keepdims=True) if stretched else g


_DECIDING = frozenset({
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isfinite, np.isnan, np.sign,
    np.floor, np.ceil, np.rint,
})  # fmt: skip
"""What answers yes or no, or the same number all around, and has no derivative."""
_DERIVATIVES: Mapping[Any, tuple[Callable[..., Array] | float, ...]] = {
    np.add: (1.0, 1.0),
    np.subtract: (1.0, -1.0),
    np.multiply: (lambda y, a, b: b, lambda y, a, b: a),
    np.divide: (lambda y, a, b: 1 / b, lambda y, a, b: -y / b),
    np.power: (lambda y, a, b: b * a ** (b - 1), lambda y, a, b: y * np.log(a)),
    np.negative: (-1.0,),
    np.exp: (lambda y, a: y,),
    np.log: (lambda y, a: 1 / a,),
    np.log1p: (lambda y, a: 1 / (1 + a),),
    np.sqrt: (lambda y, a: 0.5 / y,),
    np.maximum: (lambda y, a, b: a >= b, lambda y, a, b: a < b),
    np.minimum: (lambda y, a, b: a <= b, lambda y, a, b: a > b),
    np.logaddexp: (lambda y, a, b: np.exp(a - y), lambda y, a, b: np.exp(b - y)),
    np.absolute: (lambda y, a: np.sign(a),),
    np.cos: (lambda y, a: -np.sin(a),),
    np.sin: (lambda y, a: np.cos(a),),
    np.tanh: (lambda y, a: 1 - y * y,),
    np.arccos: (lambda y, a: -1 / np.sqrt(1 - a * a),),
}
"""By operation, its derivatives by each argument, from the result and the arguments, or one number for all entries."""


def _sum(x: Variable, axis: Any = None, keepdims: bool = False) -> Any:
    def pull(g: Array) -> Array:
        # Much quicker than a view, as arrays are small.
        whole = np.empty(x.shape)
        whole[...] = g if keepdims or axis is None else np.expand_dims(g, axis)
        return whole

    return recorded(np.sum(x.value, axis=axis, keepdims=keepdims), [(x, pull)])


def _mean(x: Variable, axis: Any = None, keepdims: bool = False) -> Any:
    total = _sum(x, axis, keepdims)
    return total / (x.value.size / total.value.size)


def _variance(x: Variable, axis: Any = None, keepdims: bool = False, ddof: int = 0) -> Any:
    squares = (x - _mean(x, axis, keepdims=True)) ** 2
    total = _sum(squares, axis, keepdims)
    return total / (x.value.size / total.value.size - ddof)


def _max(x: Variable, axis: Any = None, keepdims: bool = False) -> Any:
    top = np.max(x.value, axis=axis, keepdims=True)
    largest = x.value == top
    count = np.sum(largest, axis=axis, keepdims=True)

    def pull(g: Array) -> Array:
        share = largest / count
        if TO_THE_FIRST.get():
            share = largest & (np.cumsum(largest, axis=axis).reshape(x.shape) == 1)
        return (g if keepdims or axis is None else np.expand_dims(g, axis)) * share

    found = Variable(np.max(x.value, axis=axis, keepdims=keepdims), [(x, pull)])
    found.tied = bool(np.any(count > 1))
    return found


def _sort(x: Variable, axis: int = -1) -> Any:
    order = np.argsort(x.value, axis=axis, kind="stable")

    def pull(g: Array) -> Array:
        whole = np.empty(x.shape)
        np.put_along_axis(whole, order, g, axis)
        return whole

    return recorded(np.take_along_axis(x.value, order, axis), [(x, pull)])


def _where(condition: Array, x: Any, y: Any) -> Any:
    condition = detached(condition)

    def pull(g: Array, of: Any, chosen: bool) -> Array:
        return _summed_to(np.where(condition if chosen else ~condition, g, 0.0), np.shape(detached(of)))

    pulls: Sequence[Pull] = (lambda g: pull(g, x, True), lambda g: pull(g, y, False))
    return _recorded(np.where(condition, detached(x), detached(y)), (x, y), pulls)


def _concatenate(arrays: Sequence[Any], axis: int = 0) -> Any:
    values = [detached(x) for x in arrays]
    ends = np.cumsum([np.shape(x)[axis] for x in values])

    def part(k: int) -> Pull:
        return lambda g: np.split(g, ends[:-1], axis=axis)[k]

    return _recorded(np.concatenate(values, axis=axis), arrays, [part(k) for k in range(len(values))])


def _moved(x: Variable, value: Array, pull: Pull) -> Variable:
    return Variable(value, [(x, pull)])


def _reshaped(x: Variable, value: Array) -> Variable:
    return _moved(x, value, lambda g: np.reshape(g, x.shape))


_RULES: Mapping[Any, Callable[..., Any]] = {
    np.sum: _sum,
    np.mean: _mean,
    np.max: _max,
    np.where: _where,
    np.concatenate: _concatenate,
    np.broadcast_to: lambda x, shape: Variable(
        np.broadcast_to(x.value, shape), [(x, lambda g: _summed_to(g, x.shape))]
    ),
    np.reshape: lambda x, shape: _reshaped(x, np.reshape(x.value, shape)),
    np.squeeze: lambda x, axis=None: _reshaped(x, np.squeeze(x.value, axis=axis)),
    np.atleast_1d: lambda x: _reshaped(x, np.atleast_1d(x.value)),
    np.min: lambda x, *axis, **options: -_max(-x, *axis, **options),
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.sort: _sort,
    np.roll: lambda x, shift, axis=None: _moved(x, np.roll(x.value, shift, axis), lambda g: np.roll(g, -shift, axis)),
    np.var: _variance,
    np.tile: lambda x, times: np.concatenate(times * [x]),
    np.std: lambda x, **options: np.sqrt(np.var(x, **options)),
    np.swapaxes: lambda x, a, b: _moved(x, np.swapaxes(x.value, a, b), lambda g: np.swapaxes(g, a, b)),
}
_OF_SHAPES = frozenset({np.shape, np.ndim, np.zeros_like, np.ones_like, np.real, np.argsort, np.round, np.any})
"""Functions of an array that pass no gradient."""
