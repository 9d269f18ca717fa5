"""Manifests: the targets of a project in `nceref.toml`, or below ``[tool.nceref]`` in `pyproject.toml`."""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from nceref.cases.expected_failures import ExpectedFailure, first_matching
from nceref.errors import InputError
from nceref.output import files
from nceref.output.text import printable, shown
from nceref.output.words import alike, did_you_mean
from nceref.verification.conformance.target import Target
from nceref.verification.manifest.expected_failures import read_failures
from nceref.verification.manifest.keys import DEFAULTS, KEYS, NEEDED, OF_CHECKS, TABLES, kind, no_key, wrong_keys
from nceref.verification.manifest.toml_lines import TomlLines
from nceref.verification.options import BY_NAME
from nceref.verification.options import KEYS as OPTIONS

FILE, PROJECT = "nceref.toml", "pyproject.toml"
EXAMPLE = '[[target]] with target = "my_losses.py:nt_xent" and loss = "nt_xent"'


def line_of(place: str) -> int:
    """The line of ``file:line``.

    >>> line_of("nceref.toml:12")
    12
    """
    return int(place.rpartition(":")[2] or 1)


def prefix_of(path: str) -> tuple[str, ...]:
    """The keys of the table that a manifest is in its file."""
    return ("tool", "nceref") if Path(path).name == PROJECT else ()


@dataclass(frozen=True)
class ManifestTarget:
    """A table ``[[target]]``, as it stands in the file (`table`), and what was read from it.

    The name is as ``--only`` takes it. `target` is None where the table has `problems`, a sentence with file and line
    each. `expected` has the expected failures by the ids of results, with ``*`` for any letters, and `keys` the keys
    below the table that each of these stands at; `place` maps such keys to ``file:line``.
    """

    name: str
    target: Target | None
    expected: Mapping[str, ExpectedFailure] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    place: Callable[..., str] = field(default=lambda *keys: "", compare=False, repr=False)
    table: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    keys: Mapping[str, Sequence[str | int]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def line(self) -> int:
        """The line where the table begins."""
        return line_of(self.place())

    def place_of(self, id: str) -> str:
        """The ``file:line`` of an expected failure."""
        return self.place(*self.keys[id])

    def place_of_result(self, id: str) -> tuple[str, int]:
        """File and line of what is about a result: its expected failure, or else the table."""
        name = first_matching(id, self.expected)
        place = self.place() if name is None else self.place_of(name)
        return place.rpartition(":")[0], line_of(place)

    @property
    def checks(self) -> Mapping[str, int]:
        """The least numbers of checks by kind; empty where the table has none."""
        return _tables(self.table.get("checks"))

    @property
    def ids(self) -> list[str]:
        """The patterns of the expected failures, in their order in the file."""
        return list(self.expected)


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read: its path, its targets, what is wrong beside them, and its text."""

    path: str
    targets: tuple[ManifestTarget, ...]
    problems: tuple[str, ...] = ()
    text: str = field(default="", repr=False)

    def chosen(self, only: Sequence[str] = ()) -> tuple[ManifestTarget, ...]:
        """The targets of these names, in the order of the file; all of them for no name.

        Raises `InputError` for a name that no target has.
        """
        names = [entry.name for entry in self.targets]
        for name in only:
            if name not in names:
                meant = did_you_mean(alike(name, names)) or f"it has {', '.join(map(repr, names))}"
                msg = f"--only {printable(name)}: {printable(self.path)} has no target of that name; {meant}"
                raise InputError(msg)
        return tuple(entry for entry in self.targets if not only or entry.name in only)


def find_manifest(folder: str | os.PathLike[str] = "", option: str = "--manifest") -> str:
    """The path of the manifest of a folder, `nceref.toml` before `pyproject.toml`; empty where there is none.

    `option`: by which the caller was given it, for errors. Raises `InputError` for a `pyproject.toml` that is not TOML.
    """
    own, project = Path(folder, FILE), Path(folder, PROJECT)
    if own.is_file():
        return str(own)
    if project.is_file() and "nceref" in _tables(_parsed(str(project), option)[1].get("tool")):
        return str(project)
    return ""


def read_manifest(path: str | os.PathLike[str], option: str = "--manifest") -> Manifest:
    """Read a manifest; what is wrong with one of its targets is kept for the report of that target.

    It is the table ``tool.nceref`` of a file `pyproject.toml`, and all of another one; files that it names are looked
    for from its folder. `option`: by which the caller was given it, for errors. Raises `InputError` for a file that
    cannot be read, is not TOML, or has no target.
    """
    path = os.fspath(path)
    text, content = _parsed(path, option)
    prefix = prefix_of(path)
    named, lines = printable(path), TomlLines(text)
    for key in prefix:
        content = _tables(content.get(key))

    def place(*keys: str | int) -> str:
        return f"{named}:{lines.of(*prefix, *keys)}"

    if not TABLES.fits(tables := content.get("target", [])):
        msg = f"{place('target')}: `target` must be an array of tables, {EXAMPLE}, got {kind(tables)}"
        raise InputError(msg)
    unknown = [f"{place(key)}: {no_key(key, _TABLES, 'a manifest')}" for key in content if key not in _TABLES]
    if misplaced := [key for key in content if key in KEYS and key not in _TABLES]:
        # It was meant for the targets, which would run without it.
        msg = f"{place(misplaced[0])}: `{misplaced[0]}` is a key of a target; move it below [[target]] or [defaults]"
        raise InputError(msg)
    if not tables:
        msg = unknown[0] if unknown else f"{named} has no target{_below(prefix)}; write {EXAMPLE}"
        raise InputError(msg)
    defaults, wrong = _defaults(content.get("defaults", {}), partial(place, "defaults"))
    entries = [
        _entry({**defaults, **table}, Path(path).parent, partial(_place, place, i, table, defaults))
        for i, table in enumerate(tables)
    ]
    return Manifest(path, tuple(_with_unique_names(entries)), (*unknown, *wrong), text)


_TABLES = ("target", "defaults")


def _defaults(given: Any, place: Callable[..., str]) -> tuple[dict[str, Any], list[str]]:
    """The settings that hold for every target, without what is wrong there, and what that is."""
    if not isinstance(given, dict):
        return {}, [f"{place()}: `defaults` must be a table, [defaults], got {kind(given)}"]
    right = {key: x for key, x in given.items() if key in DEFAULTS and DEFAULTS[key].fits(x)}
    return right, list(wrong_keys(given, DEFAULTS, "defaults", (), place))


def _place(place: Callable[..., str], i: int, table: Mapping[str, Any], defaults: Mapping[str, Any], *keys: Any) -> str:
    """The place of keys of a target; of one that it has by default, where that stands."""
    by_default = keys and keys[0] in defaults and keys[0] not in table
    return place(*(("defaults",) if by_default else ("target", i)), *keys)


def _below(prefix: tuple[str, ...]) -> str:
    return f" below [{'.'.join(prefix)}]" if prefix else ""


def _parsed(path: str, option: str) -> tuple[str, dict[str, Any]]:
    text = files.read_text(path, option)
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        sentence = printable(error)
        at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", sentence)
        line = (at and at[1]) or str(len(text.splitlines()))
        # A table in single brackets can stand once; in a project's file it may be any other table.
        twice = "; write [[target]] above each target" if "('target',) twice" in sentence else ""
        msg = f"{printable(path)}:{line} is not TOML: {sentence.replace(at[0], '') if at else sentence}{twice}"
        raise InputError(msg) from None
    except RecursionError:
        msg = f"{printable(path)} is nested too deeply"
        raise InputError(msg) from None


def _tables(content: Any) -> dict[str, Any]:
    return content if isinstance(content, dict) else {}


def _entry(table: Mapping[str, Any], folder: Path, place: Callable[..., str]) -> ManifestTarget:
    expected = read_failures(table, place)
    problems = [*wrong_keys(table, KEYS, "a target", NEEDED, place), *expected.problems]
    problems += _wrong_settings(table, place)
    problems += wrong_keys(_tables(table.get("checks")), OF_CHECKS, "`checks`", (), partial(place, "checks"))
    function = _from(folder, table["target"]) if KEYS["target"].fits(table.get("target")) else ""
    name = (
        table["name"]
        if KEYS["name"].fits(table.get("name"))
        else str(Target(function, "")) or f"line-{line_of(place())}"
    )
    target = None if problems else _target(table, function, name, folder, expected.by_id)
    return ManifestTarget(name, target, expected.by_id, tuple(problems), place, table, expected.keys)


def _wrong_settings(table: Mapping[str, Any], place: Callable[..., str]) -> Iterator[str]:
    """Options of a target that stand among its conventions, where they would be read as such."""
    for key in _tables(table.get("set")):
        option = BY_NAME.get(key)
        known = key if key in KEYS else option and option.key
        if known or option:
            remedy = f"write it beside `set`, as `{known}`" if known else "leave it out"
            yield f"{place('set', key)}: `{key}` is no convention; {remedy}"


def _target(
    table: Mapping[str, Any], function: str, name: str, folder: Path, expected: Mapping[str, ExpectedFailure]
) -> Target:
    given: dict[str, Any] = {key: tuple(x) if isinstance(x, list) else x for key, x in table.items()}
    options: dict[str, Any] = {key: ... if x == "given" else x for key, x in given.get("set", {}).items()}
    # Expected failures stand in their own table, which `expected` has read.
    options |= {OPTIONS[key].name: x for key, x in given.items() if key in OPTIONS and key != "expected_failures"}
    options |= {name: _from(folder, options[name]) for name in ("added", "against") if name in options}
    if "inputs" in options:
        options["inputs"] = str(folder / options["inputs"])
    if expected:
        options["expected_failures"] = expected
    return Target(function, _from(folder, given.get("loss", "")), name, options)


def _from(folder: Path, text: str) -> str:
    """``file.py:name`` with the file as it is named from the working folder; another text as it is."""
    match = re.match(r"(?!cmd:)([^:]+\.py):", text)
    return f"{folder / match[1]}{text[match.end(1) :]}" if match else text


def _with_unique_names(entries: Sequence[ManifestTarget]) -> Iterator[ManifestTarget]:
    """The targets; of several with one name, those after the first have a problem."""
    first: dict[str, ManifestTarget] = {}
    for entry in entries:
        other = first.setdefault(entry.name, entry)
        if other is entry:
            yield entry
            continue
        own = f"{entry.name}-line-{entry.line}"
        problem = f"line {other.line} has a target named {shown(entry.name)} as well; give each its own `name`"
        yield replace(entry, name=own, target=None, problems=(*entry.problems, f"{entry.place('name')}: {problem}"))
