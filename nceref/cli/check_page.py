"""Outcome of the checks of a loss, laid out for reading."""

from collections.abc import Iterable, Sequence

from nceref.checks.run import CheckResult
from nceref.output import pages

_COLORS = {"pass": "green", "fail": "red", "skip": "dim"}


def text(found: Sequence[CheckResult], *, width: int = pages.WIDTH, color: bool = False) -> str:
    """Outcome of the checks of one loss: formula by dtype, how many of each group, and what failed or was skipped."""
    page, paper = pages.page(width, color)
    page.print(found[0].loss, style="bold")
    groups: dict[str, list[CheckResult]] = {}
    for result in found:
        groups.setdefault(_group(result), []).append(result)
    lines = []
    for group, members in groups.items():
        if group.startswith("formula"):
            lines.append((group, members[0].status, members[0].detail))
        else:
            status = "fail" if any(r.status == "fail" for r in members) else "pass"
            lines.append((group, status, tally(members)))
            lines += [(f"  {pages.spoken(r.check)}", r.status, r.detail) for r in members if r.status == "fail"]
            lines += _skipped(members)
    widths = [max(len(line[i]) for line in lines) for i in (0, 1)]
    for line in lines:
        pages.grid(page, [line], *widths, styles=("", _COLORS[line[1]], ""), indent=pages.GAP)
    return pages.clean(paper)


def _skipped(members: Iterable[CheckResult]) -> list[tuple[str, str, str]]:
    """One line for each reason to skip, with all that it holds for."""
    reasons: dict[str, list[str]] = {}
    for result in members:
        if result.status == "skip":
            reasons.setdefault(result.detail, []).append(pages.spoken(result.check))
    return [("", "skip", f"{', '.join(names)}: {reason}") for reason, names in reasons.items()]


def tally(found: Sequence[CheckResult]) -> str:
    """How many passed, failed and were skipped: ``12 passed, 1 skipped``."""
    counts = {f"{status}ed".replace("skiped", "skipped"): sum(r.status == status for r in found) for status in _COLORS}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _group(result: CheckResult) -> str:
    kind = result.check.split()[0]
    return {"formula": result.check, "relation": "relations"}.get(kind, "properties")
