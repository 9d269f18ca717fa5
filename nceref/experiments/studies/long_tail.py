"""Supervised contrast, cross-entropy and PaCo on long-tailed drawn data."""

from functools import partial
from typing import Any

from nceref.experiments import pictures, tail
from nceref.experiments.experiment import Contrast, Experiment, Statement, difference
from nceref.experiments.samples import Samples, long_tail, synthetic
from nceref.experiments.setting import CENTERS, CLASSIFIER, Setting, Training
from nceref.experiments.tail import ALL, NORM, PROBED, SLOPE, STEEPNESS, TAIL
from nceref.theory.table import Table

TEMPERATURE = 0.2
ALPHAS = (0.01, 0.05, 0.5)
COUNTS = long_tail(20, 500, 5)
TRAINING = Training((32, 64, 64, 16), 64, 800, 3e-3)

CE, BALANCED, SUM, MEAN = "CE", "balanced", "SupCon sum", "SupCon mean"
NO_PRIOR, NORMALIZED = "no prior", "PaCo norm."
PACO = "PaCo 0.05"
CROSS_ENTROPY = "cross_entropy"


def _paco(name: str, alpha: float, prior: str = "class_prior", **arguments: Any) -> Setting:
    return Setting(name, "paco", TEMPERATURE, {"alpha": alpha, **arguments}, prior, CENTERS)


SETTINGS = (
    Setting(CE, CROSS_ENTROPY, reads=CLASSIFIER),
    Setting(BALANCED, "balanced_softmax", prior="class_counts", reads=CLASSIFIER),
    Setting(SUM, "supcon_out", TEMPERATURE, {"form": "sum"}),
    Setting(MEAN, "supcon_out", TEMPERATURE),
    *(_paco(f"PaCo {alpha:g}", alpha) for alpha in ALPHAS),
    _paco(NO_PRIOR, 0.05, prior=""),
    _paco(NORMALIZED, 0.05, form="normalized"),
)

STATEMENTS = (
    Statement(
        "Supervised contrast alone is less accurate than cross-entropy on long-tailed data, as sum and as mean.",
        "source 004, table PaCoT1 (PC-17); an image, no number",
        tuple(difference(m, CE, name) for name in (SUM, MEAN) for m in (PROBED, ALL)),
    ),
    Statement(
        "Frequent classes have larger gradients, with SupCon as a sum over positives.",
        "source 004, figure PaCoF2 (PC-13) and beside it (PC-20); no number. Derived of pulls: 2 K (1 - p) or more",
        (Contrast(SLOPE, {SUM: 1}), Contrast(NORM, {SUM: 1})),
    ),
    Statement(
        "The same holds with SupCon as a mean over positives, the common form.",
        "not published. Derived of pulls: 2 (1 - p) or more, without the factor K (PC-13, PC-20)",
        (Contrast(SLOPE, {MEAN: 1}), Contrast(NORM, {MEAN: 1})),
    ),
    Statement(
        "PaCo's pulls depend less on class frequency than those of SupCon, as sum and as mean.",
        "source 004, figure PaCoF2 (PC-13); no number",
        tuple(difference(STEEPNESS, name, PACO) for name in (SUM, MEAN)),
    ),
    Statement(
        "PaCo is more accurate than cross-entropy and than SupCon, in all and in the tail.",
        "authors' README (PC-19), ImageNet-LT, R50: PaCo 57.0; the others are not in the sources",
        tuple(difference(m, PACO, name) for name in (CE, SUM, MEAN) for m in (ALL, TAIL)),
    ),
    Statement(
        "PaCo's features are better than those of cross-entropy: the same probe reads more of the classes off them.",
        "not published",
        (difference(PROBED, PACO, CE),),
    ),
    Statement(
        "PaCo is more accurate than balanced softmax, which has the class prior and no contrast.",
        "not published in the sources",
        (difference(ALL, PACO, BALANCED),),
    ),
    Statement(
        "More of PaCo's gain over cross-entropy comes from contrast and centers than from the class prior.",
        "not published; source 004 credits the loss (PC-18). The gain without prior, minus what the prior adds",
        (Contrast(ALL, {NO_PRIOR: 2, CE: -1, PACO: -1}),),
    ),
    Statement(
        "An alpha of 0.05 is more accurate than 0.01 and than 0.5.",
        "source 004 (PC-18), with a queue, which is not here; no number. The authors' scripts use 0.05 most (PC-12)",
        (difference(ALL, PACO, "PaCo 0.01"), difference(ALL, PACO, "PaCo 0.5")),
    ),
)

PUBLISHED = Table(
    name="published",
    title="Published: top-1 accuracy in percent",
    source="authors' README of PaCo (PC-19): ResNets on images, not computed here",
    columns=("data", "network", "PaCo"),
    rows=lambda: [
        {"data": data, "network": network, "PaCo": number}
        for data, network, number in (
            ("ImageNet-LT", "R50", "57.0"), ("ImageNet-LT", "X50", "58.2"), ("ImageNet-LT", "X101", "60.0"),
            ("iNaturalist", "R50", "73.2"), ("iNaturalist", "R152", "75.2"), ("Places-LT", "R152", "41.2"),
        )
    ],
    note="Of the figures PaCoF2 and PaCoT1 the sources hold no numbers.",
)  # fmt: skip

CAPTION = (
    "Above: pull of an anchor, the sum of the absolute derivatives of its own loss by its logits, by class, as a "
    "multiple of the mean of all classes. Below: accuracy on the most frequent third of the classes, the middle one "
    "and the least frequent. Means over seeds; bars, below, of one standard deviation between seeds."
)
READING = (
    f"Temperature {TEMPERATURE}, no queue. CE and balanced softmax tell classes by a last layer, PaCo by its centers, "
    "SupCon by a probe of its features; the column probe reads the features of all in that way. PaCo has alpha in its "
    "name; no prior: 0.05 without class frequencies; norm.: 0.05, divided by 1 + alpha K as in the authors' code. "
    "Pull: the sum of the absolute derivatives of an anchor's own loss by its logits, over the whole training."
)
SHOWN = (CE, BALANCED, SUM, MEAN, PACO, NO_PRIOR)


def data(seed: int) -> Samples:
    """Twenty classes, of 500 samples down to 5."""
    return synthetic(seed, COUNTS, latent=10, width=0.8)


EXPERIMENT = Experiment(
    name="long-tail",
    title="Supervised contrast on a long tail, drawn data",
    about=(
        "An analogue, on drawn data and in seconds, of results that were measured with ResNets on images.",
        f"Data: 20 normal classes of {COUNTS[0]} down to {COUNTS[-1]} samples in 10 dimensions (means of deviation 1, "
        "samples of 0.8), mixed by a random tanh layer into 32 features; views: normal noise of 0.25, and 20 % of the "
        "features set to 0; 50 test samples of each class.",
        f"{TRAINING} {READING}",
    ),
    published=PUBLISHED,
    measures=tail.MEASURES,
    settings=tuple(s.name for s in SETTINGS),
    statements=STATEMENTS,
    run=partial(tail.run, data=data, settings=SETTINGS, training=TRAINING),
    draw=partial(pictures.tails, names=SHOWN),
    caption=CAPTION,
    seeds=6,
    height=4.2,
)
