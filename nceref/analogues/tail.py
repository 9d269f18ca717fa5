"""Encoders trained with labels on long-tailed data: how hard an anchor of a class pulls, and which classes are told.

The pull of an anchor is the sum of the absolute derivatives of its own loss by its logits: for SupCon as a sum over K
positives 2 K (1 - p), where p is the probability of all positives; divided by K it is 2 (1 - p).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref import losses
from nceref.analogues import measures
from nceref.analogues.samples import Samples
from nceref.analogues.setting import CENTERS, CLASSIFIER, PROBE, Setting, Training, each, trained
from nceref.experiment import Measure, Noted, Results
from nceref.network import Linear, Network
from nceref.optimizers import Adam
from nceref.training import Batch, Member, Moment, Recipe, Trained, train

Array = npt.NDArray[Any]

RATIO, SLOPE, STEEPNESS, ALL, HEAD, MIDDLE, TAIL = "ratio", "slope", "steepness", "all", "head", "mid", "tail"
MEASURES = (
    Measure(RATIO, "mean pull of an anchor of the most frequent class over that of one of the least frequent", 2),
    Measure(SLOPE, "slope of log pull against log class count", 2),
    Measure(STEEPNESS, "absolute slope", 2, printed=False),
    Measure(ALL, "mean accuracy of all classes on balanced test samples", 2),
    Measure(HEAD, "mean accuracy of the most frequent third of the classes", 2),
    Measure(MIDDLE, "of the middle third", 2),
    Measure(TAIL, "of the least frequent third", 2),
)
EVERY = 5
"""Steps from one look at the pulls to the next."""

PROBE_TRAINING = Training((), 128, 400, 3e-2)


def run(
    seeds: Sequence[int],
    noted: Noted,
    *,
    data: Callable[[int], Samples],
    settings: Sequence[Setting],
    training: Training,
    classifier: str,
) -> Results:
    """Train and measure every setting with every seed; `classifier` is the loss of the probes."""

    def measured(setting: Setting, samples: Samples, seed: int) -> tuple[Mapping[str, float], tuple[float, ...]]:
        pulls = Pulls(setting.loss, samples.classes)
        found = trained(setting, training, samples, seed, pulls.watch)
        predicted = _READERS[setting.reads](found, samples, seed, classifier)
        return _numbers(samples, pulls.means(), predicted), tuple(pulls.means())

    return each(seeds, noted, data, settings, measured, MEASURES)


class Pulls:
    """Adds up the pulls of anchors by class while a network is trained."""

    def __init__(self, loss: str, classes: int) -> None:
        self.loss = losses.get_loss(loss)
        self.sums, self.seen = np.zeros(classes), np.zeros(classes)

    def watch(self, moment: Moment) -> None:
        """Look at every few steps."""
        if moment.step % EVERY:
            return
        slopes = np.abs(self.loss.anatomy(**moment.inputs).slopes).sum(axis=1, dtype=np.float64)
        labels = next(moment.inputs[name] for name in ("labels", "target") if name in moment.inputs)
        labels = np.tile(labels, len(slopes) // len(labels))
        # The slopes are those of the mean over the anchors.
        self.sums += np.bincount(labels, slopes * len(slopes), len(self.sums))
        self.seen += np.bincount(labels, minlength=len(self.sums))

    def means(self) -> Array:
        """Mean pull of an anchor of each class; NaN for a class that was never seen."""
        return np.where(self.seen > 0, self.sums / np.maximum(self.seen, 1), np.nan)


def _numbers(samples: Samples, pulls: Array, predicted: Array) -> Mapping[str, float]:
    right = measures.class_accuracy(predicted, samples.test_labels)
    third = round(samples.classes / 3)
    slope = measures.slope(samples.counts, pulls)
    seen = pulls[np.isfinite(pulls)]
    return {
        RATIO: float(seen[0] / seen[-1]),
        SLOPE: slope,
        STEEPNESS: abs(slope),
        ALL: float(right.mean()),
        HEAD: float(right[:third].mean()),
        MIDDLE: float(right[third:-third].mean()),
        TAIL: float(right[-third:].mean()),
    }


def _by_classifier(found: Trained, samples: Samples, seed: int, classifier: str) -> Array:
    return np.asarray(found.features(samples.test)[0].argmax(axis=1))


def _by_centers(found: Trained, samples: Samples, seed: int, classifier: str) -> Array:
    (centers,) = found.learned.values()
    return np.asarray((found.features(samples.test)[0] @ centers[0].T).argmax(axis=1))


def _by_probe(found: Trained, samples: Samples, seed: int, classifier: str) -> Array:
    """A linear classifier trained on the unit features of the long-tailed samples."""
    z, test = (measures.unit(found.features(x)[0]) for x in (samples.train, samples.test))

    def draw(rng: np.random.Generator) -> Batch:
        rows = rng.integers(0, len(z), PROBE_TRAINING.batch)
        return Batch((z[rows],), samples.labels[rows])

    network = Network((Linear(z.shape[1], samples.classes),))
    recipe = Recipe(classifier, network, PROBE_TRAINING.steps, Adam(PROBE_TRAINING.rate), dtype="float32")
    return np.asarray(train(recipe, [Member(seed)], draw).features(test)[0].argmax(axis=1))


_READERS: Mapping[str, Callable[[Trained, Samples, int, str], Array]] = {
    CLASSIFIER: _by_classifier, CENTERS: _by_centers, PROBE: _by_probe,
}  # fmt: skip
