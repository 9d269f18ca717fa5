"""Many steps of many runs at once: the step of the script written out for vectors in the plane.

A step works on a few hundred numbers, so its time is the number of calls into NumPy; what is done here serves that
alone. A feature is a complex number, and w = f0 conj(f) of anchor and candidate holds both cosine (real part over |w|)
and sine (imaginary part over |w|) of the angle between them. The loss sees only this angle, and with its declared slope

    dL / d angle_j = -(P_j - [j is the positive]) / temperature * sin(angle_j)

the gradient by a feature is perpendicular to it: (-f_y, f_x) / |f|^2 times the derivative by its own direction. Buffers
are made once, arrays are contiguous, and what is split is the leading axis, so that nearly every call is one flat loop.
For the same reason the anchor stands four times, once for each candidate. `plain` has the same step as one would write
it; the tests compare the two.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Step = Callable[..., None]

CANDIDATES = 4
"""One positive and three negatives."""


def advance(weights: Array, x: Array, temperature: Array, rate: Array) -> tuple[Array, Array]:
    """Train in place: one step for every leading entry of `x`.

    `weights` are the first layer and the transposed second one of R runs, and `x` anchor, positive and three negatives
    of each step. Returns the logits, cosines over the temperature with the positive first, and the lengths |f0| |f| of
    anchor and candidate. The framework clamps |f| at 1e-8, which is left out here.
    """
    steps, runs = x.shape[:2]
    logits, lengths = np.empty((2, steps, runs, CANDIDATES), x.dtype)
    pairs, factors = _sides(x)
    by_features = factors[:, 0].reshape(steps, -1)
    features, sines = np.empty((2, runs, CANDIDATES, 2), x.dtype), np.empty((runs, CANDIDATES), x.dtype)
    encode, update = _encoder(weights, features), _update(weights, rate)
    angles, vjp = _angles(features, sines, np.repeat(temperature, CANDIDATES).astype(x.dtype))
    slope = _slope(sines)
    # Views of all steps are made before the loop, so that only the calls into NumPy are left in it.
    rows = zip(
        pairs, logits.reshape(steps, -1), lengths.reshape(steps, -1),
        np.swapaxes(logits, 1, 2)[..., None], logits[:, None],
        by_features[:, 0::2], by_features[:, 1::2], np.swapaxes(factors, -1, -2), factors[:, ::-1],
        strict=True,
    )  # fmt: skip
    # Near the end of the range a difference of logits may overflow, and its probability is 0 then.
    with np.errstate(all="ignore"):
        for pair, logit, length, others, own, along_x, along_y, left, right in rows:
            encode(pair)
            angles(logit, length)
            slope(others, own)
            vjp(along_x, along_y)
            update(left, right)
    return logits, lengths


def _sides(x: Array) -> tuple[Array, Array]:
    """Anchors and candidates, (steps, 2, R, 4, 2), and room for both factors of the gradient d x', d' x by the matrix.

    The first factor, d, is filled in step by step. The second is x, with the other sign for the anchors: a derivative
    by the angle between anchor and candidate is one by the candidate's own angle, and the opposite of the anchor's.
    """
    steps, runs = x.shape[:2]
    pairs = np.empty((steps, 2, runs, CANDIDATES, 2), x.dtype)
    pairs[:, 0], pairs[:, 1] = x[:, :, :1], x[:, :, 1:]
    factors = np.empty((steps, 2, *pairs.shape[1:]), x.dtype)
    np.negative(pairs[:, 0], out=factors[:, 1, 0])
    factors[:, 1, 1] = pairs[:, 1]
    return pairs, factors


def _encoder(weights: Array, features: Array) -> Step:
    """Features tanh(x (W2 W1)') of all sides of all pairs, into `features`."""
    # Views of the weights, which `_update` changes in place.
    first, second = np.swapaxes(weights[0], 1, 2), weights[1]
    matrix, matmul, tanh = np.empty((weights.shape[1], 2, 2), weights.dtype), np.matmul, np.tanh

    def forward(pair: Array) -> None:
        matmul(first, second, matrix)
        matmul(pair, matrix, features)
        tanh(features, features)

    return forward


def _angles(features: Array, sines: Array, temperature: Array) -> tuple[Step, Step]:
    """Functions from the features to logits and sines of angles, and from -dL / d angle in `sines` to the gradient."""
    anchors, candidates = features.view(np.result_type(features, np.complex64)).reshape(2, -1)
    # What is a part or a reshaped form of another array here is a view of it: writing to one fills the other.
    mirrored, w = np.empty((2, *anchors.shape), anchors.dtype)
    cosine, sine, divisor, angle = w.real, w.imag, np.empty_like(temperature), sines.reshape(-1)
    flat = features.reshape(-1)
    f_x, f_y, square = flat[0::2], flat[1::2], np.empty_like(flat)
    x2, y2, length2, scale = square[0::2], square[1::2], np.empty_like(f_x), np.empty_like(f_x)
    sides, scales = length2.reshape(2, -1), scale.reshape(2, -1)
    one, multiply, divide, subtract = np.ones((), flat.dtype), np.multiply, np.divide, np.subtract

    def forward(logit: Array, length: Array) -> None:
        np.conjugate(candidates, mirrored)
        multiply(anchors, mirrored, w)
        np.absolute(w, length)
        multiply(length, temperature, divisor)
        divide(cosine, divisor, logit)
        divide(sine, divisor, angle)

    def backward(along_x: Array, along_y: Array) -> None:
        multiply(flat, flat, square)
        np.add(x2, y2, length2)
        divide(angle, sides[0], scales[0])
        divide(angle, sides[1], scales[1])
        # Through tanh: (-f_y (1 - f_x^2), f_x (1 - f_y^2)).
        subtract(x2, one, x2)
        subtract(one, y2, y2)
        multiply(x2, scale, x2)
        multiply(y2, scale, y2)
        multiply(f_y, x2, along_x)
        multiply(f_x, y2, along_y)

    return forward, backward


def _slope(sines: Array) -> Step:
    """The declared slope P - [j is the positive], times what is in `sines`.

    P_j = 1 / sum_k exp(l_k - l_j): no maximum is needed, and infinity gives 0.
    """
    ratios = np.empty((CANDIDATES, *sines.shape), sines.dtype)
    half = CANDIDATES // 2
    halves, totals, slopes = ratios[:half], np.empty_like(sines), np.empty_like(sines)
    positive, one = slopes[:, 0], np.ones((), sines.dtype)

    def apply(others: Array, own: Array) -> None:
        np.subtract(others, own, ratios)
        np.exp(ratios, ratios)
        # Four terms in two calls, in place.
        np.add(halves, ratios[half:], halves)
        np.add(halves[0], halves[1], totals)
        np.reciprocal(totals, slopes)
        np.subtract(positive, one, positive)
        np.multiply(slopes, sines, sines)

    return apply


def _update(weights: Array, rate: Array) -> Step:
    """W1 -= rate V G and V -= rate W1 G', with V = W2' and the outer products G, G' of a step, both sides together."""
    runs, crossed, change = weights.shape[1], weights[::-1], np.empty_like(weights)
    sides, total = np.empty((2, 2, runs, 2, 2), weights.dtype), np.empty((2, runs, 2, 2), weights.dtype)
    products, first, second = np.swapaxes(sides, 0, 1), sides[0], sides[1]
    rates = np.empty_like(weights)
    rates[:] = rate[:, None, None]

    def apply(left: Array, right: Array) -> None:
        np.matmul(left, right, products)
        np.add(first, second, total)
        # Both layers change by the old ones: the products are made before anything is subtracted.
        np.matmul(crossed, total, change)
        np.multiply(change, rates, change)
        np.subtract(weights, change, weights)

    return apply
