"""The two limits of the temperature for similarities of one's own, as a figure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nceref.errors import InputError
from nceref.output.figure import BLUE, GRAY, SKY, Figure
from nceref.theory.figures.limit_zero import gap, losses_at

TEMPERATURES = (0.01, 1.0)
_POINTS = 201
_MOST = 1000


def own_case(similarities: Sequence[float], temperatures: Sequence[float] = TEMPERATURES) -> Figure:
    """The figure of one anchor: tau L against tau, and L against 1 / tau, each in its proven band.

    The similarity of the positive comes first, then those of the negatives: 2 to 1,000 numbers from -1 to 1.
    `temperatures` are the lowest and the highest one, from 1e-6 to 1e6. Raises `InputError`, which names the option of
    `nceref plot-limits`.
    """
    s, (low, high) = _similarities(similarities), _temperatures(temperatures)
    named = ", ".join(f"{x:g}" for x in s[:6]) + (f" and {len(s) - 6} more" if len(s) > 6 else "")
    return Figure(
        name="limits",
        title="The loss stays in its proven bands",
        caption=f"Similarities {named}; the first is that of the positive, Δ the largest of a negative minus it. The "
        "curves lie in the bands.",
        source="Source 000, (3) to (6); the bands are derived here",
        claims=("WL-13", "WL-16"),
        data=lambda: _data(s, low, high),
        draw=_draw,
        height=2.3,
        command="nceref plot-limits",
    )


def _similarities(given: Sequence[float]) -> tuple[float, ...]:
    s = tuple(map(float, given))
    if not 2 <= len(s) <= _MOST:
        msg = f"`--similarities` must be that of the positive and 1 to {_MOST - 1} of negatives, got {len(s)} numbers"
        raise InputError(msg)
    for x in s:
        if not -1 <= x <= 1:
            msg = f"`--similarities` must be cosines, from -1 to 1, got {x:g}; divide rows by their lengths"
            raise InputError(msg)
    return s


def _temperatures(given: Sequence[float]) -> tuple[float, float]:
    if len(given) != 2 or not 1e-6 <= given[0] < given[1] <= 1e6:
        got = ",".join(f"{t:g}" for t in given)
        msg = f"`--temperatures` must be a lower and a higher one, from 1e-6 to 1e6, such as 0.01,1; got {got}"
        raise InputError(msg)
    return float(given[0]), float(given[1])


def _data(s: tuple[float, ...], low: float, high: float) -> dict[str, Any]:
    """The two curves and the edges of their bands; the second from infinite temperature down to a third of HIGH."""
    tau, cold = np.linspace(low, high, _POINTS), np.linspace(0, 3 / high, _POINTS)
    floor, levels = max(gap(s), 0.0), math.log(len(s))
    line = levels + (np.mean(s) - s[0]) * cold
    return {
        "temperature": tau,
        "tau L": tau * losses_at(s, 1 / tau),
        "tau L: low": np.full_like(tau, floor),
        "tau L: high": floor + tau * levels,
        "1 / temperature": cold,
        "L": losses_at(s, cold),
        "L: low": line,
        "L: high": line + (np.ptp(s) * cold) ** 2 / 8,
        "gap": np.array([gap(s)]),
        "log N": np.array([levels]),
    }


def _draw(canvas: Any, data: Mapping[str, Any]) -> None:
    """A panel for each limit."""
    panels = canvas.subplots(1, 2)
    for axes, x, y in zip(panels, ("temperature", "1 / temperature"), ("tau L", "L"), strict=True):
        axes.fill_between(data[x], data[f"{y}: low"], data[f"{y}: high"], color=SKY, alpha=0.35, linewidth=0)
        axes.plot(data[x], data[y], color=BLUE)
        axes.set(xlim=(data[x][0], data[x][-1]))
    floor = max(data["gap"][0], 0.0)
    panels[0].set(ylim=(0, None), xlabel="temperature τ", ylabel="τ L", title=f"low τ\nτ L → {floor:.3g}")
    panels[1].set(xlabel="1 / τ", ylabel="L (nats)", title=f"high τ\nL → log N = {data['log N'][0]:.3g}")
    panels[1].axhline(data["log N"][0], color=GRAY, linestyle=":", linewidth=0.9)
