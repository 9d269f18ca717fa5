"""Encoders trained on long-tailed data with labels: how hard an anchor of a class pulls, and which classes are right.

The pull of an anchor is the sum of the absolute derivatives of its own loss by its logits. For SupCon as a sum over K
positives it is 2 K (1 - p), where p is the probability of all positives, and more where one of them has more than 1/K;
divided by K it is 2 (1 - p) or more.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref import losses
from nceref.experiments import measures
from nceref.experiments.experiment import Measure, OnProgress, Results
from nceref.experiments.samples import Samples
from nceref.experiments.setting import CENTERS, CLASSIFIER, PROBE, Setting, Training, each, trained
from nceref.training import Moment, Network, Trained

Array = npt.NDArray[Any]

SLOPE, STEEPNESS, NORM, RATIO = "pull slope", "steepness", "norm slope", "pull ratio"
PROBED, ALL, HEAD, MIDDLE, TAIL = "probe", "all", "head", "mid", "tail"
GRADIENTS, ACCURACY = "Measured: gradients by class frequency", "Measured: accuracy on balanced test samples"
MEASURES = (
    Measure(SLOPE, "slope of log pull against log class count", 2, GRADIENTS),
    Measure(STEEPNESS, "absolute pull slope", 2, table=""),
    Measure(RATIO, "mean pull of an anchor of the most frequent class over that of one of the least frequent", 2,
            GRADIENTS),
    Measure(NORM, "slope of the log norm of the gradient by the network's output of a sample", 2, GRADIENTS),
    Measure(PROBED, "all classes, by a logistic regression on standardized unit features", 3, ACCURACY),
    Measure(ALL, "all classes, by the network's own last layer or centers; SupCon has none and is probed", 3, ACCURACY),
    Measure(HEAD, "of these, the most frequent third of the classes", 2, ACCURACY),
    Measure(MIDDLE, "the middle third", 2, ACCURACY),
    Measure(TAIL, "the least frequent third", 2, ACCURACY),
)  # fmt: skip
EVERY = 5
"""Steps from one look at the gradients to the next."""


def run(
    seed: int,
    on_progress: OnProgress,
    *,
    data: Callable[[int], Samples],
    settings: Sequence[Setting],
    training: Training,
) -> Results:
    """Train and measure every setting with a seed; parameters and result as those of `contrast.run`."""

    def measured(setting: Setting, samples: Samples, seed: int) -> tuple[Mapping[str, float], tuple[float, ...]]:
        seen = Gradients(setting.loss, samples.classes)
        encoder = trained(setting, training, samples, seed, seen.watch)
        by_probe = _by_probe(setting, encoder, samples)
        predicted = by_probe if setting.reads == PROBE else _READERS[setting.reads](encoder, samples)
        return _numbers(samples, seen, by_probe, predicted), tuple(seen.pulls)

    return each(seed, on_progress, data, settings, measured, MEASURES)


class Gradients:
    """Adds up, by class, the pulls of anchors and the norms of gradients while a network is trained."""

    def __init__(self, loss: str, classes: int) -> None:
        self.loss = losses.get_loss(loss)
        self.sums, self.seen = np.zeros((2, classes)), np.zeros(classes)

    def watch(self, moment: Moment) -> None:
        """Look at every few steps."""
        if moment.step % EVERY:
            return
        # Summed in float64: the network and its gradients are float32.
        slopes = np.abs(self.loss.anatomy(**moment.inputs).slopes).sum(axis=1, dtype=np.float64)
        norms = np.linalg.norm(next(moment.grads[name] for name in ("embeddings", "logits") if name in moment.grads),
                               axis=-1).astype(np.float64)  # fmt: skip
        labels = next(moment.inputs[name] for name in ("labels", "target") if name in moment.inputs)
        labels = np.tile(labels, len(slopes) // len(labels))
        # Both are of the mean over the anchors; two views stand beside each other.
        for sums, sizes in zip(self.sums, (slopes, norms.T.ravel()), strict=True):
            sums += np.bincount(labels, sizes * len(slopes), len(sums))
        self.seen += np.bincount(labels, minlength=len(self.seen))

    @property
    def pulls(self) -> Array:
        """Mean pull of an anchor of each class; NaN for a class that was never seen."""
        return self._means(0)

    @property
    def norms(self) -> Array:
        """Mean norm of the gradient by the output of a sample of each class; NaN for a class that was never seen."""
        return self._means(1)

    def _means(self, which: int) -> Array:
        return np.where(self.seen > 0, self.sums[which] / np.maximum(self.seen, 1), np.nan)


def _numbers(samples: Samples, gradients: Gradients, by_probe: Array, predicted: Array) -> Mapping[str, float]:
    right = measures.class_accuracy(predicted, samples.test_labels)
    # Classes are in the order of their frequency. The middle takes what rounding leaves.
    third = round(samples.classes / 3)
    slope = measures.slope(samples.counts, gradients.pulls)
    # The least frequent class may never have been drawn at a step that was looked at.
    seen = gradients.pulls[np.isfinite(gradients.pulls)]
    return {
        SLOPE: slope,
        STEEPNESS: abs(slope),
        RATIO: float(seen[0] / seen[-1]),
        NORM: measures.slope(samples.counts, gradients.norms),
        PROBED: float(measures.class_accuracy(by_probe, samples.test_labels).mean()),
        ALL: float(right.mean()),
        HEAD: float(right[:third].mean()),
        MIDDLE: float(right[third:-third].mean()),
        TAIL: float(right[-third:].mean()),
    }


def _by_probe(setting: Setting, encoder: Trained, samples: Samples) -> Array:
    """Labels of test rows by the same probe for every loss, on unit features; a classifier's enter its last layer."""
    network, parameters = encoder.recipe.network, encoder.parameters
    if setting.reads == CLASSIFIER:
        # The last layer has two parameters, weights and bias.
        network, parameters = Network(network.layers[:-1]), parameters[:-2]
    one = [w[0] for w in parameters]
    z, test = (measures.unit(network(x, *one)[0]) for x in (samples.train, samples.test))
    return measures.probed(z, samples.labels, test)


def _by_classifier(encoder: Trained, samples: Samples) -> Array:
    return np.asarray(encoder.features(samples.test)[0].argmax(axis=1))


def _by_centers(encoder: Trained, samples: Samples) -> Array:
    (centers,) = encoder.learned.values()
    return np.asarray((encoder.features(samples.test)[0] @ centers[0].T).argmax(axis=1))


_READERS: Mapping[str, Callable[[Trained, Samples], Array]] = {CLASSIFIER: _by_classifier, CENTERS: _by_centers}
