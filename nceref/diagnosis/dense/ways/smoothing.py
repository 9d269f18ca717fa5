"""Weights of the classes of a target with label smoothing."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch
from nceref.diagnosis.dense.ways.pairs import positives_stage
from nceref.diagnosis.dense.ways.way import Stage, Way

SHARES: tuple[tuple[str, Callable[[float, float], tuple[float, float]]], ...] = (
    ("(1 - e) of the target and e/C of every class", lambda e, n: (1 - e + e / n, e / n)),
    ("(1 - e) of the target and e/(C - 1) of the others", lambda e, n: (1 - e, e / (n - 1))),
    ("the target and e/C of every class", lambda e, n: (1 + e / n, e / n)),
    ("the target and e/(C - 1) of the others", lambda e, n: (1, e / (n - 1))),
    ("the target and e/C of the others", lambda e, n: (1, e / n)),
    ("(1 - e) of the target", lambda e, n: (1 - e, 0)),
    ("the target", lambda e, n: (1, 0)),
    ("(1 - e) of the target and 1/C of every class", lambda e, n: (1 - e + 1 / n, 1 / n)),
    ("(1 - e) of the target and e of every class", lambda e, n: (1, e)),
    ("(1 - e) of the target and e of the others", lambda e, n: (1 - e, e)),
    ("(1 - e) of the target and e/C of the others", lambda e, n: (1 - e, e / n)),
    ("(1 - e/2) of the target and e/2 of every class", lambda e, n: (1, e / 2)),
    ("(1 - e) of the target and e/2 of the others", lambda e, n: (1 - e, e / 2)),
    ("(1 - e + 1/C) of the target and e/C of the others", lambda e, n: (1 - e + 1 / n, e / n)),
    ("(1 - e/C) of the target and e/C of the others", lambda e, n: (1 - e / n, e / n)),
    ("(1 - e/C) of the target and e/(C (C - 1)) of the others", lambda e, n: (1 - e / n, e / n / (n - 1))),
    ("(1 - e/(C - 1)) of the target and e/(C - 1) of the others", lambda e, n: (1 - e / (n - 1), e / (n - 1))),
    ("e of the target and (1 - e)/C of every class", lambda e, n: (e + (1 - e) / n, (1 - e) / n)),
    ("e of the target and (1 - e)/(C - 1) of the others", lambda e, n: (e, (1 - e) / (n - 1))),
    ("(1 - e) of the target and e/(C + 1) of every class", lambda e, n: (1 - e + e / (n + 1), e / (n + 1))),
    ("(1 - e) of the target and e/(C - 1) of every class", lambda e, n: (1 - e + e / (n - 1), e / (n - 1))),
    ("(1 - e) of the target and e/(C - 2) of the others", lambda e, n: (1 - e, e / max(n - 2, 1))),
    ("(1 - e) of the target less 1/C, and e/C of every class", lambda e, n: (1 - e - 1 / n + e / n, e / n)),
)
"""Weight of the target and of every other class, from the share e and the number of classes."""
_OTHERS: tuple[tuple[str, Callable[[DenseBatch], Any]], ...] = (
    ("e over the classes in the batch", lambda w: np.isin(w.kinds, w.labels) / len(np.unique(w.labels))),
    ("e/C of the classes in the batch", lambda w: np.isin(w.kinds, w.labels) / w.own.shape[1]),
    ("e times the share of each class in the batch", lambda w: np.bincount(w.labels, minlength=w.own.shape[1])
     / w.samples),
    ("e/N of every class", lambda w: np.ones(w.own.shape[1]) / w.samples),
)  # fmt: skip


def smoothed(share: float) -> Stage:
    """Positives with label smoothing, beside those that have another share of it.

    `share`: of the smoothing, e.
    """

    def shared(f: Callable[[float, float], tuple[float, float]]) -> Callable[[DenseBatch, float], Any]:
        def of(w: DenseBatch, c: float) -> Any:
            own, rest = f(share, w.own.shape[1])
            return np.where(w.together, own, rest)

        return of

    ways = [Way(text, shared(f)) for text, f in SHARES]
    ways += [Way(f"(1 - e) of the target and {text}", _more(share, rest)) for text, rest in _OTHERS]
    plain = positives_stage("")
    return Stage(plain.name, plain.symbol, (*ways, *plain.ways[1:]))


def _more(share: float, rest: Callable[[DenseBatch], Any]) -> Callable[[DenseBatch, float], Any]:
    return lambda w, c: (1 - share) * w.positives + share * rest(w)
