"""Lower bounds of supervised contrastive losses by class size: what centers change for the long tail."""

from math import log, sqrt
from typing import Any

from nceref.theory.table import Table
from nceref.theory.tables.paco_optimum import (
    CLASS_SIZES,
    IMAGES,
    center_probability,
    expected_positives,
    lowest_loss,
    pair_probability,
)

ALPHAS = (1.0, 0.1, 0.05, 0.02, 0.01)
POSITIVES = tuple(expected_positives(n / IMAGES) for n in CLASS_SIZES)
QUANTITIES = ("sum bound", "normalized bound", "pair probability", "center probability")


def bounds(alpha: float | None, positives: float) -> tuple[float | None, ...]:
    """Infimum of the loss in two forms, and the softmax probabilities with which it is approached.

    `alpha` is the weight of a positive beside that of the center; None: the supervised contrastive loss, without
    centers. `positives` is their number K > 0. The numbers are those of `QUANTITIES`: sum over the positives (nats),
    the same divided by the total weight (K without centers, 1 + alpha K with them; nats), probability of each positive,
    probability of the center. None for what is not there: the center without centers, and everything without centers
    where K is below 1, for no probability is 1 / K then, and a bound K log K below 0 is none of a loss.
    """
    if alpha is None and positives < 1:
        return None, None, None, None
    if alpha is None:
        return positives * log(positives), log(positives), 1 / positives, None
    total = lowest_loss(alpha, positives)
    weight = 1 + alpha * positives
    return total, total / weight, pair_probability(alpha, positives), center_probability(alpha, positives)


def widest_alpha(head: float, tail: float) -> float:
    """Return the alpha up to 1 that parts the normalized bounds of two classes most: 1 / sqrt(K_head K_tail).

    Above 1, which no source uses, the bounds part again, toward log(K_head / K_tail), which is more than at that alpha.
    K_head K_tail must exceed 1.
    """
    return 1 / sqrt(head * tail)


def normalized_gap(alpha: float) -> float:
    """The difference of the normalized bounds of the largest and the smallest class, in nats."""
    head, tail = (lowest_loss(alpha, K) / (1 + alpha * K) for K in (POSITIVES[0], POSITIVES[-1]))
    return head - tail


def rows() -> list[dict[str, Any]]:
    """The rows of each alpha: one for each class, then the difference and the ratio of the largest and the smallest."""
    alphas = sorted((*ALPHAS, widest_alpha(POSITIVES[0], POSITIVES[-1])), reverse=True)
    return [row for alpha in (None, *alphas) for row in _rows(alpha)]


def _rows(alpha: float | None) -> list[dict[str, Any]]:
    rows = [bounds(alpha, positives) for positives in POSITIVES]
    difference, ratio = zip(*(_compared(*ends) for ends in zip(rows[0], rows[-1], strict=True)), strict=True)
    lines: list[Any] = [(f"{n} images", K, values) for n, K, values in zip(CLASS_SIZES, POSITIVES, rows, strict=True)]
    if None not in difference[:3]:
        lines += [("head - tail", None, difference), ("head / tail", None, ratio)]
    first: dict[str, Any] = {"alpha": "none" if alpha is None else alpha}
    return [first | {"class": name, "K": K} | dict(zip(QUANTITIES, values, strict=True)) for name, K, values in lines]


def _compared(head: float | None, tail: float | None) -> tuple[float | None, float | None]:
    """The difference and the ratio of a number of the largest and the smallest class."""
    return (None, None) if head is None or tail is None else (head - tail, head / tail)


TABLE = Table(
    name="class-bounds",
    title="Lower bound of the loss by class, without centers and with them",
    source="Source 004, motivation and rebalance; bounds derived here; classes of ImageNet-LT, queue of 8192",
    columns=("alpha", "class", "K", *QUANTITIES),
    rows=rows,
    note=(
        "Infima over free softmax probabilities, in nats. Without centers (alpha none) K log K as a sum over the "
        "positives, log K as a mean. A smaller alpha brings the sum bounds together, but their ratio tends to that of "
        "the class sizes, not to 1. For alpha up to 1 the bounds of the normalized loss are farthest apart at "
        "alpha = 1 / sqrt(K_head K_tail), one of the rows. K is an expectation: where it is below 1, there is no batch "
        "that K log K would bound, and 1 / K is no probability; both are left out."
    ),
)
