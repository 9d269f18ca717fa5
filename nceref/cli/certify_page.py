"""The page of `nceref check --certify`: a line for each loss, and what was proved."""

from collections.abc import Sequence
from itertools import groupby

from nceref.checks.certify import DIGITS, Certified
from nceref.output.limits import of_the_bound
from nceref.output.pages import Page
from nceref.output.words import counted


def page_of(results: Sequence[Certified]) -> Page:
    """The page of the losses: a limit that error / bound stays below, by format."""
    page = Page()
    groups = [list(group) for _, group in groupby(results, key=lambda one: one.loss)]
    header = ("loss", "cases", "numbers", *(f"{one.dtype}: error / bound" for one in groups[0]))
    lines = [
        (
            group[0].loss,
            str(group[0].cases),
            str(group[0].numbers),
            *(f"{'< ' if one.of_bound <= 1 else ''}{one.of_bound:g}" for one in group),
        )
        for group in groups
    ]
    page.table(lines, header=[header], right=[False, *[True] * (len(header) - 1)])
    total = sum(group[0].numbers for group in groups)
    unsettled = sum(group[0].unsettled for group in groups)
    page.print(f"\n{total - unsettled} of {total} numbers are proven to round to one float64.")
    for group in groups:
        if group[0].undecided:
            count = counted(group[0].undecided, "case")
            page.print(f"{group[0].loss}: {count} more without a proof; the formula compares equal numbers there.")
    if groups[0][0].apart is not None:
        apart = sum(group[0].apart or 0 for group in groups)
        page.print(f"Balls and {DIGITS}-digit decimals contradict each other on {apart} of them.")
    worst = max(results, key=lambda one: one.of_bound)
    where = f": {worst.loss} in {worst.dtype}, {worst.worst}" * bool(worst.worst)
    page.print(f"Errors are {of_the_bound(worst.of_bound)}{where}.")
    return page
