"""Words as the search knows them: decimals stay whole, and a name is known by its parts and without its signs."""

import re
from collections.abc import Iterator

_WORD = re.compile(r"\d+(?:\.\d+)+|\w+(?:-\w+)*")
_LONGEST = 24

SPLIT_QUERY = r"""
function splitQuery(query) {
  return query.match(/\d+(?:\.\d+)+|[a-z]+-\d+|[\p{L}\p{N}_]+/giu) || [];
}
"""
"""The splitting of a reader's query into words, in JavaScript: each of its words must be on the page."""


def words(text: str) -> list[str]:
    """The words by which a search finds a text."""
    return [known for word in _WORD.findall(text) for known in (_rounded(word) if "." in word else _parts(word))]


def _rounded(number: str) -> Iterator[str]:
    """The number, and it rounded to fewer digits: a reader may have fewer than a page prints."""
    yield number
    decimals = len(number.partition(".")[2])
    if number.count(".") == 1:
        yield from (f"{float(number):.{digits}f}" for digits in (2, 3, 4) if digits < decimals)


def _parts(word: str) -> Iterator[str]:
    parts = [part for part in re.split("[-_]", word) if part]
    if "-" not in word or re.fullmatch(r"[A-Za-z]+-\d+", word):
        yield word
    if len(parts) > 1:
        yield from parts
        if len(joined := "".join(parts)) <= _LONGEST:
            yield joined
