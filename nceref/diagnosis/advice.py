"""What to change, in the words of the framework that a target is written in."""

from collections.abc import Mapping
from dataclasses import replace

from nceref.cases.records import Diagnosis
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.targets.frameworks.frameworks import FRAMEWORKS

_BY_HAND = "numpy", "command", "recorded"
"""Targets of which return gradients that somebody has derived."""


_OF_RUN: Mapping[str, Mapping[str, str]] = {
    "recorded": {
        "unexplained": "Let it answer calls: `nceref verify cmd:PROGRAM` looks for a small failing input, and"
        " measures a formula.",
    },
}
"""Of targets that cannot be called."""


def fix_of(ids: str, framework: str = "") -> str:
    """The advice what to change.

    `ids`: a convention, or several joined by ``+``. `framework`: of the target; empty: the advice of the conventions
    themselves.
    """
    written = FRAMEWORKS.get("numpy" if framework in _BY_HAND else framework)
    own = {**(written.advice if written else {}), **_OF_RUN.get(framework, {})}
    return " ".join(dict.fromkeys(own.get(id) or CONVENTIONS[id].fix for id in ids.split("+")))


def advised(diagnosis: Diagnosis, framework: str) -> Diagnosis:
    """The diagnosis with the advice for a framework, where it has the one of its conventions."""
    if not set(diagnosis.id.split("+")) <= CONVENTIONS.keys() or diagnosis.fix != fix_of(diagnosis.id):
        return diagnosis
    return replace(diagnosis, fix=fix_of(diagnosis.id, framework))


_OPTIONS = {"float32-fallback": "--dtype float32"}
_EXPECTED = "--expected-failures FILE, with the ids of the results that fail; --json FILE lists them"
_NO_LOSS = frozenset({"wrong-loss", "as-the-reference", "unexplained"})


def intendable(diagnosis: Diagnosis, framework: str = "") -> Diagnosis:
    """The diagnosis with how to intend it, where it is a named difference; recorded answers take no options.

    `framework`: of the target.
    """
    ids = set(diagnosis.id.split("+"))
    if framework == "recorded":
        return replace(diagnosis, intend="")
    if diagnosis.intend or not ids <= CONVENTIONS.keys() or ids & _NO_LOSS:
        return diagnosis
    return replace(diagnosis, intend=_OPTIONS.get(diagnosis.id, _EXPECTED))
