"""The pages of the reference of public names."""

import importlib
import inspect

MODULES = {
    "nceref": "The door of the package.",
    "nceref.losses": "Losses as callables. Each has [a page of its own](../../losses.md).",
    "nceref.exact": "",
    "nceref.tolerance": "",
    "nceref.testing": "",
    "nceref.training": "",
    "nceref.spec": "",
    "nceref.errors": "",
    "nceref.verification.report": "",
    "nceref.cases.records": "",
}
"""Every module with public names, and what its own sentence leaves out."""

# Those of an exception are Python's own, in every one of them.
_INHERITED = "\n   :inherited-members:"


def index() -> str:
    """The list of modules."""
    lines = (f"- [`{name}`]({name}.md): {_sentence(name)}" for name in MODULES)
    return "# Reference\n\n" + "\n".join(lines) + "\n"


def page(module: str) -> str:
    """The public names of one module, each with its docstring."""
    directives = "\n\n".join(
        f".. auto{'class' if inspect.isclass(thing) else 'function'}:: {module}.{name}"
        + ("\n   :members:" + _INHERITED * (not issubclass(thing, Exception)) if inspect.isclass(thing) else "")
        for name, thing in public(module).items()
    )
    said = f"# {module}\n\n{_sentence(module)} {MODULES[module]}"
    return f"{said}\n\n```{{eval-rst}}\n.. currentmodule:: {module}\n\n{directives}\n```\n"


def public(module: str) -> dict[str, object]:
    """The classes and functions that a module offers, by name: those of its ``__all__``, else those it defines."""
    thing = importlib.import_module(module)
    names = getattr(thing, "__all__", None) or [n for n, x in vars(thing).items() if _defined(module, n, x)]
    objects = {name: getattr(thing, name) for name in names}
    return {name: x for name, x in objects.items() if inspect.isclass(x) or inspect.isfunction(x)}


def _defined(module: str, name: str, thing: object) -> bool:
    return not name.startswith("_") and getattr(thing, "__module__", "") == module


def _sentence(module: str) -> str:
    return (inspect.getdoc(importlib.import_module(module)) or "").partition("\n")[0]
