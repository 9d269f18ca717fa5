"""Targets whose objects misbehave before they are called: construction, signature, class, name."""

import inspect
import os
import threading

from answer import right


class ConstructionRaises:
    def __init__(self):
        raise RuntimeError("\x1b[2J\ud800")

    def __call__(self, x, y):
        return right(x, y)


class ConstructionExits:
    def __new__(cls):
        os._exit(7)

    def __call__(self, x, y):
        return right(x, y)


class ConstructionWaits:
    def __init__(self):
        threading.Event().wait()

    def __call__(self, x, y):
        return right(x, y)


class ConstructionGivesAnother:
    def __new__(cls):
        return 3

    def __call__(self, x, y):
        return right(x, y)


class DeletionRaises:
    def __call__(self, x, y):
        return right(x, y)

    def __del__(self):
        raise RuntimeError("\x1b[2J\ud800")


def lying_signature(x, y):
    return right(x, y)


lying_signature.__signature__ = inspect.signature(lambda a, b, c, d, e: None)


def broken_signature(x, y):
    return right(x, y)


broken_signature.__signature__ = "\x1b[2J"


class _CompareRaises:
    def __eq__(self, other):
        raise RuntimeError("not equal, and not unequal")

    __hash__ = None

    def __bool__(self):
        raise RuntimeError("neither true nor false")


_NEITHER = _CompareRaises()


def odd_default(x, y, temperature=_NEITHER):
    return right(x, y)


def wrapped_in_itself(x, y):
    return right(x, y)


wrapped_in_itself.__wrapped__ = wrapped_in_itself


def odd_annotations(x: "\x1b[2J", y: "1 / 0"):  # noqa: F722
    return right(x, y)


class _AttributesRaise:
    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")

    def __call__(self, x, y):
        return right(x, y)


attributes_raise = _AttributesRaise()


class _HasEverything:
    def __getattr__(self, name):
        return _HasEverything()

    def __call__(self, *args, **kwargs):
        return _HasEverything()


has_everything = _HasEverything()


class _Pretender:
    @property
    def __class__(self):
        raise RuntimeError("no class")

    def __call__(self, x, y):
        return right(x, y)


pretender = _Pretender()


class _OddMeta(type):
    def __getattribute__(cls, name):
        raise RuntimeError(f"no {name}")


class NoAttributes(metaclass=_OddMeta):
    def __call__(self, x, y):
        return right(x, y)


def ünïcödé(x, y):
    return right(x, y)


renamed = lambda x, y: right(x, y)  # noqa: E731
renamed.__name__ = renamed.__qualname__ = "\x1b[2J\ud800[red]"
renamed.__module__ = None

number = 3
odd_text = "\x1b[2J\ud800"
