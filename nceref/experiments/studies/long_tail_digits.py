"""Supervised contrast, cross-entropy and PaCo on a long tail of handwritten digits."""

from dataclasses import replace
from functools import partial

from nceref.experiments import tail
from nceref.experiments.samples import Samples, digits, long_tail
from nceref.experiments.setting import Training
from nceref.experiments.studies import long_tail as drawn
from nceref.experiments.studies.long_tail import READING, SETTINGS

COUNTS = long_tail(10, 120, 2)
TRAINING = Training((64, 64, 64, 16), 64, 500, 3e-3)


def data(seed: int) -> Samples:
    """Digits 0 to 9, of 120 samples down to 2."""
    return digits(seed, COUNTS)


EXPERIMENT = replace(
    drawn.EXPERIMENT,
    name="long-tail-digits",
    title="Supervised contrast on a long tail, handwritten digits",
    about=(
        "An analogue, on small real data and in seconds, of results that were measured with ResNets on images.",
        f"Data: handwritten digits of 8 x 8 pixels that scikit-learn ships, {COUNTS[0]} zeros down to {COUNTS[-1]} "
        "nines, 50 of each for the test, split by the seed; views: turned by up to 15 degrees, shifted by up to 1 "
        "pixel, noise of 0.1 deviations. Some digits are harder than others, so head and tail differ for that as well.",
        f"{TRAINING} {READING}",
    ),
    run=partial(tail.run, data=data, settings=SETTINGS, training=TRAINING),
)
