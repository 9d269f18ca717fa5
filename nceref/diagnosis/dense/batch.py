"""What the dense form of a loss is made of: a batch of anchors and candidates, and the rows that come out of it.

The dense form is a second witness beside the reference, and the place where conventions differ: every stage looks at
`deviations`, a mapping from the id of a convention to what it is set to (None where there is nothing to set). Without
deviations it is the reference. Arrays may be the variables of a tape, for gradients: what decides, a maximum or a
branch, goes by the numbers, and what is detached is a constant.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nceref.diagnosis.tape import Variable, detached, edge, joined, recorded, stage
from nceref.engine.parameters import INVERSE_TEMPERATURES

Array = Any
Deviations = Mapping[str, Any]

_ORDINALS = {"first": "the first input", "second": "the second input", "centers": "the centers"}
UNSCALED = {
    "first-input-not-normalized": ("first",),
    "second-input-not-normalized": ("second", "centers"),
    "queue-not-normalized": ("queue",),
}


@dataclass(frozen=True, eq=False)
class DenseBatch:
    """Anchors against candidates: one matrix, and who is who in it.

    Attributes
    ----------
    logits, numerator : array, (n, m)
        What enters the denominator, and what enters the numerator.
    candidates : array, (n, m), bool
        Who is in the denominator.
    positives : array, (n, m)
        Weight of each candidate as a positive.
    own : array, (n, m), bool
        The anchor itself.
    same_view, in_queue, excluded, centers : array, (n, m), bool
        Candidates of the anchor's own view; those of a queue; keys of the batch that are no candidates; class centers.
    form : str
        ``mean`` or ``sum`` over positives outside the logarithm, or ``in``: mean inside.
    numerator_factor : array or 1
        Multiplies the positive of a row, (n,).
    factor, temperature : array or 1
        Multiplies every row; the temperature.
    anchor_weights : array or None
        Weight of each row in the mean, (n,).
    without_positive : str
        ``skip`` or ``zero``: what becomes of an anchor without a positive.
    samples : int
        The number of samples N.
    estimate : tuple or None
        Prior, concentration and logarithm of the floor, where the denominator estimates the true negatives.
    inputs : mapping
        The arguments of the loss.
    rows : tuple of str
        The inputs whose rows are compared, which stand below one another.
    anchors, against : array of int, or tuple of these
        Which of these rows are the anchors, and which the candidates; of several blocks side by side, those of each.
    labels, kinds : array of int, (n,) and (m,)
        Class of each anchor and of each candidate, -1 where there is none.
    done : mapping
        What the stages gave, by name, where they are done one by one.
    height : int
        The number of anchors of each, where several batches stand below one another; 0: of all.
    """

    logits: Array
    numerator: Array
    candidates: Array
    positives: Array
    own: Array
    same_view: Array = None
    in_queue: Array = None
    excluded: Array = None
    centers: Array = None
    form: str = "mean"
    numerator_factor: Any = 1.0
    factor: Any = 1.0
    temperature: Any = 1.0
    anchor_weights: Array = None
    without_positive: str = "zero"
    samples: int = 1
    estimate: tuple[Any, Any, Any] | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    anchors: Array = None
    against: Array = None
    labels: Array = None
    kinds: Array = None
    done: Mapping[str, Any] = field(default_factory=dict)
    height: int = 0

    def __getitem__(self, stage: str) -> Any:
        return self.done[stage]

    def after(self, stage: str, result: Any) -> "DenseBatch":
        """The batch with what a stage has given."""
        return self._changed({"done": {**self.done, stage: result}})

    def above(self, *others: "DenseBatch") -> "DenseBatch":
        """Directions below one another: rows, and the weights and labels that a mean may need."""
        kept = ("own", "positives", "candidates", "labels")
        return _joined((self, *others), kept, ("similarities", "positives", "rows")) if others else self

    def _changed(self, fields: Mapping[str, Any]) -> "DenseBatch":
        # As `replace`, which takes ten times as long.
        other = object.__new__(DenseBatch)
        vars(other).update({**vars(self), **fields})
        return other

    @property
    def blocks(self) -> list[Array]:
        """The inputs whose rows are compared, views below one another."""
        return [flat(self.inputs[name]) for name in self.rows]

    @property
    def sides(self) -> list[tuple[Array, Array]]:
        """Anchors and candidates of each block."""
        if isinstance(self.anchors, tuple):
            return list(zip(self.anchors, self.against, strict=True))
        return [(self.anchors, self.against)]

    @property
    def counts(self) -> Array:
        """The number of samples of each class, or the expected count of each item; None where it is not given."""
        counts = self.inputs.get("class_counts", self.inputs.get("expected_counts"))
        return None if counts is None else counts if isinstance(counts, Variable) else np.asarray(counts, dtype=float)

    @property
    def scale(self) -> float:
        """The factor of similarities: the inverse of the temperature; 1 without one."""
        known = ((self.inputs[name], power) for name, power in INVERSE_TEMPERATURES.items() if name in self.inputs)
        return next(((x if isinstance(x, Variable) else float(x)) ** power for x, power in known), 1.0)

    @property
    def view(self) -> Array:
        """Pairs of one view or of one input; nobody without views."""
        return np.zeros_like(self.own) if self.same_view is None else self.same_view

    @property
    def queue(self) -> Array:
        """Pairs with the queue or with hard negatives; nobody without one."""
        return np.zeros_like(self.own) if self.in_queue is None else self.in_queue

    @property
    def of_query(self) -> Array:
        """Pairs of a query with its own document or hard negatives."""
        return self.j % self.samples == self.i

    @property
    def i(self) -> Array:
        """Numbers of anchors, a column."""
        return np.arange(len(self.own))[:, None] % (self.height or len(self.own))

    @property
    def j(self) -> Array:
        """Numbers of candidates, a row."""
        return np.arange(self.own.shape[1])[None, :]

    @property
    def together(self) -> Array:
        """Pairs that belong together."""
        return self.positives > 0

    @property
    def negatives(self) -> Array:
        """Candidates that are no positives, and not the anchor."""
        return (self.positives <= 0) & self.candidates & ~self.own


_OF_ROWS = ("own", "positives", "candidates", "labels", "same_view", "in_queue", "excluded", "centers")


def by_row(batches: Sequence[DenseBatch]) -> DenseBatch:
    """Batches of one loss and one size below one another, for stages that do each row by itself."""
    joined = _joined(batches, _OF_ROWS, tuple(batches[0].done))
    return joined._changed({"height": len(batches[0].own)})


def _joined(batches: Sequence[DenseBatch], kept: Sequence[str], stages: Sequence[str]) -> DenseBatch:
    first, size = batches[0], len(batches[0].own)
    fields = {name: _below([getattr(w, name) for w in batches], size) for name in kept}
    done = {name: _below([w[name] for w in batches], size) for name in stages if name in first.done}
    return first._changed({**fields, "done": done})


def _below(parts: Sequence[Any], size: int) -> Any:
    """Results below one another: arrays, several arrays of each, or numbers that hold for each of `size` rows."""
    if isinstance(parts[0], tuple):
        return tuple(_below(each, size) for each in zip(*parts, strict=True))
    if parts[0] is None:
        return None
    return np.concatenate(parts) if np.ndim(parts[0]) else np.repeat(parts, size)


def flat(x: Array) -> Array:
    """Rows of several views below one another: all samples of the first view first."""
    if x is None or x.ndim < 3:
        return x
    n, v, d = x.shape
    return np.reshape(np.swapaxes(x, 0, 1), (n * v, d))


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Row losses, and what the mean needs.

    Attributes
    ----------
    values : array, (n,)
    weights : array or None, (n,)
        Weight of each row; None: all alike.
    pairs : array or None, (n,)
        Weight of the positives of each row.
    skips : bool
        Whether rows without a positive are left out of the mean.
    size : float
        The largest number, logits or row, that was rounded on the way.
    noise : float
        How many times larger than the result a number was that cancelled.
    divisor : int or None
        What the sum is divided by in the mean; None: the weight of the rows that count.
    samples : int
        The number of samples N.
    error : float
        What roundings of the inputs alone may change the values by.
    """

    values: Array
    weights: Array = None
    pairs: Array = None
    skips: bool = False
    size: float = 0.0
    noise: float = 0.0
    divisor: int | None = None
    samples: int = 1
    error: float = 0.0


@dataclass(frozen=True)
class DenseForm:
    """The dense form of one loss.

    Attributes
    ----------
    arrange : callable
        ``arrange(inputs, deviations)``: all that is decided before the denominator; a tuple of
        batches, one a direction.
    rows : callable
        ``rows(arranged, deviations)``: the `DenseRows`.
    conventions : tuple of str
        Ids of the conventions that mean something for this loss.
    stages : callable or None
        ``stages(inputs, reduction)``: the stages with other ways of each (see `ways`); of the inputs, options have
        their values, and arrays are only there or not.
    compared : callable or None
        ``compared(inputs)``: the batches that the stages start from, or None for inputs that have none; default: what
        is arranged without deviations.
    """

    arrange: Callable[[Mapping[str, Any], Deviations], Any]
    rows: Callable[[Any, Deviations], DenseRows]
    conventions: tuple[str, ...]
    stages: Callable[[Mapping[str, Any], str], Any] | None = None
    compared: Callable[[Mapping[str, Any]], Any] | None = None


@dataclass(frozen=True)
class DenseFamily:
    """A kind of batch, and the dense forms of the losses that are made of it."""

    name: str
    losses: Mapping[str, DenseForm]


def log_sum_exp(x: Array, axis: int = -1, of: str = "") -> Array:
    """The logarithm of a sum of exponentials, shifted by the maximum; -inf where there is nothing to add.

    `of`: what is added up, where a loss has several sums.
    """
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    # What one of them passes the other takes away, so that neither passes anything.
    below, above = (
        edge(top, f"the maximum that is {how}", of and f"the maximum of {of} that is {how}", passes=0.0)
        for how in ("subtracted", "added again")
    )
    return np.log(np.sum(np.exp(x - below), axis=axis)) + np.squeeze(above, axis=axis)


def log_add(x: Array, y: Array) -> Array:
    """The logarithm of e^x + e^y."""
    top = np.maximum(detached(x), detached(y))
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(np.exp(x - top) + np.exp(y - top)) + top


def softplus(x: Array) -> Array:
    """The logarithm of 1 + e^x."""
    return log_add(np.zeros_like(detached(x)), x)


def embed(inputs: Mapping[str, Any], roles: Mapping[str, str], deviations: Deviations) -> dict[str, Array]:
    """The embedding inputs by role, scaled to length 1 or not; roles that were not given are left out.

    `inputs`: checked inputs of the loss. `roles`: role (``first``, ``second``, ``queue``, ``centers``) to the name of
    an input. Result: arrays (n, D) by role.
    """
    given = {role: edge(inputs[n], _ORDINALS.get(role, "")) for role, n in roles.items() if inputs[n] is not None}
    if inputs["normalize"] == "none" and "rows-normalized" not in deviations and not {*deviations} & {*_WHOLE}:
        return given
    raw = {role for id, unscaled in UNSCALED.items() if id in deviations for role in unscaled}
    if "rows-not-normalized" in deviations:
        return given
    lengths = {role: _enlarged(x, deviations) for role, x in _lengths(given, deviations).items()}
    return {role: x if role in raw else _scaled(x, lengths[role], roles[role]) for role, x in given.items()}


_WHOLE = ("columns-normalized", "matrix-normalized")


def _scaled(x: Array, length: Array, name: str) -> Array:
    """The rows of an input divided by lengths."""
    length = edge(length, "the lengths of the rows", f"the lengths of {name}")
    return stage(x / length, x, "the normalization", f"the normalization of {name}")


def _lengths(given: Mapping[str, Array], deviations: Deviations) -> dict[str, Array]:
    """The divisor of each input: the lengths of rows, of columns, or one length for all."""
    known = zip(_WHOLE, (-2, (-2, -1)), strict=True)
    id, axes = next(((id, over) for id, over in known if id in deviations), ("", -1))
    how = deviations.get(id, "each")
    if how == "joint":
        return dict.fromkeys(given, _length(np.concatenate([*given.values()]), axes))
    alone = UNSCALED[_ALONE[how]] if how in _ALONE else tuple(given)
    return {role: _length(x, axes if role in alone else -1) for role, x in given.items()}


_ALONE = {"the first input": "first-input-not-normalized", "the second input": "second-input-not-normalized"}


def _enlarged(length: Array, deviations: Deviations) -> Array:
    """A length with a small constant in it, where a deviation says so."""
    floor = deviations.get("norm-floored", 0.0)
    length = np.where(detached(length) < floor, floor, length) if floor else length
    where, size = deviations.get("epsilon-in-norm", ("", 0.0))
    return length + size if where == "added" else np.sqrt(length * length + size) if where else length


def _length(x: Array, axes: Any) -> Array:
    return np.sqrt(np.sum(x * x, axis=axes, keepdims=True))


def clamped(similarities: Array, deviations: Deviations) -> Array:
    """Similarities, cut to a range where a deviation says so."""
    if "similarity-clamped" not in deviations:
        return similarities
    low, high = deviations["similarity-clamped"]
    # Outside of the range a detached number: the gradient of a clamp is 0 there.
    inside = (detached(similarities) >= low) & (detached(similarities) <= high)
    return np.where(inside, similarities, np.clip(detached(similarities), low, high))


def similarities(
    anchors: Array,
    candidates: Array,
    deviations: Deviations,
    positives: Array,
    same_view: Array = None,
    part: str = "",
    inputs: tuple[str, str] = ("", ""),
    queue: tuple[str, Array] = ("", None),
) -> Array:
    """Inner products, (n, m), whose gradient goes to the anchors and to the candidates.

    `positives`, `same_view`: which pairs are positive, and which are of one view. `part`: of the loss that they are
    for, ``denominator`` or ``numerator``; empty for the whole. `inputs`: the names of both, where another direction has
    them in turn. `queue`: what candidates are called that are no rows of the batch, and their pairs.
    """
    anchors, candidates = (
        edge(rows, f"the rows as {role}", part and f"the rows as {role} in the {part}")
        for rows, role in ((anchors, "anchors"), (candidates, "candidates"))
    )
    s = clamped(anchors @ candidates.T, deviations)
    if not isinstance(s, Variable):
        return s
    again = (positives > 0) & (np.cumsum(positives[::-1] > 0, axis=0)[::-1] > 1)
    kinds = {
        "the negatives": positives == 0,
        "the positives": positives > 0,
        "positives that a later anchor has too": again,
    }
    kinds |= {} if same_view is None else {"the other view": ~same_view, "the own view": same_view}
    ways = {
        "anchors of": clamped(anchors @ detached(candidates).T, deviations),
        "rows of": clamped(detached(anchors) @ candidates.T, deviations),
    }
    for role, way in ways.items():
        for kind, pairs in kinds.items():
            way = edge(way, f"the {role} {kind}", where=pairs)
        ways[role] = way
    if s.shape[0] == s.shape[1]:
        turned = recorded(s.value, [(candidates, lambda g: g @ detached(anchors))])
        ways["rows of"] = stage(ways["rows of"], turned, "the transpose by the candidates", *_transposes(inputs[1]))
        turned = recorded(s.value, [(anchors, lambda g: g.T @ detached(candidates))])
        ways["anchors of"] = stage(ways["anchors of"], turned, "the transpose by the anchors", *_transposes(inputs[0]))
    name, pairs = queue
    return edge(edge(joined(*ways.values()), "the similarities"), name and f"the similarities of {name}", where=pairs)


def _transposes(name: str) -> tuple[str, ...]:
    return (f"the transpose for {name}",) if name else ()
