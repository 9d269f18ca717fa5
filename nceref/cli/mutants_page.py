"""The catalogue of known bugs, as data in the package, and the pages of `nceref mutants`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, TypeVar

from nceref.errors import InputError
from nceref.output.pages import GAP, Page
from nceref.registry import choose

Record = Mapping[str, Any]
T = TypeVar("T")

NAME = "mutants.jsonl"
EMPTY: Record = {
    "id": "",
    "sentence": "",
    "losses": [],
    "thread": "",
    "seen": "",
    "wrong": [],
    "named": [],
    "also": [],
    "group": "",
    "settings": {},
    "options": {},
    "dtypes": ["float64", "float32"],
    "file": "",
}
"""Default values, which a line of the file leaves out."""
CATALOGUES = ("independent", "gradients", "distributed")
"""Folders of the catalogue with programs of their own score; the others are the known bugs."""


def records(catalogue: str) -> dict[str, Record]:
    """The programs of a catalogue by id: what is wrong with each, where it was reported, and where its code lies."""
    lines = files("nceref.cli").joinpath(NAME).read_text(encoding="utf-8").splitlines()
    stored = [{**EMPTY, **json.loads(line)} for line in lines]
    return {one["id"]: one for one in stored if catalogue_of(one) == catalogue}


def catalogue_of(record: Record) -> str:
    """The name of the catalogue that a program belongs to, from where its code lies."""
    folder = record["file"].split("/")[1]
    return folder if folder in CATALOGUES else "known"


def chosen(ids: Sequence[str], known: Mapping[str, T]) -> list[T]:
    """The programs with these ids, or all that are known if none is given."""
    from nceref.diagnosis.conventions import CONVENTIONS

    # A diagnosis names conventions, and they are listed elsewhere.
    named = next((one for one in ids if one in CONVENTIONS and one not in known), None)
    if named is not None:
        msg = f"no mutant named {named!r}; that is a convention. See `nceref verify --conventions`"
        raise InputError(msg)
    return choose("mutant", ids, known, "nceref mutants")


def overview(shown: Sequence[Record]) -> Page:
    """List programs by group: id, loss, and a sentence."""
    page = Page()
    label = max(len(one["id"]) for one in shown)
    for group in dict.fromkeys(one["group"] for one in shown):
        own = [one for one in shown if one["group"] == group]
        page.heading(f"{group} ({len(own)})", 1)
        for one in own:
            page.grid([(one["id"], *one["losses"])], label, styles=("", "dim"), indent=GAP)
            page.grid([(one["sentence"],)], indent=2 * GAP)
    example = "nt-xent-own-logit-kept"
    if catalogue_of(shown[0]) == "distributed":
        example = f"--ranks 2 {shown[0]['id']}"
    page.print(f"\nAll about one: nceref mutants {example}", style="dim")
    return page


def page_of(record: Record) -> Page:
    """The page of one program."""
    page = Page()
    page.heading(record["id"], 1)
    page.print(record["sentence"])
    lines = [(name, text) for name, text in _facts(record) if text]
    page.print()
    page.grid(lines, max(len(name) for name, _ in lines), styles=("bold", ""))
    return page


def _facts(record: Record) -> Iterable[tuple[str, str]]:
    yield "losses", ", ".join(record["losses"])
    yield "reported in", record["thread"] or record["seen"]
    yield "wrong gradients", ", ".join(record["wrong"])
    yield "right", " or ".join(["+".join(record["named"]), *record["also"]])
    yield "intended", ", ".join(f"{name}={value}" for name, value in record["settings"].items())
    options = record["options"].items()
    yield "options", " ".join(f"--{name}" if value is True else f"--{name} {value}" for name, value in options)
    yield "group", record["group"]
    yield "wrong in", ", ".join(record["dtypes"]) if record["named"] else ""
    yield "code", record["file"]
