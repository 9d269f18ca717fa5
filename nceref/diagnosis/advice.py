"""What to change, in the words of the framework that a target is written in."""

from collections.abc import Mapping
from dataclasses import replace

from nceref.cases.records import Diagnosis
from nceref.diagnosis.conventions import CONVENTIONS

_IS_ZERO = "Derive the gradient of the {}: what is returned for it is 0."
_BY_HAND = "numpy", "command", "recorded"
"""Targets of which return gradients that somebody has derived."""
_OF_FRAMEWORK: Mapping[str, Mapping[str, str]] = {
    "numpy": {
        "epsilon-in-norm": "Take the larger of length and eps; add nothing to it.",
        "norm-floored": "Divide by the length itself; a floor of 1e-12 leaves rows as they are.",
        "mask-leaks": "Mask with -inf, not with a finite constant.",
        "temperature-in-float32": "Keep the temperature in the format of the run.",
        "scale-in-float32": "Keep the scale in the format of the run.",
        "first-input-detached": _IS_ZERO.format("first input"),
        "keys-detached": f"{_IS_ZERO.format('keys')} Or declare them constant (moco).",
        "temperature-detached": _IS_ZERO.format("temperature or scale"),
        "bias-detached": _IS_ZERO.format("bias"),
        "centers-detached": _IS_ZERO.format("class weights or centers"),
        "constants-get-gradient": "Return 0 for the queue and the momentum keys, or nothing.",
        "positives-detached": "Add the derivative of the numerator.",
        "denominator-detached": "Add the derivative of the log-sum-exp.",
        "negatives-detached": "Add the derivative by the candidates.",
        "candidates-detached": "Add the derivative by each row as a candidate: every row is an anchor and a candidate.",
        "other-view-detached": "Add the derivative by the rows of the other view as candidates.",
        "weights-not-detached": "Leave out the derivative of the weights: they are constants.",
        "weights-detached": "Add the derivative of the weights.",
        "normalization-detached": "Multiply by the derivative of the normalization, (I - u u^T) / |x| with u = x / |x|:"
        " the gradient must be orthogonal to each row.",
        "gradient-clamped": "Clamp parameters outside the loss.",
        "gradient-zero": "Derive the gradients: what is returned for every input is 0.",
        "gradient-radial-only": "Harmless where the rows are normalized before; otherwise look at the derivative of the"
        " normalization.",
        "gradient-missing-rows": "Add the gradient of every chunk of the batch.",
        "gradient-parts-scaled": "Look for a term that is added twice or left out, or a weight that one of the two sums"
        " has.",
        "outer-factor-constant": "Find the factor, such as 2 or 1/N.",
        "gradient-constant-factor": "Look for a factor, such as 2 or 1/N, that value and gradient do not share.",
        "tf32-fallback": "Take products in the format of the run.",
        "not-repeatable": "Look for random numbers, or a state that calls leave behind.",
    },
    "jax": {
        "epsilon-in-norm": "Take the larger of length and eps, jnp.maximum(length, eps); add nothing to it.",
        "norm-floored": "Divide by the length itself; a floor of 1e-12 leaves rows as they are.",
        "mask-leaks": "Mask with -inf (jnp.where), not with a finite constant.",
        "temperature-in-float32": "Keep the temperature in the format of the run: float64 needs jax_enable_x64.",
        "scale-in-float32": "Keep the scale in the format of the run: float64 needs jax_enable_x64.",
        "first-input-detached": "Take stop_gradient off the first input.",
        "keys-detached": "Take stop_gradient off the keys, or declare them constant (moco).",
        "temperature-detached": "Keep the temperature traced: no stop_gradient, and no float() or NumPy inside.",
        "bias-detached": "Take stop_gradient off the bias.",
        "centers-detached": "Take stop_gradient off them.",
        "constants-get-gradient": "Put stop_gradient around the queue and the momentum keys.",
        "negatives-detached": "Take stop_gradient off the candidates.",
        "candidates-detached": "Take stop_gradient off the candidates: every row is an anchor and a candidate.",
        "other-view-detached": "Take stop_gradient off the rows of the other view.",
        "weights-not-detached": "Put stop_gradient around the weights.",
        "weights-detached": "Take stop_gradient off the weights.",
        "normalization-detached": "Take stop_gradient off the norm: the gradient must be orthogonal to each row.",
        "gradient-clamped": "Clamp parameters outside the loss.",
        "gradient-zero": "Keep every input traced: no stop_gradient, and no float() or NumPy inside.",
        "gradient-radial-only": "Harmless where the rows are normalized before; otherwise look for stop_gradient around"
        " a norm, or a norm too many.",
        "gradient-parts-scaled": "Look for a term that is added twice or stopped, or a weight that one of the two sums"
        " has.",
        "tf32-fallback": "Set jax_default_matmul_precision='highest'.",
    },
}
"""By framework and convention, where the advice of the convention itself is that for PyTorch."""


_OF_RUN: Mapping[str, Mapping[str, str]] = {
    "recorded": {
        "unexplained": "Let it answer calls: `nceref verify cmd:PROGRAM` looks for the smallest failing input, and"
        " measures a formula.",
    },
}
"""Of targets that cannot be called."""


def fix_of(ids: str, framework: str = "") -> str:
    """What to change.

    `ids`: a convention, or several joined by ``+``. `framework`: of the target; empty: the advice of the conventions
    themselves.
    """
    own = {**_OF_FRAMEWORK.get("numpy" if framework in _BY_HAND else framework, {}), **_OF_RUN.get(framework, {})}
    return " ".join(own.get(id) or CONVENTIONS[id].fix for id in ids.split("+"))


def advised(diagnosis: Diagnosis, framework: str) -> Diagnosis:
    """The diagnosis with the advice for a framework, where it has the one of its conventions."""
    if not set(diagnosis.id.split("+")) <= CONVENTIONS.keys() or diagnosis.fix != fix_of(diagnosis.id):
        return diagnosis
    return replace(diagnosis, fix=fix_of(diagnosis.id, framework))


_OPTIONS = {"float32-fallback": "--dtype float32"}
_EXPECTED = "--expected-failures FILE, with the ids of the results that fail"
_NO_LOSS = frozenset({"wrong-loss", "as-the-reference", "unexplained"})


def intendable(diagnosis: Diagnosis, framework: str = "") -> Diagnosis:
    """The diagnosis with how to intend it, where it is a named difference; recorded answers take no options.

    `framework`: of the target.
    """
    ids = set(diagnosis.id.split("+"))
    if framework == "recorded":
        return replace(diagnosis, intend="")
    if diagnosis.intend or not ids <= CONVENTIONS.keys() or ids & _NO_LOSS:
        return diagnosis
    return replace(diagnosis, intend=_OPTIONS.get(diagnosis.id, _EXPECTED))
