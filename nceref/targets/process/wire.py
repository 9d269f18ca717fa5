"""Lines of plain data between two processes that do not trust each other; reading one runs no code.

A line is one JSON object, ``{"message": [number, content]}``. Every object in it has exactly one name, which says what
it stands for, such as ``{"float": "0x1.8p+1"}``; an array has its bytes in base64. There are no other numbers than
integers, so that nothing is rounded and no NaN has to be spelled.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_DTYPES = frozenset({
    "|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16",
})  # fmt: skip
_DIMENSIONS = 32
_DIGITS = 20
"""Most digits of an integer that JSON writes; longer ones are in hexadecimal, which takes no quadratic time."""


class WireError(ValueError):
    """The bytes received are no line of plain data, or an object to be sent cannot become one."""


@dataclass(frozen=True)
class Message:
    """The number of the exchange that a line belongs to, and plain data; no tuple, which an answer may contain."""

    number: int
    content: Any


def packed(number: int, content: Any) -> bytes:
    """A line with its end.

    `number` is that of the exchange: an answer has that of its request. `content` may have numbers, text, bytes, None,
    `Ellipsis`, NumPy arrays, and tuples, lists, sets and mappings of them. Raises `WireError` for anything else, and
    for content that contains itself.
    """
    try:
        return json.dumps({"message": [number, _described(content)]}).encode("ascii") + b"\n"
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise WireError(msg) from error


def unpacked(line: bytes) -> Message:
    """The message of a line; raises `WireError` if it has none."""
    try:
        message = json.loads(
            line.decode("ascii"),
            object_pairs_hook=_meaning,
            parse_int=_integer,
            parse_float=_refuse,
            parse_constant=_refuse,
        )
    # Of `json`, of a constructor in the table, of text that is not ASCII, and of deep nesting.
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        msg = f"it cannot be read: {error}".removesuffix(": ")
        raise WireError(msg) from error
    if not isinstance(message, Message):
        raise WireError
    return message


def _described(x: Any) -> Any:
    """The form of a value that JSON can write."""
    # The most frequent ones first.
    if x is None or type(x) in (str, bool):
        return x
    # NumPy's float64 is a float as well.
    if isinstance(x, np.ndarray | np.generic):
        return {"array" if isinstance(x, np.ndarray) else "scalar": _parts(np.asarray(x))}
    for kind, (name, parts) in _WRITTEN.items():
        if isinstance(x, kind):
            content = parts(x)
            described = [_described(part) for part in content] if isinstance(content, list) else content
            return {name: described} if name else described
    msg = f"{type(x).__module__}.{type(x).__qualname__} is no plain value"
    raise WireError(msg)


def _pairs(x: Mapping[Any, Any]) -> list[Any]:
    return [[key, value] for key, value in x.items()]


_WRITTEN: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    dict: ("dict", _pairs),
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
    Mapping: ("dict", _pairs),
}
"""The name of each type in a line, empty for JSON's own, and a function to the text or list that stands for it."""


def _parts(x: Any) -> list[Any]:
    """Dtype, shape, order and bytes of an array."""
    little = x.dtype.newbyteorder("<")
    if little.str not in _DTYPES or x.ndim > _DIMENSIONS:
        msg = f"an array of type {x.dtype} with {x.ndim} dimensions is no plain value"
        raise WireError(msg)
    order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    content = base64.b64encode(x.astype(little, copy=False).tobytes(order))
    return [little.str, list(x.shape), order, content.decode("ascii")]


def _array(parts: list[Any]) -> Any:
    """The array of these parts, writable."""
    dtype, shape, order, content = parts
    if not isinstance(dtype, str) or dtype not in _DTYPES or order not in ("C", "F"):
        raise WireError
    if not isinstance(shape, list) or len(shape) > _DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise WireError
    # A shape that has more entries than bytes were sent is refused here, before anything of that size is made.
    flat = np.frombuffer(base64.b64decode(content, validate=True), dtype=dtype)
    return flat.reshape(shape, order=order).astype(np.dtype(dtype).newbyteorder("="), order="K", copy=True)


def _meaning(pairs: list[tuple[str, Any]]) -> Any:
    """The value that an object stands for."""
    if len(pairs) != 1 or pairs[0][0] not in _READ:
        raise WireError
    ((name, content),) = pairs
    kind, read = _READ[name]
    if not isinstance(content, kind):
        raise WireError
    return read(content)


def _message(parts: list[Any]) -> Message:
    number, content = parts
    if type(number) is not int:
        raise WireError
    return Message(number, content)


def _scalar(parts: list[Any]) -> Any:
    return _first(_array(parts))


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
    "message": (list, _message),
    "array": (list, _array),
    "scalar": (list, _scalar),
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
