from math import exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import nt_xent, supcon_out
from nceref.tolerance import close

T = 0.5
E = exp(1 / T)
# Rows e_1, e_2, e_1: the first and the last have logits 0 and 1/T, the middle one 0 and 0.
ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
SAME, WITHOUT_POSITIVE = np.array([7, 7, 7]), np.array([1, 5, 1])
NEAR, FAR = E / (1 + E), 1 / (1 + E)


def test_several_positives_are_averaged_outside_the_logarithm():
    # Outer rows: log(1 + E) - (0 + 1/T) / 2; the middle row: log 2.
    outer = log(1 + E) - 1 / (2 * T)
    assert close(supcon_out(ROWS, SAME, temperature=T, reduction="none"), np.array([outer, log(2), outer]))


def test_gradient_has_the_transposed_term():
    """dL_i/ds_ia = (P_ia - w_ia / |P|) / T,  w = 0 off P; sum form: (|P| P_ia - w_ia) / T,
    P_ia = exp(s_ia/T) / sum_{b!=i} exp(s_ib/T);
    dL_i/dT = -sum_a s_ia dL_i/ds_ia / T;
    with a base temperature T0 both times T/T0, and dL_i/dT + L_i/T of the L_i that has this factor;
    dL/dz = (G + G^T) z,  G = dL/ds"""
    # G = P - 1/2 over T: FAR - 1/2 from an outer row to the middle one, 0 from the middle row.
    # Tangential at e_1: (FAR - 1/2) e_2; at e_2: twice (FAR - 1/2) e_1; mean over 3 rows.
    # dL/dT = (1/2 - NEAR) / T^2 in the outer rows.
    _, grad = supcon_out.value_and_grad(ROWS, SAME, temperature=T)
    assert set(grad) == {"embeddings", "temperature"}
    assert close(grad["embeddings"], (FAR - 1 / 2) / (3 * T) * np.array([[0, 1], [2, 0], [0, 1]]), scale=1)
    assert close(grad["temperature"], 2 / 3 * (1 / 2 - NEAR) / T**2)


def test_positive_with_more_than_its_share_is_pushed_away():
    assert NEAR > 1 / 2
    slopes = supcon_out.anatomy(ROWS, SAME, temperature=T).slopes
    assert close(slopes[0, 2], (NEAR - 1 / 2) / 3)


def test_sum_form_leaves_out_the_number_of_positives():
    value, grad = supcon_out.value_and_grad(ROWS, SAME, temperature=T, form="sum")
    _, mean = supcon_out.value_and_grad(ROWS, SAME, temperature=T)
    assert close(value, 2 * (2 * (log(1 + E) - 1 / (2 * T)) + log(2)) / 3)
    assert close(grad["embeddings"], 2 * mean["embeddings"], scale=1)
    assert close(grad["temperature"], 2 * mean["temperature"])


@pytest.mark.parametrize(("policy", "rows"), [("skip", 2), ("zero", 3)])
def test_lonely_anchor_is_left_out_or_counted_as_zero(policy, rows):
    # Two anchors with their positive at 1/T and the lonely row at 0; the lonely row repels as a candidate only.
    value, grad = supcon_out.value_and_grad(ROWS, WITHOUT_POSITIVE, temperature=T, no_positive=policy)
    assert close(value, 2 * log(1 + exp(-1 / T)) / rows)
    assert close(grad["embeddings"], FAR / (rows * T) * np.array([[0, 1], [2, 0], [0, 1]]))
    assert close(grad["temperature"], 2 * FAR / (rows * T**2))
    row_values = supcon_out(ROWS, WITHOUT_POSITIVE, temperature=T, no_positive=policy, reduction="none")
    assert close(row_values, np.array([1, 0, 1]) * log(1 + exp(-1 / T)), scale=1)


def test_lonely_anchor_is_refused_by_default():
    with pytest.raises(
        InputError, match=r"anchor 1 has no positive: .*; drop it, or pass no_positive='skip' or 'zero'"
    ):
        supcon_out(ROWS, WITHOUT_POSITIVE, temperature=T)


@pytest.mark.parametrize("policy", ["error", "skip"])
def test_batch_without_any_positive_is_refused(policy):
    with pytest.raises(InputError, match=r"no anchor has a positive, which `no_positive` skips|has no positive"):
        supcon_out(ROWS, np.arange(3), temperature=T, no_positive=policy)


def test_batch_without_any_positive_is_zero_under_the_policy_zero():
    value, grad = supcon_out.value_and_grad(ROWS, np.arange(3), temperature=T, no_positive="zero")
    assert value == 0
    assert not grad["embeddings"].any()


def test_equal_rows_read_log_of_the_others():
    # Four equal rows, one of them lonely: log 3 for the three anchors that have a positive.
    same, labels = np.ones((4, 2)), np.array([0, 0, 0, 1])
    assert close(supcon_out(same, labels, temperature=T, no_positive="skip"), log(3))
    assert close(supcon_out(same, labels, temperature=T, no_positive="zero"), 3 / 4 * log(3))


def test_mask_need_not_be_symmetric():
    # Positives 1 -> 2 -> 3 -> 1, at 0, 0 and 1/T; transposed: at 1/T, 0 and 0. The diagonal is ignored.
    mask = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]])
    hard, easy = log(1 + E), log(1 + exp(-1 / T))
    for table, expected in ((mask, [hard, log(2), easy]), (mask.T, [easy, log(2), hard])):
        assert close(supcon_out(ROWS, mask=table, temperature=T, reduction="none"), np.array(expected))


def test_mask_gradient_follows_its_direction():
    # Row 1 with positive 2 alone: G_12 = FAR - 1 and G_13 = NEAR, so -NEAR e_2 on row 1 and -NEAR e_1 on row 2.
    mask = np.array([[0.0, 1, 0], [0, 0, 0], [0, 0, 0]])
    _, grad = supcon_out.value_and_grad(ROWS, mask=mask, temperature=T, no_positive="skip")
    assert close(grad["embeddings"], -NEAR / T * np.array([[0, 1], [1, 0], [0, 0]]))
    assert close(grad["temperature"], -NEAR / T**2)


SOFT = np.array([[0.0, 3, 1], [0, 0, 1], [1, 0, 0]])


def test_mask_weights_average_the_positives():
    # Row 1: log(1 + E) - (3 * 0 + 1 * 1/T) / 4; G_12 = FAR - 3/4. In the sum form everything times 4.
    args = {"mask": SOFT, "temperature": T}
    row = log(1 + E) - 1 / (4 * T)
    assert close(supcon_out(ROWS, reduction="none", **args)[0], row)
    assert close(supcon_out(ROWS, reduction="none", form="sum", **args)[0], 4 * row)
    _, grad = supcon_out.value_and_grad(ROWS, reduction="none", cotangent=np.array([1.0, 0, 0]), **args)
    assert close(grad["embeddings"], (FAR - 3 / 4) / T * np.array([[0, 1], [1, 0], [0, 0]]))
    assert close(grad["temperature"], (1 / 4 - NEAR) / T**2)


def test_labels_and_mask_together_are_refused():
    with pytest.raises(InputError, match="`labels` and `mask` both say"):
        supcon_out(ROWS, SAME, mask=SOFT, temperature=T)


# Two samples with two views each, (N, V, D): views of sample 1 are equal, those of sample 2 are given.
VIEWS = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
OPPOSITE = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, -1.0]]])


def test_views_without_labels_are_nt_xent():
    value, grad = supcon_out.value_and_grad(VIEWS, temperature=T)
    _, pair = nt_xent.value_and_grad(VIEWS[:, 0], VIEWS[:, 1], temperature=T)
    assert close(value, log(1 + 2 * exp(-1 / T)))
    assert grad["embeddings"].shape == (2, 2, 2)
    assert close(grad["embeddings"][:, 0], pair["z1"])
    assert close(grad["embeddings"][:, 1], pair["z2"])


def test_rows_are_view_one_then_view_two():
    # Sample 2 has its positive at -1 and two negatives at 0.
    easy, hard = log(1 + 2 * exp(-1 / T)), log(1 + 2 * exp(1 / T))
    rows = supcon_out(OPPOSITE, temperature=T, reduction="none")
    assert close(rows, np.array([easy, hard, easy, hard]))


def test_labels_of_views_join_samples():
    # One class: each row has three positives, one at 1/T and two at 0.
    value = supcon_out(VIEWS, np.array([4, 4]), temperature=T)
    assert close(value, log(E + 2) - 1 / (3 * T))


def test_anchor_mode_one_takes_anchors_from_the_first_view():
    # Two anchors. A row of view 1 moves by its own 2 P and by P as a negative, one of view 2 by P; mean over 2 rows.
    p = exp(-1 / T) / (1 + 2 * exp(-1 / T))
    value, grad = supcon_out.value_and_grad(VIEWS, temperature=T, anchor_mode="one")
    across = p / (2 * T) * np.array([[0, 1], [1, 0]])
    assert close(value, log(1 + 2 * exp(-1 / T)))
    assert close(grad["embeddings"][:, 0], 3 * across)
    assert close(grad["embeddings"][:, 1], across)
    assert close(grad["temperature"], 2 * p / T**2)
    assert supcon_out(OPPOSITE, temperature=T, anchor_mode="one", reduction="none").shape == (2,)


def test_queue_rows_are_candidates_without_gradient():
    # One anchor e_1; a queue row e_1 of its class and one e_2 of another.
    value, grad = supcon_out.value_and_grad(
        ROWS[:1], np.array([3]), temperature=T, queue=ROWS[:2], queue_labels=np.array([3, 8])
    )
    assert close(value, log(1 + exp(-1 / T)))
    assert set(grad) == {"embeddings", "temperature"}
    assert close(grad["embeddings"], np.array([[0, FAR / T]]))
    assert close(grad["temperature"], FAR / T**2)


def test_queue_without_its_labels_is_refused():
    with pytest.raises(InputError, match="`queue` was given without `queue_labels`"):
        supcon_out(ROWS, SAME, temperature=T, queue=ROWS)


def test_base_temperature_multiplies_by_temperature_over_base():
    # (T L / base)' = L / base + T / base L', in T.
    base = 0.25
    plain, slope = supcon_out.value_and_grad(ROWS, SAME, temperature=T)
    value, grad = supcon_out.value_and_grad(ROWS, SAME, temperature=T, base_temperature=base)
    outer = log(1 + E) - 1 / (2 * T)
    assert close(value, T / base * (2 * outer + log(2)) / 3)
    assert close(grad["embeddings"], T / base * slope["embeddings"], scale=1)
    assert close(grad["temperature"], plain / base + T / base * 2 / 3 * (1 / 2 - NEAR) / T**2, scale=1)


def test_anchor_weights_weigh_the_mean_and_the_sum():
    outer, weights = log(1 + E) - 1 / (2 * T), np.array([1.0, 5.0, 0.0])
    args = {"temperature": T, "anchor_weights": weights}
    assert close(supcon_out(ROWS, SAME, **args), (outer + 5 * log(2)) / 6)
    assert close(supcon_out(ROWS, SAME, reduction="sum", **args), outer + 5 * log(2))
    _, grad = supcon_out.value_and_grad(ROWS, SAME, **args)
    assert close(grad["embeddings"], (FAR - 1 / 2) / (6 * T) * np.array([[0, 1], [1, 0], [0, 0]]), scale=1)


def test_weight_of_a_skipped_anchor_does_not_count():
    value = supcon_out(
        ROWS, WITHOUT_POSITIVE, temperature=T, no_positive="skip", anchor_weights=np.array([1.0, 100.0, 3.0])
    )
    assert close(value, log(1 + exp(-1 / T)))


def test_cotangent_weighs_the_rows():
    _, grad = supcon_out.value_and_grad(
        ROWS, SAME, temperature=T, reduction="none", cotangent=np.array([2.0, 1.0, 0.0])
    )
    assert close(grad["embeddings"], 2 * (FAR - 1 / 2) / T * np.array([[0, 1], [1, 0], [0, 0]]), scale=1)
    assert close(grad["temperature"], 2 * (1 / 2 - NEAR) / T**2)
