"""Recorded numbers of the analogues of `nceref experiment` on a long tail, for tables and figures.

Training takes a minute, and its last bits depend on the platform: `make experiments` repeats it and rewrites the file.
"""

from functools import cache
from pathlib import Path
from typing import Any

from nceref.output import files
from nceref.output.json_text import json_object

PATH = Path(__file__).with_name("analogues.json")
NAMES = ("long-tail", "long-tail-digits")


@cache
def recorded(name: str) -> dict[str, Any]:
    """The command, the class counts, relative pulls by loss and class, and mean and half interval of each measure."""
    out: dict[str, Any] = json_object(PATH, files.read_text(PATH))[name]
    return out
