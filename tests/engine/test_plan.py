"""A comparison sorted by label, the same pairs in few blocks; and the shape of the rows of a plan."""

import numpy as np
import pytest
from sweep import every_loss

from nceref import get_loss
from nceref.checks.cases import cases
from nceref.engine.arguments import bind
from nceref.engine.bound_loss import bound_loss

pytestmark = pytest.mark.machine


@pytest.mark.parametrize("queue", [0, 500])
def test_sorted_by_label_most_blocks_hold_no_pair_of_a_kind(queue):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((400, 3)), rng.integers(0, 20, 400)
    queued = {"queue": rng.standard_normal((queue, 3)), "queue_labels": rng.integers(0, 20, queue)} if queue else {}
    loss = get_loss("supcon_out")
    comparison = loss.declaration.plan(**bind(loss.declaration, (x, y), {"temperature": 0.3, **queued})).comparisons[0]
    by_label, order = comparison.sorted_by_label()
    assert np.all(np.diff(y[order]) >= 0)
    assert by_label.logits.symmetric is not bool(queue)
    same = by_label.terms["positives"].pattern
    blocks = [(slice(i, i + 40), slice(j, j + 40)) for i in range(0, 400, 40) for j in range(0, 400 + queue - 39, 40)]
    held = [np.any(y[order][r][:, None] == same.candidates[c][None, :]) for r, c in blocks]
    assert [same.touches(r, c) for r, c in blocks] == held
    assert sum(held) < len(blocks) / 2
    assert not comparison.terms["positives"].pattern.is_sorted


@every_loss
def test_rows_have_the_shape_that_is_known_before_any_pair(loss_name):
    loss = get_loss(loss_name)
    for case in cases(loss.declaration, ("random", "odd"), (0.3,)):
        shape = bound_loss(loss.declaration, (), case.inputs).plan.row_shape()
        assert shape == (loss(**case.inputs, reduction="none").shape if loss.declaration.has_rows else ())
