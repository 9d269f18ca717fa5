"""What is common in the wild is named: small constants, floors, smoothed labels, thresholds, a gather that detaches."""

import numpy as np
import pytest
from diagnosis.altered_losses import observed

from mutants.bug import logsumexp, unit
from mutants.bug import stop as real
from nceref import get_loss
from nceref.cases.corpus.corpus import corpus
from nceref.cases.records import Observation, Outcome
from nceref.diagnosis.dense import forms
from nceref.diagnosis.search import explanations


def first(target, name, **arguments):
    found = explanations(observed(target, name, **arguments))
    return found[0] if found else None


def longer(x, size):
    return x / (np.sqrt(np.sum(x * x, axis=-1, keepdims=True)) + size)


def smoothed(logits, share=0.1):
    log_p = logits - logsumexp(logits)[:, None]
    return np.mean(-(1 - share) * np.diagonal(log_p) - share * np.mean(log_p, axis=1))


def with_threshold(logits):
    """Minus log p as torch writes a softplus: x itself beyond 20."""
    n = len(logits)
    x = logsumexp(np.where(np.eye(n, dtype=bool), -np.inf, logits)) - np.diagonal(logits)
    steep = real(x) > 20
    return np.mean(np.where(steep, x, np.log1p(np.exp(np.where(steep, 0.0, x)))))


def without_gather(z1, z2, temperature):
    """Rows of the other view are candidates that somebody else computed."""
    a, b = unit(z1), unit(z2)
    own = np.eye(len(a), dtype=bool)
    rows = []
    for x, y in ((a, b), (b, a)):
        logits = np.concatenate([x @ real(y).T, np.where(own, -np.inf, x @ x.T)], axis=1) / temperature
        rows.append(logsumexp(logits) - np.diagonal(logits))
    return np.mean(np.concatenate(rows))


def of_logits(program, scale=unit):
    return lambda queries, keys, temperature, **rest: program(scale(queries) @ scale(keys).T / temperature)


def mean_nll(logits):
    return np.mean(logsumexp(logits) - np.diagonal(logits))


def with_fewer(queries, keys, temperature, fraction):
    """The hardest negatives, a fraction of them that is rounded down."""
    logits = unit(queries) @ unit(keys).T / temperature
    n = len(logits)
    count = min(n - 1, max(1, int(fraction * (n - 1) + 1e-9)))
    others = np.where(np.eye(n, dtype=bool), -np.inf, logits)
    order = np.argsort(-real(others), axis=1, kind="stable")[:, :count]
    kept = np.concatenate([np.diagonal(logits)[:, None], np.take_along_axis(others, order, axis=1)], axis=1)
    return np.mean(logsumexp(kept) - kept[:, 0])


SMALL = {
    "count-rounded-down": (
        "hard_contrastive",
        lambda queries, keys, temperature, fraction, **rest: with_fewer(queries, keys, temperature, fraction),
        "",
    ),
    "epsilon-in-norm": ("info_nce", of_logits(mean_nll, lambda x: longer(x, 1e-8)), "eps = 1e-08 added"),
    "epsilon-in-temperature": (
        "info_nce",
        lambda queries, keys, temperature, **rest: of_logits(mean_nll)(queries, keys, temperature + 1e-6),
        "eps = 1e-06",
    ),
    "temperature-clamped": (
        "info_nce",
        lambda queries, keys, temperature, **rest: of_logits(mean_nll)(
            queries, keys, temperature if real(temperature) > 0.05 else 0.05
        ),
        "floor 0.05",
    ),
    "label-smoothing": ("info_nce", of_logits(smoothed), "label_smoothing = 0.1"),
    "other-view-detached": ("nt_xent", lambda z1, z2, temperature, **rest: without_gather(z1, z2, temperature), ""),
}


@pytest.mark.parametrize("id", SMALL)
def test_what_is_common_in_the_wild_has_a_name(id):
    name, target, told = SMALL[id]
    found = first(target, name)
    assert found is not None
    assert found.ids == (id,)
    assert found.gradient
    assert ", ".join(o.setting for o in found.options if o.setting) == told


def test_a_softplus_with_a_threshold_is_named():
    found = first(of_logits(with_threshold), "info_nce", suite="standard", every=4)
    assert found is not None
    assert found.ids == ("softplus-threshold",)


@pytest.mark.parametrize("kept", [slice(None, -1), slice(1, None)])
def test_the_end_of_a_queue_that_is_missing_is_named(kept):
    def target(queries, keys, queue, temperature, **rest):
        q, k, u = unit(queries), unit(keys), unit(queue)[kept]
        logits = np.concatenate([np.sum(q * real(k), axis=1, keepdims=True), q @ u.T], axis=1) / temperature
        return np.mean(logsumexp(logits) - logits[:, 0])

    found = first(target, "moco")
    assert found is not None
    assert found.ids == ("a-negative-dropped",)


def clip_without_a_mean(change):
    """Answers that are the right values and gradients, changed."""
    probes = corpus(get_loss("clip").declaration, {}, suite="quick", reduction="none")
    return [Observation(p, Outcome(*change(p.value, p.grads))) for p in probes if not p.skip]


def doubled(value, grads):
    return 2 * value, {name: 2 * np.asarray(grad) for name, grad in grads.items()}


def test_rows_of_two_directions_are_searched_without_a_mean():
    """The value is a (2, N) array there, and one direction has half of the rows."""
    assert explanations(clip_without_a_mean(doubled))[0].ids == ("directions-summed",)


@pytest.mark.slow(reason="a search in vain")
def test_rows_of_exchanged_directions_have_no_explanation():
    def target(value, grads):
        value, grads = doubled(value, grads)
        return value[::-1], grads

    assert explanations(clip_without_a_mean(target)) == ()


def in_turn(z1, z2, temperature):
    """Rows are z1_0, z2_0, z1_1, ..., and the partner of row i is taken at i + N."""
    z = unit(np.stack([z1, z2], axis=1).reshape(2 * len(z1), -1))
    n = len(z)
    logits = np.where(np.eye(n, dtype=bool), -np.inf, z @ z.T / temperature)
    return np.mean(logsumexp(logits) - logits[np.arange(n), (np.arange(n) + n // 2) % n])


def views_in_turn(embeddings, labels, temperature):
    """Rows go sample by sample, and their labels view by view."""
    n, v, _ = embeddings.shape
    z = unit(embeddings.reshape(n * v, -1))
    names = np.tile(labels, v)
    own = np.eye(n * v, dtype=bool)
    logits = np.where(own, -np.inf, z @ z.T / temperature)
    positives = (names[:, None] == names) & ~own
    log_p = np.where(positives, logits - logsumexp(logits)[:, None], 0.0)
    return np.mean(-np.sum(log_p, axis=1) / np.sum(positives, axis=1))


def test_rows_that_go_sample_by_sample_beside_positives_that_do_not_are_named():
    found = first(in_turn, "nt_xent")
    assert [(o.id, o.value) for o in found.options] == [("views-interleaved", "rows interleaved")]
    embeddings, labels = np.random.default_rng(0).standard_normal((4, 3, 5)), np.array([0, 1, 0, 2])
    loss = get_loss("supcon_out").declaration
    usual = {p.name: getattr(p, "default", None) for p in loss.parameters}
    given = {**usual, "embeddings": embeddings, "labels": labels, "temperature": 0.3, "views": True}
    rows = forms.evaluated(forms.form_of(loss), given, {"views-interleaved": "rows interleaved"})
    assert np.mean(rows.values) == pytest.approx(views_in_turn(embeddings, labels, 0.3))
