"""The targets, one by one: met, short of it, or out of reach of any program on this machine."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks import chunked, interrupted, scaling
from benchmarks.memory import MIB

QUIET = 0.05
"""Share of the processors that other processes may take: at 16 percent, ratios have moved by a quarter either way."""
MET, SHORT, IMPOSSIBLE, UNKNOWN = "met", "falls short", "out of reach here", "not measured"


@dataclass(frozen=True)
class Judgment:
    """One target, what was measured, the verdict, and what it rests on."""

    name: str
    target: str
    measured: str
    verdict: str
    reasons: tuple[str, ...] = ()


def disturbed(results: dict[str, Any]) -> dict[str, float]:
    """The questions during which other processes took more than is quiet, and how much of the processors that was."""
    shares = {name: results[name].get("others") or 0.0 for name in _JUDGES if name in results}
    return {name: share for name, share in shares.items() if share > QUIET}


def judge(results: dict[str, Any]) -> list[Judgment]:
    """A judgment for every target that the questions of a run have; none for a quick run."""
    if results["quick"]:
        return []
    return [judgment for name, of in _JUDGES.items() if name in results for judgment in of(results[name])]


def _at_least(name: str, row: dict[str, Any], ceiling: float | None, what: str) -> Judgment:
    """A ratio that must be reached; `ceiling` is the most that this machine lets any program reach."""
    measured, target = row["ratio"], row["target"]
    wanted = f"at least {target:g}x"
    if measured is None:
        return Judgment(name, wanted, "", UNKNOWN, ("PyTorch is not installed",))
    low, high = row["ratio_quartiles"]
    unsure = (f"quartiles {low:.2f} to {high:.2f}",) if low < target <= high else ()
    if measured >= target:
        return Judgment(name, wanted, f"{measured:.2f}x", MET, unsure)
    verdict = IMPOSSIBLE if ceiling is not None and ceiling < target else SHORT
    reason = () if ceiling is None else (f"{what} = {ceiling:.2f}",)
    return Judgment(name, wanted, f"{measured:.2f}x", verdict, (*reason, *unsure))


def _speed(section: dict[str, Any]) -> Iterator[Judgment]:
    for row in section["rows"]:
        if row["target"] is not None:
            # A floor that nceref has passed is none, and says nothing of what can be reached.
            ceiling = row["baseline_of_floor"] if row["of_floor"] >= 1 else None
            yield _at_least(row["name"], row, ceiling, "PyTorch / floor")
        if row["within"] is not None:
            verdict = MET if row["of_floor"] <= row["within"] else SHORT
            yield Judgment(row["name"], f"at most {row['within']:g}x the floor", f"{row['of_floor']:.2f}x", verdict)


def _memory(section: dict[str, Any]) -> Iterator[Judgment]:
    for row in section["rows"]:
        if row["limit"] is None:
            continue
        name, wanted = f"memory, M = {row['rows']}", f"at most {row['limit'] / MIB:g} MiB"
        if row["extra"] is None:
            yield Judgment(name, wanted, "", UNKNOWN, ("the system does not report the peak",))
        else:
            verdict = MET if row["extra"] <= row["limit"] else SHORT
            yield Judgment(name, wanted, f"{row['extra'] / MIB:.1f} MiB", verdict)


def _scaling(section: dict[str, Any]) -> Iterator[Judgment]:
    off = abs(section["exponent"] - scaling.EXPONENT)
    wanted = f"{scaling.EXPONENT - scaling.AWAY:.1f} to {scaling.EXPONENT + scaling.AWAY:.1f}"
    verdict = MET if off <= scaling.AWAY else SHORT
    yield Judgment("exponent of time in M", wanted, f"{section['exponent']:.3f}", verdict)
    largest = section["largest"]
    yield Judgment(f"time, M = {largest['rows']}", "completes", f"{largest['seconds']['median']:.1f} s", MET)


def _threads(section: dict[str, Any]) -> Iterator[Judgment]:
    if section["target"] is not None:
        yield _at_least("two threads against one", section, section["machine"], "gain of the machine")


def _quadrants(section: dict[str, Any]) -> Iterator[Judgment]:
    for row in section["rows"]:
        if row["target"] is not None:
            yield _at_least(f"quadrants, {row['part']}", row, None, "")


def _chunked(section: dict[str, Any]) -> Iterator[Judgment]:
    point = next((p for p in section["sizes"] if p["rows"] == section["judged"] and p["workers"] == 2), None)
    if point is not None:
        (low, high), target = point["ratio_quartiles"], chunked.TARGET
        beside = f"fastest {point['ratio_of_fastest']:.2f}x", f"processor time {point['processor_ratio']:.2f}x"
        unsure = (*beside, *((f"quartiles {low:.2f} to {high:.2f}",) if low <= target < high else ()))
        verdict = MET if point["ratio"] <= target else SHORT
        wanted = f"at most {target:g}x in memory"
        yield Judgment(f"two workers, N = {point['rows']}", wanted, f"{point['ratio']:.2f}x", verdict, unsure)
        peak = max(point["peaks"])
        verdict = MET if peak <= chunked.LIMIT else SHORT
        wanted = f"at most {chunked.LIMIT / MIB:g} MiB"
        yield Judgment(f"memory of a worker, N = {point['rows']}", wanted, f"{peak / MIB:.1f} MiB", verdict)
        largest = section["largest"]
        yield Judgment(f"two workers, N = {largest['rows']}", "completes", f"{largest['times'][0]:.0f} s", MET)
        slowest = max(section["interrupted"]["given_up"])
        verdict = MET if slowest <= interrupted.TARGET else SHORT
        yield Judgment("tasks given up after Ctrl-C", f"at most {interrupted.TARGET:g} s", f"{slowest:.2f} s", verdict)


_JUDGES: dict[str, Callable[[dict[str, Any]], Iterator[Judgment]]] = {
    "speed": _speed,
    "memory": _memory,
    "scaling": _scaling,
    "threads": _threads,
    "quadrants": _quadrants,
    "chunked": _chunked,
}
