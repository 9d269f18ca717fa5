"""Candidates that rounding may exchange are in the bounds of value and gradients; equal ones are not."""

import numpy as np
import pytest
from equal_keys import equal_keys, exact_ranks, nearly_equal_logits, ranks_of_equal, rounded_by_place, worst

from nceref.engine.similarity import Dot
from nceref.losses import hard_contrastive
from nceref.tolerance import backward, bounds, forward

EXCHANGED = (21, 77, 139, 175, 193, 201)
"""Batches in which one more rounding exchanges candidates at the border of what is kept."""
BATCHES = sorted({*range(80), *EXCHANGED})


def answers(monkeypatch, seeds):
    """Batches, and what a program says whose logits are off by one more rounding."""
    block = Dot.block

    def rounded(self, rows, columns):
        return rounded_by_place(block(self, rows, columns))

    for seed in seeds:
        inputs = nearly_equal_logits(seed)
        with monkeypatch.context() as patched:
            patched.setattr(Dot, "block", rounded)
            answer = hard_contrastive.value_and_grad(**inputs)
        yield inputs, answer


def test_near_ties_are_in_the_bounds(monkeypatch):
    for inputs, answer in answers(monkeypatch, BATCHES):
        ranks = exact_ranks(inputs)
        assert worst(inputs, ranks) < 1
        assert worst(inputs, ranks, answer) < 1


def test_bounds_without_near_ties_are_exceeded(monkeypatch):
    for module in (forward, backward):
        monkeypatch.setattr(module, "unsure", lambda term, s, ds, fmt: np.zeros(s.shape, bool))
    off = [worst(inputs, exact_ranks(inputs), answer) for inputs, answer in answers(monkeypatch, EXCHANGED)]
    assert sum(x > 1e3 for x in off) > 3


# Of the first query, the second key has the logit c and is kept. The third one, a little below, is rounded to 1 or left
# as it is, by the order of the products: it is far longer, and so are its roundings.
LONG = 2.0**10
C = 1 - 819 * 2.0**-24
FAR = {
    "queries": np.array([[1, 1, 1], [0.5, 0, 0], [0.25, 0, 0]], np.float32),
    "keys": np.array([[-3, 0, 0], [C, 0, 0], [C - 2.0**-23, LONG, -LONG]], np.float32),
    "temperature": 1.0,
    "fraction": 0.5,
    "normalize": "none",
}


def test_what_is_taken_in_may_be_off_by_more_than_what_is_pushed_out():
    kept, taken = np.logaddexp(0, C + 3), np.logaddexp(0, 1.0 + 3)
    assert bounds(hard_contrastive, **FAR).value >= (taken - kept) / 3
    assert worst(FAR, exact_ranks(FAR)) < 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_places_of_equal_keys_are_no_part_of_a_bound(dtype):
    rng = np.random.default_rng(0)
    keys = np.tile(rng.standard_normal(5), (9, 1))
    inputs = {"queries": rng.standard_normal((9, 5)).astype(dtype), "keys": keys.astype(dtype), "temperature": 0.3,
              "fraction": 0.5}  # fmt: skip
    assert np.max(bounds(hard_contrastive, **inputs).grads["keys"]) < 1e3 * np.finfo(dtype).eps
    inputs, same = equal_keys(8)
    off = np.argsort(ranks_of_equal(inputs, same), axis=1)
    assert worst(inputs, off) > 1e3
