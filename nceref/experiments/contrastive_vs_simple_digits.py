"""Contrastive against simple, and what temperature does, on handwritten digits."""

from functools import partial

from nceref.analogues import contrast, pictures
from nceref.analogues.samples import digits
from nceref.analogues.setting import Training
from nceref.experiment import Experiment
from nceref.experiments.contrastive_vs_simple import (
    BATCH,
    CAPTION,
    HARDEST,
    PUBLISHED,
    SIMPLE,
    infonce,
    settings,
    statements,
)

TEMPERATURES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
TRAINING = Training((64, 64, 64, 16), BATCH, 400, 1e-3)

EXPERIMENT = Experiment(
    name="contrastive-vs-simple-digits",
    title="Contrastive against simple, handwritten digits",
    about=(
        "An analogue, on small real data and in seconds, of a table that was measured with ResNets on images.",
        "Data: the 1797 handwritten digits of 8 x 8 pixels that scikit-learn ships, 50 of each for the test, split by "
        "the seed; views: turned by up to 15 degrees, shifted by up to 1 pixel, noise of 0.1 deviations.",
        f"{TRAINING} The other samples of the batch are the negatives; hard: the {HARDEST} most similar of them. Hard "
        "Simple is hard InfoNCE at temperature 100, its limit.",
    ),
    published=PUBLISHED,
    measures=contrast.MEASURES,
    settings=tuple(s.name for s in settings(TEMPERATURES)),
    statements=statements(TEMPERATURES),
    run=partial(contrast.run, data=digits, settings=settings(TEMPERATURES), training=TRAINING),
    draw=partial(pictures.temperatures, curve={infonce(t): t for t in TEMPERATURES}, apart=SIMPLE),
    caption=CAPTION,
    seeds=3,
    height=5.6,
    claims=("WL-3", "WL-4", "WL-5", "WL-17"),
)
