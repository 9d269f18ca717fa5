"""Lines between the checker and the process of a target of Python, and the checks of everything that comes back.

They are those of `protocol`, with what only a function of Python needs: the checker sends ``load``, ``list``, ``run``
and ``where``; the process answers with ``target``, ``contents``, ``result`` or ``error``, ``where``, or ``refused``,
which raises an error in the checker. The checker takes nothing from an answer that it knows itself, and refuses a
field, type, shape, name or size that it has not asked for.
"""

import importlib.util
import json
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
from nceref.targets.frameworks.call import CallRequest, Trouble
from nceref.targets.frameworks.frameworks import framework_of
from nceref.targets.frameworks.steps import COUNTS
from nceref.targets.json_answer import answer_of, number_of
from nceref.targets.plain_data import array_to_json, from_json, to_json
from nceref.targets.process.module_contents import ModuleContents, ModuleRequest, checked_contents
from nceref.targets.target import LoadRequest, ResolvedTarget

Message = tuple[str, Mapping[str, Any]]
"""The kind of a line, and its content but for the id."""
Request = LoadRequest | CallRequest | ModuleRequest
Answer = ResolvedTarget | Outcome | ModuleContents | NcerefError

TEXT = 4000
"""Characters of one text."""
HEADER = 1 << 18
"""Bytes of an answer without arrays."""
NUMBER = 11
"""Bytes of a number of an array, in base64."""
REQUESTS = ("load", "list", "run", "where")
"""Kinds of lines that a child is sent."""
WHERE: Message = ("where", {})
"""The question to a child that does not answer: where in the code it is."""
WITHOUT_PIPE = 71
"""Exit code of a child whose pipe is closed at its own end: it cannot say so."""
# The special one first: an error is sent as the first kind that it is.
_ERRORS: dict[str, type[NcerefError]] = {
    e.__name__: e for e in (InputError, LackingInputError, SignatureError, TargetError, UnavailableError)
}
_PARAMETERS: dict[str, type] = {kind.__name__: kind for kind in (Array, Labels, Scalar, Choice)}
_TROUBLES = ("raises", "exits", "wrong-shape", "not-a-number-type")
"""Troubles that a child reports; the checker itself notices that a child hangs or dies."""
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


def packed(id: int, message: Message) -> bytes:
    """A line with its end."""
    kind, content = message
    # ASCII is quicker than what is printable. The id, a random number, is not where a report quotes the line.
    return json.dumps({kind: {**content, "id": id}}).encode("ascii") + b"\n"


def load_message(request: LoadRequest) -> Message:
    """The request to load a target; raises `InputError` for options that no other process can be sent."""
    loss = request.loss
    parameters = [(type(p).__name__, {f.name: getattr(p, f.name) for f in fields(p)}) for p in loss.parameters]
    described = {"name": loss.name, "parameters": parameters, "variants": loss.variants}
    content = {"text": request.text, "loss": described, "options": request.options, "group": request.group}
    try:
        return "load", {"request": to_json(content)}
    except TypeError as error:
        msg = f"`init` and settings of a target that is named by text must be plain values: {error}"
        raise InputError(msg) from error


def load_request(content: Mapping[str, Any]) -> LoadRequest:
    """The request of `load_message`; its loss has a name and parameters, and computes nothing."""
    given = from_json(content["request"])
    described = given["loss"]
    parameters = tuple(_PARAMETERS[kind](**fields) for kind, fields in described["parameters"])
    loss = Loss(name=described["name"], parameters=parameters, variants=described["variants"], **_UNUSED)
    return LoadRequest(given["text"], loss, given["options"], given["group"])


def run_message(request: CallRequest, twice: bool, answer: Any) -> Message:
    """The request to call the target, or to pass on an answer that is known."""
    given = {f.name: getattr(request, f.name) for f in fields(request)}
    return "run", {"call": to_json(given), "twice": twice, "answer": to_json(answer)}


def run_request(content: Mapping[str, Any]) -> tuple[CallRequest, bool, Any]:
    """The request, the flag and the known answer of `run_message`."""
    return CallRequest(**from_json(content["call"])), content["twice"], from_json(content["answer"])


def list_message(request: ModuleRequest) -> Message:
    """The request to list a module."""
    return "list", {"module": request.place, "package": request.package}


def target_message(target: ResolvedTarget) -> Message:
    """The answer with what a child has found out about the target."""
    return "target", {
        "framework": target.framework,
        "binding": _cut(target.binding),
        "names": dict(target.names),
        "fixed": {n: _written(x) for n, x in target.fixed.items()},
        "one_value": list(target.one_value),
        "floats": _cut_all(target.floats),
        "has_reduction": target.has_reduction,
        "constructed": list(target.constructed),
        "parameters": dict(target.parameters),
        "sizes": {n: list(shape) for n, shape in target.sizes.items()},
        "others": list(target.others),
        "defaults": {n: x if isinstance(x, bool) else _written(x) for n, x in target.defaults.items()},
        "signature": {n: bool(required) for n, required in target.signature.items()},
    }


def _written(number: Any) -> str:
    return protocol.hex_of(number)[0]


def outcome_message(outcome: Outcome) -> Message:
    """The answer with the outcome of a call."""
    remarks = {"remarks": _cut_all(outcome.remarks)}
    if outcome.trouble:
        return "error", {"trouble": outcome.trouble, "message": _cut(outcome.sentence), **remarks}
    grads = {name: array_to_json(grad) for name, grad in outcome.grads.items()}
    unjudged = _cut_all(outcome.unjudged)
    return "result", {"value": array_to_json(outcome.value), "grad": grads, "unjudged": unjudged, **remarks}


def where_message(place: str) -> Message:
    """The answer with the place in the code that a target does not return from."""
    return "where", {"place": _cut(place)}


def error_message(error: NcerefError) -> Message:
    """The answer with an error, which the checker raises in place of the child."""
    kind = next(name for name, known in _ERRORS.items() if isinstance(error, known))
    return "refused", {"error": kind, "message": _cut(str(error))}


def is_due(error: NcerefError, request: Request, target: ResolvedTarget | None) -> bool:
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


def longest(request: Request) -> int:
    """Bytes of the longest answer: the arrays of a call are the value and the gradients by its inputs."""
    if isinstance(request, ModuleRequest):
        return 4 * HEADER
    if isinstance(request, LoadRequest):
        return HEADER
    sizes = (int(np.prod(request.shape_of_gradient(n))) for n in request.differentiable)
    return HEADER + NUMBER * (_rows(request) + sum(sizes))


def answer(text: str, id: int, previous: Any, request: Request) -> Answer:
    """The answer to the request of that id, out of a line that anybody may have written.

    Raises `Trouble` for a line that is no answer to it.
    """
    kinds = next(kinds for kind, kinds in _ANSWERS.items() if isinstance(request, kind))
    kind, content = protocol.record(text, kinds)
    protocol.require_id(content.get("id"), id, previous)
    try:
        checked: Answer = _CHECKED[kind]({name: x for name, x in content.items() if name != "id"}, request)
        return checked
    except ValueError as error:
        why = f"; {error}" if str(error) else ""
        raise protocol.no_answer(text, f'{{"{kind}": {{...}}}}', why) from error


def where(text: str, id: int) -> str:
    """The place of an answer of `where_message`; empty for any other line."""
    try:
        _, content = protocol.record(text, ["where"])
        protocol.require_id(content.get("id"), id, None)
        return _text(content.get("place"))
    except (Trouble, ValueError):
        return ""


def _refused(content: Mapping[str, Any], request: Request) -> NcerefError:
    _require(content, ("error", "message"))
    return _ERRORS[_one_of(content["error"], _ERRORS)](_text(content["message"], harmless))


def _target(content: Mapping[str, Any], request: LoadRequest) -> ResolvedTarget:
    known = ("framework", "binding", "names", "fixed", "floats", "has_reduction", "constructed", "parameters", "sizes")
    _require(content, (*known, "one_value", "others", "defaults", "signature"))
    inputs = [p.name for p in request.loss.parameters]
    scalars = [p.name for p in request.loss.parameters if isinstance(p, Scalar)]
    chosen = request.options.get("framework")
    parameters = _paths(content["parameters"], request)
    return ResolvedTarget(
        name=request.text,
        framework=_one_of(content["framework"], (chosen,) if chosen else NAMES),
        loss=request.loss.name,
        binding=_text(content["binding"]),
        names={_text(n): _one_of(x, inputs) for n, x in _mapping(content["names"])},
        fixed={_one_of(n, scalars): number_of(n, x) for n, x in _mapping(content["fixed"])},
        one_value=tuple(_one_of(n, scalars) for n in _list(content["one_value"])),
        floats=_texts(content["floats"], scalars),
        has_reduction=_truth(content["has_reduction"]),
        constructed=tuple(_one_of(n, inputs) for n in _list(content["constructed"])),
        parameters=parameters,
        sizes={_one_of(n, parameters): _shape(x) for n, x in _mapping(content["sizes"])},
        others=tuple(map(_path, _list(content["others"]))),
        defaults={
            _path(n): x if isinstance(x, bool) else number_of("a default", x) for n, x in _mapping(content["defaults"])
        },
        signature={_path(n): _truth(required) for n, required in _mapping(content["signature"])},
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
        raise ValueError
    return paths


def _result(content: Mapping[str, Any], request: CallRequest) -> Outcome:
    _require(content, ("value", "grad", "unjudged", "remarks"))
    read = answer_of({name: content[name] for name in ("value", "grad")}, request)
    unjudged = _texts(content["unjudged"], request.differentiable)
    # A gradient, or the reason why there is none.
    if read.grads.keys() & unjudged.keys():
        raise ValueError
    return Outcome(read.value, read.grads, unjudged, remarks=_texts(content["remarks"], _REMARKS))


def _error(content: Mapping[str, Any], request: Request) -> Outcome:
    _require(content, ("trouble", "message", "remarks"))
    trouble, sentence = _one_of(content["trouble"], _TROUBLES), _text(content["message"])
    if not sentence:
        raise ValueError
    return Outcome(trouble=trouble, sentence=sentence, remarks=_texts(content["remarks"], _REMARKS))


_ANSWERS: dict[type, tuple[str, ...]] = {
    LoadRequest: ("target", "refused"),
    ModuleRequest: ("contents", "refused"),
    CallRequest: ("result", "error", "refused"),
}
_CHECKED: dict[str, Callable[[Mapping[str, Any], Any], Any]] = {
    "target": _target,
    "contents": lambda content, request: checked_contents(content),
    "result": _result,
    "error": _error,
    "refused": _refused,
}


def _rows(request: CallRequest) -> int:
    """Largest size of the value; where no shape is known, the size of all inputs together."""
    if request.reduction != "none":
        return request.calls or 1
    if request.shape is not None:
        return int(np.prod(request.shape))
    return sum(np.size(x) for x in request.inputs.values())


def _require(content: Mapping[str, Any], names: Iterable[str]) -> None:
    if set(content) != {*names}:
        msg = "a field is missing, or there is one more"
        raise ValueError(msg)


def _one_of(name: Any, known: Iterable[str]) -> str:
    if not isinstance(name, str) or name not in known:
        msg = "no such name"
        raise ValueError(msg)
    return name


def _mapping(content: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(content, dict):
        raise ValueError
    return content.items()


def _list(content: Any) -> list[Any]:
    if not isinstance(content, list):
        raise ValueError
    return content


def _path(content: Any) -> str:
    """The path of a parameter in the form of ``named_parameters``; no other text."""
    if not re.fullmatch(r"\w+(\.\w+)*", path := _text(content)):
        raise ValueError
    return path


def _truth(content: Any) -> bool:
    if not isinstance(content, bool):
        raise ValueError
    return content


def _shape(content: Any) -> tuple[int, ...]:
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in _list(content)):
        raise ValueError
    return tuple(content)


def _texts(content: Any, known: Iterable[str]) -> dict[str, str]:
    return {_one_of(n, known): _text(x) for n, x in _mapping(content)}


def _line(text: str) -> str:
    return printable(text, TEXT)


def _text(content: Any, made: Callable[[str], str] = _line) -> str:
    """A text in the form that `made` gives it; no other content, and none longer than `TEXT`."""
    if not isinstance(content, str) or len(content) > TEXT:
        raise ValueError
    return made(content)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else text[: TEXT - 3] + "..."


def _cut_all(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: _cut(text) for name, text in texts.items()}
