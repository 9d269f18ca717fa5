"""A failing case as a script that runs without nceref: the input as literals, the call, both numbers."""

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nceref import __version__
from nceref.cases.parametrization import gradient_by, parameter_at
from nceref.cases.records import Observation, Outcome, Probe
from nceref.diagnosis.gaps import VALUE, gaps, not_finite
from nceref.output.text import printable
from nceref.spec import Array, Choice, Labels, Scalar
from nceref.targets.call_expression import MODULES
from nceref.targets.frameworks.framework import Dialect
from nceref.targets.frameworks.frameworks import FRAMEWORKS
from nceref.targets.target import ResolvedTarget

DOCSTRING = '''"""{title}
{inputs}.

Exits with 1 while the numbers differ, with 0 when they agree.
"""'''
FROM_FILE = """path = {path!r}
sys.path.insert(0, {folder!r})
spec = importlib.util.spec_from_file_location({stem!r}, path)
module = importlib.util.module_from_spec(spec)
sys.modules[{stem!r}] = module
spec.loader.exec_module(module)
loaded = module.{name}"""
FROM_MODULE = """module = importlib.import_module({module!r})
loaded = module.{name}"""
TO_FILL_IN = """# ==> PASTE OR IMPORT IT HERE: it was handed over as an object that no import leads to. <==
loaded = ...  # {name}"""
COMPARISON = """reference = {reference}
bound = {bound}  # of rounding
yours = np.asarray({yours}, dtype=np.float64).reshape(np.shape(reference))
print("{label}reference", reference, " [nceref {version}, loss {loss}]")
print("{label}yours", yours)
differ = differ or not np.all(np.abs(yours - reference) <= bound)"""


def script(target: ResolvedTarget, probe: Probe, outcome: Outcome) -> str:
    """Python source that prints the reference's number and the target's, and exits with 1 while they differ.

    For an object that cannot be imported it has a marked line to fill in. `outcome` decides whether the value is shown,
    or the gradients. The script needs NumPy and the target's framework.
    """
    dialect = FRAMEWORKS[target.framework].dialect
    loading, needed = _loading(target)
    imports = {*needed, *_modules(target), *dialect.imports, "import sys", "import numpy as np"}
    wrong = _wrong(probe, outcome)
    sections = (
        DOCSTRING.format(title=title(target, probe), inputs=described(probe)),
        "\n".join(sorted(imports, key=lambda line: (not line.startswith(STANDARD), line))),
        dialect.setup.get(probe.dtype, ""),
        f"# The target, loaded as it was given: run this in the folder from which nceref was run.\n{loading}",
        f"# The input.\n{_inputs(target, probe, dialect)}",
        _called(target, probe, outcome, [name for name in wrong if name != VALUE]),
        comparisons(target, probe, outcome),
        "sys.exit(1 if differ else 0)",
    )
    return "\n\n".join(filter(None, sections)) + "\n"


STANDARD = ("import sys", "import importlib", "import functools", "import math")
"""Imports of the standard library, which come first."""


def comparisons(target: ResolvedTarget, probe: Probe, outcome: Outcome) -> str:
    """Lines that print what is wrong beside the reference, from `value` and `grads`, and set `differ`.

    The parameters are those of `script`.
    """
    return "\n".join(["differ = False", *(_comparison(target, probe, name) for name in _wrong(probe, outcome))])


def _wrong(probe: Probe, outcome: Outcome) -> list[str]:
    """The value if it is wrong, else the inputs whose gradient is."""
    observation = Observation(probe, outcome)
    by_quantity = gaps(observation)
    if not by_quantity[VALUE].right:
        return [VALUE]
    wrong = [name for name, gap in by_quantity.items() if not gap.right]
    return list(dict.fromkeys([*wrong, *(n for n in not_finite(observation) if n in probe.grads)])) or [VALUE]


def title(target: ResolvedTarget, probe: Probe) -> str:
    """The first line of the docstring of a script."""
    # Within a docstring: a name of others must not end it, and a backslash would begin an escape.
    name = printable(target.name).replace("\\", "\\\\").replace('"', "'")
    return f"A case on which {name} differs from the loss {probe.loss.name} of nceref {__version__}:"


def described(probe: Probe) -> str:
    """Shapes and scalars of a case, on one line."""
    given = [(p, probe.inputs[p.name]) for p in probe.loss.parameters if probe.inputs.get(p.name) is not None]
    parts = [f"{p.name} {np.shape(x)}" for p, x in given if isinstance(p, Array)]
    parts += [f"{p.name} {x:g}" for p, x in given if isinstance(p, Scalar)]
    return ", ".join(parts)


def _modules(target: ResolvedTarget) -> list[str]:
    """Imports of what the call expression names."""
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", target.call))
    paths = {short: path for short, path in MODULES.items() if short in words}
    return [f"import {path}" if short == path else f"import {path} as {short}" for short, path in paths.items()]


def _loading(target: ResolvedTarget) -> tuple[str, list[str]]:
    """The lines that set `loaded`, and the imports that they need."""
    address, _, name = target.text.rpartition(":")
    partial = ["import functools"] if target.init or _constructor(target) or _once(target) else []
    if address.endswith(".py"):
        path = Path(address).absolute()
        # A script with paths of this machine could not be handed on.
        if path.is_relative_to(Path.cwd()):
            path = path.relative_to(Path.cwd())
        lines = FROM_FILE.format(path=str(path), folder=str(path.parent), stem=path.stem, name=name)
        return lines, ["import importlib.util", *partial]
    if address:
        lines = 'sys.path.insert(0, ".")\n' + FROM_MODULE.format(module=address, name=name)
        return lines, ["import importlib", *partial]
    # The program of an object is a method of its `Callee`.
    thing = getattr(getattr(target.program, "__self__", None), "thing", None)
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "<none>")
    # Names such as <lambda> and f.<locals>.g cannot be imported.
    if module and module != "__main__" and "<" not in name and _importable(module):
        return FROM_MODULE.format(module=module, name=name), ["import importlib", *partial]
    return TO_FILL_IN.format(name=printable(target.name)), partial


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


_CONSTRUCTED = re.compile(r"(\w+) -> (\w+) of the constructor")


def _constructor(target: ResolvedTarget) -> dict[str, str]:
    """Parameter of the constructor to the input that it is handed."""
    return {parameter: name for name, parameter in _CONSTRUCTED.findall(target.binding)}


def _once(target: ResolvedTarget) -> dict[str, str]:
    """Numbers that the constructor is given once, since what it makes of them is replaced."""
    return dict(re.findall(r"(\w+) = (\S+) of the constructor", target.binding))


def _inputs(target: ResolvedTarget, probe: Probe, dialect: Dialect) -> str:
    """Lines that set the inputs."""
    lines = [f"{name} = {_literal(probe, target, dialect, name)}" for name in _used(target, probe)]
    return "\n".join([*lines, *([f"reduction = {probe.reduction!r}"] if target.has_reduction else [])])


def _used(target: ResolvedTarget, probe: Probe) -> list[str]:
    """The inputs that the script has to set, in the order of declaration."""
    taken = {*target.names.values(), *_constructor(target).values(), *target.parameters}
    return [p.name for p in probe.loss.parameters if p.name in taken and p.name in probe.inputs]


def _literal(probe: Probe, target: ResolvedTarget, dialect: Dialect, name: str) -> str:
    value = probe.inputs[name] if name not in target.parameters else _held(probe, name)
    declared = next(p for p in probe.loss.parameters if p.name == name)
    if value is None or isinstance(declared, Choice):
        return repr(value)
    if isinstance(declared, Array | Labels):
        template = dialect.array if isinstance(declared, Array) else dialect.labels
        return template.format(literal=np.asarray(value).tolist(), dtype=probe.dtype)
    as_number = not isinstance(declared, Scalar) or declared.constant or name in target.floats
    return repr(float(value)) if as_number else dialect.scalar.format(literal=float(value), dtype=probe.dtype)


def _called(target: ResolvedTarget, probe: Probe, outcome: Outcome, compared: Sequence[str]) -> str:
    """Lines that construct and call the target, and set `value` and `grads`."""
    dialect = FRAMEWORKS[target.framework].dialect
    entries = {
        "dtype": probe.dtype,
        "call": _call(target, probe),
        "arguments": ", ".join(compared),
        "by_name": ", ".join(f"{name!r}: {name}" for name in compared),
        "names": _tuple(repr(name) for name in compared),
        "numbers": _tuple(str(i) for i in range(len(compared))),
        "returned": _tuple(repr(name) for name in _used(target, probe) if name in outcome.grads),
        "held": _holding(target, probe),
    }
    holding = dialect.holding if entries["held"] else ""
    templates = (dialect.cast, holding, dialect.call, dialect.grads if compared else "", dialect.number)
    function = f"f = {_constructed(target)}"
    # A function definition stands apart from what is around it.
    gap = "\n\n\n" if dialect.call.startswith("def ") else "\n"
    return gap.join([function, "\n".join(template.format(**entries) for template in templates if template)])


def _held(probe: Probe, name: str) -> Any:
    """The parameter that the module holds in place of an input."""
    return parameter_at(probe.forms.get(name, "identity"), probe.inputs[name], probe.dtype)


def _holding(target: ResolvedTarget, probe: Probe) -> str:
    """Entries of a dictionary: parameters of the module, and the inputs in their place."""
    shape = {name: f".reshape(f.get_parameter({path!r}).shape)" for name, path in target.parameters.items()}
    scalars = {p.name for p in probe.loss.parameters if isinstance(p, Scalar)}
    return ", ".join(f"{path!r}: {n}{shape[n] if n in scalars else ''}" for n, path in target.parameters.items())


def _tuple(entries: Any) -> str:
    """The inside of a tuple as source, also of a tuple of one entry."""
    return "".join(f"{entry}, " for entry in entries).rstrip(" ")


def _constructed(target: ResolvedTarget) -> str:
    """A class is constructed, with what every case gives its constructor; a function may have arguments set."""
    given = {**{n: repr(value) for n, value in target.init.items()}, **_once(target), **_constructor(target)}
    arguments = ", ".join(f"{n}={value}" for n, value in given.items())
    function = f"functools.partial(loaded, {arguments})" if arguments else "loaded"
    return f"loaded({arguments}) if isinstance(loaded, type) else {function}"


def _call(target: ResolvedTarget, probe: Probe) -> str:
    if target.call:
        return target.call
    named = [f"{parameter}={name}" for parameter, name in target.names.items() if probe.inputs.get(name) is not None]
    reduction = ["reduction=reduction"] if target.has_reduction and probe.reduction != "mean" else []
    return f"f({', '.join([*named, *reduction])})"


def _comparison(target: ResolvedTarget, probe: Probe, name: str) -> str:
    """Lines that print both numbers, or arrays, and notice a difference."""
    bounds = probe.bounds
    assert bounds is not None
    value = name == VALUE
    expected, bound = (probe.value, bounds.value) if value else (probe.grads[name], bounds.grads[name])
    if name in target.parameters:
        form, parameter = probe.forms.get(name, "identity"), _held(probe, name)
        expected, bound = gradient_by(form, parameter, expected), np.abs(gradient_by(form, parameter, bound))
    return COMPARISON.format(
        reference=_numbers(expected),
        # Four digits are enough for a bound; a thousandth more makes up for rounding it down.
        bound=_numbers(np.broadcast_to(1.001 * np.asarray(bound), np.shape(expected)), 4),
        yours="value" if value else f"grads[{_key(target, name)}]",
        label="" if value else f"gradient of {target.parameters.get(name, name)}, ",
        version=__version__,
        loss=probe.loss.name,
    )


def _key(target: ResolvedTarget, name: str) -> str:
    """The key of a gradient that the target may name in its own way."""
    own = [parameter for parameter, given in target.names.items() if given == name and parameter != name]
    return f"{name!r} if {name!r} in grads else {own[0]!r}" if own else repr(name)


def _numbers(x: Any, digits: int = 17) -> str:
    """A float, or an array, as source."""
    short = np.array([float(f"{entry:.{digits}g}") for entry in np.ravel(x)]).reshape(np.shape(x))
    return repr(short.tolist()) if short.ndim == 0 else f"np.array({short.tolist()})"
