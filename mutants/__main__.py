"""Writes what `nceref mutants` lists: `python -m mutants`; programs of a framework are read where it is."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nceref
from mutants.bug import Program
from mutants.score import CATALOGUES, CORRECT, GROUPS, USEFUL, group
from nceref.cli.mutants_page import EMPTY, NAME, Record, catalogue_of, records
from nceref.output.files import replace


def record(program: Program) -> dict[str, Any]:
    """A program as data, without its code."""
    return {
        "id": program.id,
        "sentence": program.sentence,
        "losses": [program.loss],
        "thread": program.thread,
        "seen": program.seen,
        "wrong": list(program.wrong),
        "named": list(program.named),
        "also": list(program.also),
        "group": group(program),
        "settings": {name: repr(value) for name, value in program.settings.items()},
        "options": dict(program.options),
        "dtypes": list(program.dtypes),
        "file": program.function.__module__.replace(".", "/") + ".py",
    }


FRAMEWORKS = {"gradients": ("torch", "jax"), "distributed": ("torch",)}
"""The frameworks that the programs of a catalogue need."""


def listed() -> list[Record]:
    """All programs, each group in the order of its files; a catalogue as stored where a framework is missing."""
    out: list[Record] = []
    for name, programs in CATALOGUES.items():
        if not all(map(find_spec, FRAMEWORKS.get(name, ()))):
            out += list(records(name).values())
        else:
            out += map(record, programs().values())
    order = [list(CATALOGUES), [*GROUPS, *USEFUL, CORRECT]]
    return sorted(out, key=lambda one: (order[0].index(catalogue_of(one)), order[1].index(one["group"])))


def content() -> bytes:
    """The file as it should be."""
    lines = ({key: x for key, x in one.items() if key == "id" or x != EMPTY[key]} for one in listed())
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


if __name__ == "__main__":
    replace(Path(nceref.__file__).parent / "cli" / NAME, content())
