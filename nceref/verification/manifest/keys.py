"""Keys of the tables of a manifest, and what each must be."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nceref.diagnosis.conventions import CONVENTIONS
from nceref.output import files
from nceref.output.schema import fits
from nceref.output.text import printable, shown
from nceref.output.words import alike, as_code, did_you_mean
from nceref.verification.manifest.counts import KINDS
from nceref.verification.options import KEYS as OPTIONS


class Kind(NamedTuple):
    """A kind of value: in words, and as a JSON Schema."""

    words: str
    schema: Mapping[str, Any]

    def fits(self, x: Any) -> bool:
        """Whether a value is such."""
        return fits(x, self.schema)


def _several(words: str, one: Kind) -> Kind:
    return Kind(words, {"anyOf": [one.schema, {"type": "array", "minItems": 1, "items": one.schema}]})


_TEXT = Kind("text", {"type": "string", "pattern": r"\S"})
_TEXTS = _several("text, or a list of texts", _TEXT)
_INTEGER = Kind("a whole number", {"type": "integer"})
_INTEGERS = _several("a whole number, or a list of whole numbers", _INTEGER)
_FLAG = Kind("true or false", {"type": "boolean"})
_TABLE = Kind("a table, such as {temperature = 0.1}", {"type": "object"})
TABLES = Kind('a list of tables {id = "...", reason = "..."}', {"type": "array", "items": {"type": "object"}})
OF_FAILURE: dict[str, Kind] = {
    "id": _TEXTS,
    "reason": _TEXT,
    "link": _TEXT,
    "strict": Kind('true, false or "some"', {"enum": [True, False, "some"]}),
    "dtypes": _TEXTS,
    "versions": Kind('a table, such as {optax = "0.2.8"}', {"type": "object", "additionalProperties": _TEXTS.schema}),
    "diagnosis": Kind("the id of a convention, see `nceref tables conventions`", {"enum": list(CONVENTIONS)}),
}
"""Of an expected failure."""
OF_CHECKS = dict.fromkeys(KINDS, Kind("a number of checks, 0 or more", {"type": "integer", "minimum": 0}))
"""Of the table ``checks``."""


def table_schema(keys: Mapping[str, Kind], needed: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON Schema of a table, by what each key must be, and which must be there."""
    properties = {key: dict(kind.schema) for key, kind in keys.items()}
    # Older drafts, which editors read, have no empty list there.
    required = {"required": list(needed)} if needed else {}
    return {"type": "object", "additionalProperties": False, **required, "properties": properties}


NEEDED, NEEDED_OF_FAILURE = ("target",), ("id", "reason")
_KINDS = {
    **dict.fromkeys(("target", "text", "choice", "inputs"), _TEXT),
    **dict.fromkeys(("formats", "modes"), _TEXTS),
    **dict.fromkeys(("integers", "shape"), _INTEGERS),
    "integer": _INTEGER,
    "number": Kind("a number", {"type": "number"}),
    "flag": _FLAG,
    "values": _TABLE,
    # What is wrong within the tables is said of each.
    "failures": TABLES,
}
"""What a value of each kind of option must be."""
KEYS: dict[str, Kind] = {
    **dict.fromkeys(("name", "target", "loss"), _TEXT),
    "set": _TABLE,
    **{key: _KINDS[option.kind] for key, option in OPTIONS.items()},
    "needs": _TEXTS,
    # What is wrong within the table is said of each.
    "checks": Kind("a table, such as {values = 28, gradients = 84}", {"type": "object"}),
}
"""Of a table ``[[target]]``: what each must be."""
DEFAULTS = {key: kind for key, kind in KEYS.items() if key not in ("name", "target", "expected_failures", "checks")}
"""Of the table ``[defaults]``: keys that every target has, unless it has its own."""


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema of a file `nceref.toml`, by which editors complete it; `manifest.schema.json` holds it."""
    failures = Kind(TABLES.words, {"type": "array", "items": table_schema(OF_FAILURE, NEEDED_OF_FAILURE)})
    checks = Kind(KEYS["checks"].words, table_schema(OF_CHECKS))
    one = table_schema({**KEYS, "expected_failures": failures, "checks": checks}, NEEDED)
    targets = {"type": "array", "minItems": 1, "items": one}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A manifest of nceref: the losses of a project",
        "type": "object",
        "additionalProperties": False,
        "required": ["target"],
        "properties": {"defaults": table_schema(DEFAULTS), "target": targets},
    }


def update_schema() -> None:
    """Write the file with the schema anew."""
    text = json.dumps(manifest_schema(), indent=1) + "\n"
    files.replace(Path(__file__).with_name("manifest.schema.json"), text.encode())


def wrong_keys(
    table: Mapping[str, Any],
    keys: Mapping[str, Kind],
    of: str,
    needed: Iterable[str],
    place: Callable[..., str],
) -> Iterator[str]:
    """The faults of a table: keys that it does not have, values of another kind, and keys that are missing.

    Each is a sentence with file and line, which `place` has of keys below the table; `of` is what the table is there.
    `keys` has what each must be, such as `KEYS`.
    """
    for key, value in table.items():
        if key not in keys:
            yield f"{place(key)}: {no_key(key, keys, of)}"
        elif not keys[key].fits(value):
            yield f"{place(key)}: `{key}` must be {keys[key].words}, got {kind(value)}"
    yield from (f'{place()}: {of} needs `{key}`; add {key} = "{_SUCH_AS[key]}"' for key in needed if key not in table)


_SUCH_AS = {"target": "my_losses.py:nt_xent", "id": "opposed-*/value", "reason": "why it fails"}


def no_key(key: str, keys: Iterable[str], of: str) -> str:
    """A sentence that there is no such key, and which was meant."""
    meant = did_you_mean(alike(key, keys)[:2], as_code) or f"keys are {', '.join(map(as_code, keys))}"
    return f"`{printable(key)}` is no key of {of}; {meant}"


def kind(value: Any) -> str:
    """A value as it stands in a message."""
    return "a table" if isinstance(value, dict) else shown(value)
