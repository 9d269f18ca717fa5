"""Words of sentences: counts with their nouns, and what was meant by a name that is not known."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number and its noun.

    >>> counted(1, "case"), counted(3, "case"), counted(1000, "class", "classes")
    ('1 case', '3 cases', '1,000 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def out_of(part: int, whole: int, noun: str, plural: str = "") -> str:
    """The number of a part among a whole, in words.

    >>> out_of(3, 14, "case"), out_of(1, 1, "case"), out_of(0, 1, "case")
    ('3 of 14 cases', 'the only case', '0 of 1 case')
    """
    return f"the only {noun}" if part == whole == 1 else f"{part:,} of {counted(whole, noun, plural)}"


def alike(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Known names of the same letters, or else those that begin with them, or else the nearest three.

    `cutoff` is the least share of letters in common, between 0 and 1.
    """
    word, plain = letters(name), {letters(k): k for k in known}
    if word in plain:
        return [plain[word]]
    starts = [k for p, k in plain.items() if len(word) > 2 and p.startswith(word)]
    return starts or [plain[p] for p in get_close_matches(word, plain, n=3, cutoff=cutoff)]


MOST_MEANT = 4
"""Names that a question lists."""


def did_you_mean(names: Iterable[str], quoted: Callable[[str], str] = repr) -> str:
    """The question that ends a message; empty for no name.

    >>> did_you_mean(["supcon_in", "supcon_out"])
    "did you mean 'supcon_in' or 'supcon_out'?"
    """
    listed = list(names)
    few = listed if len(listed) <= MOST_MEANT else listed[:MOST_MEANT]
    more = f" or one of {len(listed) - len(few)} more" if few != listed else ""
    return f"did you mean {' or '.join(map(quoted, few))}{more}?" if listed else ""


def as_code(name: str) -> str:
    """A name of a program as it stands in a sentence."""
    return f"`{name}`"


def letters(text: str) -> str:
    """Letters and digits alone, without capitals."""
    return "".join(filter(str.isalnum, text.casefold()))
