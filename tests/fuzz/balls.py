"""Rows, similarities and softmaxes in ball arithmetic: every number carries a proven bound on its own error.

A number is an `arb`, or an `arb_series` of two terms: value and derivative along one direction.
"""

import itertools
from fractions import Fraction

from flint import arb, arb_mat, arb_series


class UndecidedError(ArithmeticError):
    """Two numbers are equal to the digits at hand."""


def value(x):
    return x[0] if isinstance(x, arb_series) else x


def constant(x):
    """The number without its derivative."""
    return arb_series([value(x)], 2) if isinstance(x, arb_series) else x


def with_slope(x, slope):
    return arb_series([x, slope], 2)


def log1p(x):
    return (1 + x).log() if isinstance(x, arb_series) else x.log1p()


def above(x, y):
    """Whether x > y, as soon as the digits say so."""
    x, y = value(x), value(y)
    if x > y:
        return True
    if x <= y:
        return False
    raise UndecidedError


def largest(numbers):
    return max((float(abs(value(x)).upper()) for x in numbers), default=0.0)


def matrix(rows):
    return arb_mat(rows)


class Rows:
    """Vectors, one a row, and their derivative along the direction (or None)."""

    def __init__(self, values, slopes=None):
        self.values, self.slopes = values, slopes

    def __len__(self):
        return len(self.values)

    def __add__(self, other):
        values = self.values + other.values
        if self.slopes is None and other.slopes is None:
            return Rows(values)
        return Rows(values, self._full_slopes() + other._full_slopes())

    def _full_slopes(self):
        return [[arb(0)] * len(row) for row in self.values] if self.slopes is None else self.slopes

    def pick(self, indices):
        slopes = None if self.slopes is None else [self.slopes[i] for i in indices]
        return Rows([self.values[i] for i in indices], slopes)

    def numbers(self):
        """Nested lists of numbers."""
        if self.slopes is None:
            return self.values
        return [
            [with_slope(*pair) for pair in zip(*rows, strict=True)]
            for rows in zip(self.values, self.slopes, strict=True)
        ]

    def unit(self):
        """Every row divided by its length."""
        values, slopes = [], []
        for i, row in enumerate(self.values):
            length = sum((x * x for x in row), arb(0)).sqrt()
            z = [x / length for x in row]
            values.append(z)
            if self.slopes is not None:
                v = self.slopes[i]
                along = sum((a * b for a, b in zip(z, v, strict=True)), arb(0))
                slopes.append([(b - along * a) / length for a, b in zip(z, v, strict=True)])
        return Rows(values, None if self.slopes is None else slopes)

    def lengths(self):
        return [sum((x * x for x in row), arb(0)).sqrt() for row in self.values]


def products(a, b):
    """Dot products of all rows of a with all rows of b, as nested lists."""
    left, right = matrix(a.values), matrix(b.values).transpose()
    out = (left * right).tolist()
    if a.slopes is None and b.slopes is None:
        return out
    slopes = arb_mat(len(a), len(b))
    if a.slopes is not None:
        slopes += matrix(a.slopes) * right
    if b.slopes is not None:
        slopes += left * matrix(b.slopes).transpose()
    return [[with_slope(*pair) for pair in zip(*rows, strict=True)] for rows in zip(out, slopes.tolist(), strict=True)]


def same_direction(x, y):
    """Whether one exact vector is a positive multiple of the other."""
    x, y = ([Fraction(float(t)) for t in row] for row in (x, y))
    pairs = itertools.combinations(range(len(x)), 2)
    return all(x[i] * y[j] == x[j] * y[i] for i, j in pairs) and sum(a * b for a, b in zip(x, y, strict=True)) > 0


def minus_log_softmax(positive, others):
    """-log( e^positive / (e^positive + sum of e^others) )."""
    return log1p(sum(((other - positive).exp() for other in others), arb(0)))


def log_sum_exp(numbers):
    first = constant(max(numbers, key=lambda x: float(value(x).mid())))
    return first + sum(((x - first).exp() for x in numbers), arb(0)).log()
