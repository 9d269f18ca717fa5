"""Properties that a loss may have, one function each: None, or a sentence with how far it is broken on a case.

A loss declares exactly those that hold, each with the settings for which it does (`nceref.checks.settings`); `check`
fails a declared one that breaks, and any other that never does. A slack is a rounding-error bound of the case.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from nceref.checks.cases import Case
from nceref.engine import passes
from nceref.engine.anatomy import anatomy, roles
from nceref.engine.arguments import bind
from nceref.engine.embeddings import Part, Rows
from nceref.engine.plan import Comparison, Plan
from nceref.engine.similarity import Dot, Given
from nceref.output.limits import at_most
from nceref.spec import Array, Choice, Labels, Loss, Scalar
from nceref.tolerance import Bounds, bounds

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class Property:
    """Something that holds for some losses and settings; declared for exactly those.

    `applies(loss)` is whether the property makes sense for it; `check(loss, case)` returns None, or a sentence with how
    far the property is broken on this case.
    """

    name: str
    statement: str
    applies: Callable[[Any], bool]
    check: Callable[[Any, Any], str | None]


def _plan(loss: Loss, inputs: Inputs) -> Plan:
    plan: Plan = loss.plan(**bind(loss, (), inputs))
    return plan


def _value(loss: Loss, inputs: Inputs) -> float:
    return float(passes.evaluate(_plan(loss, inputs), "mean").value("mean"))


def _grads(loss: Loss, inputs: Inputs) -> dict[str, Any]:
    return passes.evaluate(_plan(loss, inputs), "mean").gradients()


# Most properties ask for these three of the same case.
@lru_cache(maxsize=512)
def _bounds(loss: Loss, case: Case) -> Bounds:
    return bounds(loss, **case.inputs)


@lru_cache(maxsize=512)
def _unmoved_value(loss: Loss, case: Case) -> float:
    return _value(loss, case.inputs)


@lru_cache(maxsize=512)
def _unmoved_grads(loss: Loss, case: Case) -> dict[str, Any]:
    return _grads(loss, case.inputs)


def _embeddings(loss: Loss, inputs: Inputs) -> list[str]:
    return [p.name for p in loss.parameters if isinstance(p, Array) and p.embedding and inputs.get(p.name) is not None]


def _differs(what: str, left: Any, right: Any, slack: Any) -> str | None:
    """A sentence if two results differ by more than the slack."""
    excess = float(np.max(np.abs(np.asarray(left) - np.asarray(right)) - np.asarray(slack)))
    if excess <= 0:
        return None
    gap = float(np.max(np.abs(np.asarray(left) - np.asarray(right))))
    return f"{what} changed by {gap:.1e}, but should stay within {at_most(float(np.max(slack)), 1):.0e}"


def _moves(loss: Loss, case: Case, moved: Inputs, slack: float) -> str | None:
    """A sentence if other arguments have another value."""
    return _differs("value", _value(loss, moved), _unmoved_value(loss, case), slack)


def _follow(loss: Loss, moved: Inputs, expected: Inputs, slack: Inputs) -> str | None:
    """A sentence if a gradient at other arguments is not the one that follows from those before, within their slack."""
    grads = _grads(loss, moved)

    def broken(room: Inputs) -> str | None:
        differs = (_differs(f"gradient of {name}", grads[name], expected[name], room[name]) for name in grads)
        return next(filter(None, differs), None)

    if not broken(slack):
        return None
    # Most agree that well; rounding there has a bound of its own.
    there = bounds(loss, **moved).grads
    return broken({name: room + there[name] for name, room in slack.items()})


def _rng(case: Case) -> np.random.Generator:
    return np.random.default_rng(len(case.name))


def _with_logits(plan: Plan, logits: list[np.ndarray[Any, Any]]) -> float:
    """Value of a plan whose logits are replaced, comparison by comparison."""
    given = [
        Comparison(Given(Rows(s, (Part("logits", s, slice(0, len(s)), None, True),))), c.terms)
        for c, s in zip(plan.comparisons, logits, strict=True)
    ]
    return float(passes.evaluate(replace(plan, comparisons=tuple(given)), "mean").value("mean"))


def _logits(plan: Plan) -> list[np.ndarray[Any, Any]]:
    return [c.logits.block(*(slice(0, size) for size in c.logits.shape)) for c in plan.comparisons]


def _slack(logits: list[np.ndarray[Any, Any]], value: float) -> float:
    """Rounding of a value made of these logits: a few units of the largest number added up."""
    largest = max(float(np.max(np.abs(s))) for s in logits)
    widest = max(int(s.shape[1]) for s in logits)
    return 64 * float(np.finfo(np.float64).eps) * (largest * widest + abs(value) + 1)


def nonnegative(loss: Loss, case: Case) -> str | None:
    """No row is negative."""
    rows = passes.evaluate(_plan(loss, case.inputs), "mean").rows
    worst = float(np.min(rows))
    return (
        None
        if worst >= 0 or worst >= -_bounds(loss, case).value * rows.size
        else f"a row is {worst:.6g}, but should be >= 0"
    )


def row_shift_invariant(loss: Loss, case: Case) -> str | None:
    """Adding a constant to all logits of an anchor keeps the value."""
    plan = _plan(loss, case.inputs)
    logits = _logits(plan)
    value, rng = _with_logits(plan, logits), _rng(case)
    # Shifts beyond the range of the logits, either way, reach a floor or a ceiling where there is one.
    size = 3 * (1 + max(float(np.max(np.abs(s))) for s in logits))
    for direction in (-1, 1):
        shift = direction * size * rng.uniform(0.5, 1, max(len(s) for s in logits))
        moved = [s + shift[: len(s), None] for s in logits]
        broken = _differs("value", _with_logits(plan, moved), value, _slack(moved, value))
        if broken:
            return broken
    return None


def row_slopes_sum_to_zero(loss: Loss, case: Case) -> str | None:
    """The slopes of each row of logits add up to 0: what one candidate gains, others lose."""
    view = anatomy(_plan(loss, case.inputs))
    exponent = 1 + float(np.max(np.abs(view.logits)))
    # A row of slopes is made of shares of the row's weight in the mean, and may cancel to nothing.
    size = np.maximum(np.sum(np.abs(view.slopes), axis=1), 1 / view.rows.size)
    slack = 64 * np.finfo(np.float64).eps * exponent * size
    return _differs("a row of slopes", np.sum(view.slopes, axis=1), 0.0, slack)


def attracts_positives(loss: Loss, case: Case) -> str | None:
    """No positive is pushed away: d value / d logit <= 0."""
    return _signs(loss, case, "positive", -1)


def repels_negatives(loss: Loss, case: Case) -> str | None:
    """No negative is pulled closer: d value / d logit >= 0."""
    return _signs(loss, case, "negative", 1)


def _signs(loss: Loss, case: Case, role: str, sign: int) -> str | None:
    plan = _plan(loss, case.inputs)
    view = anatomy(plan)
    pairs = np.concatenate(roles(plan, role), axis=plan.stack)
    wrong = np.where(pairs, -sign * view.slopes, -np.inf)
    size = max(float(np.max(np.abs(view.slopes))), 1 / view.rows.size)
    slack = 64 * np.finfo(np.float64).eps * (1 + np.max(np.abs(view.logits))) * size
    worst = float(np.max(wrong))
    return None if worst <= slack else f"a {role} has slope {-sign * worst:.3g}, but should have the other sign"


def scale_invariant(loss: Loss, case: Case) -> str | None:
    """Multiplying a row of an embedding input by c > 0 keeps the value and divides the gradient of the row by c."""
    rng, moved = _rng(case), dict(case.inputs)
    # Powers of 2 change no digit of a normalized row.
    factors = {name: 2.0 ** rng.integers(-3, 4, (*moved[name].shape[:-1], 1)) for name in _embeddings(loss, moved)}
    moved |= {name: moved[name] * factor for name, factor in factors.items()}
    slack = _bounds(loss, case)
    return _moves(loss, case, moved, 2 * slack.value) or _follow(
        loss,
        moved,
        {name: g / factors.get(name, 1.0) for name, g in _unmoved_grads(loss, case).items()},
        {name: 2 * room / factors.get(name, 1.0) for name, room in slack.grads.items()},
    )


def radial_slope_zero(loss: Loss, case: Case) -> str | None:
    """Normalized inputs get no gradient along themselves: <w_i, dL/dw_i> = 0."""
    grads, slack = _unmoved_grads(loss, case), _bounds(loss, case).grads
    for name in _embeddings(loss, case.inputs):
        if name in grads:
            w = case.inputs[name]
            along = np.sum(w * grads[name], axis=-1)
            broken = _differs(f"<{name}, gradient>", along, 0.0, np.sum(np.abs(w) * slack[name], axis=-1))
            if broken:
                return broken
    return None


def rotation_invariant(loss: Loss, case: Case) -> str | None:
    """Rotating all embeddings together keeps the value and rotates their gradients."""
    moved, width = dict(case.inputs), case.inputs[_embeddings(loss, case.inputs)[0]].shape[-1]
    rotation = np.linalg.qr(_rng(case).standard_normal((width, width)))[0]
    turned = {
        p.name
        for p in loss.parameters
        if isinstance(p, Array) and p.shape[-1] in "DE" and moved.get(p.name) is not None
    }
    moved |= {name: moved[name] @ rotation for name in turned}
    # The rotated entries are rounded once more than the bound of one evaluation counts, and mix the errors of a row.
    slack = _bounds(loss, case)
    return _moves(loss, case, moved, 4 * slack.value) or _follow(
        loss,
        moved,
        {n: g @ rotation if n in turned else g for n, g in _unmoved_grads(loss, case).items()},
        {n: 8 * (np.sum(room, axis=-1, keepdims=True) if n in turned else room) for n, room in slack.grads.items()},
    )


def permutation_equivariant(loss: Loss, case: Case) -> str | None:
    """Reordering the samples keeps the value and reorders the gradients."""
    moved = dict(case.inputs)
    arrays = [p for p in loss.parameters if isinstance(p, Array | Labels) and moved.get(p.name) is not None]
    n = next(len(moved[p.name]) for p in arrays if p.shape[0] == "N")
    order = _rng(case).permutation(n)
    for p in arrays:
        if p.shape[0] == "N":
            moved[p.name] = moved[p.name][order]
        # A table over samples is reordered both ways.
        if p.shape[1:] == ("N",):
            moved[p.name] = moved[p.name][:, order]
    slack = _bounds(loss, case)
    by_sample = {p.name for p in arrays if p.shape[0] == "N"}
    return _moves(loss, case, moved, 2 * slack.value) or _follow(
        loss,
        moved,
        {n: g[order] if n in by_sample else g for n, g in _unmoved_grads(loss, case).items()},
        {n: 2 * (room[order] if n in by_sample else room) for n, room in slack.grads.items()},
    )


def view_swap_invariant(loss: Loss, case: Case) -> str | None:
    """Exchanging the first two inputs keeps the value and exchanges their gradients."""
    first, second = (p.name for p in loss.parameters[:2])
    moved = {**case.inputs, first: case.inputs[second], second: case.inputs[first]}
    slack, other = _bounds(loss, case), {first: second, second: first}
    return _moves(loss, case, moved, 2 * slack.value) or _follow(
        loss,
        moved,
        {other.get(name, name): g for name, g in _unmoved_grads(loss, case).items()},
        {other.get(name, name): 2 * room for name, room in slack.grads.items()},
    )


def convex_in_logits(loss: Loss, case: Case) -> str | None:
    """The value at the middle of two sets of logits is at most the mean of both."""
    plan, rng = _plan(loss, case.inputs), _rng(case)
    start = _logits(plan)
    few, middle = [rng.random(s.shape) < 0.2 for s in start], _with_logits(plan, start)
    for spread in (0.5, 2.0, 8.0):
        # Moving few logits, or the positives alone, finds what a random direction averages away.
        for moved in ([True] * len(start), few, roles(plan, "positive")):
            move = [spread * rng.uniform(-1, 1, s.shape) * part for s, part in zip(start, moved, strict=True)]
            # Five points of a line, and the second difference at each of the three inner ones.
            line = {t: [s + t * d for s, d in zip(start, move, strict=True)] for t in (-1, 1, 2, 3)}
            before, *after = (_with_logits(plan, logits) for logits in line.values())
            values = np.array([before, middle, *after])
            excess = float(np.max(values[1:-1] - (values[:-2] + values[2:]) / 2))
            if excess > _slack(line[3], 2 * float(np.max(np.abs(values)))):
                return f"the value in the middle exceeds the mean by {excess:.3g}"
    return None


def temperature_homogeneous(loss: Loss, case: Case) -> str | None:
    """Embeddings times c and the temperature times c^2 give the same value."""
    moved = dict(case.inputs)
    for name in _embeddings(loss, moved):
        # Powers of 2 are exact: the logits stay the same to the last bit.
        moved[name] = 2 * moved[name]
    moved["temperature"] = 4 * moved["temperature"]
    return _moves(loss, case, moved, 2 * _bounds(loss, case).value)


def _has(loss: Loss, *names: str) -> bool:
    return set(names) <= {p.name for p in loss.parameters if isinstance(p, Scalar | Choice)}


def _always(loss: Loss) -> bool:
    return True


def _normalizes(loss: Loss) -> bool:
    return _has(loss, "normalize")


def _compares_similarities(loss: Loss) -> bool:
    plan = _plan(loss, _one_case(loss))
    return all(isinstance(c.logits, Dot | Given) for c in plan.comparisons)


def _one_case(loss: Loss) -> Inputs:
    from nceref.checks.cases import cases

    return next(cases(loss, ("random",), (0.3,), 1)).inputs


def _has_roles(loss: Loss) -> bool:
    return any(
        name.startswith(("positive", "negative")) for c in _plan(loss, _one_case(loss)).comparisons for name in c.terms
    )


def _two_towers(loss: Loss) -> bool:
    first, second = loss.parameters[:2]
    both = isinstance(first, Array) and isinstance(second, Array)
    return both and first.shape == second.shape and not (first.constant or second.constant)  # type: ignore[union-attr]


def _has_temperature(loss: Loss) -> bool:
    return _has(loss, "normalize", "temperature")


# Each check with the losses that it makes sense for. The docstring of a check is the statement of the property.
_QUESTIONS = (
    (nonnegative, _always),
    (row_shift_invariant, _compares_similarities),
    (row_slopes_sum_to_zero, _compares_similarities),
    (attracts_positives, _compares_similarities),
    (repels_negatives, _has_roles),
    (scale_invariant, _normalizes),
    (radial_slope_zero, _normalizes),
    (rotation_invariant, _normalizes),
    (permutation_equivariant, _always),
    (view_swap_invariant, _two_towers),
    (convex_in_logits, _compares_similarities),
    (temperature_homogeneous, _has_temperature),
)

PROPERTIES: dict[str, Property] = {
    check.__name__: Property(check.__name__, (check.__doc__ or "").strip(), applies, check)
    for check, applies in _QUESTIONS
}
"""Every property by name; `applies` is true of the losses for which it makes sense."""
