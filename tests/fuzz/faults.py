"""What must be refused by name: wrong values for arrays, labels, scalars and words, as tables.

Each takes a generator of random numbers and a right value. `MAY` are those that may also be taken for what they mean.
"""

import datetime as dt
import decimal
import fractions

import numpy as np


class RaisesOnFloat:
    """An object whose conversions raise."""

    def __init__(self, error):
        self.error = error

    def __float__(self):
        raise self.error

    __int__ = __index__ = __len__ = __iter__ = __array__ = __float__

    def __repr__(self):
        return f"RaisesOnFloat({self.error!r})"


class RaisesOnEverything:
    """An object that raises even where it is shown."""

    def __getattribute__(self, name):
        if name in ("__class__", "__dict__"):
            return object.__getattribute__(self, name)
        msg = "no attributes"
        raise RuntimeError(msg)

    def __repr__(self):
        msg = "no repr"
        raise RuntimeError(msg)

    __str__ = __float__ = __array__ = __bool__ = __eq__ = __hash__ = __len__ = __iter__ = __repr__


def _constant(value):
    return lambda rng, x: value


def _entry(number):
    def make(rng, x):
        out = np.array(x)
        out.flat[rng.integers(out.size)] = number
        return out

    return make


def _as(dtype):
    def make(rng, x):
        return np.zeros(np.shape(x), dtype)

    return make


def _shape(change):
    return lambda rng, x: change(np.asarray(x))


OBJECTS = {
    "a set": _constant({1.0, 2.0}),
    "a dictionary": _constant({1: 2}),
    "an iterator": lambda rng, x: iter([1.0, 2.0]),
    "an object": _constant(object()),
    "a function": _constant(len),
    "a type": _constant(np.ndarray),
    "an ellipsis": _constant(...),
    "text": _constant("abc"),
    "bytes": _constant(b"abc"),
    "a date": _constant(dt.date(2020, 1, 1)),
    "raises ValueError": _constant(RaisesOnFloat(ValueError("no"))),
    "raises RuntimeError": _constant(RaisesOnFloat(RuntimeError("no"))),
    "raises ZeroDivisionError": _constant(RaisesOnFloat(ZeroDivisionError("no"))),
    "raises everywhere": lambda rng, x: RaisesOnEverything(),
    "text with a lone surrogate": _constant("\ud800"),
}
ARRAYS = {
    "NaN": _entry(np.nan),
    "infinity": _entry(np.inf),
    "minus infinity": _entry(-np.inf),
    "one dimension more": _shape(lambda x: x[None, None]),
    "empty": _shape(lambda x: x[:0]),
    "no features": _shape(lambda x: x[..., :0]),
    "no dimensions": _shape(lambda x: x.reshape(-1)[0]),
    "a float": _constant(2.5),
    "complex": _as(np.complex128),
    "complex64": _as(np.complex64),
    "a complex list": lambda rng, x: (np.asarray(x) + 1j).tolist(),
    "text array": lambda rng, x: np.asarray(x).astype("U8"),
    "bytes array": lambda rng, x: np.asarray(x).astype("S8"),
    "dates": _as("datetime64[s]"),
    "time spans": _as("timedelta64[s]"),
    "void": _as("V8"),
    "records": lambda rng, x: np.zeros(np.shape(x), [("a", float), ("b", int)]),
    "ragged": _constant([[1.0], [1.0, 2.0]]),
    "deeply nested": _constant([[[[[[1.0]]]]]]),
    "a list of None": _constant([None, None]),
    "a list of text": _constant(["a", "b"]),
    "a list with a huge integer": _constant([[10**400]]),
    "a list with a huge fraction": _constant([[fractions.Fraction(10**400, 3)]]),
    "an empty list": _constant([]),
    "objects that raise": lambda rng, x: _objects(np.shape(x), RaisesOnFloat(ValueError("no"))),
    "masked": lambda rng, x: np.ma.masked_array(x, mask=rng.random(np.shape(x)) < 0.5),
    "lists in lists of themselves": lambda rng, x: _recursive(),
    **OBJECTS,
}


def _objects(shape, thing):
    out = np.empty(shape, dtype=object)
    for i in range(out.size):
        # One by one: an assignment of all converts the thing first.
        out.flat[i] = thing
    return out


def _recursive():
    out = []
    out.append(out)
    return out


MAY = {
    "integers": lambda rng, x: np.asarray(x).clip(-9, 9).astype(np.int64),
    "booleans": lambda rng, x: np.asarray(x) > 0,
    "longdouble": lambda rng, x: np.asarray(x).astype(np.longdouble),
    "objects": lambda rng, x: np.asarray(x).astype(object),
    "a list of integers": lambda rng, x: np.asarray(x).clip(-9, 9).astype(np.int64).tolist(),
    "a matrix": lambda rng, x: np.asarray(x).view(np.matrix) if np.ndim(x) == 2 else x,
    "a record array": lambda rng, x: np.asarray(x).view(np.recarray),
}
"""Taken with their meaning, or refused by name."""
LABELS = {
    "floats": lambda rng, y: np.asarray(y).astype(float),
    "a list of floats": lambda rng, y: np.asarray(y).astype(float).tolist(),
    "booleans": lambda rng, y: np.asarray(y) > 0,
    "a list of booleans": lambda rng, y: (np.asarray(y) > 0).tolist(),
    "NaN": lambda rng, y: np.full(np.shape(y), np.nan),
    "complex": lambda rng, y: np.asarray(y).astype(complex),
    "text array": lambda rng, y: np.asarray(y).astype(str),
    "a list of text": lambda rng, y: [str(t) for t in np.ravel(y)],
    "huge integers": lambda rng, y: [10**30] * len(np.ravel(y)),
    "beyond 64 bits": lambda rng, y: np.full(np.shape(y), 2**63 + 5, dtype=np.uint64),
    "dates": lambda rng, y: np.asarray(y).astype("datetime64[s]"),
    "one dimension more": _shape(lambda y: y[None]),
    "no dimensions": _shape(lambda y: y.reshape(-1)[0]),
    "empty": _shape(lambda y: y[:0]),
    "an integer": _constant(3),
    **OBJECTS,
}
NUMBERS = {
    "NaN": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "NaN of NumPy": np.float32("nan"),
    "True": True,
    "False": False,
    "True of NumPy": np.True_,
    "truth without dimensions": np.array(True),
    "text": "0.1",
    "bytes": b"0.1",
    "text without dimensions": np.array("0.1"),
    "text of NumPy": np.str_("0.1"),
    "a list": [0.1],
    "a tuple": (0.1,),
    "an array": np.array([0.1]),
    "a matrix": np.array([[0.1]]),
    "complex": 1 + 2j,
    "complex without imaginary part": 1 + 0j,
    "complex of NumPy": np.complex128(1 + 2j),
    "complex64": np.complex64(1),
    "complex without dimensions": np.array(1 + 2j),
    "a huge integer": 10**400,
    "a huge negative integer": -(10**400),
    "a huge fraction": fractions.Fraction(10**400, 3),
    "a huge decimal": decimal.Decimal("1e999"),
    "a decimal NaN": decimal.Decimal("NaN"),
    "a signaling decimal NaN": decimal.Decimal("sNaN"),
    "a decimal infinity": decimal.Decimal("Infinity"),
    "a huge longdouble": np.longdouble("1e4000"),
    "a date": np.datetime64("2020"),
    "a time span": np.timedelta64(1, "s"),
    "None without dimensions": np.array(None),
    "masked": np.ma.masked,
    "nothing": (),
}
SCALARS = {
    **{name: _constant(value) for name, value in NUMBERS.items()},
    **{name: make for name, make in OBJECTS.items() if name not in NUMBERS},
}
CHOICES = {
    "capital letters": "L2",
    "empty": "",
    "None": None,
    "bytes": b"l2",
    "a list": ["l2"],
    "an array": np.array(["l2", "none"]),
    "an array of one": np.array(["l2"]),
    "a number": 3.5,
    "NaN": np.nan,
    "a space": "none ",
    "a function": len,
}
WORDS = {
    **{name: _constant(value) for name, value in CHOICES.items()},
    **{name: make for name, make in OBJECTS.items() if name not in CHOICES},
}
