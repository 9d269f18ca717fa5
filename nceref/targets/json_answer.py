"""Value and gradients as programs of other languages write them in JSON: numbers, bits of a float64, or words.

``{"value": 0.25, "grad": {"z1": [...], ...}}``, with arrays as flat lists in row-major order. A number is a finite
number of JSON, the 16 hexadecimal digits of a float64 as a string, or ``"NaN"``, ``"Infinity"`` or ``"-Infinity"``. An
array may also be ``{"shape": [2, 3], "base64": "..."}``: the bytes of float64 numbers, the least significant first.
"""

import math
import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from nceref.cases.records import Outcome
from nceref.output.text import printable, shown
from nceref.output.words import counted
from nceref.targets.frameworks.call import ROWS, Answer, CallRequest, Trouble
from nceref.targets.plain_data import array_from_json

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BITS = re.compile("[0-9a-fA-F]{16}")
_ENTRIES = frozenset({"id", "value", "grad"})


def answer_of(record: Mapping[str, Any], request: CallRequest) -> Answer:
    """The answer that a record holds: its ``value``, and its gradients by input in ``grad``, which may be left out.

    The ``id`` of the record is not read. `request` has the shapes. A gradient that is not there is unjudged, with the
    reason. Raises `Trouble` (``wrong-shape`` or ``not-a-number-type``) for a shape or an entry that no answer has.
    """
    if unknown := sorted(record.keys() - _ENTRIES):
        msg = f"answers with the entry {shown(unknown[0])}; a result has `id`, `value` and `grad`"
        raise Trouble(msg, "wrong-shape")
    if "value" not in record:
        msg = "answers without a value"
        raise Trouble(msg, "wrong-shape")
    value, given = _value(record["value"], request), record.get("grad") or {}
    if not isinstance(given, dict):
        msg = f"answers with `grad` {shown(given)} instead of an object of gradients by input"
        raise Trouble(msg, "wrong-shape")
    grads = {name: _gradient(name, content, request) for name, content in given.items()}
    missing = sorted(n for n in request.differentiable if n not in grads and n not in request.constants)
    why = "the target returns no gradient of it" if grads else "the target returns no gradients"
    return Answer(value, grads, dict.fromkeys(missing, why))


def refusal(record: Mapping[str, Any]) -> Outcome:
    """The outcome of a record that holds ``error`` or ``unsupported`` in place of a value."""
    if "error" in record:
        return Outcome(trouble="raises", sentence=f"answers with an error: {_text(record['error'])}")
    return Outcome(trouble="unsupported", sentence=f"does not support this: {_text(record['unsupported'])}")


def _text(content: Any) -> str:
    return printable(content, 300) if isinstance(content, str) else shown(content)


def _value(content: Any, request: CallRequest) -> Any:
    rows, shape = request.reduction == "none", request.shape
    numbers = _numbers("the value", content)
    if request.calls and numbers.shape == (request.calls,):
        return numbers
    if rows and numbers.ndim and shape in (None, numbers.shape):
        return numbers
    if not rows and not request.calls and numbers.size == 1:
        return float(numbers.reshape(()))
    required, hint = (f"rows {shape or '(N,)'}", "") if rows else ("one number", f"; {ROWS}")
    has = counted(numbers.size, "number") if numbers.ndim else "one number"
    msg = f"returns {has}, but the reduction {request.reduction!r} asks for {required}{hint}"
    raise Trouble(msg, "wrong-shape")


def _gradient(name: str, content: Any, request: CallRequest) -> Any:
    if name not in request.differentiable:
        inputs = ", ".join(sorted(request.differentiable))
        msg = f"returns a gradient named {shown(name)}; the inputs are {inputs}"
        raise Trouble(msg, "wrong-shape")
    numbers, shape = _numbers(f"the gradient of `{name}`", content), request.shape_of_gradient(name)
    # A flat list has no shape of its own.
    fits = numbers.shape in (shape, (1,) * (not shape)) if isinstance(content, dict) else numbers.ndim or not shape
    if numbers.size == math.prod(shape) and fits:
        return numbers.reshape(shape)[()]
    if isinstance(content, dict):
        msg = f"returns a gradient of `{name}` with the shape {numbers.shape}, but the input has {shape}"
        raise Trouble(msg, "wrong-shape")
    has = counted(numbers.size, "number") if numbers.ndim else "one number"
    msg = f"returns {has} as the gradient of `{name}`, whose shape is {shape}"
    raise Trouble(msg, "wrong-shape")


def _numbers(what: str, content: Any) -> Any:
    """A flat list, or the bytes of an array, as an array, and a number as one without axes."""
    if isinstance(content, dict):
        return _array(what, content)
    if not isinstance(content, list):
        return np.float64(number_of(what, content))
    if any(isinstance(x, list) for x in content):
        msg = f"returns {what} as a list of lists instead of a flat list, row by row"
        raise Trouble(msg, "wrong-shape")
    return np.array([number_of(what, x) for x in content], dtype=np.float64)


def _array(what: str, content: Mapping[str, Any]) -> Any:
    why = "its numbers must be float64"
    try:
        array = array_from_json(content)
        if array.dtype == np.float64:
            return array
    # No bytes of base64, or not as many as the shape has.
    except (ValueError, OverflowError) as error:
        why = str(error)
    msg = f"returns {shown(content)} in {what} instead of an array {_FORM}: {printable(why, 100)}"
    raise Trouble(msg, "not-a-number-type")


_FORM = '{"shape": [...], "base64": "..."} of float64 numbers'


def number_of(what: str, content: Any) -> float:
    """A number in one of its forms; raises `Trouble` for anything else, which the message calls `what`."""
    if isinstance(content, str):
        if content in _WORDS:
            return _WORDS[content]
        if _BITS.fullmatch(content):
            return float(struct.unpack(">d", bytes.fromhex(content))[0])
    # A truth value is an integer of Python.
    elif isinstance(content, int | float) and not isinstance(content, bool):
        try:
            if math.isfinite(number := float(content)):
                return number
        except OverflowError:
            pass
    forms = 'a finite JSON number, 16 hexadecimal digits, "NaN", "Infinity" or "-Infinity"'
    msg = f"returns {shown(content)} in {what} instead of {forms}"
    raise Trouble(msg, "not-a-number-type")
