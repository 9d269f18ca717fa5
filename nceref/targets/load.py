"""Resolution of a user's target: it is located and constructed, its arguments matched, its framework recognized."""

import inspect
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from nceref.cases.aliases import match_input
from nceref.errors import InputError, NcerefError, SignatureError, TargetError
from nceref.output.text import class_name, printable, reason
from nceref.output.words import counted
from nceref.registry import find_object
from nceref.spec import Array, Labels, Loss, Scalar
from nceref.targets.arguments import call_by_forms, expected_names, given_parameters, signature_of
from nceref.targets.call_expression import expression
from nceref.targets.construct import BoundCall, Callee, callee_of
from nceref.targets.frameworks.frameworks import framework_of
from nceref.targets.frameworks.steps import number_of_steps
from nceref.targets.own_parameters import holder_of
from nceref.targets.recognize import recognize_framework
from nceref.targets.target import ResolvedTarget


def resolve_target(
    thing: Any,
    loss: Loss,
    *,
    call: str | None = None,
    init: Mapping[str, Any] | None = None,
    framework: str | None = None,
    settings: Mapping[str, Any] | None = None,
    floats: Iterable[str] = (),
    param: Mapping[str, str] | None = None,
    unsought: Mapping[str, str] | None = None,
    place: Mapping[str, Any] | None = None,
    in_steps: bool = False,
) -> ResolvedTarget:
    """Resolve what a user gave to a target that can be called.

    `thing` is ``file.py:name``, ``package.module:name``, or a function, a class, or an object that can be called, and
    `loss` is what it claims to be. `call` is an expression over the inputs and ``f``, the target, for where names and
    positions are not enough. `init` has arguments of the constructor or, for a function, of every call. `framework` is
    recognized where it is left out. `settings` are conventions that the user set; they are passed on where the target
    takes them. `floats` are scalars to hand over as Python numbers. `param` maps inputs to paths of parameters that a
    torch module holds; others are found by name. `unsought` maps inputs whose parameters are left alone to their paths.
    `place` is the ``rank`` and ``world_size`` of this process, for a target that takes them; a `Deferred` one is not
    yet known. With `in_steps` a target may take the number of steps as well.

    Raises `TargetError` if the target cannot be located, imported or called with these inputs, and `InputError` if an
    argument of this function is wrong.
    """
    try:
        own = dict(param or {}), dict(unsought or {})
        place = {**(place or {}), **(number_of_steps() if in_steps else {})}
        return _resolved(thing, loss, call, dict(init or {}), framework, dict(settings or {}), floats, own, place)
    except (NcerefError, KeyboardInterrupt):
        raise
    # An attribute of somebody else's object may raise anything.
    except BaseException as error:
        name = thing if issubclass(type(thing), str) else f"an object of type {class_name(thing)}"
        msg = f"{name} cannot be examined: {reason(error)}"
        raise TargetError(msg) from error


def _resolved(
    thing: Any,
    loss: Loss,
    call: str | None,
    init: Mapping[str, Any],
    framework: str | None,
    settings: Mapping[str, Any],
    floats: Iterable[str],
    own: tuple[dict[str, str], dict[str, str]],
    place: Mapping[str, Any],
) -> ResolvedTarget:
    resolved, name = (find_object(thing), thing) if isinstance(thing, str) else (thing, _name(thing))
    _refuse_uncallable(resolved, name, loss)
    written = expression(call, [p.name for p in loss.parameters], place, loss.name) if call else None
    init = {**_taken(resolved, place), **init}
    framework = framework or recognize_framework(resolved, written.names if written else frozenset())
    # Refuses a wrong name before anything is matched.
    log = framework_of(framework).logarithm
    callee = callee_of(resolved, name, loss, frozenset(settings), init, written)
    names = expected_names(loss, settings)
    own_call = not call and not inspect.isclass(resolved)
    by_forms = call_by_forms(callee.call, given_parameters(loss, names), settings, log) if own_call else None
    if by_forms is not None:
        call = by_forms.text
        written = expression(call, [p.name for p in loss.parameters], place, loss.name)
        callee = replace(callee, written=written, by_forms=by_forms)
    callee, bound = _bound(callee, framework, names, *own)
    fixed, known = _fixed(resolved, callee, bound, settings)
    return ResolvedTarget(
        name=name,
        framework=framework,
        loss=loss.name,
        program=callee.program,
        binding=_sentence(callee, bound, fixed, init),
        names=bound.names,
        forms=by_forms.forms if by_forms is not None else frozenset(),
        fixed=fixed,
        one_value=known if _is_object(resolved) else (),
        floats=_reasons(callee, bound, fixed, floats, own[1]),
        has_reduction=callee.has_reduction,
        constructed=tuple(n for n in bound.construct.names.values() if n != "reduction"),
        parameters=callee.held,
        sizes=callee.sizes,
        others=callee.others[:_NAMED],
        defaults=callee.defaults(bound) if not _is_object(resolved) else {},
        signature=callee.signature,
        text=thing if isinstance(thing, str) else "",
        call=call or "",
        init=init,
    )


def _taken(resolved: Any, place: Mapping[str, Any]) -> dict[str, Any]:
    """The rank and the number of ranks, as far as a class or a function has parameters of these names."""
    taker = inspect.isclass(resolved) or inspect.isroutine(resolved)
    return {n: x for n, x in place.items() if taker and n in signature_of(resolved).parameters}


def _bound(
    callee: Callee, framework: str, names: tuple[str, ...], stated: Mapping[str, str], unsought: Mapping[str, str]
) -> tuple[Callee, BoundCall]:
    """The target with the parameters that it holds, and how it is called."""
    if stated:
        _must_hold(callee, framework, names, stated)
    if holder_of(callee.thing) is framework_of(framework):
        holding = callee.holding(stated, names, unsought)
        try:
            # Of what was left alone, who has asked for it says so.
            rest = tuple(path for path in holding.others if path not in unsought.values())
            return replace(holding, others=rest), holding.bind(names)
        except TargetError:
            # What was found by name may be handed over by position.
            if stated or not holding.held:
                raise
        callee = replace(callee, others=(*holding.held.values(), *holding.others))
    return callee, callee.bind(names)


def _must_hold(callee: Callee, framework: str, names: Iterable[str], stated: Mapping[str, str]) -> None:
    """Refuse parameters where there can be none."""
    first = next(iter(stated))
    if not framework_of(framework).module_base:
        msg = f"`param` maps `{first}`, but {callee.name} is a target of {framework}, which has no module parameters"
        raise InputError(msg)
    if holder_of(callee.thing) is None:
        msg = f"`param` maps `{first}` to a parameter of a module, but {callee.name} is no module of {framework}"
        raise InputError(msg)
    for name in stated:
        if name not in names:
            msg = f"`param` maps `{name}`, which no case gives; --set {name}=given generates it"
            raise InputError(msg)
        if callee.written is not None and name in callee.written.names:
            msg = f"`param` maps `{name}`, which the call expression hands over as well; leave one out"
            raise InputError(msg)


def _refuse_uncallable(resolved: Any, name: str, loss: Loss) -> None:
    """Refuse what cannot be called, and a method that is named by its class: it has no object to be called on."""
    if not (callable(resolved) or hasattr(resolved, "forward")):
        kind = type(resolved).__name__
        msg = f"{name} is of type {kind}, which cannot be called; name a function, a class or a module object"
        raise TargetError(msg)
    if not inspect.isfunction(resolved):
        return
    if "." in resolved.__qualname__ and [*signature_of(resolved).parameters][:1] == ["self"]:
        kind, _, method = name.rpartition(".")
        scalars = [p.name for p in loss.parameters if isinstance(p, Scalar)]
        inputs = [p.name for p in loss.parameters if isinstance(p, Array | Labels) and p.required]
        inputs += [f"{n}={scalar}" for n in signature_of(resolved).parameters if (scalar := match_input(n, scalars))]
        msg = f'{name} is a method without its object; name the class: {kind} --call "f.{method}({", ".join(inputs)})"'
        raise TargetError(msg)


def _name(thing: Any) -> str:
    shown = thing if hasattr(thing, "__qualname__") else type(thing)
    # A generator has a qualified name, but no module.
    return printable(f"{getattr(shown, '__module__', type(thing).__module__)}.{shown.__qualname__}")


def _is_object(resolved: Any) -> bool:
    """Whether it has been constructed: an object, or a method of one."""
    owner = getattr(resolved, "__self__", None) if inspect.isroutine(resolved) else resolved
    return not (owner is None or inspect.isclass(owner) or inspect.ismodule(owner) or isinstance(owner, partial))


def _fixed(
    resolved: Any, callee: Callee, bound: BoundCall, settings: Mapping[str, Any]
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Scalars that have one value: set beforehand, or taken nowhere and known all the same.

    The second are those whose value does not stem from the reference.
    """
    scalars = {p.name: p for p in callee.loss.parameters if isinstance(p, Scalar)}
    known = {n: x for key, x in callee.presets.items() if (n := match_input(key, scalars)) and _number(x)}
    attributes = (
        getattr(resolved, "__dict__", {}) if not inspect.isclass(resolved) and not inspect.isroutine(resolved) else {}
    )
    # Attributes of one or two letters mean too many things.
    own = {n: x for key, x in attributes.items() if len(key) > 2 and (n := match_input(key, scalars)) and _number(x)}
    out: dict[str, float] = {}
    stated: list[str] = []
    for name, p in scalars.items():
        # Handed over in every call, so that it may vary.
        if name in callee.held or (name in bound.inputs and name not in known):
            continue
        # What the caller states goes before what the object shows, the default of the reference comes last.
        sources = (settings, known, own, {name: p.default})
        values = [source[name] for source in sources if _number(source.get(name))]
        if values:
            out[name] = float(values[0])
            stated += [name] * any(_number(source.get(name)) for source in sources[:-1])
        elif p.default is ...:
            example = f"{name}={p.typical[1]:g}"
            msg = f"{callee.name} takes `{name}` nowhere; say which value it uses: --set {example}, in Python {example}"
            if callee.others:
                msg += f"; or which of its parameters it is, {', '.join(callee.others[:_NAMED])}: --param {name}=PATH"
            if hasattr(resolved, "apply") and hasattr(resolved, "init"):
                inputs = ", ".join(
                    p.name for p in callee.loss.parameters if isinstance(p, Array | Labels) and p.required
                )
                msg += f"; or hand it over: --call \"f.apply({{'params': {{'{name}': {name}}}}}, {inputs})\""
            # It may take it under a name that nobody knows.
            raise SignatureError(msg)
    return out, tuple(stated)


def _number(x: Any) -> bool:
    """Whether it is a real number; an array without axes, as modules of JAX have, counts as one."""
    real = isinstance(x, numbers.Real) or (getattr(x, "shape", None) == () and getattr(x.dtype, "kind", "") == "f")
    return real and not isinstance(x, bool)


def _reasons(
    callee: Callee,
    bound: BoundCall,
    fixed: Mapping[str, float],
    floats: Iterable[str],
    unsought: Mapping[str, str],
) -> dict[str, str]:
    """Reasons, by scalar, why its gradient cannot be judged."""
    reasons = dict.fromkeys(bound.construct.names.values(), "the constructor takes it, as a plain number")
    reasons |= dict.fromkeys(floats, "the target takes it as a plain number")
    reasons |= {n: f"the target is not handed it, it uses {x:g}" for n, x in fixed.items() if n not in bound.inputs}
    reasons |= {n: f"the module holds it in {path}, by a function that was not found" for n, path in unsought.items()}
    scalars = [p.name for p in callee.loss.parameters if isinstance(p, Scalar) and p.name not in callee.held]
    return {name: reasons[name] for name in scalars if name in reasons}


def _sentence(callee: Callee, bound: BoundCall, fixed: Mapping[str, float], init: Mapping[str, Any]) -> str:
    """The sentence that says which input goes where, on one line."""
    parts = [callee.written.text] if callee.written else [_arrow(n, p) for p, n in bound.called.names.items()]
    parts += [f"{_arrow(n, p)} of the constructor" for p, n in bound.construct.names.items()]
    # What replaces a parameter in every call was given to the constructor once.
    once = {n: x for n, x in callee.presets.items() if n not in init and match_input(n, callee.held) and _number(x)}
    parts += [f"{n} = {x:g} of the constructor" for n, x in once.items()]
    parts += [f"{n} = {x:g}" for n, x in fixed.items() if n not in bound.inputs]
    return ", ".join([*parts, *_without(callee, bound), *_unjudged(callee.others)])


def _without(callee: Callee, bound: BoundCall) -> Iterator[str]:
    """Arrays that the target takes and this run has not, each with the option that passes it."""
    arrays = {p.name for p in callee.loss.parameters if isinstance(p, Array | Labels)}
    for name in callee.signature if callee.written is None else ():
        if name not in bound.called.names and name in arrays:
            yield f"without {name} (--set {name}=given passes it)"


def _unjudged(paths: Sequence[str]) -> list[str]:
    """The sentence about parameters of a module that stand for no input, in a list that is empty without them."""
    listed = ", ".join(paths[:_NAMED]) + ", ..." * (len(paths) > _NAMED)
    return [f"not judged: the gradient of {counted(len(paths), 'parameter')} of the module ({listed})"] * bool(paths)


_NAMED = 3
"""Parameters that are named."""


def _arrow(name: str, parameter: str) -> str:
    return name if name == parameter else f"{name} -> {parameter}"
