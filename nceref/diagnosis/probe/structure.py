"""Which pairs matter to a value, and which of them stand in one logarithm: what moves together, by designed rows."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from nceref.diagnosis.probe.calls import Calls, designed
from nceref.diagnosis.probe.design import Design

STEP = 0.5
"""Similarity that a pair is moved to; two of them at one node leave the rows independent."""


@dataclass(frozen=True, eq=False)
class Structure:
    """The links between similarities at one design.

    Attributes
    ----------
    active : tuple of int
        Pairs that the value depends on.
    groups : mapping
        InputRow to the pairs that share a nonlinear function there; -1 for one function of all pairs.
    single : tuple of int
        Other pairs that enter nonlinearly.
    xs, y : array
        Rows and values of all calls.
    """

    active: tuple[int, ...]
    groups: dict[int, tuple[int, ...]]
    single: tuple[int, ...]
    xs: Any
    y: Any


def structure(calls: Calls, design: Design, rng: np.random.Generator) -> Structure:
    """Move one pair at a time, then two at a time.

    Raises `NoNumber` if the target gives none.
    """
    dim, xs, y = int(design.symbols.get("D", 0)), [], []

    def at(**moves: Any) -> float:
        x = calls.rows(designed(design, moves["entries"], dim, rng))
        xs.append(x)
        y.append(calls.value(design, x))
        return y[-1]

    zero = at(entries={})
    up = {p: at(entries={p: STEP}) - zero for p in range(len(design.pairs))}
    down = {p: at(entries={p: -STEP}) - zero for p in up}
    room = 8 * calls.noise(zero)
    active = tuple(p for p in up if abs(up[p]) > room or abs(down[p]) > room)
    curved = {p for p in active if abs(up[p] + down[p]) > room}

    def together(p: int, q: int) -> bool:
        return abs(at(entries={p: STEP, q: STEP}) - zero - up[p] - up[q]) > room

    by_node: dict[int, list[int]] = defaultdict(list)
    for p in active:
        for node in design.pairs[p]:
            by_node[node].append(p)
    groups: dict[int, tuple[int, ...]] = {}
    apart = [(p, q) for p, q in combinations(active, 2) if not set(design.pairs[p]) & set(design.pairs[q])]
    rng.shuffle(apart)
    if sum(together(p, q) for p, q in apart[:6]) >= 3:
        groups[-1] = active
    else:
        for node, pairs in by_node.items():
            members = {r for p, q in combinations(pairs, 2) if together(p, q) for r in (p, q)}
            if members:
                groups[node] = tuple(sorted(members))
    grouped = {p for members in groups.values() for p in members}
    return Structure(active, groups, tuple(sorted(curved - grouped)), np.array(xs), np.array(y))
