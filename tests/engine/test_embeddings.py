"""Normalization of rows at the ends of the range."""

import numpy as np

from nceref import losses
from nceref.tolerance import close


def test_rows_at_the_ends_of_the_range_are_normalized_without_loss():
    x = np.array([[1.0, 2.0], [3.0, -1.0]])
    expected = losses.nt_xent(x, x[::-1], temperature=0.3)
    for scale in (2.0**1000, 2.0**-1000):
        assert close(losses.nt_xent(scale * x, x[::-1], temperature=0.3), expected)
