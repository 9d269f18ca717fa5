"""Which places of a program share a number: pairs of one kind, by inputs, by what belongs together, by order.

A formula is a pattern with what stands in its places, as expressions in sizes and scalars.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.diagnosis.probe.design import Design, Similarity, similarities
from nceref.diagnosis.probe.expressions import Expression, value_of
from nceref.diagnosis.probe.model import Model
from nceref.diagnosis.probe.structure import Structure

ALL, SINGLE = "all", "single"
"""One logarithm of all pairs, and one of each pair, beside one of each node."""
Key = tuple[Any, ...]


def _nothing(design: Design, u: int, v: int) -> Key:
    return ()


def _order(design: Design, u: int, v: int) -> Key:
    a, b = design.nodes[u].row, design.nodes[v].row
    return ("j < i" if b < a else "j > i" if b > a else "j = i",)


def _step(design: Design, u: int, v: int) -> Key:
    gap = design.nodes[v].row - design.nodes[u].row
    size = sum(node.block == design.nodes[v].block for node in design.nodes)
    return ({0: "j = i", 1: "j = i + 1", size - 1: "j = i - 1"}.get(gap % size, "j elsewhere"),)


def _edge(design: Design, u: int, v: int) -> Key:
    size = sum(node.block == design.nodes[v].block for node in design.nodes)
    return ({0: "j first", size - 1: "j last"}.get(design.nodes[v].row, "j inside"),)


def _count(design: Design, u: int, v: int) -> Key:
    return (("n", design.count(v)),)


def _companions(design: Design, u: int, v: int) -> Key:
    return (("P", float(design.companions(u))),)


REFINEMENTS: dict[str, Callable[[Design, int, int], Key]] = {
    "": _nothing, "count": _count, "companions": _companions, "order": _order, "step": _step, "edge": _edge,
}  # fmt: skip


@dataclass(frozen=True)
class Arrangement:
    """The links of a structure at every design, read off one.

    Attributes
    ----------
    refinement : str
        What kinds of pairs are told apart by, beside inputs and what belongs together.
    active, members, single : frozenset
        Kinds of pairs that matter, of members of a node's logarithm, and of pairs with a logarithm of their own.
    one : bool
        Whether all pairs stand in one logarithm.
    """

    refinement: str
    active: frozenset[Key]
    members: frozenset[Key]
    single: frozenset[Key]
    one: bool = False


def kind(design: Design, refinement: str, u: int, v: int) -> Key:
    """The kind of the pair of an anchor u and a candidate v."""
    return (design.nodes[u].block, design.nodes[v].block, design.together(u, v), *REFINEMENTS[refinement](design, u, v))


def pattern(design: Design, links: Structure, refinement: str) -> Arrangement | None:
    """The pattern of a structure; None where pairs of one kind are in different places.

    `refinement`: one of `REFINEMENTS`.
    """
    pairs = {p: kind(design, refinement, *uv) for p, uv in enumerate(design.pairs)}
    ordered = {
        (w, p): kind(design, refinement, w, v if w == u else u)
        for p, (u, v) in enumerate(design.pairs) for w in (u, v)
    }  # fmt: skip
    inside = {(w, p) for w, members in links.groups.items() if w >= 0 for p in members}
    # A logarithm of one exponential is linear: its node looks as if it had none.
    ordered = {wp: key for wp, key in ordered.items() if wp[0] in links.groups}
    active = frozenset(plain(pairs[p]) for p in links.active)
    members, single = _whole(ordered, inside), _whole(pairs, links.single)
    if members is None or single is None:
        return None
    return Arrangement(refinement, active, members, single, -1 in links.groups)


def _whole(kinds: dict[Any, Key], chosen: Iterable[Any]) -> frozenset[Key] | None:
    """The kinds of what was chosen; None if a kind has others as well."""
    chosen = set(chosen)
    inside = {plain(kinds[x]) for x in chosen}
    return None if inside & {plain(k) for x, k in kinds.items() if x not in chosen} else frozenset(inside)


def plain(key: Key) -> Key:
    """A kind without the numbers that tell apart what is of one kind otherwise."""
    return tuple(word for word in key if not isinstance(word, tuple))


def symbols(key: Key) -> dict[str, float]:
    """The numbers of a kind, by their letter."""
    return {word[0]: word[1] for word in key if isinstance(word, tuple)}


def tied(design: Design, pattern: Arrangement, scale: float) -> tuple[Model, dict[str, list[Key]]]:
    """The model of a pattern at a design, and what each of its numbers is of; numbers are a start.

    `scale`: powers to start from.
    """
    places = _Places(design, pattern)
    return _model(places, scale), {k: list(x) for k, x in places.names.items()}


class _Places:
    """Places of numbers in lists of kinds."""

    def __init__(self, design: Design, pattern: Arrangement) -> None:
        self.design, self.pattern = design, pattern
        self.names: dict[str, dict[Key, int]] = {k: {} for k in ("A", "B", "d", "c", "b")}
        self.linear = np.full(len(design.pairs), -1)
        self.members: list[tuple[int, int, int, int]] = []
        self.groups: list[tuple[int, int]] = []
        kinds = [kind(design, pattern.refinement, *uv) for uv in design.pairs]
        for p, key in enumerate(kinds):
            if plain(key) in pattern.active and plain(key) not in pattern.single:
                self.linear[p] = self._place("A", key)
        if pattern.one:
            self._group((ALL,), [(p, (ALL, *key)) for p, key in enumerate(kinds) if plain(key) in pattern.active])
        for w in range(len(design.nodes)):
            self._anchor(w)
        for p, key in enumerate(kinds):
            if plain(key) in pattern.single:
                self._group((SINGLE, *plain(key)), [(p, (SINGLE, *key))])

    def _place(self, what: str, key: Key) -> int:
        return self.names[what].setdefault(key, len(self.names[what]))

    def _group(self, own: Key, members: list[tuple[int, Key]]) -> None:
        self.groups.append((self._place("B", own), self._place("d", own)))
        group = len(self.groups) - 1
        self.members += [(group, p, self._place("c", key), self._place("b", plain(key))) for p, key in members]

    def _anchor(self, w: int) -> None:
        """The logarithm of a node, if it has one."""
        design, refinement = self.design, self.pattern.refinement
        members = []
        for p, (u, v) in enumerate(design.pairs):
            if w in (u, v):
                key = kind(design, refinement, w, v if w == u else u)
                if plain(key) in self.pattern.members:
                    members.append((p, key))
        if members:
            own = REFINEMENTS[refinement](design, w, w) if refinement == "companions" else ()
            self._group((design.nodes[w].block, *own), members)


def _model(places: _Places, scale: float) -> Model:
    names = places.names
    group, pair, c, b = np.array(places.members, dtype=int).reshape(-1, 4).T
    outer, inner = np.array(places.groups, dtype=int).reshape(-1, 2).T
    size = {k: len(x) for k, x in names.items()}
    keys = list(names["c"])
    numbers = {
        "offset": np.zeros(1), "A": np.zeros(size["A"]), "B": np.full(size["B"], 1 / max(len(places.groups), 1)),
        "d": np.full(size["d"], 0.05), "c": np.array([symbols(k).get("n", 1.0) for k in keys]),
        "b": np.full(size["b"], scale),
    }  # fmt: skip
    fixed = {k: np.zeros(x.size, dtype=bool) for k, x in numbers.items()}
    for g in {int(x) for x in outer}:
        fixed["c"][_unit(keys, c[np.isin(group, np.flatnonzero(outer == g))])] = True
    # A logarithm of one exponential has 1 beside it.
    for k, key in enumerate(names["d"]):
        if key[0] == SINGLE:
            numbers["d"][k], fixed["d"][k] = 1.0, True
            # What belongs together pulls.
            numbers["b"][list(names["b"]).index(key)] *= -1.0 if belongs_together(key) else 1.0
            mine = c[np.isin(group, np.flatnonzero(inner == k))]
            fixed["c"][mine] = False
    return Model(places.linear, group, pair, c, b, outer, inner, numbers, fixed)


def _unit(keys: list[Key], used: Any) -> int:
    """The number that the others of a sum are measured by: of what does not belong together, of the most members."""
    count = {int(k): int(np.sum(used == k)) for k in used}
    return max(count, key=lambda k: (not belongs_together(keys[k]), count[k], -k))


def belongs_together(key: Key) -> bool:
    """Whether a kind is of pairs that belong together."""
    return bool(key[3] if key[0] in (ALL, SINGLE) else key[2])


@dataclass(frozen=True, eq=False)
class Formula:
    """The formula that a program computes, at every size and at every value of the scalars.

    Attributes
    ----------
    how : Similarity
    pattern : Arrangement
    terms : mapping
        Kind of number (as of `Model`) and kind of pair to the expression.
    own : bool
        Whether the numerator carries the weight that its pair has in the logarithm.
    """

    how: Similarity
    pattern: Arrangement
    terms: Mapping[tuple[str, Key], Expression]
    own: bool = False

    @property
    def size(self) -> int:
        """The count of numbers and quantities that it takes to write it."""
        return sum(1 + len(term.factors) for expression in self.terms.values() for term in expression)

    def value(self, design: Design, xs: Any) -> Any:
        """Values at rows or logits (calls, ...) of a design; NaN where the formula does not say."""
        model, names = tied(design, self.pattern, 1.0)
        for kind, keys in names.items():
            for k, key in enumerate(keys):
                expression = self.terms.get((kind, plain(key)))
                if expression is None:
                    return np.full(len(xs), np.nan)
                model.numbers[kind][k] = value_of(expression, {**design.quantities, **symbols(key)})
        model.numbers["offset"][0] = value_of(self.terms["offset", ()], design.quantities)
        return model.value(similarities(self.how, design, xs)) - (own_weights(model, names) if self.own else 0.0)


def own_weights(model: Any, names: Any) -> float:
    """Sum over the logarithms of their factor times the log of the weight of what belongs together."""
    total = 0.0
    for g, c in zip(model.group, model.c, strict=True):
        key = names["c"][c]
        if key[2] is True and model.numbers["c"][c] > 0:
            total += float(model.numbers["B"][model.B[g]] * np.log(model.numbers["c"][c]))
    return total
