"""Shares of the repulsion among easy and hard negatives, by temperature (Wang & Liu 2021)."""

from math import expm1, sqrt
from typing import Any

import numpy as np

from nceref.theory.table import Table

TEMPERATURES = (0.03, 0.05, 0.07, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 50.0)
POSITIVE = 0.7
NEGATIVES = (0.9, 0.5, -0.8)


def strongest_push(temperature: float) -> float:
    """Similarity at which a negative pushes a unit-length anchor hardest.

    The tangential force exp(s / tau) sqrt(1 - s^2), with the normalizer held fixed, peaks where
    s^2 + tau s - 1 = 0. It is zero at s = 1: unlike charges, the closest do not repel.
    """
    # The root (-tau + sqrt(tau^2 + 4)) / 2, multiplied out so that nothing cancels at high temperature.
    return 2 / (temperature + sqrt(temperature * temperature + 4))


def share_above(similarity: float, temperature: float) -> float:
    """Share of the repulsion that falls on negatives above `similarity`, where they lie uniformly on [-1, 1].

    It is (1 - exp(-(1 - s) / tau)) / (1 - exp(-2 / tau)).
    """
    return expm1((similarity - 1) / temperature) / expm1(-2 / temperature)


def rows() -> list[dict[str, Any]]:
    """One row for each temperature and negative."""
    return [row for temperature in TEMPERATURES for row in _rows(temperature)]


def _rows(temperature: float) -> list[dict[str, Any]]:
    from nceref import losses

    similarities = np.array([(POSITIVE, *NEGATIVES)])
    anatomy = losses.cross_entropy.anatomy(similarities, np.array([0]), temperature=temperature)
    negatives = zip(NEGATIVES, anatomy.relative_penalties[0, 1:], anatomy.slopes[0, 1:], strict=True)
    return [
        {
            "temperature": temperature,
            "strongest push": strongest_push(temperature),
            "share above 0.8": share_above(0.8, temperature),
            "similarity": similarity,
            "relative penalty": float(penalty),
            "gradient": float(slope) / temperature,
        }
        for similarity, penalty, slope in negatives
    ]


TABLE = Table(
    name="hardness",
    title="How temperature shares out the repulsion",
    source="Wang & Liu 2021, (4) and (5); source 000, gradients after (2); the first two shares are derived here",
    columns=("temperature", "strongest push", "share above 0.8", "similarity", "relative penalty", "gradient"),
    rows=rows,
    note=(
        "One anchor, a positive at similarity 0.7 and negatives at 0.9, 0.5 and -0.8. Relative penalty: the negative's "
        "share of the repulsion, the same for every positive. Gradient: d loss / d similarity. Strongest push: the "
        "similarity at which a negative moves a unit-length anchor most, with the normalizer held fixed (else it is "
        "lower, WL-9). Share above 0.8: the part of the repulsion on the negatives above 0.8 if they lie uniformly on "
        "[-1, 1]. The hardest negative's share falls with the temperature and the easiest one's rises; the one between "
        "rises and falls again."
    ),
)
