"""What one call of a target is made of: sizes, scalars and labels that are chosen, and rows that are still free."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nceref.checks.cases import GEOMETRIES, arguments
from nceref.engine.parameters import INVERSE_TEMPERATURES, at_temperature
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
    def rows(self) -> tuple[InputRow, ...]:
        """All rows, input by input; rows with several views, view by view."""
        return tuple(InputRow(name, i) for name, _ in self.blocks for i in range(self._length(name)))

    def _length(self, name: str) -> int:
        if self.logits:
            return int(np.shape(self.inputs[self.blocks[0][0]])[[b for b, _ in self.blocks].index(name)])
        return int(np.prod(np.shape(self.inputs[name])[:-1]))

    @cached_property
    def classes(self) -> dict[int, int]:
        """Class of each row that has one."""
        letters = dict(self.blocks)
        given = {p.shape[0]: p for p in self.loss.parameters if isinstance(p, Labels)}
        given = {letter: p for letter, p in given.items() if self.inputs.get(p.name) is not None}
        kinds = {p.classes for p in given.values()}
        out = {}
        for u, row in enumerate(self.rows):
            letter = letters[row.block]
            views = not self.logits and np.ndim(self.inputs[row.block]) == 3
            sample = row.row % len(self.inputs[row.block]) if views else row.row
            if letter in given:
                out[u] = int(self.inputs[given[letter].name][sample])
            elif views:
                out[u] = sample
            elif letter in kinds:
                out[u] = row.row
        return out

    @cached_property
    def _letters(self) -> dict[str, str]:
        return dict(self.blocks)

    @cached_property
    def _companions(self) -> list[int]:
        every = range(len(self.rows))
        return [sum(v != u and self.together(u, v) for v in every) for u in every]

    @cached_property
    def quantities(self) -> dict[str, float]:
        """The symbols, and how many belong to a row where it is the same number for all."""
        alike = bool(self.classes) and not self.logits and len(set(self._companions)) == 1
        return {**self.symbols, **({"P": float(self._companions[0])} if alike else {})}

    def together(self, u: int, v: int) -> bool:
        """Whether two rows belong together: of one class, or where there are none, of one sample."""
        if self.classes:
            return u in self.classes and v in self.classes and self.classes[u] == self.classes[v]
        a, b = self.rows[u], self.rows[v]
        letters = self._letters
        return a.block != b.block and letters[a.block] == letters[b.block] and a.row == b.row

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


def design(
    loss: Loss, settings: Mapping[str, Any], sizes: Mapping[str, int], scalars: Mapping[str, float], seed: int
) -> Design:
    """A design of a loss; where its inputs are neither rows that meet each other nor one matrix, it has no rows.

    `settings`: what is set in every call, as of the corpus. `sizes`: lengths by letter. `scalars`: values of scalars;
    those in `settings` stay. `seed`: of labels and of arrays that are no embeddings.
    """
    inputs = _inputs(loss, settings, sizes, scalars, seed)
    arrays = [p for p in loss.parameters if isinstance(p, Array) and inputs.get(p.name) is not None]
    rows = [p for p in arrays if p.embedding]
    matrices = [p for p in arrays if len(p.shape) == 2 and p.like == "vector"]
    blocks: tuple[tuple[str, str], ...] = ()
    if rows:
        used = {x for p in rows for x in (p.alternative if np.ndim(inputs[p.name]) == 3 and p.alternative else p.shape)}
        blocks = tuple((p.name, p.shape[0]) for p in rows)
    elif len(matrices) == 1:
        used, matrix = {*matrices[0].shape}, matrices[0]
        blocks = ((matrix.name, matrix.shape[0]), (f"{matrix.name}'", matrix.shape[1]))
    if not blocks or len({np.shape(inputs[p.name])[-1] for p in rows}) > 1:
        used, blocks = {x for p in arrays for x in p.shape}, ()
    symbols = {letter(p): inputs[p.name] for p in loss.parameters if isinstance(p, Scalar) and p.name in inputs}
    return Design(loss, inputs, blocks, not rows and bool(blocks), {**{k: sizes[k] for k in sorted(used)}, **symbols})


def scalars(loss: Loss, temperature: float, share: float) -> dict[str, float]:
    """Values of the scalars of a loss: the temperature, and the others at a share of their typical range."""
    out = {}
    for p in loss.parameters:
        # At 0 such a one is switched off.
        if not isinstance(p, Scalar) or p.default is None or (p.constant and p.default == 0):
            continue
        low, high = p.typical
        out[p.name] = low + share * (high - low)
        if p.name in INVERSE_TEMPERATURES:
            out[p.name] = at_temperature(p.name, temperature)
        elif not p.constant:
            out[p.name] = share - 0.4
    return {name: round(x * 64) / 64 for name, x in out.items()}


def scale_of(design: Design) -> float:
    """The inverse temperature of a design; 1 without one."""
    known = [n for n in INVERSE_TEMPERATURES if n in design.inputs]
    return float(design.inputs[known[0]]) ** INVERSE_TEMPERATURES[known[0]] if known else 1.0


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
