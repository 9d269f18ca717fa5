"""An explanation of what is wrong between ranks, and its ids."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nceref.diagnosis.options import Option
from nceref.diagnosis.ranks.fits import UNSEEN, Powers, SharedFit, ValueFit
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.targets.ranks.contract import Contract

IN_STEPS = {
    "local-candidates-only": "step-candidates-only",
    "mean-of-means": "mean-of-step-means",
    "value-times-ranks": "value-times-steps",
    "value-is-a-share": "value-divided-by-steps",
    "gradient-divided-by-ranks": "gradient-divided-by-steps",
    "gradient-times-ranks": "gradient-times-steps",
    "scalar-not-synchronized": "scalar-not-accumulated",
    "one-rank-apart": "one-step-apart",
}
"""What steps do that is called otherwise of ranks."""


@dataclass(frozen=True)
class RankExplanation:
    """An explanation of what the ranks do, on one number of them.

    Attributes
    ----------
    contract : Contract
    value : ValueFit
    gradients : mapping or None
        `Powers` by input that is split; None where the gradients are not explained.
    shared : mapping
        `SharedFit` by input that all ranks have.
    conventions : tuple of Option
        Conventions of the joined loss.
    cases : int
        All of them are as it says.
    itself : bool
        Whether anchors are among their own candidates.
    """

    contract: Contract
    value: ValueFit
    gradients: Mapping[str, Powers] | None
    shared: Mapping[str, SharedFit]
    conventions: tuple[Option, ...]
    cases: int
    itself: bool

    def agrees(self, other: "RankExplanation") -> bool:
        """Whether it says the same on another number of ranks, on which other parts may be seen."""
        shared, again = ({n: fit.signature for n, fit in each.shared.items()} for each in (self, other))
        if self.value.signature != other.value.signature or shared != again:
            return False
        if self.gradients is None or other.gradients is None:
            return self.gradients is other.gradients
        both = ((self.gradients[n], other.gradients.get(n, ())) for n in self.gradients)
        return self.gradients.keys() == other.gradients.keys() and all(
            mine == theirs or UNSEEN in (mine, theirs) for a, b in both for mine, theirs in zip(a, b, strict=True)
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of what is wrong between ranks, conventions apart."""
        by_value = [*_reading_ids(self), *_value_ids(self.value, self.contract)]
        by_gradient = [id for each in (self.gradients or {}).values() for id in gradient_ids(each)]
        by_shared = [id for name, fit in self.shared.items() if (id := self._shared_id(name, fit))]
        # Readings first, then the value, then rows, then scalars.
        ids = dict.fromkeys([*by_value, *sorted(by_gradient, key=_ORDER.index), *by_shared])
        return tuple(IN_STEPS.get(id, id) if self.contract.in_turn else id for id in ids)

    def _shared_id(self, name: str, fit: SharedFit) -> str:
        if fit.power is None:
            return "temperature-detached" if name in INVERSE_TEMPERATURES else "bias-detached"
        rows = {p for each in (self.gradients or {}).values() for p in each if p not in (None, UNSEEN)}
        as_rows = rows == {fit.power} and not fit.partial
        return "" if (fit.power == 0 and not fit.partial) or as_rows else "scalar-not-synchronized"


_ORDER = ("own-shard-detached", "cross-rank-terms-missing", "gradient-divided-by-ranks", "gradient-times-ranks")


def _reading_ids(explanation: RankExplanation) -> Iterator[str]:
    fit = explanation.value
    kinds = {reading.kind for reading in fit.readings}
    if "shard" in kinds:
        yield "local-candidates-only"
    if "without" in kinds:
        yield "one-shard-missing" if fit.readings[0].masks in ("next", "previous") else "one-input-not-gathered"
    if "labels" in kinds:
        yield "own-labels-repeated"
    if "weights" in kinds:
        yield "weights-of-own-shard"
    if kinds & {"views", "first"}:
        yield "shards-reordered"
    if "place" in kinds:
        yield "rank-offset-forgotten" if not any(r.place for r in fit.readings) else "shards-reordered"
    if explanation.contract.duplicate:
        yield "duplicated-rows"


def _value_ids(fit: ValueFit, contract: Contract) -> Iterator[str]:
    if fit.share == "own mean":
        yield "mean-of-means"
    if fit.power > 0:
        yield "value-times-ranks"
    # A part of the batch is not the value of every rank.
    elif fit.power < 0 or (fit.share == "own" and "shard" not in {r.kind for r in fit.readings}
                           and contract.value in ("rank0", "each")):  # fmt: skip
        yield "value-is-a-share"


def gradient_ids(each: Powers) -> Iterator[str]:
    """Ids of what is wrong with the gradient by one input."""
    _, own, cross = each
    if own is None:
        yield "own-shard-detached"
    elif cross is None:
        yield "cross-rank-terms-missing"
    known = [p for p in each if p not in (None, UNSEEN)]
    if any(p < 0 for p in known if p is not None):
        yield "gradient-divided-by-ranks"
    if any(p > 0 for p in known if p is not None):
        yield "gradient-times-ranks"
