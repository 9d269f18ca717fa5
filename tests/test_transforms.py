from math import log

import numpy as np
import pytest

import nceref
from nceref.errors import InputError
from nceref.losses import clip, info_nce, mnrl, nt_xent, supcon_out
from nceref.tolerance import bounds, close
from nceref.transforms import accumulated, matryoshka

RNG = np.random.default_rng(5)
Q, D = RNG.standard_normal((2, 12, 6))
HARD = RNG.standard_normal((12, 2, 6))


def moved(f, arguments, name, direction, step=1e-5):
    """The slope of a function along a direction, by differences of fourth order."""
    at = [f(**{**arguments, name: arguments[name] + k * step * direction}) for k in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)


@pytest.mark.parametrize(
    ("made", "arguments"),
    [
        (
            matryoshka("mnrl", (6, 3, 2), (1.0, 0.5, 0.25)),
            {"queries": Q, "documents": D, "negatives": HARD, "temperature": 0.2},
        ),
        (matryoshka(clip, (4, 1)), {"image": Q, "text": D, "logit_scale": 5.0}),
        (accumulated("mnrl", 3), {"queries": Q, "documents": D, "negatives": HARD, "temperature": 0.2}),
        (accumulated(supcon_out, 2), {"embeddings": Q, "labels": np.arange(12) % 3, "temperature": 0.2}),
        (accumulated("moco", 4), {"queries": Q, "keys": D, "queue": RNG.standard_normal((5, 6)), "temperature": 0.2}),
    ],
)  # fmt: skip
def test_gradients_are_the_slopes_of_the_value(made, arguments):
    value, grads = made.value_and_grad(**arguments)
    assert value == made(**arguments)
    for name, grad in grads.items():
        direction = RNG.standard_normal(np.shape(arguments[name])) if np.ndim(arguments[name]) else 1.0
        slope = moved(made, arguments, name, direction)
        assert abs(slope - np.sum(grad * direction)) < 1e-8 * max(1.0, abs(slope))
    allowed = made.bounds(**arguments)
    assert 0 < allowed.value < 1e-12 * max(1.0, abs(value))
    assert {name: np.shape(x) for name, x in allowed.grads.items()} == {n: np.shape(x) for n, x in grads.items()}


def test_matryoshka_of_all_features_is_the_loss():
    both = [f.value_and_grad(Q, D, HARD, temperature=0.1) for f in (mnrl, matryoshka("mnrl", (6,)))]
    assert both[0][0] == both[1][0]
    assert all(np.array_equal(both[0][1][name], both[1][1][name]) for name in both[0][1])


def test_rows_are_cut_before_they_are_scaled():
    far = np.array([[1.0, 0.0, 100.0], [0.0, 1.0, 100.0]])
    assert close(matryoshka("info_nce", (2,))(far, far, temperature=1.0), log(1 + np.exp(-1)))
    assert abs(info_nce(far, far, temperature=1.0) - log(2)) < 1e-3


def test_sum_of_sentence_transformers():
    # Version 6.2.0, MatryoshkaLoss of MultipleNegativesRankingLoss, dims 6, 3 and 2 with weights of 1, at scale 20.
    drawn = np.random.default_rng(0).standard_normal
    (q, d), n = drawn((2, 4, 6)), drawn((4, 2, 6))
    assert abs(matryoshka("mnrl", (6, 3, 2))(q, d, n, temperature=0.05) - 51.197419) < 5e-7


def test_features_of_classes_are_cut_with_those_of_rows():
    weights, target = RNG.standard_normal((3, 6)), np.arange(12) % 3
    cut = nceref.losses.cosface(Q[:, :2], weights[:, :2], target, scale=4.0, margin=0.1)
    assert matryoshka("cosface", (2,))(Q, weights, target, scale=4.0, margin=0.1) == cut


@pytest.mark.parametrize("steps", [1, 2, 3, 12])
def test_accumulation_lacks_the_part_of_the_denominator_in_other_steps(steps):
    q, d = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (Q, D))
    terms = np.exp(q @ d.T / 0.3)
    own = np.arange(12) // (12 // steps)
    lost = np.mean(np.log(terms.sum(axis=1) / (terms * (own[:, None] == own)).sum(axis=1)))
    whole, made = info_nce(Q, D, temperature=0.3), accumulated("info_nce", steps)(Q, D, temperature=0.3)
    assert abs(whole - made - lost) < 1e-13


def test_accumulation_is_the_loss_where_rows_depend_on_their_sample_alone():
    queue = RNG.standard_normal((7, 6))
    arguments = {"queries": Q, "keys": D, "queue": queue, "temperature": 0.1}
    value, grads = accumulated("moco", 4).value_and_grad(**arguments)
    whole, theirs = nceref.losses.moco.value_and_grad(**arguments)
    allowed = bounds(nceref.losses.moco, **arguments)
    assert abs(value - whole) <= 2 * allowed.value
    assert all(np.all(abs(grads[name] - theirs[name]) <= 2 * allowed.grads[name]) for name in theirs)


def test_cached_gradients_are_those_of_the_whole_loss():
    # GradCache: rows are encoded in chunks, compared as one batch, and each chunk is pulled back by its own gradient.
    w, x = RNG.standard_normal((6, 4)), RNG.standard_normal((2, 12, 6))
    encoded = [np.concatenate([part[i : i + 5] @ w for i in range(0, 12, 5)]) for part in x]
    _, grads = info_nce.value_and_grad(*encoded, temperature=0.2)
    by_chunk = sum(
        part[i : i + 5].T @ grads[name][i : i + 5]
        for part, name in zip(x, ("queries", "keys"), strict=True)
        for i in range(0, 12, 5)
    )
    slope = moved(lambda w: info_nce(x[0] @ w, x[1] @ w, temperature=0.2), {"w": w}, "w", w[::-1])
    assert abs(np.sum(by_chunk * w[::-1]) - slope) < 1e-8 * abs(slope)
    lost = moved(lambda w: accumulated("info_nce", 3)(x[0] @ w, x[1] @ w, temperature=0.2), {"w": w}, "w", w[::-1])
    assert abs(slope - lost) > 0.01 * abs(slope)


def test_a_table_of_samples_is_cut_along_both():
    mask = np.kron(np.eye(2), np.ones((6, 6)))
    views = RNG.standard_normal((12, 2, 5))
    parts = [supcon_out(views[k : k + 6], mask=mask[k : k + 6, k : k + 6], temperature=0.5) for k in (0, 6)]
    assert close(accumulated(supcon_out, 2)(views, mask=mask, temperature=0.5), sum(parts) / 2)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: matryoshka("mnrl", ()), "`dims` must be different numbers"),
        (lambda: matryoshka("mnrl", (4, 4)), "`dims` must be different numbers"),
        (lambda: matryoshka("mnrl", (4, 0)), "each of `dims`"),
        (lambda: matryoshka("mnrl", (4, 2.5)), "each of `dims`"),
        (lambda: matryoshka("mnrl", (4, 2), (1.0,)), "`weights` must be 2 finite numbers"),
        (lambda: matryoshka("mnrl", (4,), (float("nan"),)), "`weights` must be 1 finite numbers"),
        (lambda: matryoshka("mnrl", (7,))(Q, D, temperature=0.1), "`queries` has 6 features, and `dims` asks for 7"),
        (lambda: matryoshka("mnrl", (2,))(Q, D, temperature=0.1, reduction="none"), "`reduction` must be"),
        (lambda: matryoshka("mnrl", (2,))(Q, D), "temperature"),
        (lambda: matryoshka("mnrl", (2,))(Q, D, HARD, Q, temperature=0.1), "at most 3 positional arguments"),
        (lambda: matryoshka("mnrl", (2,))(Q, D, queries=D, temperature=0.1), "`queries` both by position and by name"),
        (lambda: matryoshka("mnrl", (2,))(3.0, D, temperature=0.1), "`queries` must be"),
        (lambda: accumulated("mnrl", 2)(Q, D[:8], temperature=0.1), "`documents` must be"),
        (lambda: matryoshka("mnrl", (2,))([[1.0, 2.0], [1.0]], D, temperature=0.1), "`queries` must be a rectangular"),
        (lambda: matryoshka("cross_entropy", (4,)), "cross_entropy has no rows of features"),
        (lambda: accumulated("mnrl", 0), "`steps`"),
        (lambda: accumulated("mnrl", 5)(Q, D, temperature=0.1), "12 samples do not divide into 5 steps"),
        (lambda: accumulated("mnrl", 13)(Q, D, temperature=0.1), "12 samples do not divide into 13 steps"),
        (lambda: accumulated("no_such_loss", 2), "no_such_loss"),
    ],
)
def test_what_cannot_be_cut_is_refused_by_name(make, reason):
    with pytest.raises((InputError, KeyError), match=reason):
        make()


def test_names_of_packages_are_known():
    assert matryoshka("MultipleNegativesRankingLoss", (2,)).loss is mnrl
    assert "12 features" in repr(matryoshka(nt_xent, (12,)))
