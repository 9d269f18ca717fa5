"""The verdict: which rule of the table applies to the results of a run, and why, in one sentence."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nceref.cases.corpus.files import GIVEN
from nceref.cases.expected_failures import OUT_OF_DATE
from nceref.cases.judge import UNSUPPORTED
from nceref.cases.records import Result
from nceref.output.words import as_code, counted, out_of
from nceref.spec import Array
from nceref.targets.command_line import is_command
from nceref.targets.frameworks.call import PAIR
from nceref.targets.process.child import ENDED
from nceref.verification import report as codes
from nceref.verification.limits import below, limited_cases
from nceref.verification.request import Request

LEAST = 3
"""Cases that must be judged before a verdict means anything, unless the caller chose them."""


def decide_verdict(request: Request, results: Sequence[Result], runs: Sequence[Any]) -> tuple[str, int, str]:
    """Verdict, exit code and a sentence: the first line of the table that applies.

    `results` are those of all runs, with the expected failures marked; `runs` has one run for each dtype.
    """
    judged = sum(each.judged for each in runs)
    failed = [r for r in results if r.status in ("fail", "xpass")]
    errors = [r for r in results if r.status == "error"]
    trials = [t for each in runs for t in each.trials]
    survived = [t for t in trials if t.result == "survived"]
    unseen = [t for t in trials if t.result == "unseen"]
    lost = [t for t in trials if t.result == "lost"]
    # One rank alone says nothing of several that never answer together.
    mute = [r for r in errors if any(r.case.startswith(f"{each.label}/") for each in runs if not each.judged)]
    judged_grads, ungraded = graded(results)
    # Scalars do not count as missing: many targets take them as plain numbers.
    arrays = {p.name for p in request.loss.parameters if isinstance(p, Array)}
    missing = [name for name in ungraded if name in arrays and request.require_grad]
    held = sum(r.status == "xfail" for r in results)
    beside = _without_gradient(results, judged) if judged_grads else ""
    beside += _beside(held, ungraded if judged_grads else (), runs[0].never_given)
    known = {r.case for r in results if r.status == "xfail" and r.quantity.startswith(("value", "grad."))}
    limited = limited_cases(results)
    known |= limited
    beside += f"; not finite on {counted(len(limited), 'case')} {below(request)}" if limited else ""
    cases = f"on {out_of(judged - len(known), judged, 'case') if known else _judged_by_format(runs)}"
    # The order matters: a checker that passes wrong answers makes every later line worthless, and a target that never
    # ran has no difference to report. Sentences are built late, since `errors[0]` and the like exist for one line only.
    rules: tuple[tuple[Any, str, int, Callable[[], str]], ...] = (
        (survived, "error", codes.BROKEN_CHECKER, lambda: f"the checker passed a wrong answer: "
         f"{survived[0].wrong_answer.sentence}, on {survived[0].case}{_of(runs, survived[0])}; {_cause(results)}"),
        (lost, "error", codes.TARGET_FAILED, lambda: f"the checker could not test itself: the target's process"
         f" does not hand its answers on, it {lost[0].why}"),
        (ended := _ended(request, errors), "error", codes.TARGET_FAILED, lambda: _no_answer(ended)),
        (errors and not judged, "error", codes.TARGET_FAILED, lambda: f"no case could be judged: {errors[0].why}"),
        (mute and request.contracts, "error", codes.TARGET_FAILED,
         lambda: f"{_mute(runs)} no case could be judged: {mute[0].why}"),
        (failed or errors, "differs", codes.DIFFERS, lambda: _by_format(failed, errors, runs)),
        (few := _too_little(request, judged, runs), "inconclusive", codes.TOO_LITTLE, lambda: few),
        (unseen, "inconclusive", codes.INCONCLUSIVE, lambda: f"nothing failed, but no case would catch "
         f"{unseen[0].wrong_answer.sentence}{_of(runs, unseen[0])}: the bounds are wider than that"),
        (not judged_grads or missing, "value-only", codes.DIFFERS if request.require_grad else codes.CONFORMS,
         lambda: f"the value is right {cases}; there were no gradients to judge{_wanted(request, ungraded)}"
         f"{_no_pair(results)}{beside}"),
        (True, "conforms", codes.CONFORMS, lambda: f"value and gradients agree {cases}{beside}"),
    )  # fmt: skip
    return next((verdict, code, why()) for applies, verdict, code, why in rules if applies)


def _least(request: Request) -> int:
    """Cases that must be judged."""
    if request.recorded is not None:
        return request.recorded.least
    return 1 if request.cases else LEAST


def _too_little(request: Request, judged: int, runs: Sequence[Any]) -> str:
    """The sentence about too few judged cases; empty where enough were judged."""
    if judged >= _least(request):
        return _unjudged_batch(request, runs)
    cases = len(runs[0].observations)
    required = f", and {request.recorded.least:,} must be" if request.recorded is not None else ""
    return f"too little was executed: {out_of(judged, cases, 'case')} could be judged{required}"


def _unjudged_batch(request: Request, runs: Sequence[Any]) -> str:
    """The sentence that no case of the caller's own batch was judged in some format, with the first reason; else empty.

    Beside several ranks, one rank alone or those that share the batch are enough.
    """
    # Whoever names the cases says what is to be judged.
    for dtype in () if request.cases or not request.inputs else request.dtypes:
        there = [each for each in runs if each.setup.dtype == dtype]
        own = [r for each in there for r in each.results if r.case.rpartition("/")[2].startswith(GIVEN)]
        if all(r.status == "skip" for r in own):
            skips = [o.probe.skip for each in there for o in each.observations if o.probe.id.startswith(GIVEN)]
            why = next(filter(None, (*skips, *(r.why for r in own))), "no run on ranks takes a batch of its size")
            return f"too little was executed: the batch of `inputs` could not be judged in {dtype}: {why}"
    return ""


def _without_gradient(results: Sequence[Result], judged: int) -> str:
    """The words for the number of cases on which no gradient is judged, though the reference has one."""
    kinds: dict[str, set[str]] = {}
    for result in results:
        if result.quantity.startswith("grad."):
            kinds.setdefault(result.case, set()).add(result.status)
    without = sum(kind == {"skip"} for kind in kinds.values())
    return f"; no gradient to judge on {out_of(without, judged, 'case')}" if without else ""


def _beside(held: int, ungraded: Sequence[str], idle: Sequence[str]) -> str:
    """Additions to a good verdict: failures that were expected, and gradients or inputs that were not judged."""
    words = f"; {counted(held, 'failure')} expected" if held else ""
    words += f"; not judged: the gradient of {', '.join(ungraded)}" if ungraded else ""
    return words + (f"; never given: {', '.join(idle)} (--set judges a value)" if idle else "")


_ENDED = tuple(f"behavior.{trouble}" for trouble in ENDED)


def _ended(request: Request, errors: Sequence[Result]) -> list[Result]:
    """Errors that ended a program of another language: that is no answer, which could be wrong."""
    return [r for r in errors if r.quantity in _ENDED] if is_command(request.thing) else []


def _no_answer(ended: Sequence[Result]) -> str:
    others = len({r.case for r in ended}) - 1
    rest = f"; so it is on {counted(others, 'other case')}" if others else ""
    return f"the program gives no answer on {ended[0].case}, it {ended[0].why}{rest}"


def _mute(runs: Sequence[Any]) -> str:
    """The runs without a judged case, in words."""
    return " and ".join(each.words for each in runs if not each.judged)


def _judged_by_format(runs: Sequence[Any]) -> str:
    """The number of judged cases, for each format where there are several."""
    counts = [out_of(each.judged, each.judged, "case") for each in runs]
    if len(runs) == 1:
        return counts[0]
    return " and ".join(f"{count} {each.words}" for count, each in zip(counts, runs, strict=True))


def _by_format(failed: Sequence[Result], errors: Sequence[Result], runs: Sequence[Any]) -> str:
    """The sentence about failures, for each format where there are several; the ids of their results begin with it."""
    if len(runs) == 1:
        return _differs(failed, errors, runs[0].judged, runs)
    parts, anything = [], False
    for each in runs:
        own = [[r for r in group if r.case.startswith(f"{each.label}/")] for group in (failed, errors)]
        words = _differs(own[0], own[1], each.judged, [each]) if any(own) else "nothing fails"
        parts.append(f"{each.words} {words}")
        anything |= any(own)
    # What was expected to fail and passes may be of no case.
    rest = [r for r in failed if not r.case.startswith(tuple(f"{each.label}/" for each in runs))]
    return "; ".join([*(parts if anything else ()), *map(_of_no_case, rest[:1])])


def _of_no_case(result: Result) -> str:
    return f"{as_code(result.id)} is {result.why}" if result.quantity == OUT_OF_DATE else result.why


def _of(runs: Sequence[Any], trial: Any) -> str:
    """The format of a trial, where there are several."""
    words = next(each.words for each in runs if any(t is trial for t in each.trials))
    return f" {words}" if len(runs) > 1 else ""


def _cause(results: Sequence[Result]) -> str:
    """The possible cause of a broken checker: the answers of a target are read in the process that it runs in."""
    replaced = next((r.why for r in results if r.quantity == "behavior.replaces-numpy"), "")
    return f"the target {replaced}, and its answers are read with that: leave NumPy as it is" if replaced else _REPORT


_REPORT = "please report this"


def graded(results: Sequence[Result]) -> tuple[list[str], list[str]]:
    """Names of the inputs whose gradients were judged on some case, and of those that were judged on none."""
    judged_once: dict[str, bool] = {}
    for r in results:
        if r.quantity.startswith("grad."):
            name = r.quantity.removeprefix("grad.").removesuffix(".finite")
            judged_once[name] = judged_once.get(name, False) or r.status in ("pass", "xfail")
    return [n for n, judged in judged_once.items() if judged], [n for n, judged in judged_once.items() if not judged]


def _wanted(request: Request, ungraded: Sequence[str]) -> str:
    return f" of {', '.join(ungraded)}, which --require-grad demands" if request.require_grad and ungraded else ""


def _no_pair(results: Sequence[Result]) -> str:
    """The words for an answer that is not the pair from which gradients are read; empty for no such answer."""
    return next((f"; {r.why}" for r in results if r.quantity.startswith("grad.") and PAIR in r.why), "")


def _only_size(runs: Sequence[Any]) -> str:
    """The sentence that every case of one batch size is right, and none of another; empty where it is not so."""
    right: dict[int, list[bool]] = {}
    for each in runs:
        wrong = {r.case.rpartition("/")[2] for r in each.results if r.status in ("fail", "error")}
        for probe in (o.probe for o in each.observations if not (o.probe.skip or o.outcome.trouble == UNSUPPORTED)):
            sizes = [len(probe.inputs[p.name]) for p in probe.loss.parameters if np.ndim(probe.inputs.get(p.name))]
            # One sample alone has a loss of 0 by most programs.
            if sizes[0] > 1:
                right.setdefault(sizes[0], []).append(probe.id not in wrong)
    alone = [n for n, seen in right.items() if all(seen) and len(seen) >= LEAST]
    others = sorted(n for n, seen in right.items() if not any(seen))
    for step in (2, 4, 8, 16, 32, 64, 128):
        multiples = [n for n, seen in right.items() if n % step == 0 and all(seen)]
        if len(multiples) > 1 and others and {*multiples, *others} == {*right} and all(n % step for n in others):
            judges = f"--multiple-of {step} judges those"
            return f"it is right where N is a multiple of {step}, and at no other N above 1 that was tried ({judges})"
    if len(alone) != 1 or not others or len(others) < len(right) - 1:
        return ""
    none = ", ".join(map(str, others))
    return (
        f"it is right for N = {alone[0]} only (--shape {alone[0]},D judges that size), and on no case with N = {none}"
    )


def _differs(failed: Sequence[Result], errors: Sequence[Result], judged: int, runs: Sequence[Any]) -> str:
    """The sentence about failing quantities and their cases; a right value with a wrong gradient is called that."""
    wrong = [r for r in failed if r.status != "xpass"]
    behavior = list(dict.fromkeys(r.why for r in wrong if r.quantity.startswith("behavior.")))
    cases = {word: {r.case for r in wrong if r.quantity.startswith(word)} for word in ("value", "grad.")}
    parts = [f"the target {why}" for why in behavior[:2]]
    if cases["value"]:
        parts.append(f"the value fails on {out_of(len(cases['value']), judged, 'case')}")
    elif cases["grad."]:
        parts.append("the value is right, the gradient is wrong")
    if cases["grad."]:
        parts.append(f"gradients fail on {out_of(len(cases['grad.']), judged, 'case')}")
    if size := _only_size(runs):
        parts.append(size)
    if errors:
        parts.append(f"{counted(len({r.case for r in errors}), 'case')} could not be run: {errors[0].why}")
    if unexpected := len(failed) - len(wrong):
        parts.append(f"{counted(unexpected, 'result')} pass{'es' * (unexpected == 1)}, expected to fail")
    return "; ".join(parts) or _of_no_case(wrong[0])
