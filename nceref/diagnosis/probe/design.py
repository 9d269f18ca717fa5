"""Where the similarities of a loss stand: rows of its inputs as nodes, similarities of two nodes as variables.

Which function of two rows is the similarity is open: those that are tried are listed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nceref.checks.cases import GEOMETRIES, arguments
from nceref.spec import Array, Labels, Loss, Scalar

FREE = 1.0
"""Temperature at which inputs are generated where the caller sets it afterwards."""


class InputRow(NamedTuple):
    """One row of an input, or one class of a matrix of logits: the input, and which of its rows."""

    block: str
    row: int


@dataclass(frozen=True, eq=False)
class Design:
    """One choice of sizes, scalars and labels; rows of the embedding inputs, or logits, are still free.

    Attributes
    ----------
    loss : Loss
    inputs : mapping
        All arguments; those of `blocks` are replaced in every call.
    blocks : tuple of (str, str)
        Embedding inputs and the letters of their lengths; for logits, those of rows and of classes.
    logits : bool
        Whether similarities are given as they are.
    symbols : mapping
        Sizes and scalars by the letter that a formula has for them.
    """

    loss: Loss
    inputs: Mapping[str, Any]
    blocks: tuple[tuple[str, str], ...]
    logits: bool
    symbols: Mapping[str, float]

    @cached_property
    def nodes(self) -> tuple[InputRow, ...]:
        """All rows, input by input; rows with several views, view by view."""
        return tuple(InputRow(name, i) for name, _ in self.blocks for i in range(self._length(name)))

    def _length(self, name: str) -> int:
        if self.logits:
            return int(np.shape(self.inputs[self.blocks[0][0]])[[b for b, _ in self.blocks].index(name)])
        return int(np.prod(np.shape(self.inputs[name])[:-1]))

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of nodes whose similarity can be chosen."""
        n, rows = len(self.nodes), self._length(self.blocks[0][0])
        return tuple((u, v) for u in range(n) for v in range(u + 1, n) if not self.logits or u < rows <= v)

    @cached_property
    def classes(self) -> dict[int, int]:
        """Class of each node that has one."""
        letters = dict(self.blocks)
        given = {p.shape[0]: p for p in self.loss.parameters if isinstance(p, Labels)}
        given = {letter: p for letter, p in given.items() if self.inputs.get(p.name) is not None}
        kinds = {p.classes for p in given.values()}
        out = {}
        for u, node in enumerate(self.nodes):
            letter = letters[node.block]
            views = not self.logits and np.ndim(self.inputs[node.block]) == 3
            sample = node.row % len(self.inputs[node.block]) if views else node.row
            if letter in given:
                out[u] = int(self.inputs[given[letter].name][sample])
            elif views:
                out[u] = sample
            elif letter in kinds:
                out[u] = node.row
        return out

    @cached_property
    def _letters(self) -> dict[str, str]:
        return dict(self.blocks)

    @cached_property
    def _companions(self) -> list[int]:
        every = range(len(self.nodes))
        return [sum(v != u and self.together(u, v) for v in every) for u in every]

    @cached_property
    def quantities(self) -> dict[str, float]:
        """The symbols, and how many belong to a node where it is the same number for all."""
        alike = bool(self.classes) and not self.logits and len(set(self._companions)) == 1
        return {**self.symbols, **({"P": float(self._companions[0])} if alike else {})}

    def together(self, u: int, v: int) -> bool:
        """Whether two nodes belong together: of one class, or where there are none, of one sample."""
        if self.classes:
            return u in self.classes and v in self.classes and self.classes[u] == self.classes[v]
        a, b = self.nodes[u], self.nodes[v]
        letters = self._letters
        return a.block != b.block and letters[a.block] == letters[b.block] and a.row == b.row

    def companions(self, u: int) -> int:
        """The number of other nodes that belong to a node."""
        return self._companions[u]

    def count(self, u: int) -> float:
        """The number that is given for the class of a node, such as its samples in a training set; 1 without one."""
        letter = dict(self.blocks)[self.nodes[u].block]
        counts = [p for p in self.loss.parameters if isinstance(p, Array) and p.like in ("counts", "prior")]
        given = [p for p in counts if p.shape == (letter,) and self.inputs.get(p.name) is not None]
        return float(self.inputs[given[0].name][self.nodes[u].row]) if given else 1.0

    def call(self, x: Any) -> dict[str, Any]:
        """Arguments with these rows, or these logits."""
        if self.logits:
            return {**self.inputs, self.blocks[0][0]: x}
        out, start = dict(self.inputs), 0
        for name, _ in self.blocks:
            rows = x[start : start + self._length(name)]
            shape = np.shape(self.inputs[name])
            # View by view, as the rows of a loss are.
            out[name] = np.swapaxes(rows.reshape(shape[1], shape[0], -1), 0, 1) if len(shape) == 3 else rows
            start += self._length(name)
        return out


def letter(scalar: Scalar) -> str:
    """The symbol of a scalar in plain text: a letter, or its name."""
    known = {r"\tau": "T", r"\alpha": "a"}
    return known.get(scalar.symbol, scalar.symbol if len(scalar.symbol) == 1 else scalar.name)


def design(loss: Loss, settings: Mapping[str, Any], sizes: Mapping[str, int], scalars: Mapping[str, float], seed: int,
          ) -> Design | None:  # fmt: skip
    """The design of a loss; None where its inputs are neither rows that meet each other nor one matrix of logits.

    `settings`: what is set in every call, as of the corpus. `sizes`: lengths by letter. `scalars`: values of scalars;
    those in `settings` stay. `seed`: of labels and of arrays that are no embeddings.
    """
    inputs = _inputs(loss, settings, sizes, scalars, seed)
    given_arrays = [p for p in loss.parameters if isinstance(p, Array) and inputs.get(p.name) is not None]
    rows = [p for p in given_arrays if p.embedding]
    if len({np.shape(inputs[p.name])[-1] for p in rows}) > 1:
        return None
    symbols = {letter(p): inputs[p.name] for p in loss.parameters if isinstance(p, Scalar) and p.name in inputs}
    if rows:
        blocks = tuple((p.name, p.shape[0]) for p in rows)
        used = {x for p in rows for x in (p.alternative if np.ndim(inputs[p.name]) == 3 and p.alternative else p.shape)}
        return Design(loss, inputs, blocks, False, {**{k: sizes[k] for k in sorted(used)}, **symbols})
    matrices = [p for p in given_arrays if len(p.shape) == 2 and p.like == "vector"]
    if len(matrices) != 1:
        return None
    (matrix,) = matrices
    blocks = ((matrix.name, matrix.shape[0]), (f"{matrix.name}'", matrix.shape[1]))
    return Design(loss, inputs, blocks, True, {**{k: sizes[k] for k in matrix.shape}, **symbols})


def design_or_inputs(
    loss: Loss, settings: Mapping[str, Any], sizes: Mapping[str, int], scalars: Mapping[str, float], seed: int
) -> Design:
    """A design as of `design`; where there is none, one without rows, whose inputs stay as they are."""
    one = design(loss, settings, sizes, scalars, seed)
    if one is not None:
        return one
    inputs = _inputs(loss, settings, sizes, scalars, seed)
    symbols = {letter(p): inputs[p.name] for p in loss.parameters if isinstance(p, Scalar) and p.name in inputs}
    used = {x for p in loss.parameters if isinstance(p, Array) and inputs.get(p.name) is not None for x in p.shape}
    return Design(loss, inputs, (), False, {**{k: sizes[k] for k in sorted(used)}, **symbols})


def _inputs(
    loss: Loss, settings: Mapping[str, Any], sizes: Mapping[str, int], scalars: Mapping[str, float], seed: int
) -> dict[str, Any]:
    """Arguments of a loss, with its scalars."""
    names = {p.name for p in loss.parameters if isinstance(p, Array | Labels)}
    variant = dict(loss.variants[0])
    if names & set(settings):
        variant = {name: x for name, x in variant.items() if name not in names}
    variant |= {n: ... if n in names and x is not None and not isinstance(x, str) else x for n, x in settings.items()}
    rng = np.random.default_rng(seed)
    inputs = arguments(loss, GEOMETRIES["random"], variant, FREE, sizes, rng, np.float64)
    for p in loss.parameters:
        if isinstance(p, Scalar):
            given = settings.get(p.name, scalars.get(p.name, inputs.get(p.name, p.default)))
            if isinstance(given, int | float):
                inputs[p.name] = float(given)
    return inputs


@dataclass(frozen=True, eq=False)
class Similarity:
    """A function of the rows: their matrix of similarities, in words, and how it is written for two rows a, b.

    With `then`, it goes on with the scalar that `given` names; with `own`, only for pairs that belong together.
    """

    name: str
    of: Callable[[Any], Any]
    text: str
    words: str
    given: str = ""
    then: Callable[[Any, float], Any] | None = None
    own: bool = False


def _unit(x: Any) -> Any:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _cos(x: Any) -> Any:
    return _unit(x) @ np.swapaxes(_unit(x), -1, -2)


def _squared(x: Any) -> Any:
    return np.sum((x[..., :, None, :] - x[..., None, :, :]) ** 2, axis=-1)


def _l1(x: Any) -> Any:
    x = x / np.sum(np.abs(x), axis=-1, keepdims=True)
    return x @ np.swapaxes(x, -1, -2)


def _centered(x: Any) -> Any:
    return _cos(x - np.mean(x, axis=-1, keepdims=True))


SIMILARITIES = (
    Similarity("cosine", _cos, "{a}.{b}/(|{a}||{b}|)", "cosines"),
    Similarity("dot", lambda x: x @ np.swapaxes(x, -1, -2), "{a}.{b}", "inner products of rows as they are"),
    Similarity("cosine-clamped", lambda x: np.maximum(_cos(x), 0), "max({a}.{b}, 0)", "cosines clamped at 0"),
    Similarity("cosine-squared", lambda x: _cos(x) ** 2, "({a}.{b})^2", "squared cosines"),
    Similarity("cosine-absolute", lambda x: np.abs(_cos(x)), "|{a}.{b}|", "absolute values of cosines"),
    Similarity("squared-distance", lambda x: _squared(_unit(x)), "|{a} - {b}|^2", "squared distances of unit rows"),
    Similarity("distance", lambda x: np.sqrt(_squared(_unit(x))), "|{a} - {b}|", "distances of unit rows"),
    Similarity("squared-distance-raw", _squared, "|{a} - {b}|^2", "squared distances of rows as they are"),
    Similarity("distance-raw", lambda x: np.sqrt(_squared(x)), "|{a} - {b}|", "distances of rows as they are"),
    Similarity(
        "distance-to-power",
        lambda x: np.sqrt(_squared(_unit(x))),
        "|{a} - {b}|^a",
        "powers of distances of unit rows",
        given="exponent",
        then=lambda s, e: s**e,
    ),
    Similarity(
        "distance-raw-to-power",
        lambda x: np.sqrt(_squared(x)),
        "|{a} - {b}|^a",
        "powers of distances of rows as they are",
        given="exponent",
        then=lambda s, e: s**e,
    ),
    Similarity("angle", lambda x: np.arccos(np.clip(_cos(x), -1, 1)), "angle({a}, {b})", "angles"),
    Similarity(
        "margin-in-angle",
        _cos,
        "cos(theta_y + m)",
        "cosines of angles plus the margin",
        given="margin",
        then=lambda s, m: np.cos(np.arccos(np.clip(s, -1, 1)) + m),
        own=True,
    ),
    Similarity("l1", _l1, "{a}.{b}/(|{a}|_1 |{b}|_1)", "inner products of rows of L1 norm 1"),
    Similarity("features-centered", _centered, "corr({a}, {b})", "correlations of features"),
)
LOGITS = Similarity("logit", lambda x: x, "x_{a}{b}", "logits")


def tried(design: Design) -> tuple[Similarity, ...]:
    """The functions that a design admits, the most usual first."""
    if design.logits:
        return (LOGITS,)
    return tuple(one for one in SIMILARITIES if not one.given or one.given in design.inputs)


def similarities(how: Similarity, design: Design, xs: Any) -> Any:
    """Similarities of all pairs, (calls, P), for rows or logits (calls, ...)."""
    xs = np.asarray(xs, dtype=np.float64)
    if design.logits:
        rows = xs.shape[1]
        return np.stack([xs[:, u, v - rows] for u, v in design.pairs], axis=1)
    u, v = np.array(design.pairs).T
    s = how.of(xs)[:, u, v]
    if how.then is None:
        return s
    own = np.array([design.together(*uv) or not how.own for uv in design.pairs])
    return np.where(own, how.then(s, design.inputs[how.given]), s)
