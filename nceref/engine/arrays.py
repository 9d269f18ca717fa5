"""Checks of one array argument: library, device, dtype, shape, entries. Every failure says what to do."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from array_api_compat import is_array_api_obj

from nceref import spec
from nceref.engine.namespaces import array_namespace, device, has_kind, number_format, on_host
from nceref.errors import InputError
from nceref.output.text import reason, shown

Sizes = dict[str, tuple[int, str]]
"""Size of every shape letter met so far, and the argument that set it."""


class Library:
    """The array library and the device of a call: those of its first array; lists become arrays of it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        import numpy as np

        first: Any = np.zeros(1)
        for name, value in values.items():
            if type(value) is np.ndarray or _is_array(name, value):
                first = value
                break
        self.xp = array_namespace(first)
        self.plain = np.ndarray if on_host(first) else None
        self.device = device(first)

    def array(self, name: str, value: Any) -> Any:
        """The argument as an array of the call's library."""
        if type(value) is self.plain and value.dtype.isnative:
            return value
        if not _is_array(name, value):
            return self._from_sequence(name, value)
        if array_namespace(value) is not self.xp:
            theirs, ours = (
                str(xp.__name__).removeprefix("array_api_compat.") for xp in (array_namespace(value), self.xp)
            )
            msg = f"`{name}` is an array of {theirs}, but the first array is one of {ours}; convert them to one library"
            raise InputError(msg)
        if device(value) != self.device:
            msg = f"`{name}` is on {device(value)}, but the first array is on {self.device}; move them to one device"
            raise InputError(msg)
        return _plain(name, value)

    def _from_sequence(self, name: str, value: Any) -> Any:
        x = as_plain(name, value)
        if x.dtype.kind not in "biuf":
            msg = f"`{name}` must be an array of numbers, got {shown(value)} of dtype {x.dtype}; convert it first"
            raise InputError(msg)
        return x if array_namespace(x) is self.xp else self.xp.asarray(x.tolist(), device=self.device)


def as_plain(name: str, value: Any) -> Any:
    """Any object that NumPy reads as an array, as a plain one."""
    import numpy as np

    refuse_masked(name, value)
    try:
        return _plain(name, np.asanyarray(value))
    except ValueError as error:
        msg = f"`{name}` must be a rectangular array, got {shown(value)}: {reason(error)}"
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


def _plain(name: str, value: Any) -> Any:
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
    """Raise for a masked array, and for lists that hold one: NumPy drops the mask on conversion."""
    import numpy as np

    if isinstance(value, list | tuple):
        for part in value:
            # Rows of plain numbers, the rule, cost one look at each row.
            if isinstance(part, list | tuple | np.ma.MaskedArray):
                refuse_masked(name, part)
    elif isinstance(value, np.ma.MaskedArray):
        msg = f"`{name}` is a masked array; drop the masked rows and pass a plain array"
        raise InputError(msg)


def refuse_autograd(name: str, value: Any) -> None:
    """Raise for a tensor that records a graph: its backward pass would send gradients to what is a constant here."""
    if getattr(value, "requires_grad", False):
        msg = f"`{name}` requires grad, but the gradients here are derived by hand; pass {name}.detach()"
        raise InputError(msg)


def checked_array(p: spec.Array, value: Any, library: Library, sizes: Sizes) -> Any:
    """A float array argument: real floating, of the declared shape, finite, in its domain.

    Parameters
    ----------
    p : Array
        What is declared about the argument.
    value : object
        An array of the call's library, or nested lists of numbers.
    library : Library
        That of the call.
    sizes : dict
        Sizes of the letters of earlier arguments, which this one must match; its own are added.

    Returns
    -------
    array
        In the dtype in which it was given.

    Raises
    ------
    InputError
        If it is anything else.
    """
    x = library.array(p.name, value)
    xp = array_namespace(x)
    # A mask of truth values is one of weights 0 and 1, which every format has.
    if p.like == "mask" and has_kind(xp, x.dtype, "bool"):
        x = xp.astype(x, xp.float32)
    number = number_format(xp, x.dtype)
    if not number.real or number.bits > 64:
        msg = f"`{p.name}` must be an array of real floats of at most 64 bits, got dtype {x.dtype}; convert it first"
        raise InputError(msg)
    letters = p.alternative if p.alternative is not None and x.ndim == len(p.alternative) else p.shape
    _check_shape(p.name, x, letters, sizes)
    if not all_finite(x):
        _check_entries(p.name, x, ~xp.isfinite(x), "finite")
    if p.low is not None:
        _check_entries(p.name, x, x < p.low if p.closed else x <= p.low, f"{'>=' if p.closed else '>'} {p.low:g}")
    return x


def all_finite(x: Any) -> bool:
    """Whether no entry is infinite or NaN."""
    # A finite sum takes one pass and no array. Finite entries may have an infinite sum, so that is looked into.
    xp = array_namespace(x)
    return math.isfinite(float(xp.sum(x))) or bool(xp.all(xp.isfinite(x)))


def checked_labels(p: spec.Labels, value: Any, library: Library, sizes: Sizes) -> Any:
    """An integer array argument of the declared shape, as 64-bit integers; parameters as for `checked_array`."""
    x = library.array(p.name, value)
    xp = array_namespace(x)
    if not has_kind(xp, x.dtype, "integral"):
        msg = f"`{p.name}` must be an array of integers, got dtype {x.dtype}; convert it first"
        raise InputError(msg)
    _check_shape(p.name, x, p.shape, sizes)
    # Unsigned 64-bit labels would wrap around to negative ones.
    if x.dtype == xp.uint64 and int(xp.max(x)) > xp.iinfo(xp.int64).max:
        msg = f"`{p.name}` must fit into 64-bit signed integers, got {int(xp.max(x))}"
        raise InputError(msg)
    # A copy: labels are checked once and then used as indices, so nobody may change them in between.
    return xp.astype(x, xp.int64)


def check_range(name: str, labels: Any, classes: int) -> None:
    """Check that labels index the classes.

    Parameters
    ----------
    name : str
        The argument.
    labels : array of int64
    classes : int
        How many there are.

    Raises
    ------
    InputError
        For a label below 0 or beyond the last class.
    """
    xp = array_namespace(labels)
    low, high = int(xp.min(labels)), int(xp.max(labels))
    if low < 0 or high >= classes:
        bad = low if low < 0 else high
        msg = f"`{name}` must lie in 0 ... {classes - 1} for {classes} classes, got {bad}"
        raise InputError(msg)


def _check_entries(name: str, x: Any, bad: Any, expected: str) -> None:
    xp = array_namespace(x)
    if not bool(xp.any(bad)):
        return
    # The first bad entry; the array standard has no argmax of truth values, and no unravel_index.
    flat = int(xp.argmax(xp.astype(xp.reshape(bad, (-1,)), xp.int8)))
    index: tuple[int, ...] = ()
    for size in reversed(x.shape):
        flat, rest = divmod(flat, size)
        index = (rest, *index)
    msg = f"`{name}` must be {expected} everywhere, got {float(x[index])} at index {index}"
    raise InputError(msg)


def shape_text(letters: Iterable[Any]) -> str:
    """A shape as it is written: ``(N, D)``, ``(N,)``."""
    parts = [str(letter) for letter in letters]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _check_shape(name: str, x: Any, letters: tuple[str, ...], sizes: Sizes) -> None:
    known = [sizes.get(letter) for letter in letters]
    fits = x.ndim == len(letters) and all(k is None or k[0] == size for k, size in zip(known, x.shape, strict=False))
    if not fits:
        raise InputError(_shape_message(name, tuple(x.shape), letters, sizes))
    if 0 in x.shape:
        msg = f"`{name}` is empty: its shape is {tuple(x.shape)}; pass at least one row and one feature"
        raise InputError(msg)
    for letter, size in zip(letters, x.shape, strict=True):
        sizes.setdefault(letter, (size, name))


def _shape_message(name: str, shape: tuple[int, ...], letters: tuple[str, ...], sizes: Mapping[str, Any]) -> str:
    wanted = shape_text(letters)
    others = sorted({sizes[letter][1] for letter in letters if letter in sizes} - {name})
    if not others:
        return f"`{name}` must be {wanted}, got {shape}"
    expected = shape_text(sizes[letter][0] if letter in sizes else letter for letter in letters)
    return f"`{name}` must be {wanted} = {expected} to match {' and '.join(f'`{o}`' for o in others)}, got {shape}"


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
    return {**inputs, **{name: x if x.dtype == common else xp.astype(x, common) for name, x in floats.items()}}


def in_dtype_of(x: Any, grad: Any) -> Any:
    """A gradient in the dtype of its input."""
    if not is_array_api_obj(x) or grad.dtype == x.dtype:
        return grad
    return array_namespace(grad).astype(grad, x.dtype)
