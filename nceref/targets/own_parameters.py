"""Parameters that a module of a framework holds itself, in the place of inputs of a loss that it is not handed."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from nceref.cases.aliases import SCALARS, match_input, plain
from nceref.errors import InputError, NcerefError, TargetError
from nceref.output.text import reason, shown
from nceref.spec import Array, Loss, Parameter, Scalar
from nceref.targets.arguments import listed
from nceref.targets.frameworks.framework import Framework
from nceref.targets.frameworks.frameworks import FRAMEWORKS

_AFFIXES = re.compile(r"^(log|ln|inverse|inv|raw|negative|neg|learned|learnable)|(log|raw|parameter|param)$")
"""Prefixes and suffixes of the name of a parameter that holds a function of an input."""


def holder_of(thing: Any) -> Framework | None:
    """The framework that it is a module of, or a class of modules; it need not be imported for that."""
    kind = thing if inspect.isclass(thing) else type(thing)
    bases = {base.__module__ for base in kind.__mro__}
    return next((each for each in FRAMEWORKS.values() if each.module_base in bases), None)


def find_parameters(
    loss: Loss,
    name: str,
    instance: Callable[[], Any],
    stated: Mapping[str, str],
    sought: Iterable[str],
) -> tuple[dict[str, str], dict[str, tuple[int, ...]], tuple[str, ...]]:
    """Inputs with the parameters of a module that play their part, their shapes, and the other trained parameters.

    The three results are input to path, input to shape of the parameter, and the paths of all other parameters that are
    trained. `instance` returns the module, or one of the class. `stated` maps inputs to paths, as `named_parameters`
    has them; for inputs in `sought` a parameter is looked for by name. Raises `InputError` for a path that the module
    does not have, or a parameter of another kind than the input; `TargetError` if a path is stated, and no module can
    be constructed.
    """
    try:
        parameters = dict(instance().named_parameters())
    # What a constructor raises when it is called with typical numbers is no fault of the target, unless it is needed.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        if stated:
            why = str(error) if isinstance(error, NcerefError) else f"its constructor raises {reason(error)}"
            msg = f"{name} cannot be constructed, so that its parameters are not known: {why}"
            raise TargetError(msg) from error
        return {}, {}, ()
    shapes = {path: tuple(p.shape) for path, p in parameters.items()}
    declared = {p.name: p for p in loss.parameters}
    for input_, path in stated.items():
        _must_fit(declared[input_], path, shapes, name)
    rest = [n for n in sought if n not in stated and _may_be_held(declared[n])]
    held = {**stated, **dict(_by_name(rest, declared, shapes, frozenset(stated.values())))}
    # One number that is missing, and one parameter that could be it: its part is measured, whatever its name.
    numbers = [n for n in rest if n not in held and isinstance(declared[n], Scalar)]
    paths = [path for path, shape in shapes.items() if path not in held.values() and all(n == 1 for n in shape)]
    held |= dict(zip(numbers, paths, strict=True)) if len(numbers) == len(paths) == 1 else {}
    others = tuple(n for n, p in parameters.items() if p.requires_grad and n not in held.values())
    return held, {n: shapes[path] for n, path in held.items()}, others


def _must_fit(parameter: Parameter, path: str, shapes: Mapping[str, tuple[int, ...]], name: str) -> None:
    if path not in shapes:
        msg = f"`param` names {shown(path)}, which is no parameter of {name}; it has {listed(shapes)}"
        raise InputError(msg)
    if not _fits(parameter, shapes[path]):
        wanted = "one number" if isinstance(parameter, Scalar) else f"an array with {len(_dimensions(parameter))} axes"
        msg = f"`param` maps `{parameter.name}`, {wanted}, to {path}, which has the shape {shapes[path]}"
        raise InputError(msg)


def _may_be_held(parameter: Parameter) -> bool:
    """Whether a module may hold the input: it gets a gradient, and is a learned scalar or the weights of classes."""
    if isinstance(parameter, Array):
        return not parameter.constant and parameter.like == "center"
    return isinstance(parameter, Scalar) and not parameter.constant


def _dimensions(parameter: Parameter) -> tuple[str, ...]:
    return parameter.shape if isinstance(parameter, Array) else ()


def _fits(parameter: Parameter, shape: tuple[int, ...]) -> bool:
    if isinstance(parameter, Scalar):
        return all(n == 1 for n in shape)
    return isinstance(parameter, Array) and len(shape) == len(parameter.shape)


def _by_name(
    names: Iterable[str],
    declared: Mapping[str, Parameter],
    shapes: Mapping[str, tuple[int, ...]],
    taken: frozenset[str],
) -> Iterator[tuple[str, str]]:
    names = list(names)
    by_input: dict[str, list[str]] = {}
    for path in shapes.keys() - taken:
        fitting = [n for n in names if _fits(declared[n], shapes[path])]
        if meant := meant_by(path, fitting):
            by_input.setdefault(meant, []).append(path)
    # Of two that could be meant none is chosen.
    yield from ((n, by_input[n][0]) for n in names if len(by_input.get(n, ())) == 1)


def meant_by(path: str, inputs: Iterable[str]) -> str | None:
    """The input that the name of a parameter stands for, itself or as a function of it; None for no or several inputs.

    Of `path`, as `named_parameters` has it, the last part counts.
    """
    # Here, for modules alone: a child that runs a function imports nothing that losses are made of.
    from nceref.engine.parameters import INVERSE_TEMPERATURES

    inputs, word = tuple(inputs), plain(path.rpartition(".")[2])
    while word:
        if meant := match_input(word, inputs):
            return meant
        # A scale is the inverse of a temperature: a module may hold either in the place of the other.
        factors = [n for n in inputs if n in INVERSE_TEMPERATURES]
        if len(factors) == 1 and any(word == plain(n) or word in SCALARS[n] for n in INVERSE_TEMPERATURES):
            return factors[0]
        shorter = _AFFIXES.sub("", word, count=1)
        if shorter == word:
            return None
        word = shorter
    return None
