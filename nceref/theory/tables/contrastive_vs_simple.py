"""Source 000 and Wang & Liu 2021: accuracies that were measured elsewhere, and what can be checked about them."""

from decimal import Decimal
from typing import Any

from nceref.theory.claims.source_000_loss import COPIED, ROWS
from nceref.theory.table import Cell, Table

LOSSES = (
    *(("contrastive", temperature) for temperature in (0.07, 0.3, 0.7, 1.0)),
    ("simple", None),
    *(("hard", temperature) for temperature in (0.07, 0.3, 0.7, 1.0)),
    ("hard simple", None),
)

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
