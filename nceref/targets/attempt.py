"""Calls a target once in this process: whatever it does becomes an outcome."""

import contextlib
import io
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nceref.cases.records import Outcome
from nceref.output.text import printable, reason
from nceref.targets.construct import same_instance
from nceref.targets.frameworks import NAMES, frameworks
from nceref.targets.frameworks.call import Answer, CallRequest, Trouble
from nceref.targets.frameworks.jax import of_device
from nceref.targets.frameworks.steps import ONE_CALL, STEP, of_step
from nceref.targets.global_state import KeptState, replaced_functions
from nceref.targets.target import ResolvedTarget

_REPORTED = ("raises", "wrong-shape", "not-a-number-type")
"""Troubles that a framework reports as `Trouble`."""


def attempt(target: ResolvedTarget, request: CallRequest, twice: bool = False) -> Outcome:
    """The outcome of one request to a target; its warnings are silenced, what it prints is kept.

    With `twice` the same instance is called again, and the second answer must agree with the first within the bounds of
    the case. Raises `InputError` or `UnavailableError` if the framework cannot run the request, whatever the target is.
    """
    # Outside of what becomes an outcome: a device that is not there is no fault of the target.
    frameworks.check(target, request)
    printed = _Printed()
    remarks: dict[str, str] = {}
    result: Answer | BaseException
    again: Answer | None = None
    state = ""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with KeptState() as names:
            try:
                result, again, state = _answered(target, request, twice)
            except KeyboardInterrupt:
                raise
            # What a target raises need not be an Exception.
            except BaseException as error:
                result = error
        # When NumPy and the built-in functions are there again.
        if isinstance(result, Answer) and again is not None:
            try:
                # What the constructor was handed belongs to the first call, and so does its gradient.
                own = {name: grad for name, grad in result.grads.items() if name not in target.constructed}
                remarks |= unlike(replace(result, grads=own), again, request.rooms)
            # What was read with functions of the target need not be numbers.
            except Exception as error:
                result = error
    if state and request.before is not None:
        remarks["keeps-state"] = f"the call before has changed {state}"
    elif state and "not-deterministic" in remarks:
        remarks["not-deterministic"] += f"; the first call has changed {state}"
    # Words are looked for then as well.
    if text := printed.text.strip():
        remarks["prints"] = f"prints '{printable(text, 200)}'"
    if replaced := names.replaced or (replaced_functions() if twice else []):
        remarks["replaces-numpy"] = f"replaces {printable(', '.join(replaced), 100)}"
    if not isinstance(result, Answer):
        return _failure(target, result, remarks)
    return Outcome(result.value, result.grads, result.unjudged, remarks={**result.remarks, **remarks})


class _Printed(io.TextIOBase):
    """A stream that keeps the first 4000 characters that a target prints, and that the target cannot close."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text[: 4000 - len(self.text)]
        return len(text)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Stay open."""


def attempt_answer(target: ResolvedTarget, request: CallRequest, answer: tuple[Any, Mapping[str, Any]]) -> Outcome:
    """The outcome of a known answer, handed over and read back as that of the target is.

    Of `target` only the framework, the loss and the plain scalars matter. `answer` is a float64 value, with float64
    gradients by input.
    """
    reply = of_device(answer, request.axis) if request.devices else lambda inputs: answer
    reply = of_step(answer, request) if request.shares else reply
    return attempt(frameworks.as_target(target.framework, reply, target.loss, target.floats), request)


def _answered(target: ResolvedTarget, request: CallRequest, twice: bool) -> tuple[Answer, Answer | None, str]:
    """The answer, that of a second call, and the names of what was changed before the last call."""
    if not (twice or request.before or request.shares):
        return frameworks.answer(target, request), None, ""
    # The second call must meet the state that the first has left behind, and so must the next step.
    with same_instance() as kept:
        if request.before is not None:
            frameworks.answer(target, replace(request, inputs=request.before, shape=None, before=None))
        changed = kept.changed() if request.before is not None else ""
        result = frameworks.answer(target, request)
        if not twice:
            return result, None, changed
        changed = kept.changed()
        return result, frameworks.answer(target, request), changed


def _failure(target: ResolvedTarget, error: BaseException, remarks: Mapping[str, str]) -> Outcome:
    beside = f"; it {remarks['replaces-numpy']}" if "replaces-numpy" in remarks else ""
    # By its real class: that which an exception shows may be another.
    kind = type(error)
    if isinstance(error, Trouble) and error.name in _REPORTED:
        return Outcome(trouble=error.name, sentence=printable(error) + beside, remarks=remarks)
    if issubclass(kind, SystemExit):
        return Outcome(trouble="exits", sentence=f"exits (SystemExit: {printable(error)}){beside}", remarks=remarks)
    step, steps = STEP.get()
    STEP.set(ONE_CALL)
    there = f" in step {step} of {steps}" if steps > 1 else ""
    hint = "; written for another framework? choose with --framework" if _foreign(target, error) else ""
    sentence = f"raises {reason(error)}{_where(error)}{there}{hint}{beside}"
    return Outcome(trouble="raises", sentence=sentence, remarks=remarks)


def unlike(first: Answer | Outcome, second: Answer | Outcome, rooms: Mapping[str, Any]) -> dict[str, str]:
    """The remark for two answers to the same inputs that differ by more than right ones do; empty where they are alike.

    Both answers are without trouble; `rooms` are the allowed differences, see `CallRequest`.
    """
    pairs = {"": (first.value, second.value)} | {n: (g, second.grads.get(n)) for n, g in first.grads.items()}
    changed = next((n for n, (a, b) in pairs.items() if b is None or not _alike(a, b, rooms.get(n, 0.0))), None)
    if changed is None:
        return {}
    quantity = f"gradient of `{changed}`" if changed else "value"
    return {"not-deterministic": f"gives another {quantity} when it is called again with the same inputs"}


def _alike(a: Any, b: Any, room: Any) -> bool:
    a, b = _as_array(a), _as_array(b)
    if _equal(a, b, equal_nan=True):
        return True
    # A compiled program may differ in the last bit of its first call.
    return a.shape == b.shape and bool((abs(a - b) <= room).all())


_as_array, _equal = np.asarray, np.array_equal
"""Functions of NumPy that are kept before a target is loaded, which may replace the names there."""


def _foreign(target: ResolvedTarget, error: BaseException) -> bool:
    """Whether a program that was taken for NumPy's stumbles over a NumPy array."""
    stumbles = issubclass(type(error), TypeError | AttributeError)
    return target.framework == NAMES[0] and stumbles and "ndarray" in printable(error)


def _where(error: BaseException) -> str:
    """The last line of the target's own code, if it has any."""
    own, site = str(Path(__file__).parent), ("site-packages", "dist-packages", "<")
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    frames = [(file, line) for file, line in lines if not file.startswith(own)]
    theirs = [(file, line) for file, line in frames if not any(part in file for part in site)] or frames
    return f" ({printable(Path(theirs[-1][0]).name, 60)}, line {theirs[-1][1]})" if theirs else ""
