"""A program that is run on all copies of an input at once does with each what it does with it alone."""

import numpy as np
import pytest
from sweep import sweep

from mutants.batched import BatchedArray, NotBatchedError
from mutants.bug import slopes

RNG = np.random.default_rng(5)
X = RNG.standard_normal((4, 3))
Y = RNG.standard_normal((4, 3))
MASK = np.array([[True, False, True], [False, True, True], [True, True, False], [True, True, True]])
ORDER = np.array([[2], [0], [1], [1]])

FUNCTIONS = {
    "arithmetic": lambda x: (2 - x) * Y / (x + 7) ** 2 - -x,
    "lower dimension": lambda x: x - np.sum(x, axis=0) + Y[0] * x[:, :1],
    "matrices": lambda x: x @ Y.T @ Y + Y @ (x.T @ x),
    "vectors": lambda x: (x @ Y[0]) @ x * (Y[1] @ x.T @ Y) + (Y[1] @ x[0]) * (x[0] @ x[1]),
    "a stack": lambda x: np.stack([x, Y]) @ x.T,
    "a sum of all": lambda x: np.sum(x * x) * Y,
    "axes": lambda x: np.sum(x * Y, axis=-1, keepdims=True) * np.mean(x, axis=(0, 1)) + np.mean(x, keepdims=True),
    "methods": lambda x: x.sum(axis=0) * x.mean() + x.copy().reshape(3, 4).T.squeeze() + x.reshape((4, 3)),
    "exponentials": lambda x: np.log(np.exp(x) + np.sqrt(x * x + 1)) + np.where(x.real > 0, np.sin(x), 1.0),
    "the largest": lambda x: x - np.max(np.real(x), axis=-1, keepdims=True) + np.max(x, axis=0),
    "side by side": lambda x: np.concatenate([Y, x, x * x], axis=-1)[:, 2:7],
    "below one another": lambda x: np.concatenate([x, Y])[1::2],
    "a new axis": lambda x: x[:, None, :] * x[None] - np.expand_dims(x, -1)[..., 0],
    "diagonals": lambda x: np.diagonal(x @ Y.T) * np.trace(x @ Y.T) + np.diagonal(x, 1)[0],
    "entries": lambda x: x[np.arange(4), [0, 2, 1, 1]] * x[2, 1] + x[np.arange(3), 0][-1],
    "a mask": lambda x: x[MASK] * 2.0,
    "rows": lambda x: sum(row * y for row, y in zip(x, Y, strict=True)) * len(x),
    "turned": lambda x: np.roll(x, 1, axis=0) * np.tile(x[0], (4, 1)) + np.tile(x[:, 0], 3).reshape(3, -1).T,
    "repeated": lambda x: np.repeat(x, 2, axis=-1) + np.broadcast_to(x[0, 0], (4, 6)) * x.size,
    "sorted": lambda x: np.take_along_axis(x, np.argsort(x.real, axis=1), 1) + np.take_along_axis(x, ORDER, axis=-1),
    "views": lambda x: np.transpose(np.stack([x, Y], axis=1), (1, 0, 2))[1] * np.swapaxes(x, 0, 1)[:, 0],
    "one axis less": lambda x: np.squeeze(x[:, :1], axis=1) * np.squeeze(x[:1, :1]) + np.ravel(x)[:4],
    "another format": lambda x: x.astype(np.complex64).astype(x.dtype) * np.ones_like(x),
    "part by part": lambda x: np.round(x.real, 1) + 1j * x.imag,
    "no entry of it": lambda x: Y,
}


def one_by_one(function, x):
    """The derivative of a weighted sum of what a function returns, by complex steps on arrays of NumPy."""
    out = np.empty(x.size)
    for i in range(x.size):
        moved = x.astype(complex)
        moved.reshape(-1)[i] += 1j * 2.0**-60
        out[i] = np.imag(weighted(function(moved))) * 2.0**60
    return out.reshape(x.shape)


def weighted(result):
    return np.sum(result * np.cos(np.arange(np.size(result))).reshape(np.shape(result)))


@sweep("name", FUNCTIONS)
def test_the_gradient_is_that_of_one_copy_after_the_other(name):
    calls = []

    def program(x):
        calls.append(type(x))
        return weighted(FUNCTIONS[name](x))

    got = slopes(program, {"x": X}, ["x"])["x"]
    assert calls == [BatchedArray]
    np.testing.assert_allclose(got, one_by_one(FUNCTIONS[name], X), rtol=1e-14, atol=1e-15)


@sweep(
    "function",
    [
        lambda x: np.concatenate([x[i] * float(x[i, 0].real) for i in range(4)]) * np.float64(abs(x[0, 0])),
        lambda x: np.mean([x * x, x]),
        lambda x: np.linalg.inv(x.T @ x),
        lambda x: x if x[0, 0] == X[0, 0] + 0j else 2 * x,
        lambda x: x[np.arange(2), :, None][:, 0] if x.ndim else x,
        lambda x: x[np.arange(2), None, [0, 1]],
        lambda x: np.add.reduce(x),
        lambda x: np.vecdot(x, Y),
        lambda x: np.multiply(x, x, dtype=np.complex64),
    ],
)
def test_what_cannot_be_done_for_all_is_done_for_one_after_the_other(function):
    got = slopes(lambda x: weighted(function(x)), {"x": X}, ["x"])["x"]
    np.testing.assert_allclose(got, one_by_one(function, X), rtol=1e-14, atol=1e-15)


def test_what_a_program_raises_is_raised():
    def program(x):
        raise ZeroDivisionError(str(len(x)))

    with pytest.raises(ZeroDivisionError, match="4"):
        slopes(program, {"x": X}, ["x"])


@sweep("wanted", [bool, float, int, complex, np.asarray, np.sort, lambda x: x.item(), np.linalg.norm])
def test_numbers_are_refused(wanted):
    with pytest.raises(NotBatchedError):
        wanted(BatchedArray(np.ones((2, 3))))


def test_a_real_part_that_differs_between_the_copies_stays_batched():
    copies = np.zeros((2, 3), dtype=complex)
    assert isinstance(BatchedArray(copies).real, np.ndarray)
    copies[1, 0] = 1
    assert isinstance(BatchedArray(copies).real, BatchedArray)
    assert np.shape(BatchedArray(copies)) == (3,)
    assert np.result_type(BatchedArray(copies), np.float32) is np.dtype(complex)
