"""Plain data as a JSON Schema has it: what is read from a file of somebody else is checked before it is used.

Of JSON Schema there is what the schemas of the package say: `type`, `const`, `enum`, `pattern`, `minimum`, `minLength`,
`minItems`, `maxItems`, `minProperties`, `uniqueItems`, `items`, `properties`, `required`, `propertyNames`,
`additionalProperties`, `anyOf`, `oneOf` and `$ref` to `#/$defs`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from nceref.errors import InputError
from nceref.output.files import read
from nceref.output.text import shown

Schema = Any
_TYPES: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "object": lambda x: isinstance(x, dict),
        "array": lambda x: isinstance(x, list),
        "string": lambda x: isinstance(x, str),
        "boolean": lambda x: isinstance(x, bool),
        # To Python, True is a number.
        "integer": lambda x: isinstance(x, int) and not isinstance(x, bool),
        "number": lambda x: isinstance(x, int | float) and not isinstance(x, bool),
    }
)


class Problem(NamedTuple):
    """A problem of data, with its place, such as ``outputs.value.hex[2]``."""

    place: str
    sentence: str


def check(content: Any, schema: Path, where: str, part: str = "") -> None:
    """Refuse data that a schema does not admit.

    The content consists of mappings, lists, text, numbers, truth values and None; the message names `where` it was
    read. `part` is the definition of the schema that is meant, by default the whole. Raises `InputError` with the place
    of the first problem, what stands there, and what was expected.
    """
    known = _schema(schema)
    problem = next(_problems(content, known["$defs"][part] if part else known, known, ""), None)
    if problem is not None:
        msg = f"{where}: {problem.sentence}"
        if problem.place:
            msg = f"{where}: `{problem.place.removeprefix('.')}` {problem.sentence}"
        raise InputError(msg)


def fits(content: Any, schema: Schema) -> bool:
    """Whether a schema, as plain data, admits the data."""
    return next(_problems(content, schema, schema, ""), None) is None


@cache
def _schema(path: Path) -> Any:
    return json.loads(read(path))


def _problems(x: Any, schema: Schema, root: Schema, place: str) -> Iterator[Problem]:
    if "$ref" in schema:
        yield from _problems(x, root["$defs"][schema["$ref"].rpartition("/")[2]], root, place)
        return
    if words := _unlike(x, schema):
        yield Problem(place, f"must be {words}, got {shown(x)}")
        return
    if choices := schema.get("anyOf", schema.get("oneOf")):
        firsts = [next(_problems(x, choice, root, place), None) for choice in choices]
        if all(firsts):
            # The choice that fits best is the one whose problem lies deepest.
            yield max((problem for problem in firsts if problem), key=lambda problem: len(problem.place))
            return
    if isinstance(x, list) and not _admits_all(schema.get("items", {}), x):
        for number, entry in enumerate(x):
            yield from _problems(entry, schema["items"], root, f"{place}[{number}]")
    if isinstance(x, dict):
        yield from _problems_of_entries(x, schema, root, place)


def _problems_of_entries(x: dict[str, Any], schema: Schema, root: Schema, place: str) -> Iterator[Problem]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in x:
            yield Problem(place, f"must have the entry {name!r}, got {shown(list(x))}")
    for name in x:
        if name not in known and others is False:
            yield Problem(place, f"has the unknown entry {shown(name)}; it may have {', '.join(known)}")
        if words := _unlike(name, schema.get("propertyNames", {})):
            yield Problem(place, f"has the entry {shown(name)}, whose name must be {words}")
    for name, entry in x.items():
        if isinstance(wanted := known.get(name, others), dict):
            yield from _problems(entry, wanted, root, f"{place}.{name}")


def _admits_all(schema: Schema, entries: list[Any]) -> bool:
    """Whether a schema has rules about single values alone, and no entry breaks one; quick for a long list."""
    return schema.keys() <= _RULES.keys() and all(
        _RULES[rule].fits(x, limit) for rule, limit in schema.items() for x in entries
    )


def _unlike(x: Any, schema: Schema) -> str:
    """The rule that a value breaks by itself, in words; empty where it breaks none."""
    return next((_RULES[rule].words(limit) for rule, limit in schema.items()
                 if rule in _RULES and not _RULES[rule].fits(x, limit)), "")  # fmt: skip


@cache
def _pattern(text: str) -> re.Pattern[str]:
    # In a schema, $ is the end of the text; to Python, also the place before a last line break.
    return re.compile(text.removesuffix("$") + r"\Z" if text.endswith("$") else text)


class _Rule(NamedTuple):
    """A keyword about a value by itself: whether a value fits a limit, and what the limit asks for in words."""

    fits: Callable[[Any, Any], bool]
    words: Callable[[Any], str]


def _of(kind: Any, fits: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """A rule for values of one type, which says nothing of others."""
    return lambda x, limit: not isinstance(x, kind) or fits(x, limit)


def _names(limit: Any) -> list[str]:
    return [limit] if isinstance(limit, str) else limit


def _size(words: str) -> Callable[[Any], str]:
    return lambda limit: f"{words} {limit}"


_AT_LEAST = _Rule(_of(str | list | dict, lambda x, limit: len(x) >= limit), _size("not empty, of a size >="))
_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "type": _Rule(
            # Most have one name, and a corpus has a hundred thousand values.
            lambda x, limit: _TYPES[limit](x) if isinstance(limit, str) else any(_TYPES[name](x) for name in limit),
            lambda limit: " or ".join({"string": "text"}.get(name, f"a JSON {name}") for name in _names(limit)),
        ),
        "const": _Rule(lambda x, limit: type(x) is type(limit) and x == limit, repr),
        "enum": _Rule(
            # To Python, 1 is True.
            lambda x, limit: any(type(x) is type(each) and x == each for each in limit),
            lambda limit: f"one of {', '.join(map(repr, limit))}",
        ),
        "pattern": _Rule(_of(str, lambda x, limit: bool(_pattern(limit).search(x))), _size("text of the form")),
        "minimum": _Rule(_of(int | float, lambda x, limit: x >= limit), _size(">=")),
        "minLength": _AT_LEAST,
        "minItems": _AT_LEAST,
        "minProperties": _AT_LEAST,
        "maxItems": _Rule(_of(list, lambda x, limit: len(x) <= limit), _size("of a size <=")),
        "uniqueItems": _Rule(_of(list, lambda x, _: len({*map(repr, x)}) == len(x)), lambda _: "without repetition"),
    }
)
