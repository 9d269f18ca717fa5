"""Encoders trained without labels, by losses and temperatures: what their features are good for, and how they lie."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nceref.experiments import measures
from nceref.experiments.experiment import Measure, OnProgress, Results
from nceref.experiments.samples import Samples
from nceref.experiments.setting import Setting, Training, each, trained

PROBE_ACCURACY, NEIGHBORS, UNIFORMITY, TOLERANCE, RANK = "probe", "5-NN", "uniformity", "tolerance", "rank"
MEASURES = (
    Measure(PROBE_ACCURACY, "accuracy of a logistic regression on standardized unit features, on test samples"),
    Measure(NEIGHBORS, "accuracy of the vote of the 5 most similar training samples"),
    Measure(UNIFORMITY, "minus L_uniform at t = 2 of the test features", 2),
    Measure(TOLERANCE, "mean similarity of test features of equal label"),
    Measure(RANK, "exponential of the entropy of the singular values of the centered test features", 2),
)


def run(
    seed: int,
    on_progress: OnProgress,
    *,
    data: Callable[[int], Samples],
    settings: Sequence[Setting],
    training: Training,
) -> Results:
    """Train and measure every setting with a seed.

    The seed draws data, weights and batches; `data(seed)` returns the samples. `on_progress` is called with a `Job`
    after each setting.
    """

    def measured(setting: Setting, samples: Samples, seed: int) -> tuple[Mapping[str, float], tuple[float, ...]]:
        encoder = trained(setting, training, samples, seed)
        z, test = (measures.unit(encoder.features(x)[0]) for x in (samples.train, samples.test))
        split = z, samples.labels, test, samples.test_labels
        return {
            PROBE_ACCURACY: float(np.mean(measures.probed(*split[:3]) == samples.test_labels)),
            NEIGHBORS: measures.neighbor_accuracy(*split),
            UNIFORMITY: measures.uniformity(test),
            TOLERANCE: measures.tolerance(test, samples.test_labels),
            RANK: measures.effective_rank(test),
        }, ()

    return each(seed, on_progress, data, settings, measured, MEASURES)
