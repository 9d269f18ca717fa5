"""Calls a target once in this process: whatever it does becomes an outcome."""

import contextlib
import io
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nceref.verification.records import Outcome
from nceref.verification.targets import frameworks
from nceref.verification.targets.construct import same_instance
from nceref.verification.targets.frameworks import Answer, CallRequest, Trouble, short
from nceref.verification.targets.target import ResolvedTarget


def attempt(target: ResolvedTarget, request: CallRequest, twice: bool = False) -> Outcome:
    """What a target does with one request; its warnings are silenced, what it prints is kept.

    Parameters
    ----------
    target : ResolvedTarget
    request : CallRequest
    twice : bool
        Whether to call it again on the same instance and compare bit by bit.

    Returns
    -------
    Outcome

    Raises
    ------
    InputError, UnavailableError
        If the framework cannot run this, whatever the target is.
    """
    # Outside of what becomes an outcome: a device that is not there is no fault of the target.
    frameworks.check(target, request)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = _attempted(target, request, twice)
    text = printed.getvalue().strip()
    remarks = {**result.remarks, "prints": f"prints {short(text, 200)!r}"} if text else result.remarks
    return Outcome(result.value, result.grads, result.unjudged, result.trouble, result.sentence, remarks)


def attempt_answer(target: ResolvedTarget, request: CallRequest, answer: tuple[Any, Mapping[str, Any]]) -> Outcome:
    """The outcome of a known answer, handed over and read back as that of the target is.

    Parameters
    ----------
    target : ResolvedTarget
        Only its framework, loss and plain scalars matter.
    request : CallRequest
    answer : (value, grads)
        Float64 value, and float64 gradients by input.

    Returns
    -------
    Outcome
    """
    known = frameworks.as_target(target.framework, lambda inputs: answer, target.loss, target.floats)
    return attempt(known, request)


def _attempted(target: ResolvedTarget, request: CallRequest, twice: bool) -> Outcome:
    try:
        # The second call must meet the state that the first has left behind.
        with same_instance() if twice else contextlib.nullcontext():
            result = frameworks.answer(target, request)
            changed = _changed(result, frameworks.answer(target, request)) if twice else ""
        remarks = dict(result.remarks)
        if changed:
            remarks["not-deterministic"] = f"gives another {changed} when it is called again with the same inputs"
    except Trouble as error:
        return Outcome(trouble=error.name, sentence=str(error))
    # No subclass of Exception.
    except SystemExit as error:
        return Outcome(trouble="exits", sentence=f"exits (SystemExit: {error.code})")
    except Exception as error:
        hint = "; written for another framework? choose with --framework" if _foreign(target, error) else ""
        sentence = f"raises {type(error).__name__}: {short(error)}{_where(error)}{hint}"
        return Outcome(trouble="raises", sentence=sentence)
    return Outcome(result.value, result.grads, result.unjudged, remarks=remarks)


def _changed(first: Answer, second: Answer) -> str:
    """The first quantity that differs in its bits, or nothing."""
    pairs = {"value": (first.value, second.value)}
    pairs |= {f"gradient of `{n}`": (g, second.grads.get(n)) for n, g in first.grads.items()}
    return next((n for n, (a, b) in pairs.items() if b is None or not np.array_equal(a, b, equal_nan=True)), "")


def _foreign(target: ResolvedTarget, error: Exception) -> bool:
    """Whether a program that was taken for NumPy's stumbles over a NumPy array."""
    return target.framework == "numpy" and isinstance(error, TypeError | AttributeError) and "ndarray" in str(error)


def _where(error: BaseException) -> str:
    """The last line of the target's own code, if it has any."""
    own, site = str(Path(__file__).parent), ("site-packages", "dist-packages", "<")
    frames: list[Any] = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(own)]
    theirs = [f for f in frames if not any(part in f.filename for part in site)] or frames
    return f" ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})" if theirs else ""
