"""Settings of a loss, and the hypotheses under which it declares its properties.

A setting is a set of arguments as `Loss.variants` has them. Each parameter has a few levels: every option of a choice,
an optional array given or not, the default of a scalar, its closed ends and its typical range.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np

from nceref.checks.cases import Case, cases
from nceref.engine import passes
from nceref.engine.arguments import bind
from nceref.engine.parameters import EQUAL_WEIGHTS, INVERSE_TEMPERATURES, UNNORMALIZED
from nceref.errors import InputError
from nceref.losses import default_of
from nceref.spec import Array, Choice, Loss, Parameter, Scalar

Setting = Mapping[str, Any]


def levels(p: Parameter) -> tuple[Any, ...]:
    """The settings of a parameter that are tried; None: its default, or, for an array, nothing.

    Result: values, ``...`` for a generated array, and the words of `cases`. The temperature has one level: cases have
    it.
    """
    if isinstance(p, Choice):
        return p.options
    if isinstance(p, Scalar):
        if p.name in INVERSE_TEMPERATURES:
            return (None,)
        special = [] if p.default is ... else [p.default]
        special += [p.low] * p.low_closed + [p.high] * p.high_closed + list(p.typical)
        # Exact in float32, as all generated arguments are.
        return tuple(dict.fromkeys(x if x is None else float(np.float32(x)) for x in special))
    given = (...,) if p.required else (None, ...)
    views = isinstance(p, Array) and p.alternative is not None
    return (*given, *(("views",) if views else ()), *((EQUAL_WEIGHTS[-1],) if getattr(p, "like", "") == "mask" else ()))


def settings(loss: Loss) -> list[Setting]:
    """The declared variants, and the first one with all levels of any two parameters.

    Result: each once; some combine arguments that exclude one another.
    """
    choices = {p.name: levels(p) for p in loss.parameters}
    several = [name for name, options in choices.items() if len(options) > 1]
    changes = [(name,) for name in several] + list(combinations(several, 2))
    changed = (
        {**loss.variants[0], **dict(zip(names, given, strict=True))}
        for names in changes
        for given in product(*(choices[name] for name in names))
    )
    out: dict[tuple[tuple[str, Any], ...], Setting] = {}
    for setting in (*loss.variants, *changed):
        # Without what is the default, a setting is listed once.
        named = {p.name: setting[p.name] for p in loss.parameters if setting.get(p.name) not in _defaults(p)}
        out.setdefault(tuple(named.items()), named)
    return list(out.values())


def _defaults(p: Parameter) -> tuple[Any, ...]:
    return (None, default_of(p), *((...,) if getattr(p, "required", False) else ()))


def cases_of(loss: Loss, setting: Setting, geometries: tuple[str, ...], temperatures: tuple[float, ...]) -> list[Case]:
    """The cases of a setting on which the loss moves: it takes the arguments, and some gradient is not 0.

    `geometries` and `temperatures`: as for `cases`. Result: empty for arguments that exclude one another.
    """
    # Of rows as given, in a geometry that has no other: where lengths are no setting, they are not tried.
    kept = tuple(g for g in geometries if g != "unnormalized" or UNNORMALIZED.items() <= setting.items())
    made = cases(replace(loss, variants=(setting,)), kept, temperatures)
    return [case for case in made if _moves(loss, case.inputs)]


def _moves(loss: Loss, inputs: Mapping[str, Any]) -> bool:
    try:
        gradients = passes.evaluate(loss.plan(**bind(loss, (), inputs)), "mean").gradients()
    except InputError:
        return False
    return any(np.any(gradient) for gradient in gradients.values())


def holds_for(loss: Loss, name: str, inputs: Mapping[str, Any]) -> bool:
    """Whether a property is declared for the settings of these arguments.

    `name`: of the property. `inputs`: arguments by name; what has a default may be left out.
    """
    return name in loss.properties and fulfills(loss, loss.properties[name], inputs)


def fulfills(loss: Loss, hypothesis: Mapping[str, Any], inputs: Mapping[str, Any]) -> bool:
    """Whether arguments have the settings of a hypothesis; what has a default may be left out."""
    parameters = {p.name: p for p in loss.parameters}
    return all(
        any(_is(parameters[key], inputs.get(key, default_of(parameters[key])), level) for level in _several(allowed))
        for key, allowed in hypothesis.items()
    )


def _several(allowed: Any) -> tuple[Any, ...]:
    return allowed if isinstance(allowed, tuple) else (allowed,)


def _is(p: Parameter, value: Any, level: Any) -> bool:
    if value is None or level is None:
        return value is level
    if level is ...:
        return True
    if level == EQUAL_WEIGHTS[-1]:
        # Weights that are positive, row by row; a row without any says nothing.
        x = np.asarray(value, dtype=np.float64)
        return bool(np.all((x == 0) | (x == np.max(x, axis=-1, keepdims=True))))
    return bool(value == level)


def in_words(hypothesis: Mapping[str, Any]) -> str:
    """A hypothesis as a clause, such as ``with normalize='l2'``; nothing where there is none."""
    conditions = [
        " or ".join(_words(name, level) for level in _several(allowed)) for name, allowed in hypothesis.items()
    ]
    return f"with {' and '.join(conditions)}" if conditions else ""


def _words(name: str, level: Any) -> str:
    if level is ...:
        return f"{name} given"
    return f"{name} of {level}" if level == EQUAL_WEIGHTS[-1] else f"{name}={level!r}"


def statement(sentence: str, hypothesis: Mapping[str, Any]) -> str:
    """A sentence with the hypothesis under which a loss declares it."""
    clause = in_words(hypothesis)
    return f"{sentence}{'' if sentence.endswith('.') else '.'} Only {clause}." if clause else sentence
