"""Contrastive against simple, and what temperature does, on drawn data."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from nceref.experiments import contrast, pictures
from nceref.experiments.contrast import PROBE_ACCURACY, TOLERANCE, UNIFORMITY
from nceref.experiments.experiment import Contrast, Experiment, Statement, difference
from nceref.experiments.samples import Samples, synthetic
from nceref.experiments.setting import Setting, Training
from nceref.theory.table import Table
from nceref.theory.tables.contrastive_vs_simple import LOSSES, PAPER

BATCH, HARDEST = 128, 20
TEMPERATURES = (0.07, 0.3, 0.7, 1.0, 10.0)
TRAINING = Training((32, 64, 64, 16), BATCH, 500, 1e-3)

SIMPLE, HARD, HARD_SIMPLE = "Simple", "hard 0.3", "hard Simple"
TABLE_1 = "Wang & Liu 2021, Table 1"
MEASURED = ("accuracy", "uniformity", "tolerance")
COLUMNS = {f"{t:g}": ("contrastive", t) for t in (0.07, 0.3, 0.7, 1.0)} | {
    "Simple": ("simple", None), "hard 0.3": ("hard", 0.3), "hard Simple": ("hard simple", None),
}  # fmt: skip
"""Columns of the paper's table that have an analogue here."""

LESS_UNIFORM, LESS_ACCURATE = 0.2, 0.02
"""Differences of uniformity and of accuracy below which two losses count as alike."""


def infonce(temperature: float) -> str:
    """The name of the contrastive loss in the table."""
    return f"InfoNCE {temperature:g}"


def settings(temperatures: Sequence[float]) -> tuple[Setting, ...]:
    """The contrastive loss at several temperatures, the simple loss, and both over the hardest negatives."""
    # Of the negatives of an anchor: all other samples of the batch.
    fraction = {"fraction": HARDEST / (BATCH - 1)}
    return (
        *(Setting(infonce(t), "info_nce", t) for t in temperatures),
        Setting(SIMPLE, "simple"),
        Setting(HARD, "hard_contrastive", 0.3, fraction),
        # Linear over the hardest: the limit of high temperature. Adam does not mind that the gradient shrinks.
        Setting(HARD_SIMPLE, "hard_contrastive", 100.0, fraction),
    )


def statements(lowest: float) -> tuple[Statement, ...]:
    """The published statements, with `lowest` in the place of 0.07; the other temperatures are those of the paper."""
    names = [infonce(t) for t in (lowest, 0.3, 0.7, 1.0)]
    return (*_of_simple(names), *_of_temperature(names), *_of_the_hardest())


def _of_simple(names: Sequence[str]) -> tuple[Statement, ...]:
    """InfoNCE at rising temperatures up to 1, against the simple loss."""
    return (
        Statement(
            "InfoNCE at its lowest temperature is more accurate than the simple loss.",
            f"{TABLE_1}; source 000 (WL-3): {_row('accuracy', '0.07', 'Simple')}",
            (difference(PROBE_ACCURACY, names[0], SIMPLE),),
        ),
        Statement(
            "The simple loss is less uniform than InfoNCE at every temperature up to 1.",
            f"{TABLE_1} (WL-4): {_row('uniformity', '1', 'Simple')}",
            tuple(difference(UNIFORMITY, name, SIMPLE) for name in names),
        ),
        Statement(
            "InfoNCE at temperature 1 makes features as uniform as the simple loss does.",
            "source 000 (WL-17) says of temperature (N - 1) / N that the losses are almost the same; of features it "
            f"says nothing. Margin {LESS_UNIFORM}",
            (difference(UNIFORMITY, names[-1], SIMPLE),),
            margin=LESS_UNIFORM,
        ),
    )


def _of_temperature(names: Sequence[str]) -> tuple[Statement, ...]:
    """InfoNCE at rising temperatures up to 1."""
    return (
        Statement(
            "Uniformity falls as the temperature rises to 1.",
            f"{TABLE_1} (WL-4): {_row('uniformity', '0.07', '1')}",
            _chain(UNIFORMITY, names),
        ),
        Statement(
            "Tolerance grows as the temperature rises to 1.",
            f"{TABLE_1} (WL-4): {_row('tolerance', '1', '0.07')}",
            _chain(TOLERANCE, names[::-1]),
        ),
        Statement(
            "Accuracy is best in between: 0.3 is better than the lowest temperature, and than 1.",
            f"{TABLE_1} (WL-4, WL-19): {_row('accuracy', '0.3', '1')}",
            tuple(difference(PROBE_ACCURACY, names[1], name) for name in (names[0], names[-1])),
        ),
    )


def _of_the_hardest() -> tuple[Statement, ...]:
    return (
        Statement(
            "Among the hardest negatives only, the simple loss is more accurate than among all.",
            f"{TABLE_1} (WL-4): {_row('accuracy', 'hard Simple', 'Simple')}",
            (difference(PROBE_ACCURACY, HARD_SIMPLE, SIMPLE),),
        ),
        Statement(
            "Among the hardest negatives only, the simple loss is as accurate as InfoNCE at 0.3.",
            f"{TABLE_1} (WL-4): {_row('accuracy', 'hard Simple', 'hard 0.3')}. Margin {LESS_ACCURATE}",
            (difference(PROBE_ACCURACY, HARD_SIMPLE, HARD),),
            margin=LESS_ACCURATE,
        ),
    )


def _chain(measure: str, falling: Sequence[str]) -> tuple[Contrast, ...]:
    """The contrasts of neighbors in a falling order: each setting minus the next."""
    return tuple(difference(measure, a, b) for a, b in pairwise(falling))


def _row(what: str, first: str, second: str) -> str:
    """Two columns of the paper's table, digits as printed, for every data set."""
    a, b = (LOSSES.index(COLUMNS[name]) for name in (first, second))
    measure = MEASURED.index(what)
    return ", ".join(f"{dataset} {rows[measure][a]} and {rows[measure][b]}" for dataset, rows in PAPER.items())


def _published() -> list[dict[str, Any]]:
    return [
        {"data": dataset, "measure": measure, **{name: printed[LOSSES.index(which)] for name, which in COLUMNS.items()}}
        for dataset, rows in PAPER.items()
        for measure, printed in zip(MEASURED, rows, strict=True)
    ]


PUBLISHED = Table(
    name="published",
    title="Published: accuracy of a linear probe in percent, uniformity, tolerance",
    source=f"{TABLE_1}: ResNets on images, not computed here",
    columns=("data", "measure", *COLUMNS),
    rows=_published,
)

READING = (
    f"The other samples of the batch are the negatives; hard: the {HARDEST} most similar of them (with 10, training on "
    "digits collapses for some seeds). Hard Simple is hard InfoNCE at temperature 100, its limit."
)
CAPTION = (
    "Tolerance against uniformity, and both and the accuracies of probe and neighbors against the temperature of "
    "InfoNCE: means over seeds, with bars of one standard deviation between seeds, which differ more than losses do on "
    "one seed. Open points: the simple loss."
)


def data(seed: int) -> Samples:
    """Ten classes of 100 samples."""
    return synthetic(seed, np.full(10, 100), latent=8, width=0.8)


EXPERIMENT = Experiment(
    name="contrastive-vs-simple",
    title="Contrastive against simple, drawn data",
    about=(
        "An analogue, on drawn data and in seconds, of a table that was measured with ResNets on images.",
        "Data: 10 normal classes of 100 samples in 8 dimensions (means of deviation 1, samples of 0.8), mixed by a "
        "random tanh layer into 32 features; views: normal noise of 0.25, and 20 % of the features set to 0; 50 test "
        "samples of each class.",
        f"{TRAINING} {READING}",
    ),
    published=PUBLISHED,
    measures=contrast.MEASURES,
    settings=tuple(s.name for s in settings(TEMPERATURES)),
    statements=statements(TEMPERATURES[0]),
    run=partial(contrast.run, data=data, settings=settings(TEMPERATURES), training=TRAINING),
    draw=partial(pictures.temperatures, curve={infonce(t): t for t in TEMPERATURES}, apart=SIMPLE),
    caption=CAPTION,
    seeds=6,
    height=5.6,
)
