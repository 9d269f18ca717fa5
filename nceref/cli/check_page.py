"""The page of `nceref check`: the outcome of all checks of one loss."""

from collections import Counter
from collections.abc import Iterable, Sequence

from nceref.checks.run import CheckResult
from nceref.output.pages import GAP, Page, joined, with_spaces

_COLORS = {"pass": "green", "fail": "red", "skip": "dim"}


def page_of(results: Sequence[CheckResult]) -> Page:
    """Outcome of the checks of one loss: formula by dtype, how many of each group, and what failed or was skipped."""
    page = Page()
    page.heading(results[0].loss, 1)
    groups: dict[str, list[CheckResult]] = {}
    for result in results:
        groups.setdefault(_group(result), []).append(result)
    lines = []
    for group, members in groups.items():
        if group.startswith("formula"):
            lines.append((group, members[0].status, members[0].detail))
        else:
            status = "fail" if any(r.status == "fail" for r in members) else "pass"
            lines.append((group, status, tally(members)))
            lines += [(f"  {with_spaces(r.check)}", r.status, r.detail) for r in members if r.status == "fail"]
            lines += _skipped(members)
    widths = [max(len(line[i]) for line in lines) for i in (0, 1)]
    for line in lines:
        page.grid([line], *widths, styles=("", _COLORS[line[1]], ""), indent=GAP)
    return page


def page_of_all(results: Sequence[CheckResult]) -> Page:
    """The pages of all losses, and the outcome of all checks below."""
    losses = dict.fromkeys(result.loss for result in results)
    page = joined(page_of([result for result in results if result.loss == loss]) for loss in losses)
    page.print(f"\n{tally(results)}")
    return page


def _skipped(members: Iterable[CheckResult]) -> list[tuple[str, str, str]]:
    """One line for each reason to skip, with all that it holds for."""
    reasons: dict[str, list[str]] = {}
    for result in members:
        if result.status == "skip":
            reasons.setdefault(result.detail, []).append(with_spaces(result.check))
    return [("", "skip", f"{', '.join(names)}: {reason}") for reason, names in reasons.items()]


def tally(results: Sequence[CheckResult]) -> str:
    """The numbers of checks that passed, failed and were skipped: ``12 passed, 1 skipped``."""
    counts = Counter(result.status for result in results)
    words = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    return ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])


def _group(result: CheckResult) -> str:
    kind = result.check.split()[0]
    return {"formula": result.check, "relation": "relations"}.get(kind, "properties")
