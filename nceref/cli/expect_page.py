"""What a loss should read, laid out for reading and as a record."""

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nceref.checks.expect import ExpectedReadings, Reading
from nceref.checks.locate import Location
from nceref.output import pages

if TYPE_CHECKING:
    from rich.console import Console


def text(
    found: ExpectedReadings, location: Location | None = None, *, width: int = pages.WIDTH, color: bool = False
) -> str:
    """What a loss should read, from low to high, for reading, and the location of a value; the rest as in `text`."""
    from rich.text import Text

    page, paper = pages.page(width, color)
    page.print(Text.assemble((found.loss, "bold"), f", {found.conventions}"))
    page.print(f"{_settings(found)}\n", style="dim")
    entries = [(r.situation, _value(r), r.formula, r.because) for r in found.readings]
    widths = [max(len(entry[i]) for entry in entries) for i in (0, 1)]
    for reading, (situation, value, formula, because) in zip(found.readings, entries, strict=True):
        style = "dim" if reading.value is None else ""
        pages.grid(page, [(situation, value, formula)], *widths, styles=(style or "bold", style, style))
        pages.grid(page, [("", "", because)], *widths, styles=("", "", "dim"))
    pages.grid(page, [("sign", found.sign)], widths[0], styles=("bold", ""))
    _explain_ids(page, found)
    if location:
        page.print(f"\n{location.sentences[0]}", style="bold")
        pages.grid(page, [("", sentence) for sentence in location.sentences[1:]], 0)
    return pages.clean(paper)


def _explain_ids(page: "Console", found: ExpectedReadings) -> None:
    """Say what an id is, with the first that is shown as the example."""
    first = re.search(r"\b[A-Z]{2,}-\d+", " ".join(reading.because for reading in found.readings))
    if first:
        page.print(
            f"\nAn id such as {first[0]} names the statement behind a reading: of a source, of a paper behind it, or "
            "derived here.",
            style="dim",
        )


def record(found: ExpectedReadings, location: Location | None = None) -> dict[str, Any]:
    """The same, ready for JSON; `value` is there only with a location."""
    out = {**asdict(found), "defaults": sorted(found.defaults)}
    return out if location is None else {**out, "value": asdict(location)}


def _settings(found: ExpectedReadings) -> str:
    """The settings as ``n = 256, classes = 10 (default), dim not given``."""
    shown = {name: _number(value) for name, value in found.settings.items() if value is not None}
    parts = [f"{name} = {value}{' (default)' if name in found.defaults else ''}" for name, value in shown.items()]
    parts += [f"{name} not given" for name, value in found.settings.items() if value is None]
    return ", ".join(parts) or "the same for every size"


def _value(reading: Reading) -> str:
    return _number(reading.value) if reading.value is not None else "needs --dim" if reading.needs_dim else "-"


def _number(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)
