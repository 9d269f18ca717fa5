"""Keys of the tables of a manifest, and what each must be."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from nceref.output.text import printable, shown
from nceref.output.words import alike, as_code, did_you_mean
from nceref.verification.conventions import CONVENTIONS


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


def _is_integer(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def is_text(x: Any) -> bool:
    """Whether it is text that is not empty."""
    return isinstance(x, str) and bool(x.strip())


def is_tables(x: Any) -> bool:
    """Whether it is a list of tables."""
    return isinstance(x, list) and all(isinstance(each, dict) for each in x)


def _several(is_one: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda x: is_one(x) or (isinstance(x, list) and bool(x) and all(map(is_one, x)))


_TEXT = ("text", is_text)
_TEXTS = ("text, or a list of texts", _several(is_text))
_INTEGER = ("a whole number", _is_integer)
_INTEGERS = ("a whole number, or a list of whole numbers", _several(_is_integer))
_FLAG = ("true or false", lambda x: isinstance(x, bool))
_TABLE = ("a table, such as {temperature = 0.1}", lambda x: isinstance(x, dict))
_FAILURES = ('a list of tables {id = "...", reason = "..."}', is_tables)
KEYS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("name", "target", "loss", "call"), _TEXT),
    **dict.fromkeys(("init", "set"), _TABLE),
    **dict.fromkeys(("framework", "suite"), _TEXT),
    **dict.fromkeys(("dtypes", "modes"), _TEXTS),
    "ranks": _INTEGERS,
    **dict.fromkeys(("sync", "value"), _TEXT),
    "shards": _INTEGERS,
    "duplicate": _FLAG,
    **dict.fromkeys(("axis", "with", "device", "algorithm"), _TEXT),
    "timeout": ("a number of seconds", _is_number),
    **dict.fromkeys(("seed", "multiple_of"), _INTEGER),
    "shape": _INTEGERS,
    "inputs": _TEXT,
    "param": _TABLE,
    **dict.fromkeys(("isolate", "require_grad"), _FLAG),
    "needs": _TEXTS,
    "expected_failures": _FAILURES,
}
"""Of a table ``[[target]]``: what each must be."""
DEFAULTS = {key: what for key, what in KEYS.items() if key not in ("name", "target", "expected_failures")}
"""Of the table ``[defaults]``: keys that every target has, unless it has its own."""
OF_FAILURE: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "id": _TEXTS,
    "reason": _TEXT,
    "link": _TEXT,
    "strict": ('true, false or "some"', lambda x: isinstance(x, bool) or x == "some"),
    "dtypes": _TEXTS,
    "versions": (
        'a table, such as {optax = "0.2.8"}',
        lambda x: isinstance(x, dict) and all(map(_TEXTS[1], x.values())),
    ),
    "diagnosis": (
        "the id of a convention, see `nceref tables conventions`",
        lambda x: isinstance(x, str) and x in CONVENTIONS,
    ),
}
"""Of an expected failure."""


def wrong_keys(
    table: Mapping[str, Any],
    keys: Mapping[str, tuple[str, Callable[[Any], bool]]],
    of: str,
    needed: Iterable[str],
    place: Callable[..., str],
) -> Iterator[str]:
    """What is wrong with a table: keys that it does not have, values of another kind, and keys that are missing.

    Parameters
    ----------
    table : mapping
    keys : mapping
        What each key must be, such as `KEYS`.
    of : str
        What the table is, for the sentence.
    needed : iterable of str
        Keys that must be there.
    place : callable
        Of keys below the table, to ``file:line``.

    Yields
    ------
    str
        A sentence with file and line.
    """
    for key, value in table.items():
        if key not in keys:
            yield f"{place(key)}: {no_key(key, keys, of)}"
        elif not keys[key][1](value):
            yield f"{place(key)}: `{key}` must be {keys[key][0]}, got {kind(value)}"
    yield from (f'{place()}: {of} needs `{key}`; add {key} = "{_SUCH_AS[key]}"' for key in needed if key not in table)


_SUCH_AS = {"target": "my_losses.py:nt_xent", "id": "opposed-*/value", "reason": "why it fails"}


def no_key(key: str, keys: Iterable[str], of: str) -> str:
    """That there is no such key, and which was meant."""
    meant = did_you_mean(alike(key, keys)[:2], as_code) or f"keys are {', '.join(map(as_code, keys))}"
    return f"`{printable(key)}` is no key of {of}; {meant}"


def kind(value: Any) -> str:
    """A value as it stands in a message."""
    return "a table" if isinstance(value, dict) else shown(value)
