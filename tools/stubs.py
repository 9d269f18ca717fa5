"""Writes ``losses.pyi``: the real signature of every loss, for editors and type checkers.

The signatures come from the declarations, the rest from ``losses.py`` without its bodies. A misspelt keyword, or a loss
that does not exist, is then an error before anything runs.

Each method of a loss states its arguments in full: `value_and_grad` has one keyword more than a call, `anatomy` one
less, and a `ParamSpec` can neither gain nor lose a keyword (PEP 612 allows positional arguments only). A ``TypedDict``
of the keywords could, but editors would then show ``**settings`` in place of names and defaults.
"""

import ast
import json
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from nceref import losses
from nceref.losses import LossFunction
from nceref.output import files
from nceref.spec import Array, Choice, Labels, Parameter, Scalar

PATH = Path(losses.__file__).with_suffix(".pyi")

_HEADER = '"""Written by `make generate` from the declarations in `nceref.family`: change those."""\n# fmt: off\n'
_WIDTH = 120
_GENERAL = {"reduction", "compute"}
"""Arguments that a loss has without declaring them."""
_GLUE = "\N{NO-BREAK SPACE}"
"""A character for a space at which no line is broken."""


def render() -> str:
    """Text of ``losses.pyi``."""
    tree = ast.parse(Path(losses.__file__).read_text(encoding="utf-8"))
    generic = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    constants = [node for node in assigned if not ast.unparse(node.targets[0]).startswith("_")]
    body = [f"{ast.unparse(node.targets[0])}: {type(ast.literal_eval(node.value)).__name__}" for node in constants]
    body += ["", *_generic(generic), ""]
    for node in functions:
        body += _signature(node.name, _arguments(node.args), _returned(node), 0)
    for loss in losses.all_losses().values():
        body += ["", *_class(loss, generic)]
    body += ["", *(f"{name}: {_title(name)}" for name in losses.all_losses()), ""]
    return "\n".join([_HEADER, *_imports(tree, "\n".join(body)), "", *body])


def update() -> bool:
    """Write the stub beside ``losses.py``; True if it changed."""
    text = render()
    # An unchanged file keeps its time of change.
    if PATH.exists() and PATH.read_text(encoding="utf-8") == text:
        return False
    files.write_text(PATH, text)
    return True


def _imports(tree: ast.Module, body: str) -> Iterator[str]:
    """The imports of ``losses.py`` that the stub uses, sorted as there."""
    # Names are read from the stub as it is: what its bodies used is gone.
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "typing":
            yield "from typing import Any, Literal, SupportsFloat\n"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias for alias in node.names if (alias.asname or alias.name) in used]
            if names:
                node.names = names
                yield ast.unparse(node)


def _generic(node: ast.ClassDef) -> Iterator[str]:
    """The class `LossFunction`: attributes and public methods, whose array arguments each loss narrows down."""
    yield f"class {node.name}:"
    methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    for name, kind in _attributes(methods[0]):
        yield f"    {name}: {kind}"
    for method in methods:
        # Dunder methods stay: a loss is called.
        if method.name.startswith("_") and not method.name.startswith("__"):
            continue
        yield from (f"    @{ast.unparse(decorator)}" for decorator in method.decorator_list)
        arguments = _arguments(method.args)
        if method.args.vararg:
            arguments = ["self", *(f"{star}{a.arg}: Any" for star, a in _stars(method.args))]
        yield from _signature(method.name, arguments, _returned(method), 4)


def _attributes(init: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """The attributes that `__init__` sets, each with the type of the argument that it is set to."""
    kinds = {a.arg: ast.unparse(a.annotation) for a in init.args.args if a.annotation}
    for node in init.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            yield node.targets[0].attr, kinds.get(ast.unparse(node.value), "Any")


def _class(loss: LossFunction, generic: ast.ClassDef) -> Iterator[str]:
    """One loss: every method that takes its arrays, with the arguments of the loss."""
    yield f"class {_title(loss.name)}({generic.name}):"
    yield f'    """{loss.declaration.summary}"""'
    yield ""
    for method in generic.body:
        if not isinstance(method, ast.FunctionDef) or not method.args.vararg:
            continue
        # Offered only where it works, so that an editor does not complete it elsewhere.
        if method.name == "decompose" and loss.declaration.decomposition is None:
            continue
        named = {a.arg for a in method.args.kwonlyargs}
        own = [a.arg for a in method.args.kwonlyargs if a.arg not in _GENERAL]
        arguments = list(_of_loss(loss, named)) + [f"{name}: Any = None" for name in own]
        yield from _signature(method.name, ["self", *arguments], _returned(method), 4)


def _of_loss(loss: LossFunction, named: set[str]) -> Iterator[str]:
    """The arguments of a loss as they are declared; those of every loss only where the method names them."""
    kinds = {p.name: _kind(p) for p in loss.parameters}
    words = ("mean", "sum", "none") if loss.declaration.has_rows else ("mean",)
    kinds |= {"reduction": f"Literal[{', '.join(map(json.dumps, words))}]", "compute": "bool"}
    starred = False
    for p in losses.signature(loss.declaration).parameters.values():
        if p.name in _GENERAL - named:
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield f"{p.name}: {kinds[p.name]}" + ("" if p.default is p.empty else f" = {_literal(p.default)}")


def _kind(p: Parameter) -> str:
    match p:
        case Array() | Labels():
            return "Any"
        case Scalar():
            return "SupportsFloat | None" if p.optional else "SupportsFloat"
        case Choice():
            return f"Literal[{', '.join(map(_literal, p.options))}]"


def _literal(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _title(name: str) -> str:
    return "_" + "".join(part.capitalize() for part in name.split("_"))


def _returned(node: ast.FunctionDef) -> str:
    return ast.unparse(node.returns) if node.returns else "None"


def _stars(args: ast.arguments) -> Iterator[tuple[str, ast.arg]]:
    return ((star, arg) for star, arg in (("*", args.vararg), ("**", args.kwarg)) if arg)


def _arguments(args: ast.arguments) -> list[str]:
    """Arguments of a function with their defaults, without stars."""
    defaults = [None] * (len(args.args) - len(args.defaults)) + [*args.defaults]
    return [
        ast.unparse(arg) + ("" if default is None else f" = {ast.unparse(default)}")
        for arg, default in zip(args.args, defaults, strict=True)
    ]


def _signature(name: str, arguments: Sequence[str], returned: str, indent: int) -> list[str]:
    """One ``def``, with as many whole arguments on a line as fit."""
    # An argument is not broken between its name, its type and its default.
    text = f"def {name}({', '.join(a.replace(' ', _GLUE) for a in arguments)}){_GLUE}->{_GLUE}{returned}:{_GLUE}..."
    pad = " " * indent
    lines = textwrap.wrap(text, _WIDTH, initial_indent=pad, subsequent_indent=pad + "    ", break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines]


if __name__ == "__main__":
    update()
