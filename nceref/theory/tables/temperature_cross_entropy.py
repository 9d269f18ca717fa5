"""Source 001: what the temperature does to the cross-entropy of one classification."""

from typing import Any

import numpy as np

from nceref.theory.table import Cell, Table

LOGITS = (1.0, 2.0, 3.0)

# Temperature, softmax and loss as printed in the comments of the source's listing.
PUBLISHED = (
    (1.0, ("0.0900", "0.2447", "0.6652"), "0.4076"),
    (0.5, ("0.0159", "0.1173", "0.8668"), "0.1429"),
    (0.1, ("2.0611e-09", "4.5398e-05", "9.9995e-01"), "4.5418e-05"),
)


def single_precision(logits: tuple[float, ...], target: int, temperature: float) -> float:
    """Evaluate the cross-entropy of one sample in float32 as the textbook writes it.

    log(sum_j exp(l_j - l_max)) - (l_target - l_max), every step rounded to float32. The losses of this package fold
    the target apart from the others and lose nothing; the sources ran the textbook form, and where the loss is tiny
    their digits are those of 1 + x rounded to 24 bits.

    Logits are (C,), before the temperature; the loss is in nats.
    """
    scaled = np.asarray(logits, dtype=np.float32) / np.float32(temperature)
    shifted = scaled - scaled.max()
    return float(np.log(np.exp(shifted).sum()) - shifted[target])


def rows() -> list[dict[str, Any]]:
    """One row for each temperature."""
    return [_row(*printed) for printed in PUBLISHED]


def _row(temperature: float, softmax: tuple[str, ...], loss: str) -> dict[str, Any]:
    from nceref import losses

    logits, right, wrong = np.array([LOGITS]), np.array([2]), np.array([0])
    probabilities = losses.cross_entropy.anatomy(logits, right, temperature=temperature).probabilities[0]
    row: dict[str, Any] = {"temperature": temperature}
    for k, text in enumerate(softmax):
        row[f"softmax[{k}]"] = Cell(text, float(probabilities[k]))
    value = losses.cross_entropy(logits, right, temperature=temperature)
    row["loss, class 2"] = Cell(loss, value, single_precision(LOGITS, 2, temperature))
    row["loss, class 0"] = losses.cross_entropy(logits, wrong, temperature=temperature)
    return row


TABLE = Table(
    name="temperature-cross-entropy",
    title="Cross-entropy of the logits [1, 2, 3] at three temperatures",
    source="Source 001, listing in the section on the intuition of the temperature",
    columns=("temperature", "softmax[0]", "softmax[1]", "softmax[2]", "loss, class 2", "loss, class 0"),
    rows=rows,
    note=(
        "The printed listing computes criterion(x, y), without the temperature, and prints the first loss three times "
        "when it is run; the printed losses are those of criterion(x / t, y). Three digits of the last one are right: "
        "it is log(1 + x) after 1 + x was rounded to float32. The source asks the reader to try class 0 and prints no "
        "loss for it."
    ),
)
