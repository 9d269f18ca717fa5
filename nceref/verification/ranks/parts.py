"""What one rank may compute of the joined batch, and what its rows depend on: themselves, its own, the other ranks'.

The rows of a loss are evaluated densely, with masks or candidates as a rank may have them, and differentiated by the
complex step. Everything is in the coordinates of the joined batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.spec import Array
from nceref.tolerance.implementation import FORMATS
from nceref.verification.dense.batch import DenseBatch, DenseRows
from nceref.verification.dense.forms import STEP, evaluated, form_of, prepared, substituted
from nceref.verification.dense.stages import reduced
from nceref.verification.dense.temperatures import temperature
from nceref.verification.diagnosis.case import FACTORS
from nceref.verification.ranks.contract import Contract, rows_of, split_inputs
from nceref.verification.records import Observation

_AT_ONCE = 2**15


@dataclass(frozen=True)
class RankReading:
    """How a rank reads the batch.

    Attributes
    ----------
    kind : str
        ``joined``: all rows are candidates; ``shard``: those of the rank; ``views``: gathered rank by rank, both views
        of each, with masks for one view after the other; ``place``: the rank takes its rows for those of another;
        ``first``: the rank's own shard stands first, and not all that goes with it.
    place : int
        The rank whose place is taken, under ``place``.
    masks : str
        What goes by that place where anchors are among the candidates: ``both``, ``self``, ``own`` (the self mask, and
        so the positives, of which the anchor is one) or ``labels``.
    """

    kind: str = "joined"
    place: int = 0
    masks: str = "both"

    @property
    def by_rank(self) -> bool:
        """Whether it is another one on every rank."""
        return self.kind in ("shard", "place", "first")


JOINED = RankReading()


class RankCase:
    """One observation of a run on ranks, with what the ranks may have computed of it.

    Parameters
    ----------
    observation : Observation
        Of the joined batch; its outcome has `ranks`.
    contract : Contract
    deviations : mapping
        Conventions of the joined loss, as the dense forms have them.
    """

    def __init__(self, observation: Observation, contract: Contract, deviations: Mapping[str, Any]) -> None:
        probe = observation.probe
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
            x = np.take(inputs[name], rows, axis=-np.ndim(self.inputs[name]) or 0)
            out[name] = np.take(x, rows, axis=-1) if name in square else x
        return out

    @cached_property
    def contrasts_itself(self) -> bool:
        """Whether an anchor is among its own candidates."""
        arranged = self.form.arrange(self.inputs, self.deviations)
        return any(isinstance(batch, DenseBatch) and bool(np.any(batch.own)) for batch in arranged)

    @property
    def readings(self) -> tuple[RankReading, ...]:
        """Those that mean something for this loss, the right one and the places of ranks apart."""
        stacked = self.contrasts_itself and (len(self.arrays) > 1 or bool(self.inputs.get("views")))
        kinds = ("shard", *(("views",) if stacked else ()))
        first = (*(("labels", "both") if self.contrasts_itself else ()), *sorted(self.arrays))
        # One input alone stands in no order.
        first = first if len(self.split) > 1 else ()
        return (*(RankReading(kind) for kind in kinds), *(RankReading("first", masks=masks) for masks in first))

    @property
    def masks(self) -> tuple[str, ...]:
        """What may go by the place of another rank."""
        if self.contrasts_itself:
            return ("both", "self", "own", "labels")
        directions = len(self.rows(JOINED, 0).values) // max(self.count, 1)
        if len(self.arrays) < 2:
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
            # In the coordinates of the rows, which have one axis less than the matrix.
            t = temperature(inputs, {}) if self._has_temperature else 1.0
            factor = np.asarray(FACTORS[id](t, rows.samples))
            rows = replace(rows, values=rows.values * (factor[..., 0] if factor.ndim > 2 else factor))
        return rows

    @property
    def _has_temperature(self) -> bool:
        return not INVERSE_TEMPERATURES.keys().isdisjoint(self.inputs)

    def _read(self, reading: RankReading, rank: int, inputs: Mapping[str, Any]) -> DenseRows:
        if reading.kind == "joined" or (reading.kind == "place" and reading.place == rank):
            return evaluated(self.form, inputs, self.deviations)
        if reading.kind == "shard":
            return evaluated(self.form, self.taken(inputs, self.shards[rank]), self.deviations)
        if reading.kind == "place" and not self.contrasts_itself:
            return self._with_other_candidates(self._moved(rank, reading.place), inputs, reading.masks)
        if reading.kind == "first" and reading.masks in self.arrays:
            moved = self.taken(inputs, self._own_first(rank), frozenset({reading.masks}))
            return evaluated(self.form, moved, self.deviations)
        with np.errstate(all="ignore"):
            batches = self.form.arrange(inputs, self.deviations)
            edits = {"views": self._rank_by_rank, "first": self._with_own_first(reading, rank)}
            edit = edits.get(reading.kind) or self._from_place(reading, rank)
            return self.form.rows(tuple(edit(batch) for batch in batches), self.deviations)

    def _moved(self, rank: int, place: int) -> Any:
        """Which row stands where the reference has each row, for a rank that counts from the start of another."""
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
            parts.append(rows.values[..., k * self.count : (k + 1) * self.count])
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
            x = np.asarray(self.inputs[name], dtype=np.float64)
            steps = np.eye(x.size).reshape(x.size, *x.shape) if x.ndim else np.ones((1, 1, 1))
            at_once = max(1, _AT_ONCE // self.count**2)
            parts = []
            for i in range(0, len(steps), at_once):
                moved = {**self.inputs, name: x + 1j * STEP * steps[i : i + at_once]}
                values = self._evaluated(reading, rank, moved).values
                values = values.reshape(-1, values.shape[-1])
                parts.append(np.broadcast_to(np.imag(values) / STEP, (len(steps[i : i + at_once]), values.shape[-1])))
            slopes = np.concatenate(parts)
            self._slopes[key] = slopes.reshape(*x.shape, slopes.shape[-1])
        return self._slopes[key]

    def weights(self, reading: RankReading, rank: int) -> Any:
        """Weight of each row in the value under the reduction of the case."""
        rows = self.rows(reading, rank)
        each = replace(rows, values=np.eye(rows.values.shape[-1]))
        return np.real(reduced(each, self.deviations, self.probe.reduction))

    def anchors(self, reading: RankReading, rank: int) -> tuple[Any, Any, Any]:
        """Of each row the sample of its anchor, the place of its input in `arrays`, and its view.

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
