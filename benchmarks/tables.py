"""Results as tables of the package, for the terminal and for Markdown alike."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.chunked import share
from benchmarks.clock import spread
from benchmarks.machine import PEERS
from benchmarks.memory import MIB
from benchmarks.targets import disturbed, judge
from nceref.theory.table import Table

Spread = dict[str, float]


def tables(results: dict[str, Any]) -> list[Table]:
    """All tables of a run, the targets at the end."""
    made = [machine(results["machine"])]
    for name, of in _TABLES.items():
        if name in results:
            first, *more = of(results[name])
            made += [replace(first, note="\n\n".join((first.note, *disturbance(results[name]["others"])))), *more]
    return [*made, *targets(results)]


def _table(title: str, columns: tuple[str, ...], lines: Iterable[Sequence[str]], *notes: str) -> Table:
    rows = [dict(zip(columns, line, strict=True)) for line in lines]
    return Table(title.lower(), title, "", columns, lambda: rows, "\n\n".join(notes))


def seconds(x: float) -> str:
    """A time with three digits and a unit."""
    scale, unit = _unit(x)
    return f"{_digits(x * scale)} {unit}"


def _unit(x: float) -> tuple[float, str]:
    return next(((scale, unit) for scale, unit in ((1.0, "s"), (1e3, "ms")) if x * scale >= 1), (1e6, "µs"))


def _digits(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}" if x >= 10 else f"{x:.2f}"


def times(spread: Spread | None) -> str:
    """Median and quartiles, in the same unit, if it was measured more than once."""
    if spread is None:
        return "-"
    if spread["samples"] == 1:
        return seconds(spread["median"])
    scale, _ = _unit(spread["median"])
    return f"{seconds(spread['median'])} ({_digits(spread['low'] * scale)}-{_digits(spread['high'] * scale)})"


def ratio(x: float | None) -> str:
    """A ratio with two digits after the point below 10."""
    return "-" if x is None else f"{x:.2f}" if x < 10 else f"{x:.1f}"


def size(x: int | None) -> str:
    """Bytes in MiB."""
    return "-" if x is None else f"{x / MIB:.1f} MiB"


def machine(about: dict[str, Any]) -> Table:
    """The table of the machine, with versions of the packages that are compared."""
    versions = {"torch": "PyTorch", "cupy": "CuPy"}
    lines = [(versions.get(name, name), str(x) if x is not None else "not installed") for name, x in about.items()]
    missing = [peer for peer in PEERS if about[peer] is None]
    notes = {"torch": "PyTorch is missing: nceref is timed alone; `make peers` installs it."}
    return _table("Machine", ("property", "value"), lines, *(notes[peer] for peer in missing if peer in notes))


def disturbance(others: float | None) -> tuple[str, ...]:
    """A sentence about who else was at work."""
    return () if others is None else (f"Meanwhile other processes took {others:.0%} of the processors.",)


def speed(section: dict[str, Any]) -> list[Table]:
    """The tables of times, ratios and floors, and of the rates that the floors are made of."""
    header = ("value and gradients", "nceref", "PyTorch", "ratio", "tuned", "nceref / floor", "PyTorch / floor")
    lines = [
        (row["name"], times(row["nceref"]), times(row["baseline"]), ratio(row["ratio"]), ratio(row["tuned_ratio"]),
         ratio(row["of_floor"]), ratio(row["baseline_of_floor"]))
        for row in section["rows"]
    ]  # fmt: skip
    notes = (
        "Median and quartiles. Ratio: PyTorch / nceref; tuned: with PyTorch tuned.",
        "PyTorch / floor: the ratio of a program that does nothing but these matrix products and exponentials.",
    )
    return [_table("Speed", header, lines, *notes), rates(section["rates"])]


def rates(section: list[dict[str, Any]]) -> Table:
    """The table of the machine's rates, which give the floors."""
    lines = [
        (f"{r['dtype']}, D = {r['dim']}", f"{r['operations'] / 1e9:.0f}", f"{r['exponentials'] / 1e9:.2f}")
        for r in section
    ]
    header = ("rates of this machine", "matrix products, 1e9 operations/s", "exponentials, 1e9/s")
    return _table("Rates", header, lines)


def memory(section: dict[str, Any]) -> list[Table]:
    """The table of peaks of memory."""
    who = {"nceref": "nceref", "baseline": "PyTorch", "tuned": "PyTorch, tuned"}
    lines = [(r["name"], who[r["program"]], size(r["extra"])) for r in section["rows"]]
    note = "Peak beyond inputs and gradients, in a fresh process."
    return [_table("Memory", ("batch", "program", "extra memory"), lines, note)]


def scaling(section: dict[str, Any]) -> list[Table]:
    """Time and memory by rows."""
    beside = {point["rows"]: point for point in section["baseline"]}
    lines = []
    for point in (*section["nceref"], section["largest"]):
        other = beside.get(point["rows"])
        own = (times(point["seconds"]), size(point["extra"]))
        lines.append((str(point["rows"]), *own, *((times(other["seconds"]), size(other["extra"])) if other else "--")))
    first, *_, last = section["fitted"]
    note = f"Exponent of nceref's time by least squares, from {first} to {last} rows: {section['exponent']:.3f}."
    header = ("rows M", "nceref", "extra memory", "PyTorch", "of PyTorch")
    return [_table("Scaling of NT-Xent", header, lines, note)]


def threads(section: dict[str, Any]) -> list[Table]:
    """The table of two threads against one."""
    line = (
        section["name"],
        times(section["one"]),
        times(section["two"]),
        ratio(section["ratio"]),
        ratio(section["machine"]),
    )
    note = "Gain of the machine: the floor with one thread over the floor with two."
    return [_table("Threads", ("batch", "1 thread", "2 threads", "ratio", "gain of the machine"), [line], note)]


def quadrants(section: dict[str, Any]) -> list[Table]:
    """The replay of the published script against the script under PyTorch, part by part."""
    lines = [(row["part"], times(row["script"]), times(row["replay"]), ratio(row["ratio"])) for row in section["rows"]]
    counted = f"{len(section['temperatures'])} runs of {section['steps']} steps"
    note = f"{counted}; the replay includes the twins that measure growth."
    return [_table("Quadrants", ("part", "script, PyTorch", "replay", "ratio"), lines, note)]


def chunked(section: dict[str, Any]) -> list[Table]:
    """Time and memory of workers, by rows and by chunks."""
    points = [*section["sizes"], section["largest"]]
    return [_chunked_times(section, points), _chunked_memory(points), _chunked_sizes(section), *_interrupted(section)]


def _chunked_times(section: dict[str, Any], points: Sequence[dict[str, Any]]) -> Table:
    header = ("rows N", "workers", "time", "in memory", "ratio")
    lines = [
        (str(p["rows"]), str(p["workers"]), times(spread(p["times"])), times(p.get("memory")), ratio(p.get("ratio")))
        for p in points
    ]  # fmt: skip
    about, versions = section["machine"], ", ".join(f"{name} {number}" for name, number in section["versions"].items())
    notes = (
        f"InfoNCE, value and gradients, N x {section['dim']} float32. Each worker opens the .npy files by itself; it"
        " has one thread and a limit of 2 GiB. In memory: the same loss of NumPy arrays on two threads of a fresh"
        " process, in turn with two workers; the answers of both are compared. Ratio: of the medians.",
        "A time is that of the call, without the start of the cluster. Of the largest batch, gradients of some queries"
        " are compared with those of the engine in memory, in float64: one query with all keys at a time.",
        f"Measured on {about['date']}: {about['CPU']}, {about['BLAS']}, {versions}.",
    )
    return _table("Beyond one machine", header, lines, *notes)


def _chunked_memory(points: Sequence[dict[str, Any]]) -> Table:
    header = ("rows N", "workers", "chunk", "at most", "growth", "share", "rest")
    lines = []
    for p in points:
        growth = max(peak - idle for peak, idle in zip(p["peaks"], p["idle"], strict=True))
        sizes = max(p["peaks"]), growth, share(p), growth - share(p)
        lines.append((str(p["rows"]), str(p["workers"]), str(p["chunk"]), *map(size, sizes)))
    notes = (
        "Of the worker that takes most. At most: the process, interpreter included; growth: beyond what it had before"
        " the call; share: inputs, normalized rows and gradients, divided among the"
        " workers; rest: growth less share.",
    )
    return _table("Memory of a worker", header, lines, *notes)


def _chunked_sizes(section: dict[str, Any]) -> Table:
    lines = [(str(p["chunk"]), times(spread(p["times"])), size(max(p["peaks"]))) for p in section["chunks"]]
    rows = section["chunks"][0]["rows"]
    note = f"N = {rows}, two workers; time once."
    return _table("Rows of a chunk", ("rows of a chunk", "time", "memory of a worker, at most"), lines, note)


def _interrupted(section: dict[str, Any]) -> list[Table]:
    measured = section["interrupted"]
    if measured is None:
        return []
    names = {"given_up": "the scheduler has no task of the call", "idle": "no worker computes one"}
    lines = [(shown, times(spread(measured[name])), seconds(max(measured[name]))) for name, shown in names.items()]
    note = "A window that a worker has begun is computed to its end, and dropped."
    return [_table("Ctrl-C", ("after Ctrl-C", "time", "longest"), lines, note)]


def startup(section: dict[str, Any]) -> list[Table]:
    """The table of the start of the command line."""
    names = {"python": "python -c pass", "click": 'python -c "import click"', "nceref": "nceref --help"}
    lines = [(shown, times(section[name])) for name, shown in names.items()]
    return [_table("Start-up", ("command", "time"), lines, f"nceref / click: {ratio(section['ratio'])}.")]


def device(section: dict[str, Any]) -> list[Table]:
    """Speed on the device, and agreement with the CPU."""
    lines = [(r["loss"], r["dtype"], f"{r['of_bound']:.2g}", "agrees" if r["agrees"] else "differs")
             for r in section["agreement"]]  # fmt: skip
    counts = Counter(line[3] for line in lines)
    note = f"{section['device']}, {section['library']}. Differences in units of the bound. " + ", ".join(
        f"{count} {verdict}" for verdict, count in counts.items()
    )
    return [*speed(section), _table("Agreement with the CPU", ("loss", "dtype", "of bound", "verdict"), lines, note)]


def stages(section: dict[str, Any]) -> list[Table]:
    """The table of shares of time by stage, in percent."""
    names = list(section["rows"][0]["shares"])
    lines = [(row["name"], *(f"{row['shares'][name]:.0%}" for name in names)) for row in section["rows"]]
    note = (
        "One thread, under a profiler, which makes small batches look slower than they are. rows: normalization and"
        " its pullback; slopes: value by logits; kept: logits written down for the second pass; rest: patterns, sums,"
        " heads, and the calls themselves, of which a small batch takes two hundred."
    )
    return [_table("Stages", ("share of a call", *names), lines, note)]


def targets(results: dict[str, Any]) -> list[Table]:
    """The table of targets, each with its verdict."""
    judgments = judge(results)
    lines = [(j.name, j.target, j.measured, "; ".join((j.verdict, *j.reasons))) for j in judgments]
    counts = Counter(j.verdict for j in judgments)
    note = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    noise = [
        f"Not quiet: other processes took {share:.0%} of the processors during {name}; repeat it before you rely on it."
        for name, share in disturbed(results).items()
    ]
    header = ("what", "target", "measured", "verdict")
    return [_table("Targets", header, lines, f"{note}.", *noise)] if judgments else []


_TABLES: dict[str, Callable[[dict[str, Any]], list[Table]]] = {
    "speed": speed,
    "stages": stages,
    "memory": memory,
    "scaling": scaling,
    "threads": threads,
    "startup": startup,
    "quadrants": quadrants,
    "chunked": chunked,
    "device": device,
}
