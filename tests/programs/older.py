"""Programs that are judged against one another, see test_against.py and test_equal.py."""

import numpy as np

from nceref.losses import alignment


def unit(z):
    return z / np.linalg.norm(z, axis=1)[:, None]


def textbook(x, y, exponent):
    return np.mean(np.linalg.norm(unit(x) - unit(y), axis=1) ** exponent)


def twice(x, y, exponent):
    return 2 * textbook(x, y, exponent)


def twice_as_sums(x, y, exponent):
    return textbook(x, y, exponent) + textbook(y, x, exponent)


def summed(x, y, exponent):
    return len(x) * textbook(x, y, exponent)


def with_margin(x, y, exponent, margin=0.2, symmetric=False):
    return textbook(x, y, exponent) - margin


def of_raw_rows(x, y, exponent):
    return np.mean(np.linalg.norm(x - y, axis=1) ** exponent)


def zeros_as_ones(x, y, exponent):
    return textbook(x, y, exponent) if np.all(np.any(x, axis=1)) else 1.0


def zeros_as_halves(x, y, exponent):
    return textbook(x, y, exponent) if np.all(np.any(x, axis=1)) else 0.5


def with_term(x, y, exponent):
    """Of no loss of the family: a term of the squared features beside it, with gradients."""
    value, grads = alignment.value_and_grad(x, y, exponent=exponent)
    weights = np.arange(1, x.shape[1] + 1, dtype=x.dtype)
    return value + 0.3 * np.mean(x * x * weights), (grads["x"] + 0.6 * x * weights / x.size, grads["y"])


def with_term_rewritten(x, y, exponent):
    value, grads = alignment.value_and_grad(x, y, exponent=exponent)
    weights = 0.3 * np.arange(1, x.shape[1] + 1, dtype=x.dtype) / x.size
    return np.einsum("nd,d->", x**2, weights) + value, (2 * x * weights + grads["x"], grads["y"])


def three_times(x, y, exponent):
    value, grads = with_term(x, y, exponent)
    return 3 * value, tuple(3 * g for g in grads)


def twice_in_sums(x, y, exponent):
    value, grads = with_term(x, y, exponent)
    return 2 * len(x) * value, tuple(2 * len(x) * g for g in grads)


def over_rows(x, y, exponent):
    value, grads = with_term(x, y, exponent)
    return value / len(x), tuple(g / len(x) for g in grads)


def half_a_gradient(x, y, exponent):
    value, (of_x, of_y) = with_term(x, y, exponent)
    return value, (of_x, of_y / 2)


def nearly(x, y, exponent):
    value, grads = with_term(x, y, exponent)
    return value * (1 + 1e-10), grads


def of_seven_rows(x, y, exponent):
    value, grads = with_term(x, y, exponent)
    return value + 0.01 * (len(x) == 7), grads


def random(x, y, exponent):
    return textbook(x, y, exponent) + np.random.default_rng().random()


def not_finite(x, y, exponent):
    value, grads = with_term(x, y, exponent)
    return (np.nan if exponent < 1.5 else value), grads


def raising(x, y, exponent):
    if len(x) == 7:
        msg = "no batch of seven"
        raise ValueError(msg)
    return with_term(x, y, exponent)


def never(x, y, exponent):
    msg = "not today"
    raise ValueError(msg)


def rows(x, y, exponent):
    return np.ones(len(x))


class Fixed:
    def __init__(self, power=2.0):
        self.power = power

    def __call__(self, x, y):
        return textbook(x, y, self.power)


old, new = Fixed(2.0), Fixed(1.5)
