"""The dense view of a small batch."""

import numpy as np
import pytest

from nceref import InputError, losses


def test_anatomy_shows_what_adds_up():
    rng = np.random.default_rng(0)
    z1, z2 = rng.standard_normal((2, 4, 3))
    view = losses.nt_xent.anatomy(z1, z2, temperature=0.5)
    assert view.logits.shape == view.probabilities.shape == view.slopes.shape == (8, 8)
    assert not np.any(np.diag(view.taking_part))
    eps = np.finfo(np.float64).eps
    assert np.all(np.abs(view.probabilities.sum(axis=1) - 1) <= 8 * eps)
    assert np.all(np.abs(view.relative_penalties.sum(axis=1) - 1) <= 8 * eps)
    positive = np.roll(np.eye(8, dtype=bool), 4, axis=1)
    # dL/ds of the mean over 8 rows: probability minus 1 at the positive, divided by 8.
    expected = (view.probabilities - positive) / 8
    assert np.all(np.abs(view.slopes - expected) <= 8 * eps)


def test_anatomy_of_a_large_batch_is_refused():
    x = np.ones((2001, 2))
    with pytest.raises(InputError, match="would hold"):
        losses.info_nce.anatomy(x, x, temperature=0.1)
