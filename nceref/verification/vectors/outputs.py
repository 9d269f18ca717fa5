"""OUTPUTS: what an implementation answered on the cases of a corpus, as JSON lines.

The first line is ``{"manifest": SHA256}``, beside it ``implementation`` and ``dtype`` may stand. Each other line is the
answer to one case, in any order: ``{"id": ID, "value": x, "grad": {NAME: [...]}}``, ``{"id": ID, "error": "text"}`` or
``{"id": ID, "unsupported": "reason"}``; of a case on several ranks, ``{"id": ID, "ranks": [{"value", "grad"}, ...]}``.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nceref.errors import InputError
from nceref.output import files
from nceref.output.json_text import json_object
from nceref.output.schema import check
from nceref.output.text import printable, shown
from nceref.output.words import as_code

ANSWERS = ("value", "error", "unsupported", "ranks")
"""What a line has one of, beside its id."""
SCHEMA = Path(__file__).parent / "data" / "outputs.schema.json"
_LONGEST = 80
"""Characters of the name of an implementation that are shown."""


class OutputLine(NamedTuple):
    """One line of OUTPUTS: where it stands, for messages, and its entries."""

    where: str
    record: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class RecordedOutputs:
    """The content of a file of outputs: its lines, by id of the case, and the format in which they were computed.

    `manifest` is the SHA-256 of the manifest of the corpus whose cases were answered, `implementation` what calls
    itself so; the name of the file if it does not say.
    """

    path: str
    manifest: str
    implementation: str
    dtype: str
    lines: Mapping[str, OutputLine]


def read_outputs(path: str | os.PathLike[str]) -> RecordedOutputs:
    """Read a file of outputs.

    Raises `InputError` for what is no line of outputs, with the number of the line.
    """
    name = printable(os.fspath(path))
    text = files.read_text(path, "OUTPUTS")
    # An empty line holds nothing; the last one is empty where the file was written to its end.
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    cut = numbered[-1][0] if numbered and not text.endswith("\n") else 0
    records = [(f"{name}, line {number}", _record(name, number, line, number == cut)) for number, line in numbered]
    if not records:
        msg = f'{name} is empty; the first line must be {{"manifest": SHA256}}, then comes a line for each case'
        raise InputError(msg)
    manifest, implementation, dtype = _about(*records[0])
    lines: dict[str, OutputLine] = {}
    for where, record in records[1:]:
        id = _id(where, record)
        if id in lines:
            msg = f"{where}: {printable(id)} is answered a second time, first in {lines[id].where}; leave out one"
            raise InputError(msg)
        lines[id] = OutputLine(where, record)
    return RecordedOutputs(os.fspath(path), manifest, implementation or Path(path).name, dtype, lines)


def _record(name: str, number: int, line: str, cut: bool) -> dict[str, Any]:
    try:
        return json_object(f"{name}, line {number}", line)
    except InputError as error:
        if not cut:
            raise
        msg = f"{name} is cut off within line {number}, its last; write it again, and end every line"
        raise InputError(msg) from error


def _about(where: str, record: Mapping[str, Any]) -> tuple[str, str, str]:
    """The first line: manifest, implementation and format."""
    if "manifest" not in record:
        msg = (
            f'{where}: the first line must be {{"manifest": SHA256}}, the SHA-256 of MANIFEST.json, got'
            f" {shown(dict(record))}"
        )
        raise InputError(msg)
    check(record, SCHEMA, where, "first")
    implementation = printable(record.get("implementation", ""), _LONGEST)
    return record["manifest"].lower(), implementation, record.get("dtype", "float64")


def _id(where: str, record: Mapping[str, Any]) -> str:
    """The id of a line that has one, and one answer."""
    id = record.get("id")
    if not isinstance(id, str):
        has = "a second first line" if "manifest" in record else shown(dict(record))
        msg = f"{where}: `id` must name a case, got {has}"
        raise InputError(msg)
    if len(given := [name for name in ANSWERS if name in record]) != 1:
        msg = f"{where}: a line has `value`, `error` or `unsupported`, got {' and '.join(given) or 'none of them'}"
        raise InputError(msg)
    entries = ["id", given[0], *(["grad"] if given == ["value"] else [])]
    if unknown := sorted(record.keys() - set(entries)):
        msg = (
            f"{where}: the entry {shown(unknown[0])} is none of this line, which has {', '.join(map(as_code, entries))}"
        )
        raise InputError(msg)
    return id
