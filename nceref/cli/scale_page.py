"""The page and the record of `nceref scale`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from nceref.engine.chunked.prediction import PUBLISHED, Outlook
from nceref.output.pages import Page
from nceref.output.words import counted


def page_of(outlook: Outlook) -> Page:
    """The run that was requested, how good the prediction is here, other sizes, and what was published."""
    page, run = Page(), outlook.requested
    page.print((outlook.loss, "bold"), f", D = {outlook.dim}, {outlook.dtype}, value and gradient")
    page.print(f"{run.rows:,} rows in chunks of {run.chunk:,} on {counted(run.workers, 'worker')} of one thread\n")
    page.grid(
        [
            ("tasks", f"{run.tasks:,}"),
            ("pairs", f"{run.pairs:.3g}"),
            ("operations", f"{run.operations:.3g} in products of matrices"),
            ("received", f"{_size(run.moved)} by each worker, if it has nothing of what it needs"),
            ("memory", f"{_size(run.memory)} of arrays on each worker, at most"),
            ("time", _time(run.seconds)),
        ],
        10,
        styles=("bold", ""),
    )
    rates = outlook.rates
    words = f"{rates.seconds_per_pair:.2g} s a pair, {rates.seconds_per_task:.2g} s a task"
    page.print(f"\nRates {outlook.rates_of}: {words}, {_size(rates.bytes_per_second)}/s", style="dim")
    if outlook.measured:
        page.print("\nPredicted and measured here, on threads", style="bold")
        _table(page, ("rows", "threads", "predicted", "measured", "ratio"), list(_measured(outlook)))
    page.print("\nOther sizes, predicted", style="bold")
    counts = sorted({p.workers for p in outlook.others})
    head = ("rows", f"memory of {counts[-1]}", *(counted(w, "worker") for w in counts))
    _table(page, head, list(_others(outlook)))
    page.print("\nPublished, with a model around the loss", style="bold")
    page.grid([(p.rows, p.devices, f"{p.method}: {p.source}") for p in PUBLISHED], 6, 18)
    return page


def _measured(outlook: Outlook) -> Iterator[tuple[str, ...]]:
    for run, seconds in outlook.measured:
        both = _time(run.seconds), _time(seconds)
        yield f"{run.rows:,}", f"{run.workers}", *both, f"{run.seconds / seconds:.2f}"


def _others(outlook: Outlook) -> Iterator[tuple[str, ...]]:
    """The sizes, with the memory of a worker among most of them, and the time of each number of workers."""
    for rows in sorted({p.rows for p in outlook.others}):
        own = [p for p in outlook.others if p.rows == rows]
        yield f"{rows:,}", _size(own[-1].memory), *(_time(p.seconds) for p in own)


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


def _table(page: Page, head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> None:
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
