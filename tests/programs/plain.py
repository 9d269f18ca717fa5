"""Targets for the tests of the verifier, as people write them: NumPy, right and wrong in many ways."""

import os
import sys
import time

import numpy as np


def _logits(q, k, tau):
    q = q / np.linalg.norm(q, axis=1, keepdims=True)
    k = k / np.linalg.norm(k, axis=1, keepdims=True)
    return q @ k.T / tau


def info_nce(q, k, tau):
    """Right, value only."""
    s = _logits(q, k, tau)
    top = s.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - np.diag(s))


def with_gradients(q, k, tau):
    """Right, with the gradient by hand."""
    n, s = len(q), _logits(q, k, tau)
    top = s.max(axis=1, keepdims=True)
    p = np.exp(s - top)
    p /= p.sum(axis=1, keepdims=True)
    slopes = (p - np.eye(n)) / n
    out = {"temperature": -np.sum(slopes * s) / tau}
    for name, x, y, g in (("queries", q, k, slopes), ("keys", k, q, slopes.T)):
        length, other = (np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y))
        unit, pulled = x / length, g @ (y / other) / tau
        out[name] = (pulled - np.sum(pulled * unit, axis=1, keepdims=True) * unit) / length
    return info_nce(q, k, tau), out


def keys_detached(q, k, tau):
    """The value is right, the keys get no gradient."""
    value, grads = with_gradients(q, k, tau)
    return value, {**grads, "keys": np.zeros_like(k)}


def doubled(q, k, tau):
    """Twice the loss."""
    return 2 * info_nce(q, k, tau)


def by_sum(q, k, tau, reduction="mean"):
    """Has a reduction of its own."""
    return info_nce(q, k, tau) * (len(q) if reduction == "sum" else 1)


def not_a_number(q, k, tau):
    return float("nan")


def raises(q, k, tau):
    msg = "no such luck"
    raise ValueError(msg)


def raises_for_one(q, k, tau):
    """Right, but refuses a batch of one."""
    if len(q) == 1:
        msg = "a batch of one"
        raise ValueError(msg)
    return info_nce(q, k, tau)


def exits(q, k, tau):
    sys.exit("bye")


def dies(q, k, tau):
    if len(q) == 1:
        os._exit(7)
    return info_nce(q, k, tau)


def hangs(q, k, tau):
    if len(q) == 1:
        time.sleep(3600)
    return info_nce(q, k, tau)


def prints(q, k, tau):
    print("hello")  # noqa: T201 - as people write it
    return info_nce(q, k, tau)


def writes(q, k, tau):
    value = info_nce(q, k, tau)
    q[0] = 0
    return value


def dice(q, k, tau):
    return info_nce(q, k, tau) + 1e-9 * np.random.rand()  # noqa: NPY002 - as people write it


def with_a_floor(q, k, tau):
    """Right, and a row of zeros stays one."""
    q, k = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (q, k))
    s = q @ k.T / tau
    top = s.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - np.diag(s))


class Counting:
    """Another loss each time it is called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, q, k, tau):
        self.calls += 1
        return self.calls * info_nce(q, k, tau)


def half_graded(q, k, tau):
    """No gradient of the keys, and none of the temperature."""
    value, grads = with_gradients(q, k, tau)
    return value, {"queries": grads["queries"]}


def rows(q, k, tau):
    return np.zeros(3)


def needy(q, k, tau, mystery):
    return mystery


def no_temperature(q, k):
    return info_nce(q, k, 0.5)


class InfoNCE:
    """A class, constructed and then called."""

    def __init__(self, temperature=0.1):
        self.temperature = temperature

    def __call__(self, queries, keys):
        return info_nce(queries, keys, self.temperature)
