"""Array libraries: the namespace of an array, looked up once for each type, its device, and the memory that is free."""

from functools import cache
from typing import Any, NamedTuple

import array_api_compat
import numpy as np

from nceref.output.system import refuse_older

# Everything that computes comes by here: with an older NumPy it would end in errors of many kinds, or in none.
refuse_older(np, array_api_compat)

_KNOWN: dict[type, Any] = {}


def array_namespace(first: Any, *others: Any) -> Any:
    """The namespace of the first array; that all arrays of a call share one is checked at the door."""
    # NumPy follows the standard by itself, in all that is asked of it. The module that wraps it would take as long to
    # import as the rest of the engine, and its wrappers a small batch calls a hundred times.
    if isinstance(first, np.ndarray | np.generic):
        return np
    try:
        return _KNOWN[type(first)]
    except KeyError:
        # A chunked array has the namespace of its chunks: it is not that of its type.
        if hasattr(first, "spans"):
            return array_namespace(first.like)
        return _KNOWN.setdefault(type(first), array_api_compat.array_namespace(first))


class Format(NamedTuple):
    """The range of a dtype: whether it is real, its bits, and its smallest and largest positive numbers."""

    real: bool
    bits: int
    smallest: float
    largest: float


def has_kind(xp: Any, dtype: Any, kind: str | tuple[str, ...]) -> bool:
    """Whether a dtype is of a kind of the array standard; records and formats of other packages are of none."""
    try:
        return bool(xp.isdtype(dtype, kind))
    except TypeError:
        return False


@cache
def number_format(xp: Any, dtype: Any) -> Format:
    """Whether a dtype is real floating, its bits, its smallest normal and its largest number."""
    if not has_kind(xp, dtype, "real floating"):
        return Format(False, 0, 0.0, 0.0)
    info = xp.finfo(dtype)
    return Format(True, int(info.bits), float(info.smallest_normal), float(info.max))


def device(x: Any) -> Any:
    """The device of an array."""
    return "cpu" if type(x) is np.ndarray else array_api_compat.device(getattr(x, "like", x))


def on_host(x: Any) -> bool:
    """Whether an array is NumPy's."""
    return isinstance(x, np.ndarray)


def free_bytes(like: Any) -> int | None:
    """Bytes that are free on the device of an array; None for the host, whose memory other processes take as well."""
    if on_host(like):
        return None
    if array_api_compat.is_cupy_array(like):
        import cupy

        with like.device:
            return int(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())
    if array_api_compat.is_torch_array(like) and like.device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(like.device)[0])
    return None


def as_scalar(x: Any) -> Any:
    """A Python float for a NumPy scalar; arrays, and scalars of another library, stay what they are."""
    return float(x) if isinstance(x, float | np.floating) or (on_host(x) and x.ndim == 0) else x
