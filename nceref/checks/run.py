"""Runs what a loss declares against the loss: formula against program, properties both ways, relations.

formula     value and every gradient against the exact formula, in units of the derived bound, per dtype
property    a declared one must hold on every case, an undeclared one must break on at least one
relation    the two sides of a declared one must agree on every case that it is declared for, and on no other setting
"""

import importlib.util
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from nceref import exact, losses
from nceref.checks.cases import Case, cases
from nceref.checks.properties import PROPERTIES, Property
from nceref.checks.settings import Setting, cases_of, fulfills, in_words, settings
from nceref.engine.arguments import bind
from nceref.engine.entry_point import entry_point
from nceref.errors import InputError
from nceref.output.limits import at_most, of_the_bound
from nceref.output.text import reason
from nceref.output.words import counted, out_of
from nceref.spec import Loss, Relation
from nceref.tolerance import bounds

FORMULA_GEOMETRIES = ("random", "aligned", "duplicate", "unnormalized", "lonely")
FORMULA_TEMPERATURES = {"ball": (0.3, 0.07, 0.001), "mpmath": (0.3, 0.07, 0.01)}
"""By judge: at 0.001 mpmath needs thousands of digits and minutes."""
EPS = float(np.finfo(np.float64).eps)
ROUNDINGS = 64
"""Of each side of a relation, beside the error bound of the loss."""
PROPERTY_GEOMETRIES = ("random", "aligned", "opposed", "odd", "wide", "many", "mixed", "pair")
PROPERTY_TEMPERATURES = (1.0, 0.3, 0.07)
OTHER_SETTINGS = ("random", "mixed", "pair", "unnormalized", "lonely"), (1.0, 0.07)
"""Geometries and temperatures of all settings but the first."""


@dataclass(frozen=True)
class CheckResult:
    """Outcome of one check of one loss; `status` is "pass", "fail" or "skip"."""

    loss: str
    check: str
    status: str
    detail: str


@dataclass(frozen=True)
class FormulaComparison:
    """The distance of a program from the exact formula on one case.

    Attributes
    ----------
    relative : float
        Largest error relative to the largest entry of the same quantity, over the well-conditioned quantities: those
        whose bound is below 4096 roundings of their size.
    guaranteed : float
        Their largest bound relative to the largest entry.
    of_bound : float
        Largest error in units of the derived bound.
    worst : str
        The quantity where that is.
    """

    relative: float
    guaranteed: float
    of_bound: float
    worst: str


def fastest_system() -> str:
    """Balls where python-flint is installed, else mpmath."""
    return "ball" if importlib.util.find_spec("flint") else "mpmath"


def on_kink(loss: Loss, inputs: dict[str, Any]) -> bool:
    """Whether the arguments lie on a declared kink, where no gradient exists."""
    bound = bind(loss, (), inputs)
    return any(kink.near(bound, EPS) for kink in loss.kinks)


def compare(loss: Loss, case: Case, dtype: Any, truth: dict[str, Any] | None = None) -> FormulaComparison:
    """Program against formula on one case: value, and every gradient unless the case lies on a kink.

    A gradient that is not finite, on a kink or not, counts as an infinite error.

    `dtype`: of the program; the inputs are exact in it. `truth`: what `reference` returns; default: that.
    """
    inputs = case.cast(dtype)
    value, grads = losses.LossFunction(loss).value_and_grad(**inputs)
    allowed = bounds(loss, **inputs)
    truth = truth or reference(loss, case)
    pairs = {"value": (value, truth["value"], allowed.value)}
    for name, grad in grads.items():
        if not np.all(np.isfinite(grad)):
            return FormulaComparison(np.inf, np.inf, np.inf, f"gradient of {name}")
        if name in truth:
            pairs[name] = (grad, truth[name], allowed.grads[name])
    errors = {name: np.abs(np.asarray(got, dtype=np.float64) - right) for name, (got, right, _) in pairs.items()}
    # Relative errors mean something only where the bound leaves some digits; the ratio to the bound always does.
    of_bound = {name: float(np.max(errors[name] / pairs[name][2])) for name in pairs}
    sizes = {name: float(np.max(np.abs(right))) for name, (_, right, _) in pairs.items()}
    room = 4096 * float(np.finfo(dtype).eps)
    allowed_errors = {name: bound for name, (_, _, bound) in pairs.items()}
    precise = [name for name in pairs if np.max(allowed_errors[name]) <= room * sizes[name]]
    worst = max(of_bound, key=lambda name: of_bound[name])
    relative, guaranteed = (
        max((float(np.max(x[name])) / sizes[name] for name in precise), default=0.0) for x in (errors, allowed_errors)
    )
    return FormulaComparison(relative, guaranteed, of_bound[worst], worst)


def reference(loss: Loss, case: Case) -> dict[str, Any]:
    """The exact value of a case and, off the kinks, its gradients.

    Result: "value", a float, and a float array for every differentiable input, in its shape.
    """
    smooth = not on_kink(loss, dict(case.inputs))
    try:
        truth = exact.reference(loss, system=fastest_system(), gradients=smooth, **case.inputs)
    except InputError:
        # Balls around a pole reach beyond it, where acos and powers are not real; numbers stay on it.
        truth = exact.reference(loss, system="mpmath", gradients=smooth, **case.inputs)
    return {name: exact.as_floats(number) for name, number in truth.items()}


def count(names: Sequence[str]) -> int:
    """The number of results that `run` will yield."""
    return sum(2 + len(PROPERTIES) + len(losses.get_loss(name).declaration.relations) for name in names)


def run(names: Sequence[str]) -> Iterator[CheckResult]:
    """Check losses by name, one result after the other.

    Raises `InputError` for a name that is not a loss.
    """
    for name in names:
        yield from check_loss(losses.get_loss(name).declaration)


def check_loss(loss: Loss) -> Iterator[CheckResult]:
    """All checks of one declaration; what its code raises is a failure of the check.

    Raises `InputError` for a property that does not exist.
    """
    if unknown := sorted(loss.properties.keys() - PROPERTIES.keys()):
        known = ", ".join(PROPERTIES)
        msg = f"{loss.name} declares the property {unknown[0]!r}; it must be one of {known}"
        raise InputError(msg)
    # One exact reference serves both dtypes: every entry is a float32 number.
    truths: dict[Case, Any] = {}
    for dtype in (np.float64, np.float32):
        yield _guarded(loss, f"formula {np.dtype(dtype).name}", partial(_formula, loss, dtype, truths))
    for prop in PROPERTIES.values():
        yield _guarded(loss, prop.name, partial(check_property, loss, prop))
    for relation in loss.relations:
        yield _guarded(loss, f"relation to {relation.other}", partial(check_relation, loss, relation))


def _guarded(loss: Loss, check: str, run: Callable[[], CheckResult]) -> CheckResult:
    """The outcome of a check, or that it raised."""
    try:
        return run()
    except InputError as error:
        return CheckResult(loss.name, check, "fail", str(error))
    # The code of a declaration may be anybody's.
    except Exception as error:
        file, line, *_ = traceback.extract_tb(error.__traceback__)[-1]
        return CheckResult(loss.name, check, "fail", f"raises {reason(error)} ({Path(file).name}, line {line})")


def _formula(loss: Loss, dtype: Any, truths: dict[Case, Any]) -> CheckResult:
    members = _formula_cases(loss)
    outcomes = []
    for case in members:
        try:
            truths[case] = truths.get(case) or reference(loss, case)
            outcomes.append(compare(loss, case, dtype, truths[case]))
        except InputError as error:
            # A loss that grows with the inverse of the temperature cannot be judged at any.
            where = f"on {case.name}; `lowest_temperature` of the declaration says from where on it is judged"
            msg = f"{error} [{where}]"
            raise InputError(msg) from error
    worst = max(range(len(members)), key=lambda i: outcomes[i].of_bound)
    passes = outcomes[worst].of_bound <= 1
    # Where the largest error is depends on the machine, unless it is far beyond what rounding explains.
    where = "" if passes else f" at worst [{outcomes[worst].worst} on {members[worst].name}]"
    guaranteed = at_most(max(o.guaranteed for o in outcomes), 1)
    detail = f"errors are {of_the_bound(outcomes[worst].of_bound)}{where}" + (
        f", which is at most {guaranteed:.0e} of the largest entry where well conditioned" if guaranteed else ""
    )
    return CheckResult(loss.name, f"formula {np.dtype(dtype).name}", "pass" if passes else "fail", detail)


@lru_cache(maxsize=64)
def _formula_cases(loss: Loss) -> tuple[Case, ...]:
    return tuple(cases(loss, FORMULA_GEOMETRIES, FORMULA_TEMPERATURES[fastest_system()]))


def check_property(loss: Loss, prop: Property) -> CheckResult:
    """Whether a property holds exactly if it is declared.

    Result: "skip" where the property makes no sense for the loss.
    """
    if not prop.applies(loss):
        return CheckResult(loss.name, prop.name, "skip", "the question does not arise")
    held, detail = _exactly(loss, loss.properties.get(prop.name), partial(prop.check, loss))
    return CheckResult(loss.name, prop.name, "pass" if held else "fail", detail)


def check_relation(loss: Loss, relation: Relation) -> CheckResult:
    """Whether a relation holds exactly for the settings that it is declared with.

    Parameters
    ----------
    loss : Loss
    relation : Relation

    Returns
    -------
    CheckResult
    """
    held, detail = _exactly(loss, relation.given, partial(_apart, loss, relation))
    status = "pass" if held else "fail"
    return CheckResult(loss.name, f"relation to {relation.other}", status, f"{relation.statement}: {detail}")


def _exactly(
    loss: Loss, hypothesis: Mapping[str, Any] | None, breaks: Callable[[Case], str | None]
) -> tuple[bool, str]:
    """Whether a statement holds for the settings of its hypothesis and no others; None: for no setting."""
    clause = in_words(hypothesis or {})
    declared = "declared" + (f" {clause}" if clause else "")
    held, refuted = 0, []
    for setting, members in _property_cases(loss):
        wanted = hypothesis is not None and fulfills(loss, hypothesis, members[0].inputs)
        broken = next(((case, why) for case in members if (why := _broken(breaks, case))), None)
        if wanted and broken:
            return False, f"{declared}, but {broken[1]} [{_case(setting, broken[0])}]"
        if not (wanted or broken):
            beyond = "not declared, but" if hypothesis is None else f"{declared}, and"
            return False, f"{beyond} it holds on {out_of(len(members), len(members), 'case')} [{_named(setting)}]"
        held += len(members) if wanted else 0
        refuted += [] if broken is None else [f"{broken[1]} [{_case(setting, broken[0])}]"]
    if hypothesis is None:
        return True, f"not declared, and rightly so: {refuted[0]}"
    beyond = f"; not beyond: {refuted[0]}" if refuted else ""
    return True, f"{declared}, holds on {counted(held, 'case')}{beyond}"


def _case(setting: Setting, case: Case) -> str:
    return f"{case.name}, {_named(setting)}"


def _named(setting: Setting) -> str:
    return ", ".join(f"{name} given" if x is ... else f"{name}={x!r}" for name, x in setting.items()) or "defaults"


@lru_cache(maxsize=64)
def _property_cases(loss: Loss) -> tuple[tuple[Setting, tuple[Case, ...]], ...]:
    """Each setting with its cases, those on kinks and those that the loss refuses left out."""
    first, *others = settings(loss)
    made = [(first, cases_of(loss, first, PROPERTY_GEOMETRIES, PROPERTY_TEMPERATURES))]
    made += [(setting, cases_of(loss, setting, *OTHER_SETTINGS)) for setting in others]
    smooth = ((setting, tuple(c for c in members if not on_kink(loss, dict(c.inputs)))) for setting, members in made)
    return tuple((setting, members) for setting, members in smooth if members)


@entry_point
def _broken(breaks: Callable[[Case], str | None], case: Case) -> str | None:
    try:
        return breaks(case)
    except InputError as error:
        return f"the loss refuses: {error}"


def _apart(loss: Loss, relation: Relation, case: Case) -> str | None:
    """A sentence if the two sides differ by more than rounding, or the left one exceeds the right one."""
    left, right = (np.asarray(side, dtype=np.float64) for side in relation.sides(losses, case.inputs))
    # The bound is that of a mean: of rows, each may be off by as much as all together.
    size = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
    excess = (left - right if relation.kind == "<=" else np.abs(left - right)) - ROUNDINGS * EPS * size
    # Most sides agree that well, and bounds take longer than both.
    if not np.all(excess <= 0):
        excess = excess - 4 * max(left.size, 1) * bounds(loss, **case.inputs).value
    if np.all(excess <= 0):
        return None
    worst = np.unravel_index(np.argmax(np.nan_to_num(excess, nan=np.inf)), excess.shape)
    sign = "<=" if relation.kind == "<=" else "="
    # Rounding beside a larger number is 0: its digits are those of the processor.
    least = ROUNDINGS * EPS * size[worst]
    shown = [f"{x:.6g}" if abs(x) > least else "0" for x in (left[worst], right[worst])]
    return f"{shown[0]} {sign} {shown[1]} does not hold"
