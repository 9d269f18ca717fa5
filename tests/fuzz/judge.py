"""Runs a case and says how it ended: right, refused by name, or a finding."""

import math
import re
import warnings
from dataclasses import dataclass
from unittest import mock

import numpy as np
from flint import arb
from fuzz import rules
from fuzz.balls import UndecidedError
from fuzz.oracle import evaluate
from fuzz.tolerances import bounds_of, checked, loose_bound

import nceref
from nceref.engine import settings
from nceref.errors import InputError
from nceref.spec import Array, Labels, Scalar

RIGHT, REFUSED, FINDING = "right", "refused by name", "finding"


@dataclass
class Outcome:
    """How a case ended, and for a finding its kind and what was seen."""

    kind: str
    cause: str = ""
    text: str = ""


class FindingError(AssertionError):
    """Neither right nor refused by name."""

    def __init__(self, cause, text):
        super().__init__(f"{cause}: {text}")
        self.cause, self.text = cause, text


def fail(cause, text):
    raise FindingError(cause, text)


def judge(case):
    """The outcome of one case."""
    try:
        return _judge(case)
    except FindingError as finding:
        return Outcome(FINDING, finding.cause, finding.text)


def _judge(case):
    before = snapshot(case)
    state = np.geterr()
    result, error, leaked = call(case)
    if np.geterr() != state:
        fail("changed state", f"np.geterr() was {state}, is {np.geterr()}")
    if snapshot(case) != before:
        fail("changed input", "an argument is not what it was")
    if leaked:
        fail("warning", leaked[0])
    if error is not None:
        return judge_refusal(case, error)
    return judge_result(case, result)


def call(case):
    """Result, exception and warnings of the call."""
    loss = nceref.get_loss(case.loss.name)
    given, args = dict(case.given), []
    for p in case.loss.parameters:
        if len(args) == case.positional or not (isinstance(p, Array | Labels) and p.positional and p.name in given):
            break
        args.append(given.pop(p.name))
    extra = {} if case.door == "anatomy" else {"reduction": case.reduction}
    if case.cotangent is not None or "cotangent" in case.must:
        extra["cotangent"] = case.cotangent
    run = {"gradient": loss.value_and_grad, "value": loss, "anatomy": loss.anatomy}[case.door]
    result = error = None
    eager = mock.patch.object(settings, "LEAST_PAIRS", 0 if case.settings else settings.LEAST_PAIRS)
    with (
        warnings.catch_warnings(record=True) as caught,
        np.errstate(**case.errstate, call=_called),
        eager,
        nceref.config(**case.settings),
    ):
        warnings.simplefilter("always")
        try:
            result = run(*args, **given, **extra)
        except Exception as raised:
            error = raised
    return (
        result,
        error,
        [f"{w.category.__name__}: {w.message} ({w.filename.rpartition('/')[2]}:{w.lineno})" for w in caught] + _calls(),
    )


_CALLS = []


def _called(kind, flag):
    _CALLS.append(f"np.seterrcall was called with {kind}")


def _calls():
    out = list(_CALLS)
    _CALLS.clear()
    return out


def snapshot(case):
    """Bytes, shape and flags of every array, and the text of everything else that is plain."""
    out = {}
    for name, value in {**case.given, "cotangent": case.cotangent}.items():
        value = (
            getattr(value, "x", value)
            if type(value).__module__.startswith("fuzz")
            and hasattr(type(value), "__array__")
            and "RaisesOn" not in type(value).__name__
            else value
        )
        if isinstance(value, np.ndarray) and value.dtype != object and not isinstance(value, np.ma.MaskedArray):
            base = value.base if isinstance(value.base, np.ndarray) else value
            out[name] = value.tobytes(), np.asarray(base).tobytes(), value.flags.writeable, value.shape, value.strides
        elif isinstance(value, list | tuple) and name in case.plain and name not in case.must:
            out[name] = repr(value)
    return out


def names_in(message, names):
    return {name for name in names if name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message)}


def judge_refusal(case, error):
    try:
        message = str(error)
        message.encode()
    except Exception as unprintable:
        fail("unprintable message", repr(unprintable))
    where = error.__traceback__
    while where.tb_next is not None:
        where = where.tb_next
    place = f"{where.tb_frame.f_code.co_filename.rpartition('/')[2]}:{where.tb_lineno}"
    text = f"{type(error).__name__}: {message[:300]} ({place})"
    if not isinstance(error, InputError):
        fail("foreign exception", text)
    if len(message) > 2000:
        fail("long message", f"{len(message)} characters")
    names = {p.name for p in case.loss.parameters} | {"reduction", "cotangent"} | set(case.must)
    named = names_in(message, names)
    expected = set(case.must) | set(case.may) | fallible(case)
    if expected & named or ("" in case.must):
        return Outcome(REFUSED)
    if expected and "leaves the range" not in message:
        fail("names not the argument at fault", f"{sorted(expected)} expected: {text}")
    if "leaves the range" in message or "range" in message:
        if not extreme(case):
            fail("refused a valid input", text)
        if not named:
            fail("names not the argument at fault", text)
        return Outcome(REFUSED)
    return fail("refused a valid input", text)


def fallible(case):
    """Names that the rules of the loss refuse, as far as they can be applied."""
    try:
        return rules.refused(case.loss, case.plain, case.reduction)
    except Exception:
        if case.must or case.may:
            return set()
        raise


def extreme(case):
    """Whether products of the given magnitudes leave the range of a format that takes part."""
    arrays = [
        case.plain[p.name] for p in case.loss.parameters if isinstance(p, Array) and case.plain[p.name] is not None
    ]
    numbers = [case.plain[p.name] for p in case.loss.parameters if isinstance(p, Scalar) and case.plain[p.name]]
    sizes = [abs(t) for x in arrays for t in np.ravel(x) if t] + [abs(x) for x in numbers]
    if case.plain_cotangent is not None:
        sizes += [abs(t) for t in np.ravel(case.plain_cotangent) if t]
    formats = [getattr(v, "dtype", np.dtype(float)) for v in case.given.values()]
    narrow = min((np.finfo(d).max for d in formats if isinstance(d, np.dtype) and d.kind == "f"), default=np.inf)
    if any("float16" in tag for tag in case.tags.values()):
        narrow = min(narrow, 65504.0)
    elif any("float32" in tag for tag in case.tags.values()):
        narrow = min(narrow, 3e38)
    reach = float(min(narrow, np.finfo(float).max)) ** 0.25
    if max(sizes, default=1.0) > reach or min(sizes, default=1.0) < 1 / reach:
        return True
    exact = evaluate(case.loss, case.plain, case.reduction)
    return max(exact.scale.logit, *(abs(float(x)) for x in exact.values)) > reach


def judge_result(case, result):
    if case.must:
        fail("accepted", f"{case.must} was not refused: {str(result)[:200]}")
    names = fallible(case)
    if names:
        fail("accepted", f"one of {sorted(names)} has to be refused: {str(result)[:200]}")
    value, grads = result if case.door == "gradient" else (result, {})
    if case.door == "anatomy":
        value = anatomy_value(case, result)
    check_finite(case, value, grads)
    check_shapes(case, value, grads)
    compare(case, value, grads)
    return Outcome(RIGHT)


def anatomy_value(case, result):
    for name in ("rows", "logits", "probabilities", "slopes", "relative_penalties"):
        if not np.all(np.isfinite(np.asarray(getattr(result, name), dtype=float))):
            fail("not finite", f"anatomy: {name}")
    return np.asarray(result.rows)


def check_finite(case, value, grads):
    for name, x in {"value": value, **grads}.items():
        if not np.all(np.isfinite(np.asarray(x, dtype=float))):
            fail("not finite", f"{name} is {x}")


def check_shapes(case, value, grads):
    if case.door == "anatomy":
        return
    if case.reduction != "none" and type(value) is not float:
        fail("type", f"the value is a {type(value).__name__}")
    differentiable = {
        p.name
        for p in case.loss.parameters
        if isinstance(p, Array | Scalar) and not p.constant and case.plain[p.name] is not None
    }
    if case.door == "gradient" and set(grads) != differentiable:
        fail("type", f"gradients of {sorted(grads)}, not of {sorted(differentiable)}")
    for name, grad in grads.items():
        given = case.given.get(name)
        if np.shape(grad) != np.shape(case.plain[name]):
            fail("type", f"the gradient of {name} has shape {np.shape(grad)}")
        if isinstance(given, np.ndarray):
            if type(grad) is not np.ndarray and given.ndim:
                fail("type", f"the gradient of {name} is a {type(grad).__name__}")
            if name not in case.may and given.ndim and grad.dtype != given.dtype.newbyteorder("="):
                fail("type", f"the gradient of {name} is of {grad.dtype}")
            if given.ndim and np.may_share_memory(grad, given):
                fail("type", f"the gradient of {name} shares memory with the input")


def compare(case, value, grads):
    """Against the oracle, within the derived bounds and within a loose bound of our own."""
    reduction, plain, near = case.reduction, case.plain, kinks(case)
    if any(kink.jumps for kink in near):
        return
    if case.door == "anatomy":
        reduction = "none"
        if "no_positive" in plain:
            plain = {**plain, "anchor_weights": None, "no_positive": "zero"}
    allowed, allowed_grads = derived_bounds(case, value)
    try:
        exact = evaluate(case.loss, plain, reduction, enough=lambda e: close_enough(e, allowed))
    except UndecidedError:
        return
    have = np.ravel(value)
    if len(exact.values) != len(have):
        fail("type", f"{len(have)} rows, not {len(exact.values)}")
    for x, v, t in zip(exact.values, have, allowed, strict=True):
        error, loose = abs(float(x - float(v))), loose_bound(case, exact)
        text = f"{v!r}, exactly {float(x)!r}, error {error:.3g}, allowed {t:.3g}, loosely {loose:.3g}"
        if not error <= t or not error <= loose:
            fail("wrong value", text)
        if not t <= 1e4 * loose and not math.isinf(t):
            fail("silly bound", text)
    if allowed_grads and grads and not near:
        compare_gradient(case, grads, allowed_grads)


def derived_bounds(case, value):
    """Bounds of the value, one a row, and of the gradients; without any where numbers leave the range."""
    try:
        allowed, allowed_grads = bounds_of(case)
    except InputError as error:
        if not names_in(str(error), case.plain) or not extreme(case):
            fail("bounds refused", str(error))
        return np.full(np.size(value), np.inf), {}
    except (RuntimeWarning, ArithmeticError) as error:
        fail("bounds raise", f"{type(error).__name__}: {error}")
    for name, x in {"value": allowed, **allowed_grads}.items():
        if not (np.all(np.isfinite(x)) and np.all(np.asarray(x) >= 0)):
            if not extreme(case):
                fail("silly bound", f"the bound of {name} is {x}")
            return np.full(np.size(value), np.inf), {}
    return np.ravel(np.broadcast_to(allowed, np.shape(value))), allowed_grads


def close_enough(exact, allowed):
    """Whether the digits of the exact values do, for these tolerances."""
    if len(exact.values) != len(allowed):
        return True
    limits = (
        t if math.isfinite(t) else 1e-20 + 1e-20 * abs(float(x)) for x, t in zip(exact.values, allowed, strict=True)
    )
    return all(float(x.rad()) <= 0.01 * limit for x, limit in zip(exact.values, limits, strict=True))


def compare_gradient(case, grads, allowed):
    rng = np.random.default_rng(case.seed)
    name = sorted(grads)[rng.integers(len(grads))]
    grad, bound = np.asarray(grads[name], dtype=np.float64), np.asarray(allowed[name], dtype=np.float64)
    direction = one_row(rng, grad.shape)
    tolerance = float(np.sum(np.abs(direction) * bound))
    exact = evaluate(
        case.loss, case.plain, case.reduction, case.plain_cotangent, name, direction,
        enough=lambda e: e.slope.is_finite() and float(e.slope.rad()) <= 0.01 * tolerance,
    )  # fmt: skip
    # Exactly, since the sum of two numbers in the range need not be in it.
    have = sum((arb(g) * arb(v) for g, v in zip(np.ravel(grad), np.ravel(direction), strict=True)), arb(0))
    error = abs(float(exact.slope - have))
    if not error <= tolerance:
        fail(
            "wrong gradient",
            f"{name} along {direction!r}: {float(have)!r}, exactly {float(exact.slope)!r}, "
            f"error {error:.3g}, allowed {tolerance:.3g}",
        )


def one_row(rng, shape):
    """A direction: 1, or one row (sample) of signed powers of two."""
    if not shape:
        return np.float64(1.0)
    out = np.zeros(shape)
    index = tuple(rng.integers(size) for size in shape[:-1]) if len(shape) > 1 else (rng.integers(shape[0]),)
    out[index] = rng.choice([-1.0, 1.0, 0.5, -0.5, 0.25], shape[-1:] if len(shape) > 1 else None)
    return out


def kinks(case):
    """The declared kinks that the case is on or near."""
    if not case.loss.kinks:
        return []
    inputs = {name: np.asarray(x) if isinstance(x, list) else x for name, x in checked(case).items()}
    if inputs.get("normalize") == "l2":
        for p in case.loss.parameters:
            if isinstance(p, Array) and p.embedding and inputs[p.name] is not None:
                x = inputs[p.name]
                inputs[p.name] = (x / np.max(np.abs(x), axis=-1, keepdims=True)).astype(x.dtype)
    with np.errstate(all="ignore"):
        first = next(x for x in inputs.values() if isinstance(x, np.ndarray) and x.dtype.kind == "f")
        return [kink for kink in case.loss.kinks if kink.near(inputs, float(np.finfo(first.dtype).eps))]
