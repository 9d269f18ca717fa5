"""What is wrong between ranks: an explanation that predicts what every rank answers, for two numbers of ranks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from nceref.cases.records import Diagnosis, DiagnosisPart, Observation
from nceref.diagnosis.gaps import diagnosis, gaps, listed
from nceref.diagnosis.options import Option
from nceref.diagnosis.ranks.by_rank import LEAST, answered, predicted
from nceref.diagnosis.ranks.explanation import IN_STEPS, RankExplanation
from nceref.diagnosis.ranks.fits import ValueFit, powers, shared_fit, value_fits
from nceref.diagnosis.ranks.intended import GATHER, KEPT
from nceref.diagnosis.ranks.one_rank import one_rank_apart
from nceref.diagnosis.ranks.parts import RankCase
from nceref.diagnosis.ranks.words import formulas, parts_of
from nceref.output.words import counted, out_of
from nceref.targets.ranks.contract import SYNCS, Contract

Observed = tuple[Sequence[Observation], Contract]
_OUTSIDE = frozenset({"offset", "gradient-factor"})
"""Axes that are no step of a dense form, and no known factor of its rows."""


def diagnose_ranks(
    observations: Sequence[Observation],
    contract: Contract,
    other: Callable[[], Observed | None],
    wrong_alone: frozenset[str] = frozenset(),
) -> tuple[Diagnosis, ...]:
    """Explain what is wrong between ranks.

    `observations`: of joined batches, whose outcomes have `ranks`. `other`: the same of another number of ranks, or
    None where that cannot be. `wrong_alone`: ids of cases that one rank alone has wrong; they are left out where
    nothing explains them all. Result: empty where nothing between ranks predicts all cases.
    """
    seen = answered(observations, contract)
    if result := _first_explained(seen, contract, other):
        return result
    if contract.in_turn and (restated := _restated(seen, contract)):
        return restated
    kept = [o for o in seen if o.probe.id not in wrong_alone]
    left = sorted({o.probe.id for o in seen} & wrong_alone)
    without = partial(_without, other, wrong_alone)
    if left and len(kept) >= len(left) and (result := _first_explained(kept, contract, without)):
        what = f"left out: {out_of(len(left), len(seen), 'case')} that one rank alone has wrong, {listed(left)}"
        return tuple(replace(d.noting(what), predicts=None) for d in result)
    return one_rank_apart(predicted(kept, contract), lambda: _predicted(without()))


def _restated(seen: Sequence[Observation], contract: Contract) -> tuple[Diagnosis, ...]:
    """The factor that is wrong where the same steps, added up or averaged in the other way, are right on all cases."""
    if len(seen) < LEAST:
        return ()
    for value, sync in product(SYNCS, SYNCS):
        other = replace(contract, value=value, sync=sync)
        joined = (replace(o, outcome=other.joined(o.outcome.ranks, o.probe)) for o in seen)
        if other != contract and all(gap.right for o in joined for gap in gaps(o).values()):
            ways = (("value", contract.value, value), ("gradient", contract.sync, sync))
            changed = [(what, own) for what, own, needed in ways if own != needed]
            ids = [f"{what}-{'divided-by' if own == 'mean' else 'times'}-steps" for what, own in changed]
            words = [f"the {what} is {'1/K' if own == 'mean' else 'K'} times the right one" for what, own in changed]
            cases = f"(on all {len(seen)} cases of {counted(contract.world_size, 'step')})"
            parts = (*map(DiagnosisPart, words[:-1]), DiagnosisPart(words[-1], cases))
            intend = " ".join(
                f"--{option} {needed}"
                for option, own, needed in (("value", contract.value, value), ("sync", contract.sync, sync))
                if own != needed
            )
            return (replace(diagnosis("+".join(ids), *parts), where="in K steps,", intend=intend),)
    return ()


def _predicted(run: Observed | None) -> list[RankCase]:
    return predicted(answered(*run), run[1]) if run is not None else []


def _without(other: Callable[[], Observed | None], ids: frozenset[str]) -> Observed | None:
    """The other run, but for some cases."""
    run = other()
    return run and ([o for o in run[0] if o.probe.id not in ids], run[1])


def _first_explained(
    seen: Sequence[Observation], contract: Contract, other: Callable[[], Observed | None]
) -> tuple[Diagnosis, ...]:
    """The first explanation of values and gradients on all cases; else that of the values."""
    if len(seen) < LEAST or all(gap.right for o in seen for gap in gaps(o).values()):
        return ()
    value_alone: tuple[Diagnosis, ...] = ()
    for conventions in _conventions(seen):
        for explanation in _explanations(seen, contract, conventions):
            if not _between_ranks(explanation):
                continue
            if (confirmed := _confirmed(explanation, other())) is None:
                continue
            result = (_diagnosis(confirmed),)
            if explanation.gradients is not None:
                return result
            value_alone = value_alone or result
        if value_alone:
            return value_alone
    return ()


def _conventions(seen: Sequence[Observation]) -> Iterator[tuple[Option, ...]]:
    """None, then those that explain the values of the joined batch."""
    yield ()
    from nceref.diagnosis.fresh import NO_CALLS
    from nceref.diagnosis.refute import explained

    known: list[tuple[Option, ...]] = []
    for explanation in explained(seen, NO_CALLS).kept:
        options = tuple(o for o in explanation.options if o.axis not in _OUTSIDE and o.id != "outer-factor-constant")
        # On one number of ranks, their number is a factor as any other.
        for some in (options, tuple(o for o in options if o.axis != "factor")):
            if some and some not in known:
                known.append(some)
                yield some


def _explanations(
    seen: Sequence[Observation],
    contract: Contract,
    conventions: tuple[Option, ...],
    like: ValueFit | None = None,
) -> Iterator[RankExplanation]:
    """Explanations of the values, and of the gradients if they can, of every rank on all cases, as of `like`."""
    cases = predicted(seen, contract, {o.id: o.value for o in conventions})
    if not cases:
        return
    small = [case for case in cases if not case.probe.is_large and case.probe.grads]
    names = [n for n in small[0].probe.grads if all(n in a.grads for c in small for a in c.answers)] if small else []
    for fit in value_fits(cases):
        if like is not None and fit.signature != like.signature:
            continue
        by_name = {n: powers(small, fit, n) for n in names if n in small[0].split}
        shared = {n: shared_fit(small, fit, n) for n in names if n not in small[0].split}
        gradients = {n: p for n, p in by_name.items() if p is not None}
        sums = {n: f for n, f in shared.items() if f is not None}
        whole = bool(names) and len(gradients) + len(sums) == len(names)
        yield RankExplanation(
            contract, fit, gradients if whole else None, sums if whole else {}, conventions, len(cases),
            cases[0].contrasts_itself,
        )  # fmt: skip


def _between_ranks(explanation: RankExplanation) -> bool:
    """Whether anything is wrong that one process would not have."""
    ids = explanation.ids
    anchors = [each[0] for each in (explanation.gradients or {}).values()]
    return any(not id.endswith("-detached") or id == "own-shard-detached" for id in ids) and None not in anchors


def _confirmed(
    explanation: RankExplanation, other: Observed | None
) -> tuple[RankExplanation, RankExplanation | None] | None:
    """The diagnosis with the explanation of the other run, which must be the same; None where it is not."""
    seen = answered(*other) if other is not None else []
    # A target that cannot run on as many ranks is explained by this run alone.
    if other is None or not seen:
        return explanation, None
    for again in _explanations(seen, other[1], explanation.conventions, explanation.value):
        if again.agrees(explanation):
            return explanation, again
    return None


def _diagnosis(confirmed: tuple[RankExplanation, RankExplanation | None]) -> Diagnosis:
    first, second = confirmed
    # More ranks tell which places are taken.
    main = max((e for e in confirmed if e is not None), key=lambda e: e.contract.world_size)
    ids = "+".join([*(o.id for o in first.conventions), *main.ids])
    words = parts_of(main, tuple(e for e in (first, second) if e))
    intend = _options(main)
    found = diagnosis(ids, *words, predicts=partial(_predicts, first))
    where = "in K steps," if first.contract.in_turn else "with W ranks,"
    yours, reference = formulas(main)
    return replace(found, where=where, intend=intend, formula=yours, reference=reference)


def _options(explanation: RankExplanation) -> str:
    """Options under which this is the contract between ranks, or the gather that is intended."""
    ids, contract = explanation.ids, explanation.contract
    stated = {
        "value-is-a-share": "--value sum" * (contract.value == "mean"),
        "gradient-divided-by-ranks": "--sync sum" * (contract.sync == "mean"),
        "gradient-times-ranks": "--sync mean" * (contract.sync == "sum"),
    }
    stated |= {IN_STEPS[id]: option for id, option in stated.items()}
    stated |= {"value-times-steps": "--value mean" * (contract.value == "sum")}
    if explanation.conventions or explanation.gradients is None:
        return ""
    if len(ids) == 1 and ids[0] in KEPT and not contract.duplicate:
        return f"--set {GATHER}={ids[0]}"
    return " ".join(stated[id] for id in ids) if all(map(stated.get, ids)) else ""


def _predicts(explanation: RankExplanation, observations: Sequence[Observation]) -> bool:
    """Whether other cases of as many ranks are as it says."""
    seen = answered(observations, explanation.contract)
    again = _explanations(seen, explanation.contract, explanation.conventions, explanation.value) if seen else ()
    return any(each.agrees(explanation) for each in again)
