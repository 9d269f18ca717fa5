"""The page and the record of `nceref scale`."""

from dataclasses import asdict
from typing import Any

from nceref.chunked.prediction import PUBLISHED, Outlook
from nceref.output.pages import Page


def page_of(outlook: Outlook) -> Page:
    """The run that was requested, how good the prediction is here, other sizes, and what was published."""
    page = Page()
    requested, rates = outlook.requested, outlook.rates
    page.print((outlook.loss, "bold"), f", D = {outlook.dim}, {outlook.dtype}, value and gradient")
    page.print(f"{requested.rows:,} rows in chunks of {requested.chunk:,} on {requested.workers:,} workers of one thread\n")
    page.grid(
        [
            ("tasks", f"{requested.tasks:,}"),
            ("pairs", f"{requested.pairs:.3g}"),
            ("operations", f"{requested.operations:.3g} in products of matrices"),
            ("received", f"{_size(requested.moved)} by each worker, if it has nothing of what it needs"),
            ("memory", f"{_size(requested.memory)} of arrays on each worker, at most"),
            ("time", _time(requested.seconds)),
        ],
        10,
        styles=("bold", ""),
    )
    page.print(
        f"\nRates {outlook.rates_of}: {rates.seconds_per_pair:.2g} s a pair, {rates.seconds_per_task:.2g} s a task, "
        f"{_size(rates.bytes_per_second)}/s",
        style="dim",
    )
    if outlook.measured:
        page.print("\nPredicted and measured here, on threads", style="bold")
        lines = [
            (f"{p.rows:,}", f"{p.workers}", _time(p.seconds), _time(s), f"{p.seconds / s:.2f}")
            for p, s in outlook.measured
        ]
        _table(page, ("rows", "threads", "predicted", "measured", "ratio"), lines)
    page.print("\nOther sizes, predicted", style="bold")
    counts = sorted({p.workers for p in outlook.others})
    lines = []
    for rows in sorted({p.rows for p in outlook.others}):
        own = [p for p in outlook.others if p.rows == rows]
        lines.append((f"{rows:,}", _size(own[-1].memory), *(_time(p.seconds) for p in own)))
    _table(page, ("rows", f"memory of {counts[-1]}", *(f"{w} worker{'s' * (w > 1)}" for w in counts)), lines)
    page.print("\nPublished, with a model around the loss", style="bold")
    page.grid([(p.rows, p.devices, f"{p.method}: {p.source}") for p in PUBLISHED], 6, 18)
    return page


def record(outlook: Outlook) -> dict[str, Any]:
    """The same, ready for JSON."""
    return {
        "loss": outlook.loss,
        "dim": outlook.dim,
        "dtype": outlook.dtype,
        "rates": asdict(outlook.rates),
        "requested": asdict(outlook.requested),
        "measured": [{"prediction": asdict(p), "seconds": seconds} for p, seconds in outlook.measured],
        "others": [asdict(p) for p in outlook.others],
        "published": [asdict(p) for p in PUBLISHED],
    }


def _table(page: Page, head: tuple[str, ...], lines: list[tuple[str, ...]]) -> None:
    widths = [max(len(line[i]) for line in (head, *lines)) + 2 for i in range(len(head))]
    for line in (head, *lines):
        text = "".join(entry.rjust(width) for entry, width in zip(line, widths, strict=True))
        page.print(text, style="dim" if line is head else "")


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def _time(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.2g} s"
