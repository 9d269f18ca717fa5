"""Source 000 and Wang & Liu 2021: accuracies that were measured elsewhere, and what can be checked about them."""

from decimal import Decimal
from typing import Any

from nceref.theory.table import Cell, Table

LOSSES = (
    *(("contrastive", temperature) for temperature in (0.07, 0.3, 0.7, 1.0)),
    ("simple", None),
    *(("hard", temperature) for temperature in (0.07, 0.3, 0.7, 1.0)),
    ("hard simple", None),
)

# Table 1 of the paper, losses as in LOSSES; uniformity is minus L_uniform at t = 2.
_PRINTED = """
CIFAR-10 accuracy 79.75 83.27 82.69 82.21 74.83 79.2 83.63 84.19 84.19 84.84
CIFAR-10 uniformity 3.86 3.60 3.17 2.96 1.68 3.88 3.89 3.87 3.86 3.85
CIFAR-10 tolerance 0.04 0.178 0.333 0.372 0.61 0.034 0.0267 0.030 0.030 0.030
CIFAR-100 accuracy 51.82 56.44 50.99 48.33 39.31 50.77 56.55 57.54 56.77 55.71
CIFAR-100 uniformity 3.86 3.60 3.18 2.96 2.12 3.87 3.88 3.87 3.86 3.86
CIFAR-100 tolerance 0.10 0.269 0.331 0.343 0.39 0.088 0.124 0.158 0.172 0.174
SVHN accuracy 92.55 95.47 94.17 92.07 70.83 91.82 94.79 95.02 95.26 94.99
SVHN uniformity 3.88 3.65 3.27 3.05 1.50 3.89 3.91 3.90 3.88 3.85
SVHN tolerance 0.032 0.137 0.186 0.197 0.074 0.025 0.021 0.021 0.023 0.026
ImageNet-100 accuracy 71.53 75.10 69.03 63.57 48.09 68.33 74.21 74.70 74.28 74.31
ImageNet-100 uniformity 3.917 3.693 3.323 3.08 1.742 3.929 3.932 3.927 3.923 3.917
ImageNet-100 tolerance 0.093 0.380 0.427 0.456 0.528 0.067 0.096 0.121 0.134 0.157
"""
ROWS = {f"{dataset} {what}": printed for dataset, what, *printed in map(str.split, _PRINTED.strip().splitlines())}
# The table of source 000, as printed there: contrastive loss at temperature 0.07, simple loss.
COPIED = {
    "CIFAR-10": ("79.75", "74.83"), "CIFAR-100": ("51.82", "39.31"),
    "ImageNet-100": ("71.53", "48.09"), "SVHN": ("92.55", "70.83"),
}  # fmt: skip
# For each dataset accuracy, uniformity (minus L_uniform) and tolerance, losses as in `LOSSES`.
PAPER = {
    dataset: tuple(tuple(ROWS[f"{dataset} {what}"]) for what in ("accuracy", "uniformity", "tolerance"))
    for dataset in dict.fromkeys(name.split()[0] for name in ROWS)
}

# The table of source 000: the contrastive loss at temperature 0.07, and the simple loss.
SOURCE = {dataset: dict(zip((LOSSES[0], LOSSES[4]), printed, strict=True)) for dataset, printed in COPIED.items()}


def rows() -> list[dict[str, Any]]:
    """One row for each dataset and loss."""
    return [_row(dataset, position) for dataset in PAPER for position in range(len(LOSSES))]


def _row(dataset: str, position: int) -> dict[str, Any]:
    accuracy, uniformity, tolerance = (printed[position] for printed in PAPER[dataset])
    simple = PAPER[dataset][0][LOSSES.index(("simple", None))]
    repeated = SOURCE[dataset].get(LOSSES[position])
    return {
        "dataset": dataset,
        "loss": LOSSES[position][0],
        "tau": LOSSES[position][1],
        "accuracy": Cell(accuracy, None),
        "source 000": None if repeated is None else Cell(repeated, float(accuracy)),
        # Decimal: the difference of two printed numbers has exactly their digits.
        "gain": float(Decimal(accuracy) - Decimal(simple)),
        "uniformity": Cell(uniformity, None),
        "tolerance": Cell(tolerance, None),
    }


TABLE = Table(
    name="contrastive-vs-simple",
    title="Accuracy, uniformity and tolerance that Wang & Liu measured for ten losses",
    source="Wang & Liu 2021, Table 1; source 000, table after (2), which repeats eight of the accuracies",
    columns=("dataset", "loss", "tau", "accuracy", "source 000", "gain", "uniformity", "tolerance"),
    rows=rows,
    note=(
        "Top-1 accuracy of a linear probe in percent; hard: the contrastive loss over the most similar negatives only; "
        "gain: accuracy minus that of the simple loss. The numbers were measured on trained networks and cannot be "
        "reproduced here; those that source 000 repeats are compared with the paper. Its choice of tau = 0.07 "
        "understates the gain: another temperature is better on every dataset. Uniformity is minus L_uniform at t = 2: "
        "of a law at most 4 - log 0F1(d/2; 4) in d dimensions, which a sample without its diagonal may exceed. "
        "Tolerance must be the mean similarity given equal labels; the paper's (11) is an unconditional mean and could "
        "not exceed the probability of equal labels."
    ),
)
