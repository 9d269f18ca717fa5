"""Calls of every loss for the doors of PyTorch and JAX, and what `nceref.losses` answers."""

import numpy as np

from nceref import get_loss
from nceref.checks.cases import cases
from nceref.losses import differentiable

GEOMETRIES, TEMPERATURES = ("random", "odd"), (0.3,)


def reductions(name):
    return ("mean", "sum", "none") if get_loss(name).declaration.has_rows else ("mean",)


def calls(name, dtype, geometries=GEOMETRIES, temperatures=TEMPERATURES):
    """Arguments of a loss, in all its variants."""
    return [case.cast(dtype) for case in cases(get_loss(name).declaration, geometries, temperatures)]


def learned(name, inputs):
    """Names of the arguments that get a gradient."""
    return [key for key in differentiable(get_loss(name).declaration) if inputs.get(key) is not None]


def answer(name, inputs, reduction):
    """The value, a slope for each row where there are rows, and the gradients."""
    loss = get_loss(name)
    if reduction != "none":
        value, grads = loss.value_and_grad(**inputs, reduction=reduction)
        return value, None, grads
    rows = loss(**inputs, reduction="none")
    slope = np.random.default_rng(0).standard_normal(rows.shape).astype(rows.dtype)
    return rows, slope, loss.value_and_grad(**inputs, reduction="none", cotangent=slope)[1]


def assert_same_bits(got, expected, where):
    """Equal to the last bit, but for the format of numbers that Python keeps in 64 bits."""
    got = np.asarray(got)
    assert got.tobytes() == np.asarray(expected, got.dtype).tobytes(), where
