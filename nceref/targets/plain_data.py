"""Plain data of Python in JSON, and arrays by their bytes: nothing is rounded, and reading it runs no code.

An object stands for what JSON does not have. It has one name, which says what it is, such as ``{"float": "0x1.8p+1"}``.
"""

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

_DTYPES = frozenset({
    "|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16",
})  # fmt: skip
_FLOAT = "<f8"
_DIMENSIONS = 32


def to_json(x: Any) -> Any:
    """The JSON form of numbers, text, bytes, None, `Ellipsis`, arrays, tuples, lists, sets and mappings of them.

    Raises `TypeError` for anything else, and for what contains itself.
    """
    try:
        return _described(x)
    except RecursionError as error:
        msg = "it is nested too deeply"
        raise TypeError(msg) from error


def from_json(content: Any) -> Any:
    """The data that `to_json` described."""
    if isinstance(content, list):
        return [from_json(x) for x in content]
    if not isinstance(content, dict):
        return content
    ((name, parts),) = content.items()
    return _READ[name](parts)


def array_to_json(x: Any) -> dict[str, Any]:
    """Shape and bytes of an array; its dtype where it is not float64, its order where it is Fortran's."""
    array = np.asarray(x)
    little = array.dtype.newbyteorder("<")
    if little.str not in _DTYPES or array.ndim > _DIMENSIONS:
        msg = f"an array of type {array.dtype} with {array.ndim} dimensions is no plain value"
        raise TypeError(msg)
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    content = base64.b64encode(array.astype(little, copy=False).tobytes(order)).decode("ascii")
    dtype = {} if little.str == _FLOAT else {"dtype": little.str}
    return {"shape": list(array.shape), "base64": content, **dtype, **({"order": order} if order == "F" else {})}


def array_from_json(content: Mapping[str, Any]) -> Any:
    """The array, writable, of `array_to_json`, or of anybody; raises `ValueError` where it has none."""
    dtype, order, shape = content.get("dtype", _FLOAT), content.get("order", "C"), content.get("shape")
    if not isinstance(dtype, str) or dtype not in _DTYPES or order not in ("C", "F"):
        msg = "its `dtype` or `order` is none of NumPy's"
        raise ValueError(msg)
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        msg = "its `shape` must be a list of sizes"
        raise ValueError(msg)
    text = content.get("base64")
    if not isinstance(text, str):
        msg = "its `base64` must be text"
        raise ValueError(msg)
    received, size = base64.b64decode(text, validate=True), np.dtype(dtype).itemsize * math.prod(shape)
    # A shape that has more entries than bytes were sent is refused here, before anything of that size is made.
    if len(received) != size:
        msg = f"it has {len(received)} bytes, and {dtype} numbers of shape {shape} have {size}"
        raise ValueError(msg)
    flat = np.frombuffer(received, dtype=dtype)
    return flat.reshape(shape, order=order).astype(np.dtype(dtype).newbyteorder("="), order="K", copy=True)


def _described(x: Any) -> Any:
    # The most frequent ones first.
    if x is None or type(x) in (str, bool):
        return x
    # NumPy's float64 is a float as well.
    if isinstance(x, np.ndarray | np.generic):
        return {"array" if isinstance(x, np.ndarray) else "scalar": array_to_json(x)}
    for kind, (name, parts) in _WRITTEN.items():
        if isinstance(x, kind):
            content = parts(x)
            described = [_described(part) for part in content] if isinstance(content, list) else content
            return {name: described} if name else described
    msg = f"{type(x).__module__}.{type(x).__qualname__} is no plain value"
    raise TypeError(msg)


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
"""The name of each type, empty for JSON's own, and a function to the text or list that stands for it."""
_READ: dict[str, Callable[[Any], Any]] = {
    "array": array_from_json,
    "scalar": lambda parts: array_from_json(parts)[()],
    # In hexadecimal, which takes no quadratic time.
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    "complex": lambda parts: complex(*from_json(parts)),
    "bytes": bytes.fromhex,
    "tuple": lambda parts: tuple(from_json(parts)),
    "set": lambda parts: set(from_json(parts)),
    "frozenset": lambda parts: frozenset(from_json(parts)),
    "dict": lambda pairs: {from_json(key): from_json(value) for key, value in pairs},
    "ellipsis": lambda parts: ...,
}
