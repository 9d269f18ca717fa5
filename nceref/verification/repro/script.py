"""A failing case as a script that runs without nceref: the input as literals, the call, both numbers."""

import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from nceref import __version__
from nceref.spec import Array, Choice, Labels, Scalar
from nceref.verification.diagnosis.gaps import VALUE, gaps, not_finite
from nceref.verification.records import Observation, Outcome, Probe
from nceref.verification.targets.call_expression import MODULES
from nceref.verification.targets.target import ResolvedTarget


@dataclass(frozen=True)
class Dialect:
    """How a framework's lines are written.

    Attributes
    ----------
    start : callable
        Dtype to imports, and the lines of settings that follow them.
    array, scalar : callable
        Literal and dtype to an input that is differentiated.
    answer : callable
        The call, and the names of the differentiated inputs, to the lines that set `value` and `grads`.
    """

    start: Callable[[str], tuple[tuple[str, ...], ...]]
    array: Callable[[str, str], str]
    labels: Callable[[str], str]
    scalar: Callable[[str, str], str]
    answer: Callable[[str, list[str], list[str]], list[str]]


_PICKED = "value = value['loss'] if isinstance(value, dict) else value"


def _numpy_answer(call: str, wanted: list[str], names: list[str]) -> list[str]:
    lines = [f"value = {call}", "value, grads = value if isinstance(value, tuple) else (value, None)"]
    if wanted:
        # A target may name its gradients by its own parameters, or leave them in order.
        pairs = "".join(f"{name!r}, " for name in names)
        lines += [f"grads = grads if isinstance(grads, dict) else dict(zip(({pairs}), grads))"]
    return lines


def _torch_answer(call: str, wanted: list[str], names: list[str]) -> list[str]:
    lines = [f"value = {call}", _PICKED]
    if wanted:
        lines += ["value.sum().backward()"]
        grads = ", ".join(f"{n!r}: torch.zeros_like({n}) if {n}.grad is None else {n}.grad" for n in wanted)
        lines += [f"grads = {{{grads}}}"]
    return [*lines, "value = value.detach().double().numpy() if isinstance(value, torch.Tensor) else value"]


def _jax_answer(call: str, wanted: list[str], names: list[str]) -> list[str]:
    arguments = ", ".join(wanted)
    lines = ["", "", f"def answer({arguments}):", f"    value = {call}", f"    return {_PICKED[8:]}", "", ""]
    lines += [f"value = np.asarray(answer({arguments}), dtype=np.float64)"]
    if wanted:
        numbers = ", ".join(map(str, range(len(wanted))))
        lines += [
            f"found = jax.grad(lambda *inputs: answer(*inputs).sum(), argnums=({numbers},))({arguments})",
            f"grads = dict(zip(({', '.join(map(repr, wanted))},), found))",
        ]
    return lines


_DOUBLE = 'jax.config.update("jax_enable_x64", True)'

DIALECTS: Mapping[str, Dialect] = {
    "numpy": Dialect(
        lambda dtype: ((),),
        lambda literal, dtype: f"np.array({literal}, dtype=np.{dtype})",
        lambda literal: f"np.array({literal})",
        lambda literal, dtype: f"np.{dtype}({literal})",
        _numpy_answer,
    ),
    "torch": Dialect(
        lambda dtype: (("import torch",),),
        lambda literal, dtype: f"torch.tensor({literal}, dtype=torch.{dtype}, requires_grad=True)",
        lambda literal: f"torch.tensor({literal})",
        lambda literal, dtype: f"torch.tensor({literal}, dtype=torch.{dtype}, requires_grad=True)",
        _torch_answer,
    ),
    "jax": Dialect(
        lambda dtype: (("import jax", "import jax.numpy as jnp"), ("", _DOUBLE) if dtype == "float64" else ()),
        lambda literal, dtype: f"jnp.array({literal}, dtype=jnp.{dtype})",
        lambda literal: f"jnp.array({literal})",
        lambda literal, dtype: f"jnp.array({literal}, dtype=jnp.{dtype})",
        _jax_answer,
    ),
}
"""Frameworks by name."""


def script(target: ResolvedTarget, probe: Probe, outcome: Outcome) -> str:
    """A stand-alone script that prints the reference's number and the target's, and exits with 1 while they differ.

    Parameters
    ----------
    target : ResolvedTarget
        What was run; an object that cannot be imported leaves a marked line to fill in.
    probe : Probe
        The case.
    outcome : Outcome
        What the target did: it decides whether the value is shown, or the gradients.

    Returns
    -------
    str
        Python source; it needs NumPy and the target's framework.
    """
    dialect, wrong, used = DIALECTS[target.framework], _wrong(probe, outcome), _used(target, probe)
    wanted = [name for name in wrong if name != VALUE]
    loads, needed = _loading(target)
    first, *settings = dialect.start(probe.dtype)
    imports = {*needed, *_modules(target), *first, "import sys", "import numpy as np"}
    lines = [
        f'"""{_title(target, probe)}\n\nExits with 1 while the numbers differ, with 0 when they agree.\n"""',
        "",
        *sorted(imports, key=lambda line: (not line.startswith(STANDARD), line)),
        *chain.from_iterable(settings),
        "",
        "# The target, loaded as it was given.",
        *loads,
        "",
        "# The input.",
        *(f"{name} = {_literal(probe, target, dialect, name)}" for name in used),
        *([f"reduction = {probe.reduction!r}"] if target.has_reduction else []),
        "",
        f"f = {_constructed(target)}",
        *_cast(target, probe),
        *dialect.answer(_call(target, probe), wanted, [n for n in used if n in outcome.grads]),
        "",
        *_comparison(target, probe, wrong),
    ]
    return "\n".join(lines) + "\n"


STANDARD = ("import sys", "import importlib", "import functools", "import math")
"""Imports of the standard library, which come first."""


def _wrong(probe: Probe, outcome: Outcome) -> list[str]:
    """The value if it is wrong, else the inputs whose gradient is."""
    observation = Observation(probe, outcome)
    found = gaps(observation)
    if not found[VALUE].right:
        return [VALUE]
    wrong = [name for name, gap in found.items() if not gap.right]
    return list(dict.fromkeys([*wrong, *(n for n in not_finite(observation) if n in probe.grads)])) or [VALUE]


def _title(target: ResolvedTarget, probe: Probe) -> str:
    given = [(p, probe.inputs[p.name]) for p in probe.loss.parameters if probe.inputs.get(p.name) is not None]
    parts = [f"{p.name} {np.shape(x)}" for p, x in given if isinstance(p, Array)]
    parts += [f"{p.name} {x:g}" for p, x in given if isinstance(p, Scalar)]
    title = f"A case on which {target.name} differs from the loss {probe.loss.name} of nceref {__version__}:"
    return f"{title}\n{', '.join(parts)}."


def _modules(target: ResolvedTarget) -> list[str]:
    """Imports of what the call expression names."""
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", target.call))
    paths = {short: path for short, path in MODULES.items() if short in words}
    return [f"import {path}" if short == path else f"import {path} as {short}" for short, path in paths.items()]


def _loading(target: ResolvedTarget) -> tuple[list[str], list[str]]:
    """The lines that set `target`, and the imports that they need."""
    place, _, name = target.text.rpartition(":")
    partial = ["import functools"] if target.init or _constructor(target) else []
    if place.endswith(".py"):
        stem = Path(place).stem
        return [
            f"path = {str(Path(place).absolute())!r}",
            f"sys.path.insert(0, {str(Path(place).absolute().parent)!r})",
            f"spec = importlib.util.spec_from_file_location({stem!r}, path)",
            "module = importlib.util.module_from_spec(spec)",
            f"sys.modules[{stem!r}] = module",
            "spec.loader.exec_module(module)",
            f"target = module.{name}",
        ], ["import importlib.util", *partial]
    if place:
        return ['sys.path.insert(0, ".")', f"module = importlib.import_module({place!r})", f"target = module.{name}"], [
            "import importlib",
            *partial,
        ]
    found, needed = _of_object(target)
    return found, [*needed, *partial]


def _of_object(target: ResolvedTarget) -> tuple[list[str], list[str]]:
    """The import of an object that was handed over, or a line to fill in."""
    found = getattr(getattr(target.program, "__self__", None), "found", None)
    module, name = getattr(found, "__module__", None), getattr(found, "__qualname__", "<none>")
    if module and module != "__main__" and "<" not in name and _importable(module):
        return [f"module = importlib.import_module({module!r})", f"target = module.{name}"], ["import importlib"]
    return [
        "# ==> PASTE OR IMPORT IT HERE: it was handed over as an object that no import leads to. <==",
        f"target = ...  # {target.name}",
    ], []


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


_CONSTRUCTED = re.compile(r"(\w+) -> (\w+) of the constructor")


def _constructor(target: ResolvedTarget) -> dict[str, str]:
    """Parameter of the constructor to the input that it is handed."""
    return {parameter: name for name, parameter in _CONSTRUCTED.findall(target.binding)}


def _constructed(target: ResolvedTarget) -> str:
    """A class is constructed, with what every case gives its constructor; a function may have arguments set."""
    given = {**{n: repr(value) for n, value in target.init.items()}, **_constructor(target)}
    arguments = ", ".join(f"{n}={value}" for n, value in given.items())
    function = f"functools.partial(target, {arguments})" if arguments else "target"
    return f"target({arguments}) if isinstance(target, type) else {function}"


def _used(target: ResolvedTarget, probe: Probe) -> list[str]:
    """The inputs that the script has to set, in the order of declaration."""
    wanted = {*target.names.values(), *_constructor(target).values()}
    return [p.name for p in probe.loss.parameters if p.name in wanted and p.name in probe.inputs]


def _literal(probe: Probe, target: ResolvedTarget, dialect: Dialect, name: str) -> str:
    value = probe.inputs[name]
    declared = next(p for p in probe.loss.parameters if p.name == name)
    if value is None or isinstance(declared, Choice):
        return repr(value)
    if isinstance(declared, Labels):
        return dialect.labels(repr(np.asarray(value).tolist()))
    if isinstance(declared, Array):
        return dialect.array(repr(np.asarray(value).tolist()), probe.dtype)
    plain = not isinstance(declared, Scalar) or declared.constant or name in target.floats
    return repr(float(value)) if plain else dialect.scalar(repr(float(value)), probe.dtype)


def _cast(target: ResolvedTarget, probe: Probe) -> list[str]:
    if target.framework != "torch":
        return []
    return [f"f = f.to(torch.{probe.dtype}) if isinstance(f, torch.nn.Module) else f"]


def _call(target: ResolvedTarget, probe: Probe) -> str:
    if target.call:
        return target.call
    named = [f"{parameter}={name}" for parameter, name in target.names.items() if probe.inputs.get(name) is not None]
    told = ["reduction=reduction"] if target.has_reduction and probe.reduction != "mean" else []
    return f"f({', '.join([*named, *told])})"


def _comparison(target: ResolvedTarget, probe: Probe, wrong: list[str]) -> list[str]:
    """Lines that print both and set the exit code."""
    lines, bounds = ["differ = False"], probe.bounds
    assert bounds is not None
    for name in wrong:
        value = name == VALUE
        want, bound = (probe.value, bounds.value) if value else (probe.grads[name], bounds.grads[name])
        label = "" if value else f"gradient of {name}, "
        yours = "value" if value else f"grads[{_key(target, name)}]"
        double = ".double()" if target.framework == "torch" and not value else ""
        lines += [
            f"reference = {_numbers(want)}",
            f"bound = {_numbers(np.broadcast_to(1.001 * np.asarray(bound), np.shape(want)), 4)}  # of rounding",
            f"yours = np.asarray({yours}{double}, dtype=np.float64).reshape(np.shape(reference))",
            f'print("{label}reference", reference, " [nceref {__version__}, loss {probe.loss.name}]")',
            f'print("{label}yours", yours)',
            "differ = differ or not np.all(np.abs(yours - reference) <= bound)",
        ]
    return [*lines, "sys.exit(1 if differ else 0)"]


def _key(target: ResolvedTarget, name: str) -> str:
    """The key of a gradient that the target may name in its own way."""
    own = [parameter for parameter, given in target.names.items() if given == name and parameter != name]
    return f"{name!r} if {name!r} in grads else {own[0]!r}" if own else repr(name)


def _numbers(x: Any, digits: int = 17) -> str:
    """A float, or an array, as source."""
    short = np.array([float(f"{entry:.{digits}g}") for entry in np.ravel(x)]).reshape(np.shape(x))
    return repr(short.tolist()) if short.ndim == 0 else f"np.array({short.tolist()})"
