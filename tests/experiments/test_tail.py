"""What is measured of gradients while a network is trained, by the frequency of classes; and who diverges."""

from dataclasses import replace

import numpy as np
import pytest
from experiments.small_runs import TRAINING, few_samples

import nceref
from nceref.errors import NcerefError
from nceref.experiments import measures, tail
from nceref.experiments.setting import CLASSIFIER, Setting, trained
from nceref.training import Moment, Network


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


def test_the_probe_of_a_classifier_reads_what_its_last_layer_reads():
    """Ten features of samples, not two logits of classes."""
    setting, samples = Setting("CE", "cross_entropy", reads=CLASSIFIER), few_samples(0)
    encoder = trained(setting, TRAINING, samples, 0)
    inner = Network(encoder.recipe.network.layers[:-1])
    z, test = (
        measures.unit(inner(x, *(w[0] for w in encoder.parameters[:-2]))[0]) for x in (samples.train, samples.test)
    )
    assert z.shape[1] == TRAINING.sizes[-1]
    np.testing.assert_array_equal(tail._by_probe(setting, encoder, samples), measures.probed(z, samples.labels, test))


def test_a_run_that_diverges_is_named():
    training = replace(TRAINING, rate=1e30)
    settings = (Setting("CE", "cross_entropy", reads=CLASSIFIER),)
    with pytest.raises(NcerefError, match=r"^CE with seed 0 diverged at step \d: "):
        tail.run(0, lambda job: job, data=few_samples, settings=settings, training=training)
