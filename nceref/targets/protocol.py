"""The lines by which a program of any language is judged: one JSON object each, on its standard input and output.

The verifier sends ``hello``, then ``run`` for every call, then ``bye``; the program answers each but the last with one
line: ``hello``; ``result``, ``error`` or ``unsupported``. docs/other-languages.md has them all. A target of Python runs
in a process that speaks the same lines, with what only a function of Python needs: see `process.messages`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nceref import __version__
from nceref.cases.records import Outcome
from nceref.errors import FileError
from nceref.output.json_text import json_object, json_text
from nceref.output.text import shown
from nceref.targets.frameworks.call import CallRequest, Trouble
from nceref.targets.json_answer import answer_of, refusal

VERSION = 1
BROKEN = "breaks-protocol"
"""The trouble of a program that answers with something else than an answer."""
HELLO_SIZE = 1 << 16
"""Bytes of an answer without numbers."""
NUMBER_SIZE = 64
"""Bytes of a number, as wide as anybody writes one."""
INTEGER = "integer"
"""The kind of labels; other inputs are real numbers."""
_ANSWERS = ("result", "error", "unsupported")


def line(kind: str, content: Mapping[str, Any]) -> str:
    """One object as a line, without its end."""
    return json_text({kind: content}, indent=None).removesuffix("\n")


def hello(loss: str, dtypes: Iterable[str]) -> str:
    """The first line, which says what will be called for."""
    about = {"protocol": VERSION, "package": f"nceref {__version__}", "loss": loss, "dtypes": list(dtypes)}
    return line("hello", about)


def run(id: str, loss: str, request: CallRequest) -> str:
    """The line that calls for a value and its gradients; the answer echoes its `id`.

    It has every argument of the loss that has a value: words are settings, and numbers are inputs, each written as the
    bits of a float64, which are exact in every format.
    """
    settings = {n: x for n, x in request.inputs.items() if isinstance(x, str | bool)}
    inputs = {n: encoded(x) for n, x in request.inputs.items() if n not in settings}
    about = {"id": id, "loss": loss, "dtype": request.dtype}
    words = {**settings, "reduction": request.reduction}
    return line("run", {**about, "settings": words, "inputs": inputs})


def encoded(numbers: Any) -> dict[str, Any]:
    """An array or a number as its shape and the 16 hexadecimal digits of each entry, row by row; integers say so."""
    array = np.asarray(numbers)
    kind = {"kind": INTEGER} if array.dtype.kind in "iu" else {}
    return {"shape": list(array.shape), "hex": hex_of(array), **kind}


def hex_of(x: Any) -> list[str]:
    """The bits of float64 numbers, 16 digits each, the most significant first, in row-major order."""
    text = np.asarray(x, dtype=">f8").tobytes().hex()
    return [text[i : i + 16] for i in range(0, len(text), 16)]


def result(id: str, value: Any, grads: Mapping[str, Any]) -> str:
    """The line of a right program with these numbers."""
    hexes = {name: hex_of(grad) for name, grad in grads.items()}
    bits = hex_of(value)
    return line("result", {"id": id, "value": bits if np.ndim(value) else bits[0], "grad": hexes})


def record(text: str, kinds: Iterable[str]) -> tuple[str, Mapping[str, Any]]:
    """The kind of answer that a line is, one of `kinds`, and its content.

    Raises `Trouble` with the name `BROKEN` for any other line.
    """
    kinds, why = tuple(kinds), ""
    try:
        content = json_object("it", text)
    except FileError as error:
        # Of what begins as an object, where it ceases to be one.
        content, why = {}, f"; {error}" if text.startswith("{") else ""
    kind = next(iter(content), "")
    if len(content) != 1 or kind not in kinds or not isinstance(content[kind], dict):
        raise no_answer(text, " or ".join(f'{{"{kind}": {{...}}}}' for kind in kinds), why)
    return kind, content[kind]


def no_answer(text: str, wanted: str, why: str) -> Trouble:
    """The trouble of a line that is none of those that are wanted."""
    return Trouble(f"prints {shown(text)} instead of one line {wanted}{why}", BROKEN)


def ahead(line: bytes, id: Any) -> Trouble:
    """The trouble of a line after the answer to a call, whose `id` is empty for ``hello``."""
    about = (shown(id) if id else "`hello`") if isinstance(id, str) else "the call before"
    return Trouble(f"prints {shown(received(line))} after its answer to {about}: one line answers a call", BROKEN)


def require_id(given: Any, id: Any, previous: Any) -> None:
    """Raise `Trouble` where a line answers another call than this one, such as the one before.

    An id is text, or a random number, which is no part of a report.
    """
    if given == id:
        return
    is_text = isinstance(id, str)
    what = shown(given)
    if given == previous != "":
        what = f"{what if is_text else 'the call before'} a second time"
    msg = f"answers {what} where the answer to {shown(id) if is_text else 'another call'} is due"
    raise Trouble(msg, BROKEN)


def received(line: bytes) -> str:
    """The text of a line without its end, whatever its bytes are."""
    return line.decode(errors="replace").removesuffix("\n").removesuffix("\r")


def outcome(text: str, id: str, previous: str, request: CallRequest) -> Outcome:
    """The outcome that a line of the program gives for a call; raises `Trouble` for no answer to this call.

    `id` is that of this call, `previous` that of the one before.
    """
    kind, content = record(text, _ANSWERS)
    require_id(content.get("id"), id, previous)
    if kind != "result":
        return refusal({kind: content.get("message" if kind == "error" else "reason")})
    answer = answer_of(content, request)
    return Outcome(answer.value, answer.grads, answer.unjudged)
