"""Messages over the pipe to a target's process, and the checks of everything that comes back.

The parent asks for a target to be loaded or called; the child answers with a target, an outcome or an error. The parent
takes nothing from an answer that it knows itself, and refuses a field, type, shape, name or size that it has not asked
for.
"""

import importlib.util
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from nceref.cases.records import Outcome
from nceref.errors import InputError, LackingInputError, NcerefError, SignatureError, TargetError, UnavailableError
from nceref.output.text import harmless, printable
from nceref.registry import place_and_name
from nceref.spec import Array, Choice, Labels, Loss, Scalar
from nceref.targets import protocol
from nceref.targets.call_expression import expression
from nceref.targets.frameworks import NAMES
from nceref.targets.frameworks.call import CallRequest
from nceref.targets.frameworks.frameworks import framework_of
from nceref.targets.frameworks.steps import COUNTS
from nceref.targets.process.module_contents import ModuleContents, ModuleRequest, checked_contents
from nceref.targets.process.wire import WireError, unpacked
from nceref.targets.target import LoadRequest, ResolvedTarget

TEXT = 4000
"""Characters of one text."""
HEADER = 1 << 18
"""Bytes of an answer without arrays."""
NUMBER = 11
"""Bytes of a number of an array, in base64."""
WHERE = "where"
"""The question to a child that does not answer: where in the code it is."""
WITHOUT_PIPE = 71
"""Exit code of a child whose pipe is closed at its own end: it cannot say so."""
# The special one first: an error is sent as the first kind that it is.
_ERRORS: dict[str, type[NcerefError]] = {
    e.__name__: e for e in (InputError, LackingInputError, SignatureError, TargetError, UnavailableError)
}
_PARAMETERS: dict[str, type] = {kind.__name__: kind for kind in (Array, Labels, Scalar, Choice)}
_TROUBLES = ("", "raises", "exits", "wrong-shape", "not-a-number-type")
"""Troubles that a child reports; the parent itself notices that a child hangs or dies."""
_REMARKS = (
    "prints",
    "modifies-inputs",
    "not-deterministic",
    "python-float",
    "not-differentiable",
    "replaces-numpy",
    "keeps-state",
)
_UNUSED: dict[str, Any] = {
    **dict.fromkeys(("summary", "text", "latex", "gradient", "rows", "sign", "unit"), ""),
    "sources": (),
    "formula": None,
    "plan": None,
    "properties": {},
}
"""Fields of a loss that a target does not use: a child that imports no formula starts in half the time."""


def load_message(request: LoadRequest) -> dict[str, Any]:
    """A request to load a target, as plain data."""
    loss = request.loss
    parameters = [(type(p).__name__, {f.name: getattr(p, f.name) for f in fields(p)}) for p in loss.parameters]
    described = {"name": loss.name, "parameters": parameters, "variants": loss.variants}
    return {"text": request.text, "loss": described, "options": request.options, "group": request.group}


def load_request(message: Mapping[str, Any]) -> LoadRequest:
    """The request of `load_message`; its loss has a name and parameters, and computes nothing."""
    described = message["loss"]
    parameters = tuple(_PARAMETERS[kind](**given) for kind, given in described["parameters"])
    loss = Loss(name=described["name"], parameters=parameters, variants=described["variants"], **_UNUSED)
    return LoadRequest(message["text"], loss, message["options"], message["group"])


def call_message(request: CallRequest, twice: bool, answer: Any) -> dict[str, Any]:
    """A request to call the target, or to pass on an answer that is known, as plain data."""
    return {"call": {f.name: getattr(request, f.name) for f in fields(request)}, "twice": twice, "answer": answer}


def call_request(message: Mapping[str, Any]) -> tuple[CallRequest, bool, Any]:
    """The request, the flag and the known answer that a message of `call_message` holds."""
    return CallRequest(**message["call"]), message["twice"], message["answer"]


def target_message(target: ResolvedTarget) -> dict[str, Any]:
    """The message with what a child has found out about the target."""
    return {
        "kind": "target",
        "framework": target.framework,
        "binding": _cut(target.binding),
        "names": dict(target.names),
        "fixed": {n: np.float64(x) for n, x in target.fixed.items()},
        "one_value": tuple(target.one_value),
        "floats": _cut_all(target.floats),
        "has_reduction": target.has_reduction,
        "constructed": tuple(target.constructed),
        "parameters": dict(target.parameters),
        "sizes": {n: tuple(shape) for n, shape in target.sizes.items()},
        "others": tuple(target.others),
        "defaults": {n: x if isinstance(x, bool) else np.float64(x) for n, x in target.defaults.items()},
        "signature": {n: bool(required) for n, required in target.signature.items()},
    }


def outcome_message(outcome: Outcome) -> dict[str, Any]:
    """The message with the outcome of a call."""
    return {
        "kind": "outcome",
        "value": None if outcome.value is None else np.asarray(outcome.value),
        "grads": {n: np.asarray(g) for n, g in outcome.grads.items()},
        "unjudged": _cut_all(outcome.unjudged),
        "trouble": outcome.trouble,
        "sentence": _cut(outcome.sentence),
        "remarks": _cut_all(outcome.remarks),
    }


def where_message(place: str) -> dict[str, Any]:
    """The message with the place in the code that a target does not return from."""
    return {"kind": "where", "place": _cut(place)}


def where(message: Any) -> str:
    """The place that a message of `where_message` holds; empty for any other message."""
    try:
        return _text(message["place"]) if message["kind"] == "where" else ""
    except (WireError, TypeError, KeyError):
        return ""


def error_message(error: NcerefError) -> dict[str, Any]:
    """The message with an error, which the parent raises in place of the child."""
    kind = next(name for name, known in _ERRORS.items() if isinstance(error, known))
    return {"kind": "error", "name": kind, "sentence": _cut(str(error))}


def is_due(
    error: NcerefError, request: LoadRequest | CallRequest | ModuleRequest, target: ResolvedTarget | None
) -> bool:
    """Whether an error may be the answer: one of usage only where there is something that could be refused.

    A target can have its process send anything, and the user is not told that the usage is wrong on its word alone.
    """
    if isinstance(request, CallRequest):
        # What the target itself does is an outcome.
        if isinstance(error, UnavailableError):
            return target is not None and importlib.util.find_spec(target.framework) is None
        return isinstance(error, InputError) and (request.device != "cpu" or request.dtype == "bfloat16")
    if isinstance(error, TargetError) or isinstance(request, ModuleRequest):
        return isinstance(error, TargetError)
    if isinstance(error, UnavailableError) and "store" in request.group:
        return True
    given = any(request.options.get(name) for name in _REFUSED_BY_TARGETS)
    return given or not place_and_name(request.text)[1] or _is_refused_here(request)


_REFUSED_BY_TARGETS = ("init", "param")
"""Options of which only the process that has the target knows whether they are right."""


def _is_refused_here(request: LoadRequest) -> bool:
    """Whether this process finds a fault with the other options as well."""
    call, framework = (request.options.get(name) for name in ("call", "framework"))
    try:
        if call:
            place = dict.fromkeys(("rank", "world_size") if request.group else ())
            place |= dict.fromkeys(COUNTS if request.options.get("in_steps") else ())
            expression(call, [p.name for p in request.loss.parameters], place, request.loss.name)
        if framework:
            framework_of(framework)
    except NcerefError:
        return True
    return False


def module_message(request: ModuleRequest) -> dict[str, Any]:
    """A request to list a module, as plain data."""
    return {"module": request.place, "package": request.package}


def longest(request: LoadRequest | CallRequest | ModuleRequest) -> int:
    """Bytes of the longest answer: the arrays of a call are the value and the gradients by its inputs."""
    if isinstance(request, ModuleRequest):
        return 4 * HEADER
    if isinstance(request, LoadRequest):
        return HEADER
    sizes = (int(np.prod(request.shape_of_gradient(n))) for n in request.differentiable)
    return HEADER + NUMBER * (_rows(request) + sum(sizes))


def answer(
    line: bytes, number: int, previous: Any, request: LoadRequest | CallRequest | ModuleRequest
) -> ResolvedTarget | Outcome | ModuleContents | NcerefError:
    """The answer to the request of that number, out of a line; raises `Trouble` for any other line."""
    try:
        message = unpacked(line)
        protocol.require_id(message.number, number, previous)
        return checked(message.content, request)
    except WireError as error:
        why = f"; {error}" if str(error) else ""
        # Its number is random, and no part of a report.
        raise protocol.no_answer(protocol.received(line), '{"message": [NUMBER, {...}]}', why) from error


def checked(
    message: Any, request: LoadRequest | CallRequest | ModuleRequest
) -> ResolvedTarget | Outcome | ModuleContents | NcerefError:
    """The answer to a request, out of plain data that anybody may have written.

    Raises `WireError` for anything that is no answer to this request.
    """
    kind = message.get("kind") if isinstance(message, dict) else None
    if kind == "error":
        return _error(message)
    if kind == "target" and isinstance(request, LoadRequest):
        return _target(message, request)
    if kind == "outcome" and isinstance(request, CallRequest):
        return _outcome(message, request)
    if kind == "contents" and isinstance(request, ModuleRequest):
        return checked_contents(message)
    msg = "no such kind of answer"
    raise WireError(msg)


def _error(message: Mapping[str, Any]) -> NcerefError:
    _require(message, ("name", "sentence"))
    return _ERRORS[_one_of(message["name"], _ERRORS)](_text(message["sentence"], harmless))


def _target(message: Mapping[str, Any], request: LoadRequest) -> ResolvedTarget:
    known = ("framework", "binding", "names", "fixed", "floats", "has_reduction", "constructed", "parameters", "sizes")
    _require(message, (*known, "one_value", "others", "defaults", "signature"))
    inputs = [p.name for p in request.loss.parameters]
    scalars = [p.name for p in request.loss.parameters if isinstance(p, Scalar)]
    chosen = request.options.get("framework")
    parameters = _paths(message["parameters"], request)
    return ResolvedTarget(
        name=request.text,
        framework=_one_of(message["framework"], (chosen,) if chosen else NAMES),
        loss=request.loss.name,
        binding=_text(message["binding"]),
        names={_text(n): _one_of(x, inputs) for n, x in _mapping(message["names"])},
        fixed={_one_of(n, scalars): float(_array(x, ())) for n, x in _mapping(message["fixed"])},
        one_value=tuple(_one_of(n, scalars) for n in _tuple(message["one_value"])),
        floats=_texts(message["floats"], scalars),
        has_reduction=_truth(message["has_reduction"]),
        constructed=tuple(_one_of(n, inputs) for n in _tuple(message["constructed"])),
        parameters=parameters,
        sizes={_one_of(n, parameters): _shape(x) for n, x in _mapping(message["sizes"])},
        others=tuple(map(_path, _tuple(message["others"]))),
        defaults={
            _path(n): x if isinstance(x, bool) else float(_array(x, ())) for n, x in _mapping(message["defaults"])
        },
        signature={_path(n): _truth(required) for n, required in _mapping(message["signature"])},
        text=request.text,
        call=request.options.get("call") or "",
        init=request.options.get("init") or {},
    )


def _paths(content: Any, request: LoadRequest) -> dict[str, str]:
    """Parameters by input: those that were stated as they were, and none that was not to be looked for."""
    stated, unsought = (request.options.get(option) or {} for option in ("param", "unsought"))
    held = [p.name for p in request.loss.parameters if isinstance(p, Scalar | Array) and p.name not in unsought]
    paths = {_one_of(n, held): _path(path) for n, path in _mapping(content)}
    if stated.items() - paths.items():
        raise WireError
    return paths


def _path(content: Any) -> str:
    """The path of a parameter in the form of ``named_parameters``; raises `WireError` for any other text."""
    if not re.fullmatch(r"\w+(\.\w+)*", path := _text(content)):
        raise WireError
    return path


def _truth(content: Any) -> bool:
    if not isinstance(content, bool):
        raise WireError
    return content


def _tuple(content: Any) -> tuple[Any, ...]:
    if not isinstance(content, tuple):
        raise WireError
    return content


def _shape(content: Any) -> tuple[int, ...]:
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in _tuple(content)):
        raise WireError
    return _tuple(content)


def _outcome(message: Mapping[str, Any], request: CallRequest) -> Outcome:
    _require(message, ("value", "grads", "unjudged", "trouble", "sentence", "remarks"))
    known = request.differentiable
    value, trouble = message["value"], _one_of(message["trouble"], _TROUBLES)
    grads = {_one_of(n, known): _array(g, request.shape_of_gradient(n))[()] for n, g in _mapping(message["grads"])}
    unjudged = _texts(message["unjudged"], known)
    sentence = _text(message["sentence"])
    # A number or a trouble, never both; a gradient or the reason why there is none.
    if bool(trouble) != (value is None) or bool(trouble) != bool(sentence) or (trouble and grads):
        raise WireError
    if grads.keys() & unjudged.keys():
        raise WireError
    return Outcome(
        None if value is None else _value(value, request),
        grads,
        unjudged,
        trouble,
        sentence,
        _texts(message["remarks"], _REMARKS),
    )


def _value(value: Any, request: CallRequest) -> Any:
    if request.calls:
        return _array(value, (request.calls,))
    if request.reduction != "none":
        return float(_array(value, ()))
    if request.shape is not None:
        return _array(value, request.shape)
    shape = getattr(value, "shape", ())
    if not shape or np.size(value) > _rows(request):
        raise WireError
    return _array(value, shape)


def _rows(request: CallRequest) -> int:
    """Largest size of the value; where no shape is known, the size of all inputs together."""
    if request.reduction != "none":
        return request.calls or 1
    if request.shape is not None:
        return int(np.prod(request.shape))
    return sum(np.size(x) for x in request.inputs.values())


def _require(message: Mapping[str, Any], names: Iterable[str]) -> None:
    if set(message) != {"kind", *names}:
        msg = "a field is missing, or there is one more"
        raise WireError(msg)


def _one_of(name: Any, known: Iterable[str]) -> str:
    if not isinstance(name, str) or name not in known:
        msg = "no such name"
        raise WireError(msg)
    return name


def _mapping(content: Any) -> Iterable[tuple[Any, Any]]:
    if not isinstance(content, dict):
        raise WireError
    return content.items()


def _texts(content: Any, known: Iterable[str]) -> dict[str, str]:
    return {_one_of(n, known): _text(x) for n, x in _mapping(content)}


def _line(text: str) -> str:
    return printable(text, TEXT)


def _text(content: Any, made: Callable[[str], str] = _line) -> str:
    """A text in the form that `made` gives it; raises `WireError` for no text, and for one longer than `TEXT`."""
    if not isinstance(content, str) or len(content) > TEXT:
        raise WireError
    return made(content)


def _array(content: Any, shape: tuple[int, ...]) -> Any:
    if not isinstance(content, np.ndarray | np.float64) or content.dtype != np.float64 or content.shape != shape:
        msg = "another array than the one that was asked for"
        raise WireError(msg)
    return content


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else text[: TEXT - 3] + "..."


def _cut_all(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: _cut(text) for name, text in texts.items()}
