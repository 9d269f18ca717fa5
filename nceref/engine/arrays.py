"""Checks of one array argument: library, device, dtype, entries. Every failure says what to do."""

import math
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from array_api_compat import is_array_api_obj

from nceref import spec
from nceref.engine.chunks import ChunkedArray, is_chunked
from nceref.engine.namespaces import array_namespace, device, has_kind, number_format, on_host
from nceref.engine.shapes import Sizes, check_shape
from nceref.errors import InputError
from nceref.output.text import reason, shown
from nceref.output.words import counted


class Library:
    """The array library and the device of a call: those of its first array; lists become arrays of it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        import numpy as np

        first: Any = np.zeros(1)
        self.first = ""
        for name, value in values.items():
            if type(value) is np.ndarray or _is_array(name, value):
                self.first, first = name, value
                break
        self.xp = array_namespace(first)
        self.plain = np.ndarray if on_host(first) else None
        self.device = device(first)

    def array(self, p: spec.Array | spec.Labels, value: Any) -> Any:
        """The argument as an array of the call's library."""
        name = p.name
        if type(value) is self.plain and value.dtype.isnative:
            return value
        if not _is_array(name, value):
            return self._from_sequence(p, value)
        if array_namespace(value) is not self.xp:
            refuse_chunked(name, value)
            theirs, ours = (
                str(xp.__name__).removeprefix("array_api_compat.") for xp in (array_namespace(value), self.xp)
            )
            msg = f"`{name}` is an array of {theirs}, but `{self.first}` is one of {ours}; convert them to one library"
            raise InputError(msg)
        if device(value) != self.device:
            msg = f"`{name}` is on {device(value)}, but `{self.first}` is on {self.device}; move them to one device"
            raise InputError(msg)
        return plain(name, value)

    def _from_sequence(self, p: spec.Array | spec.Labels, value: Any) -> Any:
        x = as_plain(p.name, value)
        if isinstance(p, spec.Labels):
            _refuse_large_integers(p.name, value, x.dtype)
        if x.dtype.kind not in "biuf":
            what, remedy = _wanted(p)
            msg = f"`{p.name}` must be an array of {what}, got {shown(value)} of dtype {x.dtype}; {remedy}"
            raise InputError(msg)
        return x if array_namespace(x) is self.xp else self.xp.asarray(x.tolist(), device=self.device)


def _wanted(p: spec.Array | spec.Labels) -> tuple[str, str]:
    """The kind of numbers that an argument must have, and the remedy where it has another."""
    if isinstance(p, spec.Labels):
        return "integers", "convert it to integers, one for each class"
    also = {"mask": "truth values or ", "counts": "integers or "}.get(p.like, "")
    return f"{also}real floats of at most 64 bits", f"convert it to {also}float64"


def _refuse_large_integers(name: str, value: Any, dtype: Any) -> None:
    """Raise for a sequence with an integer that is too large for a label: NumPy makes floats or objects of it."""
    import numpy as np

    if dtype.kind not in "fO":
        return
    info = np.iinfo(np.int64)
    for entry in np.asarray(value, dtype=object).flat:
        if isinstance(entry, int | np.integer) and not info.min <= entry <= info.max:
            raise InputError(_not_64_bits(name, entry))


def _not_64_bits(name: str, label: Any) -> str:
    return f"`{name}` must fit into 64-bit signed integers, got {shown(label)}; number the classes 0, 1, 2, ..."


def as_plain(name: str, value: Any) -> Any:
    """A plain array of any object that NumPy reads as one."""
    import numpy as np

    refuse_masked(name, value)
    try:
        return plain(name, np.asanyarray(value))
    except ValueError as error:
        msg = f"`{name}` must be a rectangular array, got {shown(value)}: {reason(error)}; make its rows equally long"
        raise InputError(msg) from error


def _is_array(name: str, value: Any) -> bool:
    """Whether a value is an array of a library that the array standard covers."""
    try:
        if is_array_api_obj(value):
            array_namespace(value)
            return True
    except MemoryError:
        raise
    except Exception as error:
        msg = f"`{name}` cannot be read as an array: {reason(error)}; pass a NumPy array"
        raise InputError(msg) from error
    return False


def plain(name: str, value: Any) -> Any:
    """A NumPy array in native byte order and without a subclass; what would lose its meaning here is refused."""
    import numpy as np

    refuse_masked(name, value)
    refuse_autograd(name, value)
    if not isinstance(value, np.ndarray):
        return value
    # The dtype as well from the plain array: a subclass may have another one to show.
    plain = np.asarray(value)
    return plain if plain.dtype.isnative else plain.astype(plain.dtype.newbyteorder("="))


def refuse_masked(name: str, value: Any) -> None:
    """Raise for a masked array, and for lists that hold one or one of Dask: NumPy drops the mask on conversion."""
    import numpy as np

    if isinstance(value, list | tuple):
        for part in value:
            # Rows of plain numbers, the rule, cost one look at each row.
            if isinstance(part, list | tuple | np.ma.MaskedArray):
                refuse_masked(name, part)
        if is_chunked(*value):
            msg = f"`{name}` is a list that holds arrays of Dask; pass dask.array.stack({name})"
            raise InputError(msg)
    elif isinstance(value, np.ma.MaskedArray):
        msg = f"`{name}` is a masked array; drop the masked rows and pass a plain array"
        raise InputError(msg)


def check_chunks(name: str, x: Any) -> None:
    """Check what an array of Dask says of its chunks: their sizes are known, and they are not masked.

    Raises `InputError` if a size is unknown, or the chunks are masked arrays.
    """
    if any(math.isnan(size) for size in x.shape):
        msg = f"`{name}` has chunks of unknown size; call {name}.compute_chunk_sizes() first"
        raise InputError(msg)
    refuse_masked(name, x._meta)


def refuse_chunked(name: str, value: Any) -> None:
    """Raise for an array of Dask where arrays are to be in memory."""
    if is_chunked(value):
        check_chunks(name, value)
        msg = f"`{name}` is an array of Dask, which only losses take; pass {name}.compute()"
        raise InputError(msg)


def refuse_autograd(name: str, value: Any) -> None:
    """Raise for a tensor that records a graph: its backward pass would send gradients to what is a constant here."""
    if getattr(value, "requires_grad", False):
        remedy = f"pass {name}.detach(), or call the loss of nceref.torch"
        msg = f"`{name}` requires grad, but the gradients here are derived by hand; {remedy}"
        raise InputError(msg)


def checked_array(p: spec.Array, value: Any, library: Library, sizes: Sizes) -> Any:
    """A float array argument: real floating, of the declared shape, finite, in its domain.

    `value` is an array of the call's library, or nested lists of numbers; it keeps its dtype. `sizes` has the sizes of
    the letters of earlier arguments, which this one must match; its own are added. Raises `InputError` if it is
    anything else.
    """
    x = library.array(p, value)
    xp = array_namespace(x)
    # A mask of truth values is one of weights 0 and 1, which every format has.
    if p.like == "mask" and has_kind(xp, x.dtype, "bool"):
        x = _cast(xp, x, xp.float32)
    counts = p.like == "counts" and has_kind(xp, x.dtype, "integral")
    number = number_format(xp, x.dtype)
    if not counts and (not number.real or number.bits > 64):
        what, remedy = _wanted(p)
        msg = f"`{p.name}` must be an array of {what}, got dtype {x.dtype}; {remedy}"
        raise InputError(msg)
    check_shape(p, x, sizes)
    if isinstance(x, ChunkedArray):
        # Its entries are looked at where they are read.
        return x
    if counts:
        x = _counts_as_floats(p.name, x)
    check_entries(p, x)
    return x


def check_entries(p: spec.Array, x: Any, start: tuple[int, ...] = ()) -> None:
    """Check that the entries of an argument are finite, and in its domain.

    `x` is the argument, or rows of it that begin at `start`, which the message counts from; axes that are left out
    begin at 0. Raises `InputError` for the first entry that is not.
    """
    if not all_finite(x):
        _check_entries(p, x, ~array_namespace(x).isfinite(x), "finite", start)
    if p.low is not None:
        _check_entries(p, x, x < p.low if p.closed else x <= p.low, f"{'>=' if p.closed else '>'} {p.low:g}", start)


def _counts_as_floats(name: str, x: Any) -> Any:
    """Integers as the same numbers in the narrower format that has them all: float32 up to 2^24, then float64."""
    xp = array_namespace(x)
    largest = max(int(xp.max(x)), -int(xp.min(x)))
    if largest > 2**53:
        msg = f"`{name}` must be integers of at most 2^53 = {2**53}, got {largest}; pass frequencies as floats"
        raise InputError(msg)
    return xp.astype(x, xp.float32 if largest <= 2**24 else xp.float64)


def all_finite(x: Any) -> bool:
    """Whether no entry is infinite or NaN."""
    # A finite sum takes one pass and no array. Finite entries may have an infinite sum, so that is looked into.
    xp = array_namespace(x)
    return math.isfinite(float(xp.sum(x))) or bool(xp.all(xp.isfinite(x)))


class RangeError(InputError):
    """A number left the range of its dtype; `BoundLoss` adds the name of an argument, and what to do."""


def check_finite(x: Any, what: str) -> None:
    """Check that nothing left the range of its dtype.

    Parameters
    ----------
    x : float or array
    what : str
        Its name in the message.

    Raises
    ------
    RangeError
        If it, or an entry of it, is infinite or NaN.
    """
    if math.isfinite(x) if isinstance(x, float) else all_finite(x):
        return
    dtype = "float64" if isinstance(x, float) else str(x.dtype)
    msg = f"{what} leaves the range of {dtype}"
    raise RangeError(msg)


def checked_labels(p: spec.Labels, value: Any, library: Library, sizes: Sizes) -> Any:
    """An integer array argument of the declared shape, as 64-bit integers; parameters as for `checked_array`."""
    x = library.array(p, value)
    xp = array_namespace(x)
    if not has_kind(xp, x.dtype, "integral"):
        what, remedy = _wanted(p)
        msg = f"`{p.name}` must be an array of {what}, got dtype {x.dtype}; {remedy}"
        raise InputError(msg)
    check_shape(p, x, sizes)
    # Unsigned 64-bit labels would wrap around to negative ones.
    if x.dtype == xp.uint64 and int(xp.max(x)) > xp.iinfo(xp.int64).max:
        raise InputError(_not_64_bits(p.name, int(xp.max(x))))
    # A copy: labels are checked once and then used as indices, so nobody may change them in between.
    return xp.astype(x, xp.int64)


def check_range(name: str, labels: Any, classes: tuple[int, str]) -> None:
    """Check that labels index the classes.

    `classes` is their number, and the argument that has them. Raises `InputError` for a label below 0 or beyond the
    last class.
    """
    xp = array_namespace(labels)
    size, source = classes
    outside = (labels < 0) | (labels >= size)
    if bool(xp.any(outside)):
        index = _first(outside)
        bad = int(labels[index])
        remedy = "no label is ignored: leave such rows out" if bad < 0 else "classes are counted from 0"
        expected = f"0 ... {size - 1} for the {counted(size, 'class', 'classes')} of `{source}`"
        msg = f"`{name}` must lie in {expected}, got {bad} at index {index}; {remedy}"
        raise InputError(msg)


def _first(bad: Any) -> tuple[int, ...]:
    """The index of the first true entry; the array standard has no argmax of truth values, and no unravel_index."""
    xp = array_namespace(bad)
    flat = int(xp.argmax(xp.astype(xp.reshape(bad, (-1,)), xp.int8)))
    index: tuple[int, ...] = ()
    for size in reversed(bad.shape):
        flat, rest = divmod(flat, size)
        index = (rest, *index)
    return index


def _check_entries(p: spec.Array, x: Any, bad: Any, expected: str, start: tuple[int, ...]) -> None:
    if not bool(array_namespace(x).any(bad)):
        return
    at = _first(bad)
    index = tuple(i + begin for i, begin in zip_longest(at, start, fillvalue=0))
    remedy = f"replace it, or leave out row {index[0]}" if p.embedding else "replace it"
    msg = f"`{p.name}` must be {expected} everywhere, got {float(x[at])} at index {index}; {remedy}"
    raise InputError(msg)


def promoted(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with all float arrays in their common dtype, at least float32: what is computed in."""
    arrays = {name: x for name, x in inputs.items() if not isinstance(x, float | str | None) and is_array_api_obj(x)}
    floats = {name: x for name, x in arrays.items() if number_format(array_namespace(x), x.dtype).real}
    dtypes = {x.dtype for x in floats.values()}
    if not dtypes:
        return dict(inputs)
    xp = array_namespace(next(iter(floats.values())))
    if len(dtypes) == 1 and number_format(xp, next(iter(dtypes))).bits >= 32:
        return dict(inputs)
    common = xp.result_type(xp.float32, *dtypes)
    return {**inputs, **{name: x if x.dtype == common else _cast(xp, x, common) for name, x in floats.items()}}


def _cast(xp: Any, x: Any, dtype: Any) -> Any:
    return x.astype(dtype) if isinstance(x, ChunkedArray) else xp.astype(x, dtype)


def in_dtype_of(x: Any, grad: Any) -> Any:
    """A gradient in the dtype of its input."""
    if not is_array_api_obj(x) or grad.dtype == x.dtype:
        return grad
    return array_namespace(grad).astype(grad, x.dtype)
