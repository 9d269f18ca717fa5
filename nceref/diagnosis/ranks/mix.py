"""Two losses that are added up: whether one counts as much against the other on every number of ranks."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nceref.cases.records import Diagnosis, DiagnosisPart, Outcome, Probe, Result
from nceref.diagnosis.gaps import diagnosis
from nceref.diagnosis.simple_numbers import recognized
from nceref.spec import Array
from nceref.targets.ranks.contract import Contract
from nceref.tolerance.implementation import FORMATS

ID = "mix-depends-on-ranks"
_CASES = 4
"""Small ones that are looked at."""


def check_mix(
    label: str, contract: Contract, probes: Sequence[Probe], runs: Sequence[tuple[str, Any]], weight: float
) -> Iterator[Result]:
    """Compare what two targets answer on ranks with what each answers on one rank.

    `label`: of the run. `probes`: of the run; the reference is not looked at. `runs`: the first target and the one that
    is added, each with its name, ready to run. `weight`: what the second is multiplied with. Each: ``mix.value`` and
    ``mix.gradient``.
    """
    chosen = [p for p in probes if not p.skip and p.grads and not p.is_large][:_CASES]
    answers = []
    for name, run in runs:
        alone, together = (_answers(run, each, chosen) for each in (Contract(1), contract))
        answers.append((name, alone, together))
        if trouble := next((o.sentence for o in (*alone, *together) if o.trouble), ""):
            yield _result(label, "value", "error", f"{name} {trouble}")
            return
    for what in ("value", "gradient"):
        yield _judged(label, what, contract, chosen, answers, weight)


def mix_diagnoses(results: Sequence[Result]) -> tuple[Diagnosis, ...]:
    """Diagnoses where nothing fails but the mix.

    `results`: all of a run.
    """
    failed = [r for r in results if r.status in ("fail", "error")]
    if not failed or not all(r.quantity.startswith("mix.") and r.status == "fail" for r in failed):
        return ()
    return (diagnosis(ID, *(DiagnosisPart(r.why) for r in failed)),)


def _answers(run: Any, contract: Contract, probes: Sequence[Probe]) -> list[Outcome]:
    run.use(contract)
    return [run(probe) for probe in probes]


def _judged(
    label: str,
    what: str,
    contract: Contract,
    probes: Sequence[Probe],
    answers: Sequence[tuple[str, Sequence[Outcome], Sequence[Outcome]]],
    weight: float,
) -> Result:
    room = math.sqrt(FORMATS[probes[0].dtype].storage.u)
    factors = []
    for name, alone, together in answers:
        one, several = (_numbers(what, outcomes, probes) for outcomes in (alone, together))
        factor = float(one @ several / (one @ one)) if one.any() else math.nan
        if not np.linalg.norm(several - factor * one) <= room * np.linalg.norm(several):
            why = f"with {contract.world_size} ranks the {what} of {name} is no multiple of that with 1 rank"
            return _result(label, what, "fail", why)
        factors.append((name, factor))
    (first, a), (second, b) = factors
    if abs(b - a) <= room * abs(a):
        return _result(label, what, "pass", f"with {contract.world_size} ranks both {what}s are as with 1 rank")
    return _result(
        label,
        what,
        "fail",
        f"with {contract.world_size} ranks the {what} of {first} is {recognized(a)[1]} times that with 1 rank, of"
        f" {second} {recognized(b)[1]} times: the weight {weight:g} counts as {recognized(weight * b / a)[1]}",
    )


def _numbers(what: str, outcomes: Sequence[Outcome], probes: Sequence[Probe]) -> Any:
    """All values, or all gradients by embeddings, one after the other."""
    if what == "value":
        return np.array([o.value for o in outcomes], dtype=np.float64)
    rows = [p.name for p in probes[0].loss.parameters if isinstance(p, Array) and not p.constant]
    return np.concatenate([np.ravel(o.grads[n]) for o in outcomes for n in rows if n in o.grads] or [np.zeros(0)])


def _result(label: str, what: str, status: Any, why: str) -> Result:
    return Result(f"{label}/mix.{what}", label, f"mix.{what}", status, None, None, None, why)
