"""What is known of released packages: differences that were looked at, each with its reason and a link."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

from nceref.errors import DeclarationError, InputError
from nceref.verification.peers.peer import get

PACKAGE, FILE = "nceref.verification.peers.packages", "known.json"


@dataclass(frozen=True)
class Difference:
    """A difference of a released peer that was looked at: an entry of the data file.

    Attributes
    ----------
    target : str
        Name of the target.
    versions : tuple of str
        The releases that it was measured on; it does not hold for any other.
    dtypes : tuple of str
    results : tuple of str
        Ids of the results that fail; ``*`` stands for any letters. Each must match one.
    diagnosis : str
        Id that the report must give, alone or beside others; empty where nothing on the list fits.
    reason : str
        What the peer does, in a sentence.
    link : str
        Where that can be read.
    ranks : mapping or None
        What it is constructed with, for a difference on several ranks; None for one that a single process has.
    """

    target: str
    versions: tuple[str, ...]
    dtypes: tuple[str, ...]
    results: tuple[str, ...]
    diagnosis: str
    reason: str
    link: str
    ranks: Mapping[str, Any] | None = None

    def covers(self, result: str) -> bool:
        """Whether a result of this id may fail."""
        return any(fnmatchcase(result, pattern) for pattern in self.results)

    def outdated(self, failing: Sequence[str], diagnoses: Sequence[str]) -> Iterable[str]:
        """What of this entry is no longer true.

        Parameters
        ----------
        failing : sequence of str
            Ids of the results that fail.
        diagnoses : sequence of str
            Ids of the diagnoses of the report; of several conventions at once, joined by ``+``.

        Yields
        ------
        str
            A sentence for each pattern that matches nothing, and for a diagnosis that was not given.
        """
        where = f"{FILE} of {PACKAGE}"
        for pattern in self.results:
            if not any(fnmatchcase(result, pattern) for result in failing):
                yield f"known difference {pattern} does not fail any more; remove it from {where}"
        if self.diagnosis and not any(self.diagnosis in (id, *id.split("+")) for id in diagnoses):
            given = ", ".join(diagnoses) or "no diagnosis"
            yield f"known as {self.diagnosis}, but the report gives {given}; correct {where}"


@cache
def known() -> tuple[Difference, ...]:
    """The data file of known differences."""
    entries = json.loads(files(PACKAGE).joinpath(FILE).read_text(encoding="utf-8"))
    return tuple(difference(entry) for entry in entries)


def difference(entry: Mapping[str, Any]) -> Difference:
    """One entry of the data file, checked.

    Parameters
    ----------
    entry : mapping
        The fields of a `Difference`; lists may stand for tuples.

    Raises
    ------
    DeclarationError
        If a field is missing or unknown, empty where it must not be, or its target does not exist.
    """
    try:
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
        # A field too many or too few raises TypeError.
        checked = Difference(**fields)
        get(checked.target)
    except (TypeError, InputError) as error:
        msg = f"known difference {entry}: {error}"
        raise DeclarationError(msg) from error
    if checked.ranks is not None and checked.ranks not in get(checked.target)[1].ranks:
        msg = f"known difference of {checked.target}: ranks must be one of its ways, got {entry}"
        raise DeclarationError(msg)
    empty = [name for name, value in asdict(checked).items() if not value and name not in ("diagnosis", "ranks")]
    if empty or not checked.link.startswith("https://"):
        wrong = f"{', '.join(empty)} must not be empty" if empty else "link must begin with https://"
        msg = f"known difference of {checked.target}: {wrong}, got {entry}"
        raise DeclarationError(msg)
    return checked
