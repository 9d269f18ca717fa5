"""Targets that return what is no loss, or a loss in something that misbehaves when it is read."""

import datetime
import decimal
import fractions
import threading
from collections.abc import Mapping

import numpy as np
from answer import right

from nceref.cases.records import Outcome


def none(x, y):
    return None


def text(x, y):
    return "\x1b[2J\ud800[red]" + 10**6 * "x"


def plain_object(x, y):
    return object()


def generator(x, y):
    yield 1.0


def itself(x, y):
    return itself


def awaitable(x, y):
    async def later():
        return 1.0

    coroutine = later()
    coroutine.close()
    return coroutine


def empty_tuple(x, y):
    return ()


def nested_in_itself(x, y):
    out = []
    out.append(out)
    return out


def outcome_of_the_checker(x, y):
    return Outcome(value=right(x, y)[0])


def huge_array(x, y):
    return np.broadcast_to(np.float64(1.0), (2**20, 2**20))


def huge_gradient(x, y):
    return right(x, y)[0], {"x": np.broadcast_to(np.float64(1.0), (2**20, 2**20))}


def huge_integer(x, y):
    return 10**400


def huge_dictionary(x, y):
    return dict.fromkeys(range(10**5))


def odd_keys(x, y):
    return right(x, y)[0], {"\x1b[2J\ud800": x, 3: y, None: x, "x" * 10**6: y}


def too_many_gradients(x, y):
    return right(x, y)[0], [x] * 10**5


def gradient_of_text(x, y):
    return right(x, y)[0], {"x": "\x1b[2J", "y": None}


def gradient_of_objects(x, y):
    return right(x, y)[0], {"x": np.full(x.shape, None), "y": y}


def object_array(x, y):
    return np.array(_BadFloat(), dtype=object)


def structured_array(x, y):
    return np.zeros((), dtype=[("\x1b[2J\ud800", "f8")])


def date(x, y):
    return np.datetime64(datetime.datetime(2020, 1, 1))


def complex_number(x, y):
    return complex(right(x, y)[0])


def masked_array(x, y):
    return np.ma.masked_array([right(x, y)[0]], mask=[True])


def fraction(x, y):
    return fractions.Fraction(1, 3)


def decimal_number(x, y):
    return decimal.Decimal("NaN")


def nan_with_payload(x, y):
    return np.array(0x7FF8DEADBEEF0001, dtype=np.uint64).view(np.float64)


def infinity(x, y):
    return -np.inf


class _BadFloat(float):
    def __float__(self):
        raise RuntimeError("no number")

    def __array__(self, *args, **kwargs):
        raise RuntimeError("\x1b[2J no array \ud800")

    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __repr__


def bad_float(x, y):
    return _BadFloat(1.0)


class _Lazy:
    def __init__(self, then):
        self.then = then

    def __array__(self, *args, **kwargs):
        return self.then()

    @property
    def __class__(self):
        return float


def array_hangs(x, y):
    return _Lazy(lambda: threading.Event().wait())


def array_exits(x, y):
    return _Lazy(lambda: exec("raise SystemExit(0)"))


def array_interrupts(x, y):
    return _Lazy(lambda: exec("raise KeyboardInterrupt"))


def array_is_no_array(x, y):
    return _Lazy(lambda: "\x1b[2J")


class _BadArray(np.ndarray):
    def __array_ufunc__(self, *args, **kwargs):
        raise RuntimeError("no ufunc")

    def __array_function__(self, *args, **kwargs):
        raise RuntimeError("no function")

    def __getattribute__(self, name):
        raise RuntimeError("no attribute")


def bad_array(x, y):
    return np.array(right(x, y)[0]).view(_BadArray)


def bad_gradients(x, y):
    value, grads = right(x, y)
    return value, {name: grad.view(_BadArray) for name, grad in grads.items()}


class _LyingArray(np.ndarray):
    shape = (7, 7)
    dtype = np.dtype(object)

    def astype(self, *args, **kwargs):
        return "not an array"


def lying_array(x, y):
    value, grads = right(x, y)
    return np.array(value).view(_LyingArray), grads


class _BadMapping(Mapping):
    def __getitem__(self, key):
        raise RuntimeError("no item")

    def __iter__(self):
        while True:
            yield "x"

    def __len__(self):
        return -1

    def __contains__(self, key):
        return True


def bad_mapping(x, y):
    return _BadMapping()


def gradients_without_end(x, y):
    return right(x, y)[0], _BadMapping()


class _TextRaises:
    def __repr__(self):
        raise RuntimeError("no repr")


def without_repr(x, y):
    return _TextRaises()


def repr_hangs(x, y):
    return type("Hangs", (), {"__repr__": lambda self: threading.Event().wait()})()


def odd_repr(x, y):
    return type("\x1b[31mRed", (), {"__repr__": lambda self: "\x1b[2J\ud800\u202e[red]\x00" + 10**7 * "x"})()


def half_the_time(x, y):
    value, grads = right(x, y)
    half_the_time.calls = getattr(half_the_time, "calls", 0) + 1
    return value * (half_the_time.calls % 2), grads


def read_only(x, y):
    value, grads = right(x, y)
    for grad in grads.values():
        grad.flags.writeable = False
    return value, grads


def its_inputs(x, y):
    return right(x, y)[0], {"x": x, "y": y}
