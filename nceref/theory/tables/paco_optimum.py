"""Source 004: where the PaCo loss of one class has its minimum, balanced and long-tailed."""

from math import log, log1p
from typing import Any

from nceref.theory.table import Cell, Table

ALPHA = 0.05
QUEUE = 8192
# Share of one class in the balanced data set of the source, and ImageNet-LT: its size and four class sizes.
BALANCED = 0.001
IMAGES = 115846
CLASS_SIZES = (1280, 100, 20, 5)


def expected_positives(share: float, queue: int = QUEUE) -> float:
    """Return the expected number K of same-class elements in the queue, for a class with this share of the data."""
    return queue * share


def center_probability(alpha: float, positives: float) -> float:
    """Softmax probability of the class center at the minimum, which is also that of all centers together."""
    return 1 / (1 + alpha * positives)


def pair_probability(alpha: float, positives: float) -> float:
    """Softmax probability of each positive at the minimum: 1 / (1 / alpha + K)."""
    return alpha / (1 + alpha * positives)


def lowest_loss(alpha: float, positives: float) -> float:
    """Infimum of the PaCo loss in its sum form, in nats.

    The weighted cross-entropy - log p_c - alpha sum_+ log p_+ at the two probabilities above and 0 for the rest.

    `alpha` > 0 is the weight of a positive beside the weight 1 of the center.
    """
    pull = alpha * positives
    return (1 + pull) * log1p(pull) - pull * log(alpha)


def lowest_extra(alpha: float, positives: float) -> float:
    """Minimum of - log p - alpha K log(1 - p), the part of the loss that divides centers from samples, in nats."""
    pull = alpha * positives
    return (1 + pull) * log1p(pull) - pull * log(pull)


def rows() -> list[dict[str, Any]]:
    """One row for the balanced case of the source, then one for each class of ImageNet-LT."""
    rows = [_row("one of 1000 equal classes", BALANCED, {"alpha K": "0.41", "pair probability": "0.035"})]
    return rows + [_row(f"{n} of {IMAGES} images", n / IMAGES, {}) for n in CLASS_SIZES]


def _row(case: str, share: float, published: dict[str, str]) -> dict[str, Any]:
    positives = expected_positives(share)
    computed = {
        "alpha K": ALPHA * positives,
        "P_sup": center_probability(ALPHA, positives),
        "pair probability": pair_probability(ALPHA, positives),
        "lowest L_extra": lowest_extra(ALPHA, positives),
        "lowest loss": lowest_loss(ALPHA, positives),
    }
    texts = {"P_sup": "0.71", **published}
    cells = {name: Cell(texts[name], value) if name in texts else value for name, value in computed.items()}
    return {"class": case, "alpha": ALPHA, "K": positives, **cells}


TABLE = Table(
    name="paco-optimum",
    title="Minimum of the PaCo loss for one class, queue of 8192",
    source="Source 004, section on the balanced setting; classes of ImageNet-LT",
    columns=("class", "alpha", "K", "alpha K", "P_sup", "pair probability", "lowest L_extra", "lowest loss"),
    rows=rows,
    note=(
        "K = queue length x share of the class. P_sup = 1 / (1 + alpha K) is the probability that the centers share at "
        "the minimum, and alpha / (1 + alpha K) that of each positive: probabilities, not similarities. The source "
        "adds to its 0.71 that it also holds in the unbalanced state. The form does; the number does not, because K "
        "depends on the class. K is an expectation: a batch holds a whole number of positives, often none "
        "of a rare class."
    ),
)
