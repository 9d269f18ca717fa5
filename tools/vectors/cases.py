"""The small cases of a loss: which inputs, what is expected of each, and which known bugs each of them sees."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace as changed
from typing import Any

import numpy as np

from mutants.bug import bugs, target
from mutants.score import intended
from nceref.cases.corpus.clauses import clause_of
from nceref.cases.corpus.corpus import designed_inputs, evaluate
from nceref.cases.judge import judge
from nceref.cases.records import Observation
from nceref.exact.certified import NotProvenError, certified, numbers
from nceref.losses import default_of
from nceref.spec import Array, Choice, Labels, Loss, Scalar
from nceref.targets.runner import in_process
from nceref.verification.vectors.packed import MOST_ENTRIES
from nceref.verification.vectors.proven import enclosed_by_decimals, vector_outputs
from nceref.verification.vectors.records import ERROR, FEW_BITS, VALUE, VectorCase, VectorOutput, content_id, probe_of

_LEFT_OUT = ("many", "random", "zero")
"""Geometries of the suite without vectors: two that others make up for, and rows that have no direction."""
_OF_VARIANTS = ("designed", "seven", "lonely"), (None, 0.3, 0.07, 0.5)
"""Geometries and temperatures of the arguments that are not those of the first variant."""


def small_inputs(loss: Loss) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and arguments of the small cases of a loss, before anything is known of their outputs."""
    for number, variant in enumerate(loss.variants):
        for name, inputs in designed_inputs(loss, variant, "standard", FEW_BITS, 0, {}):
            _, geometry, temperature = clause_of(name)
            of_variants = geometry in _OF_VARIANTS[0] and temperature in _OF_VARIANTS[1]
            wanted = of_variants if number else geometry not in _LEFT_OUT
            if wanted and max(np.size(x) for x in inputs.values()) <= MOST_ENTRIES:
                yield name, {p.name: inputs.get(p.name, default_of(p)) for p in loss.parameters}


def small_cases(loss: Loss, second: bool = True) -> Iterator[VectorCase]:
    """The small cases of a loss, without the bugs that each case sees; those that have no proof are left out.

    With `second` the decimal engine runs as well. Raises `ArithmeticError` where the two engines contradict each other.
    """
    seen = set()
    for name, arguments in small_inputs(loss):
        numeric = {p.name for p in loss.parameters if isinstance(p, Array | Labels | Scalar)}
        given = {key: x for key, x in arguments.items() if x is not None}
        inputs = {key: x for key, x in given.items() if key in numeric}
        settings = {key: x for key, x in given.items() if key not in numeric}
        id = content_id(name, loss.name, settings, inputs)
        expect, outputs = _expected(loss, {**inputs, **settings}, second)
        clause = clause_of(name)[0]
        if expect and id not in seen:
            seen.add(id)
            yield VectorCase(id, loss.name, settings, inputs, expect, outputs, (clause.name,) if clause else ())


def _expected(loss: Loss, arguments: Mapping[str, Any], second: bool) -> tuple[str, dict[str, VectorOutput]]:
    """The expectation of a case, and its outputs; empty for inputs that make no case."""
    probe = evaluate(loss, arguments)
    if probe.skip:
        # Refused because a setting demands it; what is not defined at all is no case.
        demanded = any(isinstance(p, Choice) and arguments.get(p.name) == ERROR for p in loss.parameters)
        return (ERROR if demanded else "", {})
    if not probe.grads:
        return "", {}
    try:
        proven = certified(loss, **arguments)
    except NotProvenError:
        return "", {}
    proven = {name: np.asarray(x, dtype=object) for name, x in proven.items() if name != "rows"}
    if not all(one.settled() for _, one in numbers(proven)):
        return "", {}
    engines = {"arb": proven, **({"decimal": enclosed_by_decimals(loss, arguments)} if second else {})}
    return VALUE, vector_outputs(loss, arguments, engines)


def with_bugs(loss: Loss, cases: Iterable[VectorCase]) -> Iterator[VectorCase]:
    """The cases with the known bugs that fail on each, and those that pass."""
    runners = []
    for bug in bugs().values():
        if bug.loss == loss.name and "float64" in bug.dtypes and not _conventions(loss, bug.settings):
            settings = intended(bug)
            with in_process(target(bug), loss, framework="numpy", settings=settings) as run:
                runners.append((bug, settings, run))
    for case in cases:
        seen: dict[str, list[str]] = {"fail": [], "pass": []}
        if case.expect == VALUE:
            probe = probe_of(case, "float64")
            for bug, settings, run in runners:
                if _applies(loss, case, settings) and not (outcome := run(probe)).trouble:
                    fails = any(result.status == "fail" for result in judge(Observation(probe, outcome)))
                    seen["fail" if fails else "pass"].append(bug.id)
        yield changed(case, kills=tuple(seen["fail"]), blind=tuple(seen["pass"]))


def _conventions(loss: Loss, settings: Mapping[str, Any]) -> bool:
    """Whether any of the settings is no argument of the loss."""
    return not {*settings} <= {p.name for p in loss.parameters}


def _applies(loss: Loss, case: VectorCase, settings: Mapping[str, Any]) -> bool:
    """Whether a program that intends these settings is meant for a case."""
    arrays = {p.name for p in loss.parameters if isinstance(p, Array | Labels) and not p.required}
    same = all(case.arguments.get(name) == x for name, x in settings.items() if name not in arrays)
    return same and {name for name in settings if name in arrays} >= {name for name in case.inputs if name in arrays}
