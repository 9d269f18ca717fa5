"""What is wrong between ranks in words: what was measured, on how many ranks, and what training makes of it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from nceref.cases.records import DiagnosisPart
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.gaps import listed
from nceref.diagnosis.ranks.explanation import RankExplanation
from nceref.diagnosis.ranks.fits import ROLES, UNSEEN, Powers, SharedFit
from nceref.targets.ranks.contract import Contract

_TRAINING: dict[str, str] = {
    "local-candidates-only": "training sees the candidates of one rank, and has another optimum",
    "one-shard-missing": "training sees the candidates of all ranks but one, and has another optimum",
    "one-input-not-gathered": "one side of training sees the candidates of one rank, and has another optimum",
    "own-labels-repeated": "training draws wrong pairs together",
    "weights-of-own-shard": "pairs are weighed by those of one rank, and training has another optimum",
    "rank-offset-forgotten": "on every rank but the first, training draws wrong pairs together",
    "shards-reordered": "training draws wrong pairs together",
    "duplicated-rows": "repeated rows count twice, and have their own copies among their candidates",
    "mean-of-means": "rows on smaller shards weigh more in training",
    "own-shard-detached": "training lacks terms, and has another optimum",
    "cross-rank-terms-missing": "training lacks the terms between ranks, and has another optimum",
    "gradient-divided-by-ranks": "training goes as with a learning rate that is divided by W",
    "gradient-times-ranks": "training goes as with a learning rate that is multiplied by W",
    "scalar-not-synchronized": "that scalar is trained with another learning rate than the rows",
    "step-candidates-only": "training sees the candidates of one step, and has another optimum",
    "mean-of-step-means": "rows of smaller steps weigh more in training",
    "gradient-divided-by-steps": "training goes as with a learning rate that is divided by K",
    "gradient-times-steps": "training goes as with a learning rate that is multiplied by K",
    "scalar-not-accumulated": "that scalar is trained with another learning rate than the rows",
}
_OF_SELF_MASK = dict.fromkeys(
    ("rank-offset-forgotten", "shards-reordered"),
    "rows are negatives of themselves where the mask is that of others, and training has another optimum",
)
ALONE = DiagnosisPart("training is right; only the number that is logged is not", "", "training")
"""What becomes of training where the value alone is wrong."""


def parts_of(main: RankExplanation, runs: Sequence[RankExplanation]) -> tuple[DiagnosisPart, ...]:
    """Parts of the sentence on what was measured.

    `main`: which is put into words. `runs`: one for each number of ranks, or of steps. Result: the rest of what begins
    with ``with W ranks`` or ``in K steps``.
    """
    # The first is what was asked for; the other number of ranks was called beside that.
    counts = (f"on all {e.cases} cases of {e.contract.world_size} {main.contract.part}s" for e in runs)
    where = ", and as a check ".join(counts)
    *first, last = value_words(main), *gradient_words(main)
    measured = (*first, replace(last, cases=f"({where})"), *_candidates(main))
    # Beside a convention, what the factor of the gradient is one of is not the right gradient.
    return measured if main.conventions else (*measured, *_training(main))


def _training(main: RankExplanation) -> Sequence[DiagnosisPart]:
    if main.gradients is None:
        return (DiagnosisPart("its gradient is something else"),)
    effects = _TRAINING | (_OF_SELF_MASK if main.value.readings[0].masks == "self" else {})
    return [DiagnosisPart(effects[id], "", "training") for id in main.ids if id in effects] or [ALONE]


def _candidates(main: RankExplanation) -> Iterator[DiagnosisPart]:
    """The number of samples that an anchor of a step is compared with."""
    contract = main.contract
    if contract.in_turn and _is_of_shards(main):
        those = "those of its step" if contract.shards else "N/K - 1"
        yield DiagnosisPart(f"each sample is compared with {those} in place of N - 1 others", "", "note")


def formulas(main: RankExplanation) -> tuple[str, str]:
    """The formulas of all steps together and of the reference; empty for ranks, whose rows may be anywhere."""
    if not main.contract.in_turn or main.conventions:
        return "", ""
    # A step should give its share of the value.
    factor = {0: "1/K ", 1: "", -1: "1/K^2 "}.get(main.value.power)
    if factor is None or not _is_of_shards(main):
        return "", ""
    return f"{factor}sum_k L(rows of step k)", "L(all N rows)"


def _is_of_shards(main: RankExplanation) -> bool:
    return any(reading.kind == "shard" for reading in main.value.readings)


def value_words(main: RankExplanation) -> DiagnosisPart:
    """The words for the value."""
    words = _value_words(main)
    return DiagnosisPart(words, "", "right" if words in (_RIGHT, _OF_OWN_ROWS) else "wrong")


_RIGHT, _OF_OWN_ROWS = "the value is right", "a rank's value is that of its own rows"


def _value_words(main: RankExplanation) -> str:
    fit, power = main.value, main.value.power
    beside = listed([CONVENTIONS[o.id].phrase for o in main.conventions]) if main.conventions else ""
    kinds = {reading.kind for reading in fit.readings}
    part, letter = main.contract.part, main.contract.letter
    times = f"{written_power(power, letter)} times " if power else ""
    if "shard" in kinds and main.contract.in_turn:
        # As it is returned: its share of a sum is 1/K of it.
        returned = power - (main.contract.value == "sum")
        times = f"{written_power(returned, letter)} times " if returned else ""
    if "shard" in kinds:
        return f"a {part}'s value is {times}the loss of its own rows alone"
    if kinds & _OF_READINGS.keys():
        reading = fit.readings[0]
        which = _SHARDS.get(reading.masks, reading.masks)
        return f"a rank's value is {times}that {_OF_READINGS[reading.kind][reading.masks in _SHARDS].format(which)}"
    if "views" in kinds:
        return (
            f"a rank's value is {times}that of rows which stand rank by rank, with masks for one view after the other"
        )
    if "first" in kinds:
        masks = fit.readings[0].masks
        which, rest = ("candidates", "masks") if masks in ("both", "labels") else (f"rows of {masks}", "the rest")
        return f"a rank's value is {times}that with the rank's own {which} first, and {rest} in the order of the ranks"
    if "place" in kinds:
        return f"a rank's value is {times}that with {_places(main)}"
    if main.contract.duplicate:
        return f"a rank's value is {times}that of the batch with its repeated rows"
    if fit.share == "own mean":
        return f"a {part}'s value is {times}the mean over its own rows, whose numbers differ"
    if power:
        of = {"all": "", "own": ", of its own rows"}[fit.share]
        what = f"that with {beside}" if beside else "what it should be"
        return f"a {part}'s value{of}{',' * bool(of)} is {written_power(power, letter)} times {what}"
    if fit.share == "own" and main.contract.value in ("rank0", "each"):
        return _OF_OWN_ROWS
    return f"the value is that with {beside}" if beside else _RIGHT


_SHARDS = {"next": "after it", "previous": "before it"}
_OF_READINGS = {
    "without": ("with the rank's own rows alone as candidates of `{}`", "without the candidates of the rank {}"),
    "labels": ("with the rank's own `{}` repeated for the rows of all ranks",),
    "weights": ("with weights of the {} that are normalized over the rank's own rows",),
}
_MASKS = {"both": "positives and self mask", "labels": "positives", "self": "self mask", "own": "self mask"}


def _places(main: RankExplanation) -> str:
    masks = main.value.readings[0].masks
    what = _MASKS[masks] if main.itself else "positives" + ("" if masks == "both" else f" among {masks}")
    if not any(r.place for r in main.value.readings):
        return f"the {what} of rank 0 on every rank"
    taken = [f"those of rank {r.place} on rank {k}" for k, r in enumerate(main.value.readings) if r.place != k]
    return f"the {what} of other ranks, of {main.contract.world_size} ranks {listed(taken)}"


def gradient_words(main: RankExplanation) -> Iterator[DiagnosisPart]:
    """The words for the gradients, inputs with the same together."""
    by_words: dict[str, list[str]] = {}
    right = "is right" if main.value.plain and main.value.share != "own mean" else "is that of this value"
    contract = main.contract
    for name, each in (main.gradients or {}).items():
        by_words.setdefault(_powers_words(each, contract).replace("is right", right), []).append(name)
    for name, fit in main.shared.items():
        by_words.setdefault(_shared_words(fit, contract).replace("is right", right), []).append(name)
    for words, names in by_words.items():
        # Beside a convention nothing is right.
        like = words.replace("the right one", "that of the loss with this") if main.conventions else words
        if contract.in_turn and _is_of_shards(main):
            like = words.replace("the right one", "that of the mean of the losses of the steps' rows")
        yield DiagnosisPart(f"the gradient of {listed(names)} {like}", "", "right" if words == right else "wrong")


def _powers_words(each: Powers, contract: Contract) -> str:
    letter = contract.letter
    seen = [(power, role) for power, role in zip(each, ROLES, strict=True) if power != UNSEEN]
    known = {power for power, _ in seen}
    if known <= {0}:
        return "is right"
    if len(known) == 1 and None not in known:
        return f"is {written_power(known.pop(), letter)} times the right one"
    missing = [role for power, role in seen if power is None]
    rest = {power for power in known if power is not None}
    if not rest:
        return "is 0"
    lacks = f"lacks what rows have as {listed(missing)}" if missing else ""
    if len(rest) == 1:
        power = rest.pop()
        return f"{lacks}, and the rest is {written_power(power, letter)} times the right one" if power else lacks
    times = {p: f"{written_power(p, letter)} times the right one" if p else "right" for p in rest}
    factors = [(times[p], role) for p, role in seen if p is not None]
    words = listed([f"{factor} for rows as {role}" for factor, role in factors])
    return f"is {words}" + (f", and {lacks}" if lacks else "")


def _shared_words(fit: SharedFit, contract: Contract) -> str:
    part = contract.part
    if fit.power is None:
        return f"is 0 on every {part}"
    many = len(fit.without) != 1
    nothing = f"{part}{'s' * many} {listed(map(str, fit.without))} leave{'s' * (not many)} 0" if fit.without else ""
    if fit.partial:
        return f"lacks the part of some {part}s: {nothing}"
    words = "is right" if fit.power == 0 else f"is {written_power(fit.power, contract.letter)} times the right one"
    return f"{words} ({nothing})" if fit.without and fit.power else words


def written_power(power: Any, letter: str = "W") -> str:
    """Such as W, 1/W or W^2."""
    if power == 0:
        return "1"
    size = letter if abs(power) == 1 else f"{letter}^{abs(power)}"
    return size if power > 0 else f"1/{size}"
