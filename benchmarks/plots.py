"""Plots of a run: the ratios of the rows, and time and memory against the number of rows."""

from typing import Any

import numpy as np

from benchmarks.chunked import LIMIT
from benchmarks.memory import MIB

OURS, THEIRS, MARK = "#2166ac", "#b2673a", "#222222"


def plots(results: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    """Figures with their names, by the title of the table that they belong to."""
    made: dict[str, tuple[str, Any]] = {}
    section = results.get("speed") or results.get("device")
    if section is not None and any(row["ratio"] is not None for row in section["rows"]):
        made["Speed"] = "speed", ratios([row for row in section["rows"] if row["ratio"] is not None])
    if "scaling" in results:
        made["Scaling of NT-Xent"] = "scaling", growth(results["scaling"])
    if "chunked" in results:
        made["Beyond one machine"] = "chunked", workers(results["chunked"])
    return made


def ratios(rows: list[dict[str, Any]]) -> Any:
    """A bar for each row, with its target and with what the floor leaves possible."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.2 + 0.32 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows))
    # From 1 on: what is slower goes to the left.
    axes.barh(places, [row["ratio"] - 1 for row in rows], left=1, color=OURS, height=0.6, label="nceref")
    aims = [(place, row["target"]) for place, row in zip(places, rows, strict=True) if row["target"] is not None]
    if aims:
        axes.plot([x for _, x in aims], [y for y, _ in aims], "|", color=MARK, ms=14, mew=2, label="target")
    at_floor = [row["baseline_of_floor"] for row in rows]
    axes.plot(at_floor, places, "D", color=THEIRS, ms=5, label="a program at the floor")
    _times_faster(axes, left=min(0.7, *(row["ratio"] / 1.1 for row in rows)))
    axes.set_yticks(places, [row["name"] for row in rows])
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def _times_faster(axes: Any, left: float) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xscale("log")
    axes.set_xlim(left=left)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.axvline(1.0, color=MARK, lw=0.8)
    axes.set_xlabel("times faster than PyTorch eager")
    axes.grid(axis="x", lw=0.3)
    axes.set_axisbelow(True)


def growth(section: dict[str, Any]) -> Any:
    """Time and memory against the number of rows, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    mine, other = [*section["nceref"], section["largest"]], section["baseline"]
    for points, label, color, marker in ((mine, "nceref", OURS, "o"), (other, "PyTorch", THEIRS, "s")):
        style = {"marker": marker, "color": color, "label": label}
        if points:
            left.plot([p["rows"] for p in points], [p["seconds"]["median"] for p in points], **style)
        known = [p for p in points if p["extra"] is not None and p["extra"] > 0]
        if known:
            right.plot([p["rows"] for p in known], [p["extra"] / MIB for p in known], **style)
    left.set_title("seconds for value and gradients")
    right.set_title("memory beyond inputs and gradients, MiB")
    for axes in (left, right):
        _rows(axes, [p["rows"] for p in mine])
    left.legend(frameon=False)
    return figure


def workers(section: dict[str, Any]) -> Any:
    """Time and memory of workers against the number of rows, beside the engine in memory."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    points = [*section["sizes"], section["largest"]]
    for count, label, color, marker in ((2, "two workers", OURS, "o"), (1, "one worker", THEIRS, "s")):
        own = [p for p in points if p["workers"] == count]
        rows, style = [p["rows"] for p in own], {"marker": marker, "color": color}
        left.plot(rows, [float(np.median(p["times"])) for p in own], label=label, **style)
        right.plot(rows, [max(p["peaks"]) / MIB for p in own], label=label, **style)
    beside = [p for p in points if "memory" in p]
    medians = [p["memory"]["median"] for p in beside]
    left.plot([p["rows"] for p in beside], medians, "--", marker="D", color=MARK, label="in memory, two threads")
    right.axhline(LIMIT / MIB, color=MARK, lw=0.8, label="target")
    left.set_title("seconds for value and gradients")
    right.set_title("memory of a worker with its interpreter, MiB")
    for axes in (left, right):
        _rows(axes, sorted({p["rows"] for p in points}))
        axes.set_xlabel("rows N")
        axes.legend(frameon=False)
    return figure


def _rows(axes: Any, sizes: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(sizes, [f"{m // 1024}k" if m >= 1024 else str(m) for m in sizes])
    axes.set_xlabel("rows M")
    axes.grid(which="major", lw=0.3)
