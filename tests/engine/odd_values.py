"""Values of every kind that nobody should pass, and a caller who wants to hear of everything."""

import warnings
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from nceref import InputError


class Raising:
    """Whatever is read of it raises; what a program does with the numbers of others may not."""

    def __init__(self, error):
        self.error = error

    def fail(self, *args):
        raise self.error

    __float__ = __index__ = __array__ = __len__ = __getitem__ = __repr__ = __eq__ = __bool__ = fail
    __hash__ = None
    shape = dtype = requires_grad = __array_namespace__ = property(fail)


RECORD = np.zeros(4, dtype=[("a", float)])
NO_NUMBER = {
    "true": True, "numpy true": np.True_, "0-d true": np.array(True), "none": None, "text": "0.5", "bytes": b"0.5",
    "bytearray": bytearray(b"1"), "list": [0.5], "one entry": np.array([0.5]), "complex": 0.5 + 0j,
    "numpy complex": np.complex64(0.5), "0-d complex": np.array(0.5 + 0j), "date": np.datetime64("2020"),
    "duration": np.timedelta64(1, "s"), "0-d object": np.array(None), "0-d text": np.array("0.5"),
    "record": RECORD[0], "masked": np.ma.masked, "masked number": np.ma.array(0.5), "function": len, "type": float,
    "ellipsis": ..., "decimal nan": Decimal("NaN"), "signaling nan": Decimal("sNaN"), "nan": np.float32("nan"),
    "infinite": -np.inf, "large decimal": Decimal("1e999"), "long double": np.longdouble("1e400"),
    "large integer": 10**400, "larger than python prints": -(10**5000), "large fraction": Fraction(10**400, 3),
    "value error": Raising(ValueError("\x1b[31m\n\udc80")), "type error": Raising(TypeError()),
    "key error": Raising(KeyError("x")), "recursion": Raising(RecursionError()), "warning": Raising(UserWarning("x")),
}  # fmt: skip


@contextmanager
def strict():
    """A caller who wants to hear of everything."""
    before = np.seterr(all="raise")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        np.seterr(**before)


def refused(name, call):
    """The message of the refusal: it names the argument, and is printable and short."""
    with strict(), pytest.raises(InputError) as caught:
        call()
    text = str(caught.value)
    assert f"`{name}`" in text
    assert text.isprintable()
    assert len(text) < 600
    return text
