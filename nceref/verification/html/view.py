"""Helpers that all parts of a document share: ids, levels of headings, words of results, amount of detail."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nceref.cases.judge import of_bound
from nceref.cases.records import Result
from nceref.output.html_elements import Anchors, Markup, element, shortened, unbroken
from nceref.output.strip_plot import power
from nceref.verification.report_data import ReportData

STATUS = {
    "pass": ("pass", "✓", "passes"),
    "fail": ("fail", "✕", "fails"),
    "error": ("fail", "!", "could not be run"),
    "xpass": ("fail", "✕", "passes, though it was expected to fail"),
    "xfail": ("held", "○", "fails as expected"),
    "skip": ("skip", "–", "not judged"),
    "inconclusive": ("skip", "?", "says nothing"),
}
"""The kind of color, a mark, and a word, by status; the color alone says nothing."""


FEWEST = 30
"""Number of rows of each table below which strip plots are left out."""


@dataclass(frozen=True)
class Detail:
    """The amount of detail: rows of a table, characters of a sentence, and whether results that pass have rows."""

    rows: int
    letters: int
    passes: bool = True

    @property
    def pictures(self) -> bool:
        """Whether there is room for strip plots; their captions have the numbers."""
        return self.rows >= FEWEST


@dataclass(frozen=True, eq=False)
class ReportView:
    """One report as a part of a document.

    Attributes
    ----------
    report : ReportData
    anchors : Anchors
        Anchors of the whole document.
    detail : Detail
    prefix : str
        Prefix of the ids of this report, where there are several.
    level : int
        Level of its heading.
    """

    report: ReportData
    anchors: Anchors
    detail: Detail
    prefix: str = ""
    level: int = 1
    _made: dict[str, str] = field(default_factory=dict)

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """The prefixes of the ids of results, one for each run; one empty text where there is one run."""
        labels = dict.fromkeys(r.case.partition("/")[0] for r in self.report.results if "/" in r.case)
        return tuple(labels) or ("",)

    def run_of(self, result: Result) -> str:
        """The run that a result is of."""
        label = result.id.partition("/")[0]
        return label if label in self.runs else ""

    @cached_property
    def verdict(self) -> str:
        """The id of its first heading."""
        return self.anchor("verdict")

    def anchor(self, name: str) -> str:
        """A new id of this report."""
        return self.anchors.new(f"{self.prefix}{name}")

    def result_anchor(self, result: Result) -> str:
        """The id of a result: its own, so that a link can be written by hand."""
        name = result.id if "/" in result.id else f"result/{result.id}"
        made = self._made[result.id] = self.anchor(name)
        return made

    def shown_anchor(self, result: Result) -> str:
        """The id of a result that has been shown, or nothing."""
        return self._made.get(result.id, "")

    def heading(self, below: int, *content: Any, **attributes: Any) -> Markup:
        """A heading, so many levels below that of the report."""
        return element(f"h{min(self.level + below, 6)}", *content, **attributes)

    def section(self, name: str, title: str, *content: Any, below: int = 1) -> Markup:
        """A section with its heading and an id."""
        anchor = self.anchor(name)
        return element("section", self.heading(below, title, id=anchor), *content, aria_labelledby=anchor)

    def cut(self, text: str) -> Markup:
        """The beginning of a sentence, as long as there is room."""
        return unbroken(shortened(text, self.detail.letters))


def status(result: Result, words: str = "") -> Markup:
    """The mark of a result, its color, and words in place of the usual ones."""
    kind, mark, usual = STATUS[result.status]
    return element("span", f"{mark} {words or usual}", class_=kind)


def largest(results: Sequence[Result]) -> float | None:
    """The largest error in units of its bound; None where nothing was measured."""
    return max((ratio for r in results if (ratio := of_bound(r)) is not None), default=None)


def how_far(results: Sequence[Result]) -> str:
    """The largest error of results that fail, for the end of a sentence; empty where nothing was measured."""
    lost, ratio = sum(r.quantity.endswith(".finite") for r in results), largest(results)
    words = [f", by up to {power(ratio)} times the bound"] if ratio is not None else []
    words += [f", {f'{lost} of them ' * (lost < len(results))}not finite"] if lost else []
    return "".join(words)


def capital(sentence: str) -> str:
    """A sentence that begins with a capital letter, unless it begins with a name, as of a file."""
    return sentence[:1].upper() + sentence[1:] if sentence.partition(" ")[0].rstrip(",:").isalpha() else sentence
