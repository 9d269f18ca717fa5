"""What the experiments are made of: data, what is measured of features and gradients, and who diverges."""

from dataclasses import replace

import numpy as np
import pytest

import nceref
from nceref.errors import InputError, NcerefError, UnavailableError
from nceref.experiments import measures, tail
from nceref.experiments.samples import Samples, digits, long_tail, moved, synthetic
from nceref.experiments.setting import CLASSIFIER, Setting, Training, trained
from nceref.training import Moment
from nceref.training.network import Network

SMALL = Training((32, 16, 8), 12, 6, 1e-3)


def small(seed):
    return synthetic(seed, long_tail(4, 40, 4), latent=3, test=6)


def test_measures_of_features_worked_by_hand():
    z = np.array([[1.0, 0], [1, 0], [0, 1], [0, -1]])
    labels = np.array([0, 0, 1, 1])
    assert measures.tolerance(z, labels) == pytest.approx((2 * 1 + 2 * -1) / 4)
    # Squared distances of the six pairs: 0, 4 and four times 2.
    assert measures.uniformity(z) == pytest.approx(-np.log((1 + np.exp(-8) + 4 * np.exp(-4)) / 6))
    assert measures.effective_rank(np.vstack([np.eye(3), -np.eye(3)])) == pytest.approx(3)
    assert measures.effective_rank(np.array([[1.0, 0], [-1, 0], [0, 0]])) == pytest.approx(1)
    assert measures.neighbor_accuracy(z, labels, z, labels, k=1) == 1
    assert measures.slope(np.array([1, 10, 100]), np.array([5.0, 0.5, np.nan])) == pytest.approx(-1)


def test_the_probe_is_the_minimum_of_its_objective():
    """At it the mean of (p - y) x is -decay w, and that of p - y is 0; columns are standardized, constant ones too."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    x = rng.standard_normal((60, 4)) + np.eye(3, 4)[labels]
    x[:, 3] = 2.0
    assert np.mean(measures.probed(x, labels, x) == labels) > 0.5
    np.testing.assert_array_equal(measures.probed(x * [1, 1e3, 1, 1] + 5, labels, x * [1, 1e3, 1, 1] + 5),
                                  measures.probed(x, labels, x))  # fmt: skip
    sklearn = pytest.importorskip("sklearn.linear_model", reason="another logistic regression")
    z = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    other = sklearn.LogisticRegression(C=1 / (len(x) * measures.DECAY), tol=1e-8, max_iter=10_000).fit(z, labels)
    test = rng.standard_normal((500, 4)) + np.array([0, 0, 0, 2])
    found = measures.probed(x, labels, test)
    seen = other.predict((test - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1))
    assert np.mean(found == seen) > 0.99


@pytest.mark.parametrize(("form", "factor"), [("sum", 2), ("mean", None)])
def test_the_pull_of_supcon_is_what_was_derived(form, factor):
    """2 K (1 - p) for the sum over K positives, 2 (1 - p) for their mean, where no positive has more than its share."""
    z = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1], [0, 1]])
    y = np.array([0, 0, 0, 1, 1])
    seen = tail.Gradients("supcon_out", 2)
    inputs = {"embeddings": z, "labels": y, "temperature": 1.0, "form": form}
    seen.watch(Moment(tail.EVERY, 0, inputs, 0.0, {"embeddings": np.arange(10.0).reshape(5, 2)}))
    # Norms of the gradient of the mean, times the number of anchors.
    norms = 5 * np.hypot(np.arange(0, 10, 2), np.arange(1, 10, 2))
    np.testing.assert_allclose(seen.norms, [norms[:3].mean(), norms[3:].mean()], rtol=1e-12)
    p = [2 * np.e / (2 * np.e + 2), np.e / (np.e + 3)]
    count = [2, 1] if factor else [1, 1]
    np.testing.assert_allclose(seen.pulls, [2 * k * (1 - q) for k, q in zip(count, p, strict=True)], rtol=1e-12)


def test_gradients_of_two_views_are_told_by_the_labels_of_their_samples():
    z = np.random.default_rng(1).standard_normal((4, 2, 3))
    y = np.array([0, 1, 1, 2])
    rows = np.concatenate([z[:, 0], z[:, 1]])
    stacked, flat = tail.Gradients("supcon_out", 3), tail.Gradients("supcon_out", 3)
    for seen, inputs, labels in ((stacked, z, y), (flat, rows, np.tile(y, 2))):
        given = {"embeddings": inputs, "labels": labels, "temperature": 0.5}
        _, grads = nceref.get_loss("supcon_out").value_and_grad(**given)
        seen.watch(Moment(tail.EVERY, 0, given, 0.0, grads))
    np.testing.assert_allclose(stacked.pulls, flat.pulls, rtol=1e-12)
    np.testing.assert_allclose(stacked.norms, flat.norms, rtol=1e-12)


def test_a_long_tail_falls_geometrically():
    assert long_tail(3, 500, 5).tolist() == [500, 50, 5]
    assert small(0).counts.tolist() == long_tail(4, 40, 4).tolist()
    assert np.bincount(small(0).test_labels).tolist() == [6] * 4


def test_the_probe_of_a_classifier_reads_what_its_last_layer_reads():
    """Ten features of samples, not two logits of classes."""
    setting, samples = Setting("CE", "cross_entropy", reads=CLASSIFIER), small(0)
    found = trained(setting, SMALL, samples, 0)
    inner = Network(found.recipe.network.layers[:-1])
    z, test = (
        measures.unit(inner(x, *(w[0] for w in found.parameters[:-2]))[0]) for x in (samples.train, samples.test)
    )
    assert z.shape[1] == SMALL.sizes[-1]
    np.testing.assert_array_equal(tail._by_probe(setting, found, samples), measures.probed(z, samples.labels, test))


def test_more_digits_than_there_are_are_refused():
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    with pytest.raises(InputError, match="ask for 550 of digit 0, of which there are 178"):
        digits(0, np.full(10, 500))
    with pytest.raises(InputError, match="ask for 201 of digit 0"):
        digits(0, test=200)


def test_a_run_that_diverges_is_named():
    training = replace(SMALL, rate=1e30)
    settings = (Setting("CE", "cross_entropy", reads=CLASSIFIER),)
    with pytest.raises(NcerefError, match=r"^CE with seed 0 diverged at step \d: "):
        tail.run(0, lambda job: job, data=small, settings=settings, training=training)


def test_without_scikit_learn_the_error_names_the_command(monkeypatch):
    from nceref.experiments import samples

    samples._digits.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(UnavailableError, match=r"not installed; pip install 'nceref\[experiments\]'"):
        digits(0)


def test_digits_are_split_and_moved():
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    s = digits(0, long_tail(10, 120, 2))
    assert isinstance(s, Samples)
    assert s.counts.tolist() == long_tail(10, 120, 2).tolist()
    assert len(s.test) == 500
    trained = {x.tobytes() for x in s.train}
    assert not trained & {x.tobytes() for x in s.test}
    view = moved(np.random.default_rng(0), s.train)
    assert view.shape == s.train.shape
    likeness = [np.corrcoef(a, b)[0, 1] for a, b in zip(view, s.train, strict=True)]
    assert 0.5 < np.mean(likeness) < 0.99, "another image of the same digit"
