from math import exp, log

import numpy as np

from nceref.losses import clip
from nceref.tolerance import close

S = 2.0
# Two orthogonal pairs: logits S on the diagonal, else 0; a negative has probability P in both directions.
PAIRS = np.eye(2)
P = 1 / (1 + exp(S))


def test_orthogonal_pairs_give_log_of_one_plus_one_negative():
    assert close(clip(PAIRS, PAIRS, logit_scale=S), log(1 + exp(-S)))


def test_gradient_adds_both_directions():
    """dL/dl_ij = (softmax_k(l_ik)_j + softmax_k(l_kj)_i - 2 [i = j]) / 2N,  l_ij = t x_i.y_j,
    dL/dt = sum_ij (dL/dl_ij) x_i.y_j"""
    # G = (softmax_rows + softmax_columns - 2 I) / 4 is P/2 off the diagonal and -P/2 on it. dL/dx_1 = S G y, whose
    # tangential part is S P/2 y_2; texts likewise. dL/dS = sum G x.y = 2 (-P/2).
    _, grad = clip.value_and_grad(PAIRS, PAIRS, logit_scale=S)
    away = S * P / 2 * np.array([[0, 1], [1, 0]])
    assert set(grad) == {"image", "text", "logit_scale"}
    assert close(grad["image"], away)
    assert close(grad["text"], away)
    assert close(grad["logit_scale"], -P)


# Both texts on the first image: the cosines are 1, 1 for image 1 and 0, 0 for image 2.
SAME = np.array([[1.0, 0.0], [1.0, 0.0]])


def test_rows_are_two_by_n_with_images_first():
    rows = clip(PAIRS, SAME, logit_scale=S, reduction="none")
    assert rows.shape == (2, 2)
    assert close(rows, np.array([[log(2), log(2)], [log(1 + exp(-S)), log(1 + exp(S))]]))


def test_mean_divides_the_sum_by_two_n():
    total = 2 * log(2) + log(1 + exp(-S)) + log(1 + exp(S))
    assert close(clip(PAIRS, SAME, logit_scale=S, reduction="sum"), total)
    assert close(clip(PAIRS, SAME, logit_scale=S), total / 4)


def test_cotangent_of_one_text_leaves_the_other_text_alone():
    # Text 2 as the anchor: its own image at cosine 0 is missed by Q = e^S / (1 + e^S), image 1 at cosine 1.
    # dL/dx_2 = -S Q y_2, dL/dy_2 = S Q (x_1 - x_2), tangentially -S Q x_2. dL/dS = Q (1 - 0).
    q = 1 / (1 + exp(-S))
    _, grad = clip.value_and_grad(PAIRS, SAME, logit_scale=S, reduction="none", cotangent=np.array([[0, 0], [0, 1.0]]))
    assert close(grad["image"], np.array([[0, 0], [-S * q, 0]]))
    assert close(grad["text"], np.array([[0, 0], [0, -S * q]]))
    assert close(grad["logit_scale"], q)


def test_one_pair_alone_is_zero_with_zero_gradient():
    value, grad = clip.value_and_grad(PAIRS[:1], PAIRS[1:], logit_scale=S)
    assert value == 0
    assert grad["logit_scale"] == 0
    assert not grad["image"].any()
