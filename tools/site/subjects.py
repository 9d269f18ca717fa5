"""The notes among the sources by their subject: the declarations number them, and nobody remembers numbers."""

import re
from itertools import pairwise

SUBJECTS = {
    "000": "Wang & Liu note",
    "001": "softmax note",
    "002": "Loss-NCE note",
    "003": "temperature guide",
    "004": "PaCo note",
}
"""The name of each note on the site."""
_FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
_NUMBERED = re.compile(r"(?<![-\w])(source) (00[0-4])\b(?=(\W*))", re.IGNORECASE)


def by_subject(text: str) -> str:
    """A page in Markdown whose sentences name the notes by their subject; blocks of code stay as they are."""
    ends = [0, *(place for block in _FENCE.finditer(text) for place in block.span()), len(text)]
    parts = [text[start:end] for start, end in pairwise(ends)]
    return "".join(part if number % 2 else _NUMBERED.sub(_named, part) for number, part in enumerate(parts))


def _named(match: re.Match[str]) -> str:
    name, after = SUBJECTS[match[2]], match[3]
    # In a title, a list or a cell it stands without an article.
    if not after.startswith((":", ";", "*", " |")):
        name = f"the {name}"
    return name[0].upper() + name[1:] if match[1].istitle() else name
