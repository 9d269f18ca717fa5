"""From what a user names to a `ResolvedTarget`: found, constructed, its arguments matched, its framework recognized."""

import inspect
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from nceref.errors import TargetError
from nceref.spec import Loss, Scalar
from nceref.verification.targets import frameworks
from nceref.verification.targets.aliases import denoted
from nceref.verification.targets.arguments import expected_names
from nceref.verification.targets.call_expression import expression
from nceref.verification.targets.construct import Made, Taken, made_of
from nceref.verification.targets.find import located
from nceref.verification.targets.recognize import recognized
from nceref.verification.targets.target import ResolvedTarget


def target(
    thing: Any, loss: Loss, *, call: str | None = None, init: Mapping[str, Any] | None = None,
    framework: str | None = None, settings: Mapping[str, Any] | None = None, floats: Iterable[str] = (),
) -> ResolvedTarget:  # fmt: skip
    """Make a target out of what a user gave.

    Parameters
    ----------
    thing : str or object
        ``file.py:name``, ``package.module:name``, or a function, a class, or an object that can be called.
    loss : Loss
        What it claims to be.
    call : str, optional
        An expression over the inputs and ``f``, the target, where names and positions do not tell.
    init : mapping, optional
        Arguments of the constructor; for a function, arguments that every call gets.
    framework : {"numpy", "torch", "jax"}, optional
        Recognized where it is left out.
    settings : mapping, optional
        The conventions that the user set; a target that can be told them is told.
    floats : iterable of str
        Scalars to hand over as Python numbers.

    Raises
    ------
    TargetError
        If it cannot be found, imported or called with what there is.
    InputError
        If an argument of this function is wrong.
    """
    resolved = located(thing) if isinstance(thing, str) else thing
    name = thing if isinstance(thing, str) else _name(thing)
    if not (callable(resolved) or hasattr(resolved, "forward")):
        kind = type(resolved).__name__
        msg = f"{name} is a {kind}, which cannot be called; name a function, a class or a module object"
        raise TargetError(msg)
    settings, init = dict(settings or {}), dict(init or {})
    written = expression(call, [p.name for p in loss.parameters]) if call else None
    framework = framework or recognized(resolved, written.names if written else frozenset())
    frameworks.module(framework)
    made = made_of(resolved, name, loss, frozenset(settings), init, written)
    taken = made.bound(expected_names(loss, settings))
    fixed = _fixed(resolved, made, taken, settings)
    return ResolvedTarget(
        name=name, framework=framework, loss=loss.name, program=made.program, binding=_sentence(made, taken, fixed),
        names=taken.names, fixed=fixed, floats=_reasons(loss, taken, fixed, floats), has_reduction=made.has_reduction,
        text=thing if isinstance(thing, str) else "", call=call or "", init=init,
    )  # fmt: skip


def _name(thing: Any) -> str:
    shown = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{shown.__module__}.{shown.__qualname__}"


def _fixed(resolved: Any, made: Made, taken: Taken, settings: Mapping[str, Any]) -> dict[str, float]:
    """Scalars that have one value: set beforehand, or taken nowhere and known all the same."""
    scalars = {p.name: p for p in made.loss.parameters if isinstance(p, Scalar)}
    known = {n: x for key, x in made.presets.items() if (n := denoted(key, scalars)) and _number(x)}
    attributes = (
        getattr(resolved, "__dict__", {}) if not inspect.isclass(resolved) and not inspect.isroutine(resolved) else {}
    )
    # Attributes of one or two letters mean too many things.
    own = {n: x for key, x in attributes.items() if len(key) > 2 and (n := denoted(key, scalars)) and _number(x)}
    out = {}
    for name, p in scalars.items():
        if name in taken.inputs and name not in known:
            continue
        sources = (settings, known, own, {name: p.default})
        values = [source[name] for source in sources if _number(source.get(name))]
        if values:
            out[name] = float(values[0])
        elif p.default is ...:
            example = f"{name}={p.typical[1]:g}"
            msg = f"{made.name} takes `{name}` nowhere; say which value it uses: --set {example}, in Python {example}"
            raise TargetError(msg)
    return out


def _number(x: Any) -> bool:
    return isinstance(x, numbers.Real) and not isinstance(x, bool)


def _reasons(loss: Loss, taken: Taken, fixed: Mapping[str, float], floats: Iterable[str]) -> dict[str, str]:
    """Why the gradient by a scalar cannot be judged."""
    reasons = dict.fromkeys(taken.construct.names.values(), "the constructor takes it, as a plain number")
    reasons |= dict.fromkeys(floats, "the target takes it as a plain number")
    reasons |= {n: f"the target is not handed it, it uses {x:g}" for n, x in fixed.items() if n not in taken.inputs}
    return {p.name: reasons[p.name] for p in loss.parameters if isinstance(p, Scalar) and p.name in reasons}


def _sentence(made: Made, taken: Taken, fixed: Mapping[str, float]) -> str:
    """Which input goes where, on one line."""
    parts = [made.written.text] if made.written else [_arrow(n, p) for p, n in taken.called.names.items()]
    parts += [f"{_arrow(n, p)} of the constructor" for p, n in taken.construct.names.items()]
    parts += [f"{n} = {x:g}" for n, x in fixed.items() if n not in taken.inputs]
    return ", ".join(parts)


def _arrow(name: str, parameter: str) -> str:
    return f"{name} -> {parameter}"
