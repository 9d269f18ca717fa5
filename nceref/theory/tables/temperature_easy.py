"""Source 003, first table: the positive is the most similar candidate."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from nceref.theory.table import Cell, Table
from nceref.theory.tables.temperature_cross_entropy import single_precision

SIMILARITIES = (0.5, 0.25, -0.45, -0.1)

# Temperature, similarity over temperature, softmax and loss, as printed: three exponents have lost their "e".
PUBLISHED = (
    (1.0, "[0.5, 0.25, -0.45, -0.1]", ("0.3684", "0.2869", "0.1425", "0.2022"), "0.9986"),
    (0.5, "[ 1.0, 0.5, -0.9, -0.2]", ("0.4861", "0.2948", "0.0727", "0.1464"), "0.7214"),
    (0.05, "[10, 5, -9, -2]", ("0.9933", "6.6e-03", "5.5e-09", "6.1-06"), "0.0067"),
    (0.01, "[ 50, 25, -45, -10]", ("1.00", "1.3e-11", "5.5-42", "8.7-27"), "0"),
)

COLUMNS = ("temperature", "sim/tau", "softmax[0]", "softmax[1]", "softmax[2]", "softmax[3]", "loss")


def compare(similarities: tuple[float, ...], published: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Compute what the source prints for one anchor, a row for each temperature.

    The similarity of the positive comes first. Published are temperature, similarities over temperature, softmax
    probabilities and loss, the last three as printed. Columns are those of `COLUMNS`.
    """
    return [_row(similarities, *printed) for printed in published]


def _row(similarities: tuple[float, ...], temperature: float, logits: str, softmax: Any, loss: str) -> dict[str, Any]:
    from nceref import losses

    samples, positive = np.array([similarities]), np.array([0])
    anatomy = losses.cross_entropy.anatomy(samples, positive, temperature=temperature)
    value = losses.cross_entropy(samples, positive, temperature=temperature)
    row: dict[str, Any] = {"temperature": temperature}
    row["sim/tau"] = Cell(logits, tuple(map(float, anatomy.logits[0])))
    for k, text in enumerate(softmax):
        row[f"softmax[{k}]"] = Cell(text, float(anatomy.probabilities[0, k]))
    row["loss"] = Cell(loss, value, single_precision(similarities, 0, temperature))
    return row


TABLE = Table(
    name="temperature-easy",
    title="Temperature, softmax and loss when the positive is the most similar",
    source="Source 003, section 4, first table; similarities [0.5, 0.25, -0.45, -0.1], the positive first",
    columns=COLUMNS,
    rows=lambda: compare(SIMILARITIES, PUBLISHED),
    note=(
        "The source heads the second column sim; it shows sim/tau. It leaves out the e of 6.1-06, 5.5-42 and 8.7-27, "
        "which are read as 6.1e-06, 5.5e-42 and 8.7e-27. Where a number is marked truncated, its digits were "
        "cut off instead of rounded. The loss 0 is that of float32; the exact one is sum_j exp((s_j - s_0) / tau) to "
        "first order."
    ),
)
