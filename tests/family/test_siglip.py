from math import exp, log, log1p

import numpy as np

from nceref.losses import siglip
from nceref.tolerance import close

S, B = 2.0, -1.0
# Two orthogonal pairs: a row has the positive at S + B and one negative at B.
PAIRS = np.eye(2)
MISSED, FALSE = 1 / (1 + exp(S + B)), 1 / (1 + exp(-B))


def test_value_sums_over_all_pairs_and_divides_by_n():
    expected = log(1 + exp(-S - B)) + log(1 + exp(B))
    assert close(siglip(PAIRS, PAIRS, logit_scale=S, logit_bias=B), expected)
    assert close(siglip(PAIRS, PAIRS, logit_scale=S, logit_bias=B, reduction="sum"), 2 * expected)


def test_gradient_weighs_each_pair_by_its_own_sigmoid():
    """dL/dl_ij = -y_ij sigmoid(-y_ij l_ij) / N,  l_ij = t x_i.y_j + b,  dL/dt = sum_ij (dL/dl_ij) x_i.y_j,
    dL/db = sum_ij dL/dl_ij"""
    # e = dL/dl is -MISSED/2 on the diagonal, FALSE/2 off it. dL/dx_1 = S e y, tangentially S FALSE/2 y_2.
    # dL/dS = sum e x.y and dL/db = sum e, over two pairs of each kind.
    _, grad = siglip.value_and_grad(PAIRS, PAIRS, logit_scale=S, logit_bias=B)
    away = S * FALSE / 2 * np.array([[0, 1], [1, 0]])
    assert set(grad) == {"image", "text", "logit_scale", "logit_bias"}
    assert close(grad["image"], away)
    assert close(grad["text"], away)
    assert close(grad["logit_scale"], -MISSED)
    assert close(grad["logit_bias"], FALSE - MISSED, scale=1)


def test_bias_defaults_to_zero():
    assert close(siglip(PAIRS, PAIRS, logit_scale=S), log(1 + exp(-S)) + log(2))


def test_values_at_the_initial_scale_and_bias_of_big_vision():
    # t = 10, b = -10 and orthogonal pairs: the row has its positive at 0 and its negative at -10.
    value = siglip(PAIRS, PAIRS, logit_scale=10.0, logit_bias=-10.0)
    assert close(value, log(2) + log1p(exp(-10)))


def test_cotangent_of_one_row_reaches_its_pairs_only():
    # Both texts on image 1; row 2 has its positive and its negative at cosine 0, so neither moves the scale:
    # dL/dy_2 = -S x_2 / (1 + e^B), dL/dy_1 = S x_2 / (1 + e^(-B)), both tangential; dL/dx_2 is the difference.
    texts = np.array([[1.0, 0.0], [1.0, 0.0]])
    pulled, pushed = S / (1 + exp(B)), S / (1 + exp(-B))
    rows, grad = siglip.value_and_grad(
        PAIRS, texts, logit_scale=S, logit_bias=B, reduction="none", cotangent=np.array([0.0, 1.0])
    )
    assert close(rows, np.array([log(1 + exp(-S - B)) + log(1 + exp(S + B)), log(1 + exp(-B)) + log(1 + exp(B))]))
    assert close(grad["text"], np.array([[0, pushed], [0, -pulled]]))
    assert close(grad["image"], np.array([[0, 0], [pushed - pulled, 0]]), scale=1)
    assert grad["logit_scale"] == 0
    assert close(grad["logit_bias"], (pushed - pulled) / S, scale=1)


def test_one_pair_alone_is_one_binary_problem():
    assert close(siglip(PAIRS[:1], PAIRS[:1], logit_scale=S, logit_bias=B), log(1 + exp(-S - B)))
