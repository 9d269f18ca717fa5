"""Rules of a run on several ranks, or in several steps: the rows of each, and how values and gradients are joined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nceref.cases.records import Outcome, Probe
from nceref.output.words import counted
from nceref.spec import Array, Labels, Loss
from nceref.targets.frameworks.steps import rows_by_share

VALUES = ("mean", "sum", "rank0", "each")
SYNCS = ("mean", "sum")


@dataclass(frozen=True)
class Contract:
    """The rules of one run on ranks: how rows are divided, and how values and gradients are joined.

    Steps of gradient accumulation are ranks that are taken in turn, by one process: all rules are the same.

    Attributes
    ----------
    world_size : int
        Number of ranks, W, or of steps, K.
    value : str
        Value of the joined batch: the ``mean`` or the ``sum`` of the ranks' values, that of rank 0
        (``rank0``), or that of every rank (``each``).
    sync : str
        Synchronization of gradients: ``mean`` divides their sum over the ranks by W, as data-parallel training does.
    shards : tuple of int
        Shares of the rows, one a rank; empty for equal ones.
    duplicate : bool
        Whether rows are repeated, from the first one on, until all ranks have equally many.
    axis : str
        Name that a target of JAX has for the axis of the devices; empty for the default.
    in_turn : bool
        Whether they are steps.
    """

    world_size: int
    value: str = "mean"
    sync: str = "mean"
    shards: tuple[int, ...] = ()
    duplicate: bool = False
    axis: str = ""
    in_turn: bool = False

    @property
    def part(self) -> str:
        """The word for one of them."""
        return "step" if self.in_turn else "rank"

    @property
    def letter(self) -> str:
        """The letter for their number."""
        return "K" if self.in_turn else "W"

    @property
    def words(self) -> str:
        """The run in words for a sentence: ``with 2 ranks``, ``in 2 steps``."""
        return f"{'in' if self.in_turn else 'with'} {counted(self.world_size, self.part)}"

    @property
    def unit(self) -> int:
        """The number that the number of rows must be a multiple of."""
        return 1 if self.duplicate else sum(self.shares)

    @property
    def multiple(self) -> int:
        """The number that the numbers of rows of designed cases are multiples of: one row alone has no negatives."""
        return 2 * self.unit if self.in_turn else self.unit

    @property
    def shares(self) -> tuple[int, ...]:
        """Rows of each rank, in units."""
        return self.shards or (1,) * self.world_size

    @property
    def divisor(self) -> int:
        """The number that the sum of the gradients of all ranks is divided by."""
        return self.world_size if self.sync == "mean" else 1

    @property
    def label(self) -> str:
        """The name of the run in ids of results, such as ``2-ranks-3+1`` or ``4-steps``."""
        shards = "-" + "+".join(map(str, self.shards)) if self.shards else ""
        return f"{self.world_size}-{self.part}{'s' * (self.world_size > 1)}{shards}"

    def rows(self, count: int) -> tuple[Any, ...]:
        """Indices of the rows of the joined batch that each rank has, in the order of the ranks.

        `count`, the number of rows of the joined batch, is a multiple of `unit`.
        """
        if self.duplicate:
            each = -(-count // self.world_size)
            return tuple(np.split(np.arange(each * self.world_size) % count, self.world_size))
        return rows_by_share(count, self.shares)

    def fits(self, probe: Probe) -> bool:
        """Whether the rows of a case can be shared so."""
        return (count := rows_of(probe)) > 0 and count % self.unit == 0

    def shard(self, probe: Probe, rank: int) -> Probe:
        """The case as one rank has it, without a reference of its own."""
        own, split = self.rows(rows_of(probe))[rank], split_inputs(probe.loss, probe.inputs)
        inputs = {name: x[own] if name in split else x for name, x in probe.inputs.items()}
        before = None if probe.before is None else self.shard(probe.before, rank)
        value = None if probe.reduction == "none" else probe.value
        bounds = probe.bounds
        if bounds is not None:
            # The gradients of one rank may be that much larger than what they are joined to.
            rooms = {n: self.divisor * np.asarray(b)[own if n in split else ...] for n, b in bounds.grads.items()}
            bounds = replace(bounds, grads=rooms)
        return replace(probe, inputs=inputs, value=value, grads={}, bounds=bounds, before=before)

    def joined(self, outcomes: Sequence[Outcome], probe: Probe) -> Outcome:
        """The outcome of all ranks together, which keeps theirs in `ranks`.

        `outcomes` has one for each rank, none with trouble. `probe` is the joined case.
        """
        values = np.array([outcome.value for outcome in outcomes], dtype=np.float64)
        named = [name for name in outcomes[0].grads if all(name in outcome.grads for outcome in outcomes)]
        grads = {name: self._gradient(name, outcomes, probe) for name in named}
        unjudged = {name: why for outcome in outcomes for name, why in outcome.unjudged.items()}
        remarks = {id: self._on_rank(outcomes, id) for outcome in outcomes for id in outcome.remarks}
        remarks |= self._disagreement(values, probe) | self._not_finite(outcomes)
        value = {"mean": np.mean(values), "sum": np.sum(values)}.get(self.value, values[0])
        return Outcome(float(value), grads, unjudged, remarks=remarks, ranks=tuple(outcomes))

    def _gradient(self, name: str, outcomes: Sequence[Outcome], probe: Probe) -> Any:
        """The sum over the ranks, of the copies of a row too, divided or not."""
        parts: list[Any] = [np.asarray(outcome.grads[name], dtype=np.float64) for outcome in outcomes]
        if name not in split_inputs(probe.loss, probe.inputs):
            return (sum(parts) / self.divisor)[()]
        total = np.zeros(np.shape(probe.inputs[name]))
        for own, part in zip(self.rows(len(total)), parts, strict=True):
            np.add.at(total, own, part)
        return total / self.divisor

    def parted(self, answer: tuple[Any, Mapping[str, Any]], probe: Probe) -> list[tuple[Any, dict[str, Any]]]:
        """One answer for each rank, so that joined they are the known answer to the joined case."""
        value, grads = answer
        split, rows = split_inputs(probe.loss, probe.inputs), self.rows(rows_of(probe))
        # Where a row has copies, each has its share.
        copies = np.bincount(np.concatenate(rows), minlength=rows_of(probe))
        out = []
        for own in rows:
            share = {n: self._factor(copies[own], np.ndim(g)) for n, g in grads.items() if n in split}
            whole = self.divisor / len(rows)
            parts = {n: np.asarray(g)[own] * share[n] if n in split else whole * g for n, g in grads.items()}
            out.append((value / self.world_size if self.value == "sum" else value, parts))
        return out

    def _factor(self, copies: Any, dimensions: int) -> Any:
        return (self.divisor / copies).reshape(-1, *(1,) * (dimensions - 1))

    def _disagreement(self, values: Any, probe: Probe) -> dict[str, str]:
        """A remark if a rank has another value than rank 0 where every rank must have the value of the joined batch."""
        room = 2 * float(np.max(probe.bounds.value)) if probe.bounds else 0.0
        # Written so that NaN is apart; so is infinity from infinity.
        with np.errstate(invalid="ignore"):
            apart = [r for r, x in enumerate(values) if not abs(x - values[0]) <= room]
        if self.value != "each" or not apart or not np.all(np.isfinite(values)):
            return {}
        return {
            "ranks-disagree": f"gives {values[apart[0]]:.6g} on rank {apart[0]} and {values[0]:.6g} on rank 0;"
            " with the value of each, all must be alike"
        }

    def _on_rank(self, outcomes: Sequence[Outcome], id: str) -> str:
        """The words of a remark, with the ranks that made it unless all did."""
        ranks = [r for r, outcome in enumerate(outcomes) if id in outcome.remarks]
        words = outcomes[ranks[0]].remarks[id]
        return words if len(ranks) == len(outcomes) else f"{words} on {listed_ranks(ranks, len(outcomes), self.part)}"

    def _not_finite(self, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """A remark that names the ranks where a value or a gradient is not finite, if there are others where it is."""
        bad: dict[str, list[int]] = {}
        for rank, outcome in enumerate(outcomes):
            named = {"value": outcome.value, **{f"gradient of `{n}`": g for n, g in outcome.grads.items()}}
            for what, x in named.items():
                if not np.all(np.isfinite(x)):
                    bad.setdefault(what, []).append(rank)
        some = {what: ranks for what, ranks in bad.items() if len(ranks) < len(outcomes)}
        if not some:
            return {}
        what, ranks = next(iter(some.items()))
        where = listed_ranks(ranks, len(outcomes), self.part)
        return {f"not-finite-on-a-{self.part}": f"has a {what} that is not finite on {where}"}


def split_inputs(loss: Loss, inputs: Mapping[str, Any]) -> frozenset[str]:
    """Names of the inputs whose first axis is that of the samples: every rank has its own rows of them."""
    declared = [p for p in loss.parameters if isinstance(p, Array | Labels) and inputs.get(p.name) is not None]
    return frozenset(p.name for p in declared if p.shape[:1] == ("N",) and np.ndim(inputs[p.name]))


def rows_of(probe: Probe) -> int:
    """Samples of the joined batch."""
    return max((len(probe.inputs[name]) for name in split_inputs(probe.loss, probe.inputs)), default=0)


def listed_ranks(ranks: Sequence[int], count: int, part: str = "rank") -> str:
    """The ranks in words, such as "ranks 0, 2 of 4"; `count` is the number of all, and `part` the word for one."""
    return f"{part}{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))} of {count}"
