"""Vendored tests: a file of tests and one of vectors that a maintainer copies, and that need no nceref."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from nceref import __version__
from nceref.cases.rounding import rounded
from nceref.errors import InputError
from nceref.losses import default_of, describe, get_loss
from nceref.output.files import make_folder, read, replace
from nceref.output.words import counted
from nceref.spec import Choice, Loss, Parameter, Scalar
from nceref.verification.vectors.packed import is_large
from nceref.verification.vectors.records import ERROR, FEW_BITS, VectorCase
from nceref.verification.vectors.store import read_vectors
from nceref.verification.vectors.vendored_text import LIBRARIES, RUNNERS, TEXT

DTYPES = ("float64", "float32")
"""Formats that every library has."""
MOST = 200_000
"""Bytes of the vectors of a loss: they are kept in the repository of somebody else."""
_NAME = re.compile(r"(?P<geometry>.+?)(?:-(?P<temperature>[\d.]+))?-[0-9a-f]{8}")
"""An id: the temperature is missing where a loss has none."""
_WIDTH = 112


@dataclass(frozen=True)
class VendoredTest:
    """The two files of a loss, and how many of its cases they have.

    `left_out` says how many they have not, and why; empty for none.
    """

    loss: str
    test: Path
    data: Path
    kept: int
    count: int
    left_out: str


def export_tests(
    folder: str | os.PathLike[str],
    losses: tuple[str, ...] = (),
    *,
    library: str,
    runner: str = "pytest",
    force: bool = False,
) -> Iterator[VendoredTest]:
    """Write ``test_NAME.py`` and ``NAME_vectors.json`` for each loss, which need nothing of nceref.

    `folder`: it is made if it is not there; other files in it stay. `losses`: names; empty for all. `library`: one of
    `LIBRARIES`. `runner`: one of `RUNNERS`. `force`: whether files of these names are replaced if their contents are
    others. Each: what was written of a loss. Raises `InputError` for a loss without vectors, and for a file that would
    be replaced, before anything is written.
    """
    vectors = read_vectors(losses=losses)
    place, corpus = make_folder(folder), vectors.manifest["corpus"]
    made = [_contents(place, loss, cases, corpus, library, runner) for loss, cases in vectors.cases.items()]
    for path, content in (file for _, files in made for file in files.items()):
        if not force and path.exists() and read(path) != content:
            msg = f"`out` has {path} already, with other contents; `force` replaces it, and another folder keeps it"
            raise InputError(msg)
    for vendored, files in made:
        for path, content in files.items():
            replace(path, content)
        yield vendored


def _contents(
    place: Path, loss: str, cases: Sequence[VectorCase], corpus: str, library: str, runner: str
) -> tuple[VendoredTest, dict[Path, bytes]]:
    """The contents by path, the vectors before the test that reads them."""
    declared, test, data = get_loss(loss).declaration, f"test_{loss}.py", f"{loss}_vectors.json"
    about: dict[str, Any] = {"loss": loss, "reduction": "mean", "made by": f"nceref {__version__}", "corpus": corpus}
    about |= {"license": "CC0-1.0", "cases of the corpus": len(cases)}
    lines, left_out = chosen(declared, cases, MOST - len(_data(about, [])))
    content = _data(about, lines)
    text = TEXT.substitute(
        {"loss": loss, "data": data, "version": __version__, "corpus": corpus, "left_out": left_out or "none"},
        command=f"nceref vectors export --loss {loss} --as test --for {library} --runner {runner} --out DIR",
        kept=len(lines),
        count=len(cases),
        sha256=hashlib.sha256(content).hexdigest(),
        **_of_loss(declared, cases),
        **_of_library(library, runner, test),
    )
    vendored = VendoredTest(loss, place / test, place / data, len(lines), len(cases), left_out)
    return vendored, {vendored.data: content, vendored.test: text.encode()}


def _data(about: Mapping[str, Any], lines: Sequence[str]) -> bytes:
    """The file of vectors, a case on each line."""
    body = ",\n".join(lines)
    return f'{json.dumps(about)[:-1]}, "cases": [\n{body}\n]}}\n'.encode()


# Cases.


def chosen(loss: Loss, cases: Sequence[VectorCase], most: int) -> tuple[list[str], str]:
    """The lines of the cases of a file, at most that many bytes in all, and why the others are left out.

    Each geometry, temperature and way to call the loss comes once before any of them comes again; cases that the test
    judges before they are asked for come before others, and small ones before larger ones.
    """
    judged = [case for case in cases if not is_large(case) and case.expect != ERROR]
    lines = {case.id: json.dumps(_record(loss, case), allow_nan=False) for case in judged}
    seen: set[Any] = set()
    first: list[VectorCase] = []
    rest: list[VectorCase] = []
    for case in sorted(judged, key=lambda case: (not _is_usual(loss, case), len(lines[case.id]))):
        (rest if _traits(loss, case) <= seen else first).append(case)
        seen |= _traits(loss, case)
    kept = set()
    for case in [*first, *rest]:
        # A comma and a line feed are added.
        if (size := len(lines[case.id]) + 2) <= most:
            kept.add(case.id)
            most -= size
    reasons = (
        (sum(map(is_large, cases)), "with 131 rows"),
        (sum(case.expect == ERROR for case in cases), "whose inputs are to be refused"),
        (len(lines) - len(kept), f"beyond {MOST // 1000} kB"),
    )
    left_out = ", ".join(f"{counted(number, 'case')} {why}" for number, why in reasons if number)
    return [line for id, line in lines.items() if id in kept], left_out


def _record(loss: Loss, case: VectorCase) -> dict[str, Any]:
    """A case as plain data: numbers as decimals that are exact, arrays as nested lists, allowed errors flat."""
    named = _NAME.fullmatch(case.id)
    cold = {"temperature": float(named["temperature"])} if named and named["temperature"] else {}
    inputs = {p.name: case.arguments.get(p.name) for p in loss.parameters}
    settings = {name: inputs.pop(name) for name in _settings(loss)}
    return {
        "id": case.id,
        **cold,
        "settings": settings,
        "inputs": {name: np.asarray(x).tolist() for name, x in inputs.items() if x is not None},
        "outputs": {name: output.numbers.tolist() for name, output in case.outputs.items()},
        "allowed": {
            dtype: {n: np.ravel(x.allowed[dtype]).tolist() for n, x in case.outputs.items() if dtype in x.allowed}
            for dtype in DTYPES
        },
    }


def _traits(loss: Loss, case: VectorCase) -> set[Any]:
    """Geometry, temperature, and the way to call the loss: words and given inputs."""
    named = _NAME.fullmatch(case.id)
    words = [(p.name, case.arguments.get(p.name)) for p in loss.parameters if isinstance(p, Choice)]
    return {*(named.groupdict().items() if named else ()), (*words, *_way(loss, case))}


def _is_usual(loss: Loss, case: VectorCase) -> bool:
    """Whether the test judges a case as it is written."""
    same = all(case.arguments.get(name) == x for name, x in _settings(loss).items())
    return same and _way(loss, case) == _usual_way(loss)


def _first(loss: Loss) -> dict[str, Any]:
    """The arguments of the first variant of a loss; those that must be given have no value."""
    return {p.name: default_of(p) for p in loss.parameters} | dict(loss.variants[0])


def _settings(loss: Loss) -> dict[str, Any]:
    """Words and constants that a loss may have built in, by name, each as the first variant has it.

    A constant whose default the vectors have to round is an input: no loss has the rounded number built in.
    """
    first = _first(loss)
    return {p.name: first[p.name] for p in loss.parameters if isinstance(p, Choice) or _is_built_in(p, first[p.name])}


def _is_built_in(p: Parameter, x: Any) -> bool:
    return isinstance(p, Scalar) and p.constant and (x is None or (p.default is not ... and rounded(x, FEW_BITS) == x))


def _usual_way(loss: Loss) -> list[str]:
    """The inputs that the first variant is given."""
    first, settings = _first(loss), _settings(loss)
    return [p.name for p in loss.parameters if p.name not in settings and first[p.name] is not None]


def _way(loss: Loss, case: VectorCase) -> list[str]:
    """The inputs that a case has."""
    settings = _settings(loss)
    return [p.name for p in loss.parameters if p.name in case.inputs and p.name not in settings]


# The parts of the text that are of a loss, and of a library.


def _of_loss(loss: Loss, cases: Sequence[VectorCase]) -> dict[str, str]:
    settings, usual = _settings(loss), _usual_way(loss)
    ways = [usual, *sorted(way for way in map(list, {tuple(_way(loss, case)) for case in cases}) if way != usual)]
    about = [f"{p.name}: {describe(p)}. {p.meaning}" for p in loss.parameters if p.name not in settings]
    lines = [line for text in about for line in wrap(text, _WIDTH, subsequent_indent="  ")]
    call = ", ".join(f"inputs[{_literal(name)}]" for name in usual)
    return {
        "inputs": "\n".join(f"    {line}" for line in lines),
        "call": "\n".join(wrap(f"    return loss({call})", _WIDTH, subsequent_indent=" " * 16)),
        "gradients": ", ".join(_literal(name) for name in usual if name in loss.differentiable),
        "settings": "".join(_setting(name, x, cases) for name, x in settings.items()) + ("\n" if settings else ""),
        "ways": "\n".join(f"    {'' if way == usual else '# '}[{', '.join(map(_literal, way))}]," for way in ways),
    }


def _setting(name: str, x: Any, cases: Sequence[VectorCase]) -> str:
    """A line of the settings, with the values that other cases have."""
    others = sorted({_literal(case.arguments.get(name)) for case in cases} - {_literal(x)})
    comment = f"  # the vectors also have {', '.join(others)}" if others else ""
    return f"\n    {_literal(name)}: [{_literal(x)}],{comment}"


def _literal(x: Any) -> str:
    return json.dumps(x) if isinstance(x, str) else repr(x)


def _of_library(library: str, runner: str, test: str) -> dict[str, str]:
    own, run = LIBRARIES[library], RUNNERS[runner]
    return {**vars(own), "tests": run.tests, "runs": f"{run.command} {test}"}
