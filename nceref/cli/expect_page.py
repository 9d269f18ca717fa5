"""The page and the record of `nceref expect`: what a loss should read."""

import math
import re
from dataclasses import asdict
from typing import Any

from nceref.checks.expect import ExpectedReadings, Reading
from nceref.checks.locate import Location
from nceref.output.pages import Page


def page_of(expected: ExpectedReadings, location: Location | None = None) -> Page:
    """The page of a loss's expected readings, from low to high, and of the place of a value among them."""
    page = Page()
    page.heading(f"{expected.loss}, {expected.conventions}", 1)
    page.print(f"{_settings(expected)}\n", style="dim")
    entries = [(r.situation, _value(r), r.formula, f"{r.reason}{_one_batch(r)}") for r in expected.readings]
    widths = [max(len(entry[i]) for entry in entries) for i in (0, 1)]
    for reading, (situation, value, formula, because) in zip(expected.readings, entries, strict=True):
        style = "dim" if reading.value is None else ""
        page.grid([(situation, value, formula)], *widths, styles=(style or "bold", style, f"{style} code".strip()))
        page.grid([("", "", because)], *widths, styles=("", "", "dim"))
    page.grid([("sign", expected.sign)], widths[0], styles=("bold", ""))
    _explain_ids(page, expected)
    if location:
        page.print(f"\n{location.sentences[0]}", style="bold")
        page.grid([("", sentence) for sentence in location.sentences[1:]], 0)
    return page


def _explain_ids(page: Page, expected: ExpectedReadings) -> None:
    """Say what an id is, with the first that is shown as the example."""
    first = re.search(r"\b[A-Z]{2,}-\d+", " ".join(reading.because for reading in expected.readings))
    if first:
        page.print(
            f"\nAn id such as {first[0]} names the statement behind a reading: of a source, of a paper behind it, or "
            "derived here.",
            style="dim",
        )


def record(expected: ExpectedReadings, location: Location | None = None) -> dict[str, Any]:
    """The readings, ready for JSON; `value` is there only with a location."""
    out = {**asdict(expected), "defaults": sorted(expected.defaults)}
    del out["address"]
    return out if location is None else {**out, "value": asdict(location)}


def _settings(expected: ExpectedReadings) -> str:
    """The settings as ``n = 256, classes = 10 (default), dim not given``."""
    shown = {name: _number(value) for name, value in expected.settings.items() if value is not None}
    parts = [f"{name} = {value}{' (default)' if name in expected.defaults else ''}" for name, value in shown.items()]
    parts += [f"{name} not given" for name, value in expected.settings.items() if value is None]
    return ", ".join(parts) or "the same for every size"


def _value(reading: Reading) -> str:
    if reading.value is None:
        return "needs --dim" if reading.needs_dim else "-"
    if reading.exact:
        return _number(reading.value)
    # Two digits of the error, and the same places of the value.
    places = max(0, 1 - math.floor(math.log10(reading.error)))
    return f"{reading.value:.{places}f}±{reading.error:.{places}f}"


def _one_batch(reading: Reading) -> str:
    """The scatter of one batch, with two digits: it is drawn."""
    return f"; standard deviation of one batch: about {reading.spread:.2g}" if reading.spread else ""


def _number(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)
