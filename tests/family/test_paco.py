from math import e, exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import nt_xent, paco
from nceref.tolerance import close

T, A = 0.5, 0.25
E = exp(1 / T)
# Rows e_1, e_1 of class 0 and e_2 of class 1; centers e_1 and e_2. Rows 1 and 2: a positive at 1/T, a negative at 0,
# centers at 1 (own) and 0. Row 3: no positive, negatives 0, 0, centers at 0 and 1 (own).
ROWS, LABELS, CENTERS = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 0, 1]), np.eye(2)
ARGS = {"alpha": A, "temperature": T}
Z, Z3 = E + 1 + e + 1, 2 + 1 + e


def test_sum_form_weighs_samples_by_alpha_and_the_own_center_by_one():
    first = -log(e / Z) - A * log(E / Z)
    rows = paco(ROWS, LABELS, CENTERS, reduction="none", **ARGS)
    assert close(rows, np.array([first, first, -log(e / Z3)]))
    assert close(paco(ROWS, LABELS, CENTERS, reduction="sum", **ARGS), 2 * first - log(e / Z3))


def test_gradient_is_mass_times_softmax_minus_weight():
    """dL_i/dlogit_k = W p_k - w_k,  W = 1 + alpha |P(i)|,  w_k = alpha on P(i), 1 on c_y, else 0,
    p the softmax over all logits of E_i;
    normalized form: divided by W;
    dL_i/dT = -sum_a s_ia dL_i/dlogit_a / T^2 over the rows a, whose logit is s_ia/T;
    dL_i/db_k = dL_i/dlogit_k"""
    # W = 1 + A in rows 1 and 2. By center: W e/Z - 1 on the own, W/Z on the other, times the row as given.
    # By sample, over T: row 1 repels e_2 with W/Z, row 3 repels e_1 with 1/Z3; tangential parts only.
    # dL/dT = -(W E/Z - A) / T^2 in rows 1 and 2. Mean over 3 rows.
    W = 1 + A
    _, grad = paco.value_and_grad(ROWS, LABELS, CENTERS, **ARGS)
    across = (W / Z + 1 / Z3) / T
    first, last = [W * e / Z - 1, W / Z + across], [1 / Z3 + 2 * across, e / Z3 - 1]
    assert set(grad) == {"embeddings", "centers", "temperature"}
    assert close(grad["embeddings"], np.array([first, first, last]) / 3, scale=1)
    assert close(grad["centers"], np.array([[2 * (W * e / Z - 1), 1 / Z3], [2 * W / Z, e / Z3 - 1]]) / 3, scale=1)
    assert close(grad["temperature"], -2 / 3 * (W * E / Z - A) / T**2, scale=1)


def test_normalized_form_divides_each_row_by_its_mass():
    first = (-log(e / Z) - A * log(E / Z)) / (1 + A)
    value, grad = paco.value_and_grad(ROWS, LABELS, CENTERS, form="normalized", **ARGS)
    assert close(value, (2 * first - log(e / Z3)) / 3)
    own = e / Z - 1 / (1 + A)
    assert close(grad["centers"], np.array([[2 * own, 1 / Z3], [2 / Z, e / Z3 - 1]]) / 3, scale=1)
    assert close(grad["temperature"], -2 / 3 * (E / Z - A / (1 + A)) / T**2, scale=1)


def test_alpha_zero_is_cross_entropy_with_samples_in_the_denominator():
    # L_CE - log P_sup = log(1 + 1/e) + log(Z / (1 + e)) in rows 1 and 2.
    rows = paco(ROWS, LABELS, CENTERS, alpha=0.0, temperature=T, reduction="none")
    assert close(rows[0], log(1 + 1 / e) + log(Z / (1 + e)))


def test_class_prior_multiplies_the_center_exponentials():
    prior = np.array([3 / 4, 1 / 4])
    z, z3 = E + 1 + 3 / 4 * e + 1 / 4, 2 + 3 / 4 + e / 4
    value, grad = paco.value_and_grad(ROWS, LABELS, CENTERS, class_prior=prior, **ARGS)
    first, last = -log(3 / 4 * e / z) - A * log(E / z), -log(e / 4 / z3)
    assert close(value, (2 * first + last) / 3)
    assert set(grad) == {"embeddings", "centers", "temperature"}
    own, other = (1 + A) * 3 / 4 * e / z - 1, (1 + A) / 4 / z
    assert close(grad["centers"], np.array([[2 * own, 3 / 4 / z3], [2 * other, e / 4 / z3 - 1]]) / 3, scale=1)


@pytest.mark.parametrize("counts", [[3.0, 1.0], [0.75, 0.5]])
def test_class_prior_must_add_up_to_one(counts):
    with pytest.raises(InputError, match="`class_prior` must add up to 1"):
        paco(ROWS, LABELS, CENTERS, class_prior=np.array(counts), **ARGS)


def test_center_bias_is_added_to_the_center_logits():
    # Centers at 1 + b and 0; dL/db_k is the center part of W p - w, summed over rows.
    b = -1.0
    z, z3 = E + 1 + 1 + 1, 2 + exp(b) + e
    value, grad = paco.value_and_grad(ROWS, LABELS, CENTERS, center_bias=np.array([b, 0.0]), **ARGS)
    assert close(value, (2 * (-log(1 / z) - A * log(E / z)) - log(e / z3)) / 3)
    assert close(
        grad["center_bias"],
        np.array([2 * ((1 + A) / z - 1) + exp(b) / z3, 2 * (1 + A) / z + e / z3 - 1]) / 3,
        scale=1,
    )


def test_class_prior_and_center_bias_multiply():
    # Center masses 3/4 e^(1 + b) and 1/4 for rows 1 and 2, 3/4 e^b and e / 4 for row 3.
    b, prior = -1.0, np.array([3 / 4, 1 / 4])
    z, z3 = E + 1 + 3 / 4 + 1 / 4, 2 + 3 / 4 * exp(b) + e / 4
    value = paco(ROWS, LABELS, CENTERS, class_prior=prior, center_bias=np.array([b, 0.0]), **ARGS)
    assert close(value, (2 * (-log(3 / 4 / z) - A * log(E / z)) - log(e / 4 / z3)) / 3)


def test_center_features_meet_the_centers_instead_of_the_embeddings():
    # Features 0, 0 and log 2 in one dimension, centers 0 and 1: masses 1, 1 for rows 1 and 2; 1, 2 for row 3.
    features, centers = np.array([[0.0], [0.0], [log(2)]]), np.array([[0.0], [1.0]])
    z, z3 = E + 1 + 1 + 1, 2 + 1 + 2
    value, grad = paco.value_and_grad(ROWS, LABELS, centers, center_features=features, **ARGS)
    assert set(grad) == {"embeddings", "centers", "temperature", "center_features"}
    assert close(value, (2 * (-log(1 / z) - A * log(E / z)) - log(2 / z3)) / 3)
    # Only the center at 1 pulls: (1 + A)/z on features 1 and 2, 2/z3 - 1 on feature 3.
    assert close(grad["center_features"], np.array([[(1 + A) / z], [(1 + A) / z], [2 / z3 - 1]]) / 3, scale=1)
    assert close(grad["centers"], np.array([[1 / z3], [2 / z3 - 1]]) * log(2) / 3, scale=1)
    across = ((1 + A) / z + 1 / z3) / T
    assert close(grad["embeddings"], np.array([[0, across], [0, across], [2 * across, 0]]) / 3, scale=1)


def test_centers_are_not_normalized():
    # A center twice as long: logit 2 instead of 1 in rows 1 and 2.
    z = E + 1 + e**2 + 1
    rows = paco(ROWS, LABELS, np.array([[2.0, 0.0], [0.0, 1.0]]), reduction="none", **ARGS)
    assert close(rows[0], -log(e**2 / z) - A * log(E / z))


def test_queue_rows_are_candidates_without_gradient():
    # One row e_1 and a queue e_1 of its class, e_2 of the other: the same logits as row 1 above.
    value, grad = paco.value_and_grad(
        ROWS[:1], LABELS[:1], CENTERS, queue=CENTERS, queue_labels=np.array([0, 1]), **ARGS
    )
    W = 1 + A
    assert close(value, -log(e / Z) - A * log(E / Z))
    assert set(grad) == {"embeddings", "centers", "temperature"}
    assert close(grad["embeddings"], np.array([[W * e / Z - 1, W / Z + W / (Z * T)]]), scale=1)


def test_decomposition_adds_up_and_matches_its_parts_by_hand():
    # Centers alone: log(1 + 1/e) in every row. Samples alone: log((E + 1) / E) in rows 1 and 2, no positive in row 3.
    # Between them: -log P_sup - A log P_supcon, with P_sup = (e + 1) / Z in rows 1 and 2 and (1 + e) / Z3 in row 3.
    parts = paco.decompose(ROWS, LABELS, CENTERS, **ARGS)
    assert set(parts) == {"L_sup", "L_supcon", "L_extra"}
    assert close(parts["L_sup"], log(1 + 1 / e))
    assert close(parts["L_supcon"], 2 / 3 * log(1 + 1 / E))
    between = -log((e + 1) / Z) - A * log((E + 1) / Z)
    assert close(parts["L_extra"], (2 * between - log((1 + e) / Z3)) / 3)
    total = parts["L_sup"] + A * parts["L_supcon"] + parts["L_extra"]
    assert close(total, paco(ROWS, LABELS, CENTERS, **ARGS))


def test_decomposition_of_the_normalized_form_adds_up():
    parts = paco.decompose(ROWS, LABELS, CENTERS, form="normalized", **ARGS)
    assert close(parts["L_sup"], log(1 + 1 / e) * (2 / (1 + A) + 1) / 3)
    total = parts["L_sup"] + A * parts["L_supcon"] + parts["L_extra"]
    assert close(total, paco(ROWS, LABELS, CENTERS, form="normalized", **ARGS))


def test_other_losses_decline_to_decompose():
    with pytest.raises(InputError, match="nt_xent declares no decomposition; these do: paco"):
        nt_xent.decompose(ROWS, ROWS, temperature=T)


def test_cotangent_weighs_the_rows():
    # Row 3 alone, twice.
    rows, grad = paco.value_and_grad(
        ROWS, LABELS, CENTERS, reduction="none", cotangent=np.array([0.0, 0.0, 2.0]), **ARGS
    )
    assert rows.shape == (3,)
    assert close(grad["centers"], 2 * np.array([[0, 1 / Z3], [0, e / Z3 - 1]]))
    side = 2 / (Z3 * T)
    assert close(grad["embeddings"], np.array([[0, side], [0, side], [2 / Z3 + 2 * side, 2 * (e / Z3 - 1)]]), scale=1)


def test_label_without_a_center_is_refused():
    with pytest.raises(InputError, match=r"`labels` must lie in 0 \.\.\. 1 for the 2 classes of `centers`, got 2"):
        paco(ROWS, np.array([0, 0, 2]), CENTERS, **ARGS)
