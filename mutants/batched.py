"""An array that stands for many of the same shape: a program that is run on it is run on all of them in one call.

It is what `bug.slopes` moves: one copy of an input for each of its entries. NumPy hands its functions over to it. What
it does not know it refuses, and the program is run on one copy after the other.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from nceref.errors import NcerefError

Array = Any


class NotBatchedError(NcerefError):
    """An operation on a batched array cannot be done for all copies at once."""


def _refused(name: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        msg = f"a batched array has no {name}"
        raise NotBatchedError(msg)

    return refuse


class BatchedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """Copies of one array, along a first axis that nobody sees."""

    def __init__(self, copies: Array) -> None:
        self.copies = copies

    shape = property(lambda self: self.copies.shape[1:])
    ndim = property(lambda self: self.copies.ndim - 1)
    size = property(lambda self: int(np.prod(self.shape)))
    dtype = property(lambda self: self.copies.dtype)
    T = property(lambda self: np.transpose(self))
    real = property(lambda self: np.real(self))
    imag = property(lambda self: np.imag(self))
    # A program that needs one number, or an array, of it is run one by one.
    __array__ = _refused("numbers")
    __bool__ = __float__ = __int__ = __complex__ = __index__ = item = tolist = __array__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or (ufunc.signature and ufunc is not np.matmul):
            _refused(f"{ufunc.__name__} {method}")(self)
        return BatchedArray(_matmul(*inputs) if ufunc is np.matmul else ufunc(*_aligned(*inputs)))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _FUNCTIONS.get(function, _refused(function.__name__))(*args, **kwargs)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        # Lists of indices that stand apart, numbers beside them included, would come before the axis of the copies.
        lists = [i for i, x in enumerate(index) if not isinstance(x, _SLICES)]
        apart = lists and lists != list(range(lists[0], lists[-1] + 1))
        if any(map(_is_batched, index)) or (apart and not all(isinstance(index[i], int) for i in lists)):
            _refused("such entries")(self)
        return BatchedArray(self.copies[(slice(None), *index)])

    def astype(self, dtype: Any, **kwargs: Any) -> "BatchedArray":
        """The same numbers in another format."""
        return BatchedArray(self.copies.astype(dtype))

    def reshape(self, *shape: Any) -> "BatchedArray":
        """The same as `numpy.reshape`, for each copy."""
        return _reshape(self, shape[0] if len(shape) == 1 else shape)

    def squeeze(self, axis: Any = None) -> "BatchedArray":
        """The same as `numpy.squeeze`, for each copy."""
        return _squeeze(self, axis)

    def copy(self) -> "BatchedArray":
        """The same as `numpy.copy`, for all copies."""
        return BatchedArray(self.copies.copy())

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `numpy.sum`, for each copy."""
        return _reduction(np.sum, self, *args, **kwargs)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `numpy.mean`, for each copy."""
        return _reduction(np.mean, self, *args, **kwargs)


_SLICES = (slice, type(None), type(...))


def _is_batched(x: Any) -> bool:
    return isinstance(x, BatchedArray)


def _aligned(*operands: Any) -> list[Array]:
    """Arrays that broadcast as the operands do, behind the axis of the copies."""
    most = max(np.ndim(x) for x in operands)
    return [
        x.copies.reshape(len(x.copies), *(1,) * (most - x.ndim), *x.shape) if isinstance(x, BatchedArray) else x
        for x in operands
    ]


def _spread(operands: Any) -> list[Array]:
    """Arrays that all have the axis of the copies."""
    count = next(len(x.copies) for x in operands if isinstance(x, BatchedArray))
    return [x.copies if isinstance(x, BatchedArray) else np.broadcast_to(x, (count, *np.shape(x))) for x in operands]


def _matmul(x: Any, y: Any) -> Array:
    if not np.ndim(x) or not np.ndim(y):
        _refused("product with a number")(x)
    rows, columns = (x[None] if np.ndim(x) == 1 else x), (y[:, None] if np.ndim(y) == 1 else y)
    product = np.matmul(*_aligned(rows, columns))
    product = product[..., 0] if np.ndim(y) == 1 else product
    return product[..., 0, :] if np.ndim(x) == 1 and np.ndim(y) > 1 else product[..., 0] if np.ndim(x) == 1 else product


def _axis(axis: int, ndim: int) -> int:
    return axis + 1 if axis >= 0 else axis + ndim + 1


def _reduction(function: Callable[..., Any], x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    if axis is None:
        # One row for each copy: the same sums, in the same order.
        whole = function(x.copies.reshape(len(x.copies), -1), axis=1)
        return BatchedArray(whole.reshape(-1, *(1,) * x.ndim) if keepdims else whole)
    axes = axis if isinstance(axis, tuple) else (axis,)
    return BatchedArray(function(x.copies, axis=tuple(_axis(a, x.ndim) for a in axes), keepdims=keepdims))


def _real(x: Any) -> Any:
    """The real part, which is the same of all copies unless a program makes it of the imaginary one."""
    real = np.real(x.copies)
    # To the bit: also a NaN and the sign of a zero.
    first = real[:1]
    return real[0] if real.tobytes() == np.broadcast_to(first, real.shape).tobytes() else BatchedArray(real)


def _where(condition: Any, x: Any, y: Any) -> BatchedArray:
    return BatchedArray(np.where(*_aligned(condition, x, y)))


def _concatenate(arrays: Any, axis: int = 0) -> BatchedArray:
    return BatchedArray(np.concatenate(_spread(arrays), axis=_axis(axis, np.ndim(arrays[0]))))


def _stack(arrays: Any, axis: int = 0) -> BatchedArray:
    return BatchedArray(np.stack(_spread(arrays), axis=_axis(axis, np.ndim(arrays[0]) + 1)))


def _diagonal(x: Any, offset: int = 0) -> BatchedArray:
    return BatchedArray(np.diagonal(x.copies, offset, 1, 2))


def _transpose(x: Any, axes: Any = None) -> BatchedArray:
    axes = range(x.ndim)[::-1] if axes is None else axes
    return BatchedArray(np.transpose(x.copies, (0, *(_axis(a, x.ndim) for a in axes))))


def _swapaxes(x: Any, one: int, other: int) -> BatchedArray:
    return BatchedArray(np.swapaxes(x.copies, _axis(one, x.ndim), _axis(other, x.ndim)))


def _reshape(x: Any, shape: Any) -> BatchedArray:
    return BatchedArray(x.copies.reshape(len(x.copies), *(shape if isinstance(shape, tuple | list) else (shape,))))


def _squeeze(x: Any, axis: Any = None) -> BatchedArray:
    if isinstance(axis, tuple):
        _refused("several axes to squeeze")(x)
    return (
        _reshape(x, tuple(n for n in x.shape if n != 1))
        if axis is None
        else BatchedArray(np.squeeze(x.copies, _axis(axis, x.ndim)))
    )


def _expand_dims(x: Any, axis: int) -> BatchedArray:
    return BatchedArray(np.expand_dims(x.copies, _axis(axis, x.ndim + 1)))


def _roll(x: Any, shift: Any, axis: Any = None) -> BatchedArray:
    if not isinstance(axis, int):
        _refused("roll of several axes")(x)
    return BatchedArray(np.roll(x.copies, shift, _axis(axis, x.ndim)))


def _tile(x: Any, reps: Any) -> BatchedArray:
    reps = reps if isinstance(reps, tuple) else (reps,)
    most = max(len(reps), x.ndim)
    (copies, _) = _aligned(x, np.empty((1,) * most))
    return BatchedArray(np.tile(copies, (1, *(1,) * (most - len(reps)), *reps)))


def _repeat(x: Any, repeats: Any, axis: Any = None) -> BatchedArray:
    if not isinstance(axis, int):
        _refused("repeat of no axis")(x)
    return BatchedArray(np.repeat(x.copies, repeats, _axis(axis, x.ndim)))


def _take_along_axis(x: Any, indices: Any, axis: int) -> BatchedArray:
    return BatchedArray(np.take_along_axis(x.copies, indices[None], _axis(axis, x.ndim)))


def _broadcast_to(x: Any, shape: Any) -> BatchedArray:
    (copies, _) = _aligned(x, np.empty((1,) * len(shape)))
    return BatchedArray(np.broadcast_to(copies, (len(copies), *shape)))


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    **{f: partial(_reduction, f) for f in (np.sum, np.mean, np.prod, np.max, np.min, np.all, np.any)},
    np.real: _real,
    np.imag: lambda x: BatchedArray(np.imag(x.copies)),
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.result_type: lambda *all: np.result_type(*(x.copies if isinstance(x, BatchedArray) else x for x in all)),
    np.where: _where,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.diagonal: _diagonal,
    np.trace: lambda x: _reduction(np.sum, _diagonal(x), -1),
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.reshape: _reshape,
    np.ravel: lambda x: _reshape(x, -1),
    np.squeeze: _squeeze,
    np.expand_dims: _expand_dims,
    np.roll: _roll,
    np.tile: _tile,
    np.repeat: _repeat,
    np.take_along_axis: _take_along_axis,
    np.broadcast_to: _broadcast_to,
    np.zeros_like: lambda x: np.zeros(x.shape, x.dtype),
    np.ones_like: lambda x: np.ones(x.shape, x.dtype),
}
"""Functions that replace NumPy's where batched arrays are among their arguments."""
