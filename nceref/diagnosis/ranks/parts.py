"""What one rank may compute of the joined batch, and what its rows depend on: themselves, its own, the other ranks'.

The rows of a loss are evaluated densely, with masks or candidates as a rank may have them, and differentiated row by
row. Everything is in the coordinates of the joined batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nceref.cases.records import Observation
from nceref.diagnosis.case import FACTORS
from nceref.diagnosis.dense.batch import DenseBatch, DenseRows
from nceref.diagnosis.dense.forms import evaluated, form_of, is_dense, prepared, substituted
from nceref.diagnosis.dense.stages import reduced
from nceref.diagnosis.dense.temperatures import temperature
from nceref.diagnosis.tape import Graph, Variable
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.spec import Array, Labels
from nceref.targets.ranks.contract import Contract, rows_of, split_inputs
from nceref.tolerance.implementation import FORMATS

_STEPS = {"next": 1, "previous": -1}


@dataclass(frozen=True)
class RankReading:
    """A way in which a rank reads the batch.

    Attributes
    ----------
    kind : str
        ``joined``: all rows are candidates; ``shard``: those of the rank; ``views``: gathered rank by rank, both views
        of each, with masks for one view after the other; ``place``: the rank takes its rows for those of another;
        ``first``: the rank's own shard stands first, and not all that goes with it; ``without``: some rows of other
        ranks are no candidates; ``labels``: the rank's own, repeated for all rows; ``weights``: of the positives,
        normalized over the rows of the rank.
    place : int
        The rank whose place is taken, under ``place``.
    masks : str
        What goes by that place where anchors are among the candidates: ``both``, ``self``, ``own`` (the self mask, and
        so the positives, of which the anchor is one) or ``labels``. Under ``without``: ``next`` or ``previous`` for the
        rows of that rank, or the input of which only the own rows are candidates.
    """

    kind: str = "joined"
    place: int = 0
    masks: str = "both"

    @property
    def by_rank(self) -> bool:
        """Whether it is another one on every rank."""
        return self.kind in ("shard", "place", "first", "labels")


JOINED = RankReading()


class RankCase:
    """One observation of a run on ranks, with what the ranks may have computed of it.

    `observation`: of the joined batch; its outcome has `ranks`. `deviations`: conventions of the joined loss, as the
    dense forms have them.
    """

    def __init__(self, observation: Observation, contract: Contract, deviations: Mapping[str, Any]) -> None:
        probe = observation.probe
        self.observation = observation
        self.probe, self.contract, self.deviations = probe, contract, deviations
        self.answers = observation.outcome.ranks
        self.form, self.unit = form_of(probe.loss), FORMATS[probe.dtype].storage.u
        self.split = split_inputs(probe.loss, probe.inputs)
        shards = contract.rows(rows_of(probe))
        self.rows_given = np.concatenate(shards)
        self.inputs = substituted(prepared(probe), deviations)
        if contract.duplicate:
            # Copies are rows of their own: each rank leaves a gradient on its copy.
            self.inputs = self.taken(self.inputs, self.rows_given)
            shards = tuple(np.split(np.arange(len(self.rows_given)), contract.world_size))
        self.shards = shards
        self.count = len(self.rows_given)
        self.known: dict[Any, Any] = {}
        self._rows: dict[Any, DenseRows] = {}
        self._slopes: dict[Any, Any] = {}

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """The embedding inputs that are split, in the order of the loss."""
        declared = [p for p in self.probe.loss.parameters if isinstance(p, Array) and p.name in self.split]
        return tuple(p.name for p in declared if p.embedding and p.like == "embedding")

    def taken(self, inputs: Mapping[str, Any], rows: Any, names: frozenset[str] | None = None) -> dict[str, Any]:
        """The inputs with these rows of those that are split, or of some of them."""
        square = {p.name for p in self.probe.loss.parameters if getattr(p, "shape", ())[:2] == ("N", "N")}
        out = dict(inputs)
        for name in self.split if names is None else names:
            x = inputs[name][rows]
            out[name] = x[:, rows] if name in square else x
        return out

    @cached_property
    def _arranged(self) -> Any:
        return self.form.arrange(self.inputs, self.deviations)

    @cached_property
    def _batches(self) -> tuple[DenseBatch, ...]:
        """The batches of the dense form, one a direction; none where it has no such matrix."""
        return tuple(batch for batch in self._arranged if isinstance(batch, DenseBatch))

    @cached_property
    def _judges_pairs(self) -> bool:
        """Whether the dense form is a matrix of pairs, judged one by one and added up, and which belong together."""
        shapes = [(np.shape(x), np.asarray(x).dtype.kind) for x in self._arranged] if not self._batches else []
        return shapes == [((self.count,) * 2, "f"), ((self.count,) * 2, "b")]

    @cached_property
    def contrasts_itself(self) -> bool:
        """Whether an anchor is among its own candidates."""
        return any(bool(np.any(batch.own)) for batch in self._batches)

    @property
    def readings(self) -> tuple[RankReading, ...]:
        """The readings that mean something for this loss, the right one and the places of ranks apart."""
        # A step knows no rows but its own.
        if self.contract.in_turn:
            return (RankReading("shard"),)
        stacked = self.contrasts_itself and (len(self.arrays) > 1 or bool(self.inputs.get("views")))
        kinds = ("shard", *(("views",) if stacked else ()))
        first = (*(("labels", "both") if self.contrasts_itself else ()), *sorted(self.arrays))
        # One input alone stands in no order.
        first = first if len(self.split) > 1 else ()
        some = (("first", first), ("without", self._without), ("labels", self._labels), ("weights", self._weighted))
        return (
            *(RankReading(kind) for kind in kinds),
            *(RankReading(kind, masks=each) for kind, masks in some for each in masks),
        )

    @property
    def _without(self) -> tuple[str, ...]:
        """The rows of other ranks that may be no candidates, where the rows of all ranks are some."""
        two = len(self.arrays) > 1
        square = two and bool(self._batches) and all(batch.in_queue is None for batch in self._batches)
        if not (self.contrasts_itself or square or self._judges_pairs):
            return ()
        # Of one direction, no candidate of the other ranks is left then.
        sides = two and (self.contrasts_itself or len(self._batches) > 1)
        return (*_STEPS, *(self.arrays if sides else ()))

    @property
    def _labels(self) -> tuple[str, ...]:
        """Labels of samples that are compared with one another, where all ranks have equally many."""
        labels = (p.name for p in self.probe.loss.parameters if isinstance(p, Labels) and p.name in self.split)
        return tuple(labels) if self.contrasts_itself and len({len(own) for own in self.shards}) == 1 else ()

    @property
    def _weighted(self) -> tuple[str, ...]:
        return ("positives",) if any(np.ndim(batch.numerator_factor) for batch in self._batches) else ()

    @property
    def masks(self) -> tuple[str, ...]:
        """The masks that may go by the place of another rank."""
        if self.contract.in_turn:
            return ()
        if self.contrasts_itself:
            return ("both", "self", "own", "labels")
        directions = len(self.rows(JOINED, 0).values) // max(self.count, 1)
        if len(self.arrays) < 2 or (not is_dense(self.probe.loss) and directions != 1):
            return ()
        return ("both", *self.arrays) if directions > 1 else ("both",)

    def rows(self, reading: RankReading, rank: int) -> DenseRows:
        """Row losses as a rank reads the batch."""
        key = reading, rank if reading.by_rank else 0
        if key not in self._rows:
            self._rows[key] = self._evaluated(reading, rank, self.inputs)
        return self._rows[key]

    def _evaluated(self, reading: RankReading, rank: int, inputs: Mapping[str, Any]) -> DenseRows:
        rows = self._read(reading, rank, inputs)
        for id in self.deviations.keys() & FACTORS.keys():
            t = temperature(inputs, {}) if self._has_temperature else 1.0
            rows = replace(rows, values=rows.values * FACTORS[id](t, rows.samples))
        return rows

    @property
    def _has_temperature(self) -> bool:
        return not INVERSE_TEMPERATURES.keys().isdisjoint(self.inputs)

    def _read(self, reading: RankReading, rank: int, inputs: Mapping[str, Any]) -> DenseRows:
        if (taken := self._rows_taken(reading, rank)) is not None:
            return evaluated(self.form, self.taken(inputs, *taken), self.deviations)
        if reading.kind == "place" and not self.contrasts_itself:
            return self._with_other_candidates(self._moved(rank, reading.place), inputs, reading.masks)
        with np.errstate(all="ignore"):
            arranged = self.form.arrange(inputs, self.deviations)
            if reading.kind == "without":
                return self.form.rows(self._less(arranged, reading.masks), self.deviations)
            edits = {
                "views": self._rank_by_rank,
                "weights": self._with_weights_of_shards,
                "first": self._with_own_first(reading, rank),
            }
            edit = edits.get(reading.kind) or self._from_place(reading, rank)
            return self.form.rows(tuple(edit(batch) for batch in arranged), self.deviations)

    def _rows_taken(self, reading: RankReading, rank: int) -> tuple[Any, frozenset[str]] | None:
        """The rows and inputs that stand in the places of the reference's; None where that is not all of it."""
        own, every = self.shards[rank], np.arange(self.count)
        if reading.kind == "joined" or (reading.kind == "place" and reading.place == rank):
            return every, frozenset()
        if reading.kind == "shard":
            return own, self.split
        if reading.kind == "labels":
            return own[every % len(own)], frozenset({reading.masks})
        if reading.kind == "first" and reading.masks in self.arrays:
            return self._own_first(rank), frozenset({reading.masks})
        if reading.kind == "place" and not is_dense(self.probe.loss):
            return self._moved(rank, reading.place), frozenset(self.arrays[1:])
        return None

    def _less(self, arranged: Any, which: str) -> Any:
        """The batch without the candidates that stand in `_elsewhere`."""
        if self._judges_pairs:
            logits, together = arranged
            return np.where(self._elsewhere(together, 0, which), -np.inf, logits), together
        gone = [self._elsewhere(batch.candidates, k, which) for k, batch in enumerate(arranged)]
        return tuple(
            replace(b, candidates=b.candidates & ~g, own=b.own & ~g, positives=np.where(g, 0.0, b.positives))
            for b, g in zip(arranged, gone, strict=True)
        )

    def _elsewhere(self, matrix: Any, direction: int, which: str) -> Any:
        """A mask of the entries of a row of another rank: of the next one, the previous one, or of an input."""
        n, m = matrix.shape
        rank = np.repeat(np.arange(len(self.shards)), [len(own) for own in self.shards])
        rows = np.tile(rank, n // self.count)
        # What follows the rows, a queue or centers, is on no rank.
        columns = np.pad(rows, (0, m - n), constant_values=-1)
        if which in _STEPS:
            return columns == ((rows + _STEPS[which]) % len(self.shards))[:, None]
        names = (
            np.repeat(self.arrays, self.count) if self.contrasts_itself else np.repeat(self.arrays[1 - direction], n)
        )
        of_it = np.pad(names == which, (0, m - n))
        return (columns != rows[:, None]) & of_it

    def _with_weights_of_shards(self, batch: DenseBatch) -> DenseBatch:
        """Weights 2 - p whose p have the mean 1 over the rows of each rank, not over all."""
        mass = 2 - batch.numerator_factor
        ranks = np.repeat(np.arange(len(self.shards)), [len(own) for own in self.shards])
        blocks = np.add.outer(len(self.shards) * np.arange(len(batch.own) // self.count), ranks).ravel()
        alike = blocks[:, None] == blocks
        # Those of a view on a rank are divided by their own mean.
        return replace(batch, numerator_factor=2 - mass / (alike / np.sum(alike, axis=1, keepdims=True) @ mass))

    def _moved(self, rank: int, place: int) -> Any:
        """The row that stands where the reference has each row, for a rank that counts from the start of another."""
        start = (int(self.shards[k][0]) if len(self.shards[k]) else 0 for k in (place, rank))
        return (np.arange(self.count) + next(start) - next(start)) % self.count

    def _own_first(self, rank: int) -> Any:
        """The rows of the rank, then those of the others."""
        others = (own for k, own in enumerate(self.shards) if k != rank)
        return np.concatenate([self.shards[rank], *others])

    def _with_own_first(self, reading: RankReading, rank: int) -> Callable[[DenseBatch], DenseBatch]:
        """Masks of candidates in the order of the ranks, on candidates with the own shard first."""
        stands = np.argsort(self._own_first(rank))

        def edited(batch: DenseBatch) -> DenseBatch:
            n, m = batch.own.shape
            at = np.concatenate([v * self.count + stands for v in range(n // self.count)])
            at = np.concatenate([at, np.arange(len(at), m)])
            own, positives, candidates = batch.own, batch.positives, batch.candidates
            if reading.masks == "both":
                return replace(batch, own=own[:, at], positives=positives[:, at], candidates=candidates[:, at])
            return replace(batch, positives=np.where(own, 0.0, (positives + own)[:, at]))

        return edited

    def _with_other_candidates(self, order: Any, inputs: Mapping[str, Any], which: str) -> DenseRows:
        """Every input but that of the anchors in another order, or one of them, direction by direction."""
        count = len(self.rows(JOINED, 0).values) // self.count
        parts = []
        for k, anchors in enumerate(self.arrays[: max(count, 1)]):
            names = frozenset(self.arrays if which == "both" else (which,))
            moved = self.taken(inputs, order, names - {anchors})
            rows = evaluated(self.form, moved, self.deviations)
            parts.append(rows.values[k * self.count : (k + 1) * self.count])
        return replace(rows, values=np.concatenate(parts, axis=-1))

    def _rank_by_rank(self, batch: DenseBatch) -> DenseBatch:
        """Masks for one view after the other, on rows that stand rank by rank."""
        n, m = batch.own.shape
        stands = np.concatenate([v * self.count + own for own in self.shards for v in range(n // self.count)])
        at = np.argsort(stands)
        square = {"own": batch.own, "positives": batch.positives, "candidates": batch.candidates}
        # What follows the rows, a queue or centers, stays where it is.
        columns = np.concatenate([at, np.arange(n, m)])
        return replace(batch, **{name: mask[np.ix_(at, columns)] for name, mask in square.items()})

    def _from_place(self, reading: RankReading, rank: int) -> Callable[[DenseBatch], DenseBatch]:
        order = self._moved(rank, reading.place)

        def edited(batch: DenseBatch) -> DenseBatch:
            at = np.concatenate([v * self.count + order for v in range(len(batch.own) // self.count)])
            own, positives, candidates = batch.own, batch.positives, batch.candidates
            if reading.masks == "both":
                return replace(batch, own=own[at], positives=positives[at], candidates=candidates[at])
            if reading.masks == "labels":
                excluded = ~candidates & ~own
                return replace(batch, positives=positives[at], candidates=(candidates | excluded) & ~excluded[at])
            known = positives + own if reading.masks == "own" else positives
            known = np.where(own[at], 0.0, known)
            return replace(batch, own=own[at], positives=known, candidates=(candidates | own) & ~own[at])

        return edited

    def slopes(self, reading: RankReading, rank: int, name: str) -> Any:
        """Derivatives of the rows by an input, of its shape and a last axis of rows."""
        key = reading, rank if reading.by_rank else 0, name
        if key not in self._slopes:
            x = Variable(np.asarray(self.inputs[name], dtype=np.float64))
            values = self._evaluated(reading, rank, {**self.inputs, name: x}).values
            back = Graph(values, (x,))
            each = [back.gradients(cotangent=row)[0] for row in np.eye(len(values))]
            self._slopes[key] = np.stack(each, axis=-1)
        return self._slopes[key]

    def weights(self, reading: RankReading, rank: int) -> Any:
        """Weight of each row in the value under the reduction of the case."""
        rows = self.rows(reading, rank)
        each = replace(rows, values=np.eye(rows.values.shape[-1]))
        return reduced(each, self.deviations, self.probe.reduction)

    def anchors(self, reading: RankReading, rank: int) -> tuple[Any, Any, Any]:
        """The sample of the anchor of each row, the place of its input in `arrays`, and its view.

        The sample is -1 for a row that is no sample's.
        """
        owned = self.shards[rank] if reading.kind == "shard" else np.arange(self.count)
        place = np.arange(self.rows(reading, rank).values.shape[-1])
        views = int(np.shape(self.inputs["embeddings"])[1]) if self.inputs.get("views") else 0
        stacked, n = views or min(len(self.arrays), 2), max(len(owned), 1)
        blocks = stacked if len(place) == stacked * n else min(len(place) // n, 1)
        block = np.where(place < blocks * n, place // n, 0)
        samples = np.where(place < blocks * n, owned[place % n] if len(owned) else -1, -1)
        return samples, np.zeros_like(block) if views else block, block if views else np.zeros_like(block)
