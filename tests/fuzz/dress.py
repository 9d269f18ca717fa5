"""How a right value may be given: memory layouts of arrays, types of numbers; the meaning is the same."""

import decimal
import fractions
import tempfile

import numpy as np


class Subclass(np.ndarray):
    """A subclass that changes nothing."""


class OnlyArray:
    """An object with `__array__` and nothing else."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return np.array(self.x, dtype=dtype)


class OnlyInterface:
    """An object with `__array_interface__` and nothing else."""

    def __init__(self, x):
        self.x = x
        self.__array_interface__ = x.__array_interface__


def strided(x):
    whole = np.full(tuple(2 * size + 1 for size in x.shape), 7, dtype=x.dtype)
    view = whole[tuple(slice(1, None, 2) for _ in x.shape)]
    view[...] = x
    return view


def negative_strides(x):
    flip = (slice(None, None, -1),) * x.ndim
    return np.ascontiguousarray(x[flip])[flip]


def read_only(x):
    out = x.copy()
    out.flags.writeable = False
    return out


def unaligned(x):
    out = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    out[...] = x
    return out


def byteswapped(x):
    return x.astype(x.dtype.newbyteorder())


def broadcast(x):
    """Strides of 0 where the rows are equal, a read-only view where not."""
    equal = x.ndim > 1 and bool(np.all(x == x[:1]))
    return np.broadcast_to(x[:1] if equal else x, x.shape)


def memory_map(x):
    with tempfile.TemporaryFile() as file:
        file.write(np.ascontiguousarray(x).tobytes())
        file.flush()
        return np.memmap(file, dtype=x.dtype, mode="r", shape=x.shape)


def as_tuples(x):
    return tuple(as_tuples(row) if row.ndim else row.item() for row in x)


LAYOUTS = {
    "plain": lambda x: x,
    "strided": strided,
    "negative strides": negative_strides,
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "unaligned": unaligned,
    "byteswapped": byteswapped,
    "broadcast": broadcast,
    "subclass": lambda x: x.view(Subclass),
    "memory map": memory_map,
    "only __array__": OnlyArray,
    "only __array_interface__": OnlyInterface,
    "list": lambda x: x.tolist(),
    "tuple": as_tuples,
    "list of arrays": list,
}
NUMBERS = {
    "float": lambda v: v,
    "float64": np.float64,
    "array without dimensions": np.array,
    "Fraction": fractions.Fraction,
    "Decimal": decimal.Decimal,
    "longdouble": np.longdouble,
    "int": lambda v: int(v) if v == int(v) and abs(v) < 1e300 else v,
    "int8": lambda v: np.int8(v) if v == int(v) and abs(v) < 100 else v,
    "float32": lambda v: np.float32(v) if float(np.float32(v)) == v else v,
    "float16": lambda v: np.float16(v) if abs(v) < 6e4 and float(np.float16(v)) == v else v,
}
LABEL_TYPES = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
