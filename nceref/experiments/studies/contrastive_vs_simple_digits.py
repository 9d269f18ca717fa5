"""Contrastive against simple, and what temperature does, on handwritten digits."""

from dataclasses import replace
from functools import partial

from nceref.experiments import contrast, pictures
from nceref.experiments.samples import digits
from nceref.experiments.setting import Training
from nceref.experiments.studies import contrastive_vs_simple as drawn
from nceref.experiments.studies.contrastive_vs_simple import BATCH, SIMPLE, infonce, settings, statements

TEMPERATURES = (0.05, 0.1, 0.3, 0.7, 1.0, 3.0, 10.0)
TRAINING = Training((64, 64, 64, 16), BATCH, 400, 1e-3)

EXPERIMENT = replace(
    drawn.EXPERIMENT,
    name="contrastive-vs-simple-digits",
    title="Contrastive against simple, handwritten digits",
    about=(
        "An analogue, on small real data and in seconds, of a table that was measured with ResNets on images.",
        "Data: the 1797 handwritten digits of 8 x 8 pixels that scikit-learn ships, 50 of each for the test, split by "
        "the seed; views: turned by up to 15 degrees, shifted by up to 1 pixel, noise of 0.1 deviations.",
        f"{TRAINING} {drawn.READING}",
    ),
    settings=tuple(s.name for s in settings(TEMPERATURES)),
    statements=statements(TEMPERATURES[0]),
    run=partial(contrast.run, data=digits, settings=settings(TEMPERATURES), training=TRAINING),
    draw=partial(pictures.temperatures, curve={infonce(t): t for t in TEMPERATURES}, apart=SIMPLE),
)
