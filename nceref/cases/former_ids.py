"""Ids that have been renamed: what a user has written down goes on working, with a warning that names the new id."""

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nceref.errors import RenamedWarning
from nceref.output.text import printable
from nceref.output.words import as_code


@dataclass(frozen=True)
class FormerId:
    """The id that has replaced a former one.

    Attributes
    ----------
    new : str
        The id now.
    version : str
        The first version in which it is called so.
    """

    new: str
    version: str


FORMER: Mapping[str, FormerId] = {}
"""Former ids of conventions, cases and quantities. All that was in a release stands here or is still in use."""


def current(text: str, former: Mapping[str, FormerId] | None = None) -> str:
    """The text with former ids replaced by present ones.

    `text` is an id such as ``designed-0.3/value``, a pattern ``*/value``, or several of these with signs between them.
    `former` replaces the table `FORMER`.
    """
    for old, renamed in (FORMER if former is None else former).items():
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w|\.\d)", renamed.new, text)
    return text


def warn_of_former(texts: Iterable[str]) -> None:
    """Issue a `RenamedWarning` for each former id in what a user has written."""
    for text in texts:
        for old, renamed in FORMER.items():
            if current(text, {old: renamed}) != text:
                msg = f"{as_code(printable(old))} is called {as_code(renamed.new)} since {renamed.version}: write that"
                warnings.warn(msg, RenamedWarning, stacklevel=2)
