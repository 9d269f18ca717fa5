"""Frames of plain data between two processes that do not trust each other; reading one runs no code.

A frame is a fixed prefix, a header in JSON and the bytes of its arrays one after the other. An object of the header has
exactly one name, which says what it stands for, such as ``{"float": "0x1.8p+1"}``. There are no other numbers than
integers, so that nothing is rounded and no NaN has to be spelled.
"""

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

MAGIC = b"nceref1\n"
_PREFIX = struct.Struct("<8sQQQ")
_DTYPES = frozenset({
    "|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16",
})  # fmt: skip
_DIMENSIONS = 32
_DIGITS = 20
"""Most digits of an integer that JSON writes; longer ones are in hexadecimal, which takes no quadratic time."""


class WireError(ValueError):
    """The bytes received are no frame of plain data, or an object to be sent cannot become one."""


class Limits(NamedTuple):
    """The largest frame that is read, in bytes of the header and of the arrays."""

    header: int
    arrays: int


class Frame(NamedTuple):
    """One message: the number of the exchange that it belongs to, and plain data."""

    number: int
    content: Any


def packed(number: int, content: Any) -> bytes:
    """The bytes of a frame.

    `number` is that of the exchange: an answer has that of its request. `content` may have numbers, text, bytes, None,
    `Ellipsis`, NumPy arrays, and tuples, lists, sets and mappings of them. Raises `WireError` for anything else, and
    for content that contains itself.
    """
    arrays: list[bytes] = []
    try:
        header = json.dumps(_described(content, arrays)).encode("ascii")
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise WireError(msg) from error
    size = sum(map(len, arrays))
    return b"".join([_PREFIX.pack(MAGIC, number, len(header), size), header, *arrays])


def read_frame(read: Callable[[int], bytes], limits: Limits) -> Frame:
    """The next frame; nothing larger than the limits is read or allocated.

    ``read(n)`` returns 1 to n bytes, or none at the end. Raises `EOFError` if the stream ends before the frame does,
    and `WireError` for anything that is no frame.
    """
    magic, number, header, arrays = _PREFIX.unpack(_exactly(read, _PREFIX.size))
    if magic != MAGIC or header > limits.header or arrays > limits.arrays:
        msg = "this is no frame, or it is too large"
        raise WireError(msg)
    return Frame(number, unpacked(_exactly(read, header), _exactly(read, arrays)))


def unpacked(header: bytes, arrays: bytes) -> Any:
    """The content of a frame; raises `WireError` if it is none."""
    rest = _Arrays(arrays)
    try:
        content = json.loads(
            header.decode("ascii"),
            object_pairs_hook=lambda pairs: _meaning(pairs, rest),
            parse_int=_integer,
            parse_float=_refuse,
            parse_constant=_refuse,
        )
    # Of `json`, of a constructor in the table, of text that is not ASCII, and of deep nesting.
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        msg = f"the header cannot be read: {type(error).__name__}"
        raise WireError(msg) from error
    if rest.left:
        msg = "there are more bytes than the arrays have"
        raise WireError(msg)
    return content


def _exactly(read: Callable[[int], bytes], count: int) -> bytes:
    parts, left = [], count
    while left:
        part = read(min(left, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _described(x: Any, arrays: list[bytes]) -> Any:
    """The form of a value that JSON can write; the bytes of its arrays are appended to `arrays`."""
    if x is None or isinstance(x, bool):
        return x
    # NumPy's float64 is a float as well.
    if isinstance(x, np.ndarray | np.generic):
        return {"array" if isinstance(x, np.ndarray) else "scalar": _appended(np.asarray(x), arrays)}
    if isinstance(x, Mapping):
        return {"dict": [[_described(k, arrays), _described(v, arrays)] for k, v in x.items()]}
    for kind, (name, parts) in _WRITTEN.items():
        if isinstance(x, kind):
            content = parts(x)
            described = [_described(part, arrays) for part in content] if isinstance(content, list) else content
            return {name: described} if name else described
    msg = f"{type(x).__module__}.{type(x).__qualname__} is no plain value"
    raise WireError(msg)


_WRITTEN: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    str: ("", str),
    int: ("int", hex),
    float: ("float", float.hex),
    complex: ("complex", lambda x: [x.real, x.imag]),
    bytes: ("bytes", bytes.hex),
    list: ("", list),
    tuple: ("tuple", list),
    set: ("set", list),
    frozenset: ("frozenset", list),
    type(...): ("ellipsis", lambda x: []),
}
"""The name of each type in a frame, empty for JSON's own, and a function to the text or list that stands for it."""


def _appended(x: Any, arrays: list[bytes]) -> list[Any]:
    """Dtype, shape and order of an array."""
    little = x.dtype.newbyteorder("<")
    if little.str not in _DTYPES or x.ndim > _DIMENSIONS:
        msg = f"an array of type {x.dtype} with {x.ndim} dimensions is no plain value"
        raise WireError(msg)
    order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    arrays.append(x.astype(little, copy=False).tobytes(order))
    return [little.str, list(x.shape), order]


class _Arrays:
    """The bytes of the arrays that have not been read yet."""

    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    @property
    def left(self) -> int:
        return len(self._content) - self._place

    def next(self, dtype: Any, shape: Any, order: Any) -> Any:
        """The next array, writable."""
        if not isinstance(dtype, str) or dtype not in _DTYPES or order not in ("C", "F"):
            raise WireError
        if not isinstance(shape, list) or len(shape) > _DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
            raise WireError
        count = 1
        for n in shape:
            count *= n
        size = count * np.dtype(dtype).itemsize
        if size > self.left:
            raise WireError
        flat = np.frombuffer(self._content[self._place : self._place + size] or b"", dtype=dtype, count=count)
        self._place += size
        return flat.reshape(shape, order=order).astype(np.dtype(dtype).newbyteorder("="), order="K", copy=True)


def _meaning(pairs: list[tuple[str, Any]], rest: _Arrays) -> Any:
    """The value that an object of the header stands for."""
    if len(pairs) != 1:
        raise WireError
    ((name, content),) = pairs
    if name in ("array", "scalar"):
        x = rest.next(*content) if isinstance(content, list) else rest.next(None, None, None)
        return x if name == "array" else _first(x)
    if name not in _READ:
        raise WireError
    kind, read = _READ[name]
    if not isinstance(content, kind):
        raise WireError
    return read(content)


def _first(x: Any) -> Any:
    if x.shape != ():
        raise WireError
    return x[()]


def _complex(parts: list[Any]) -> complex:
    real, imaginary = parts
    return complex(real, imaginary)


def _mapping(pairs: list[Any]) -> dict[Any, Any]:
    if not all(isinstance(pair, list) for pair in pairs) or len(mapping := dict(pairs)) != len(pairs):
        raise WireError
    return mapping


def _hexadecimal(text: str) -> int:
    return int(text, 16)


_READ: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "int": (str, _hexadecimal),
    "float": (str, float.fromhex),
    "complex": (list, _complex),
    "bytes": (str, bytes.fromhex),
    "tuple": (list, tuple),
    "set": (list, set),
    "frozenset": (list, frozenset),
    "dict": (list, _mapping),
    "ellipsis": (list, lambda content: ...),
}


def _integer(text: str) -> int:
    if len(text) > _DIGITS:
        raise WireError
    return int(text)


def _refuse(text: str) -> Any:
    raise WireError(text)
