"""Every page in every format: no line is wider than its terminal, and what text says the other formats say too."""

import html
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from output.html_document import Page as Document
from sweep import sweep
from theory import latex

import nceref
from mutants.score import CORRECT, Score, ScoredProgram
from mutants.score_page import score_page
from nceref.checks.expect import expected_readings
from nceref.checks.locate import locate
from nceref.checks.run import CheckResult
from nceref.cli import (
    check_page,
    claims_page,
    expect_page,
    experiment_page,
    losses_page,
    mutants_page,
    quadrants_page,
    vectors_page,
    version_page,
)
from nceref.losses import all_losses
from nceref.output.blocks import Formula, Paragraph, Verbatim
from nceref.output.pages import Page
from nceref.registry import discover
from nceref.theory import derivation, prove, table_formats
from nceref.theory.table import Table
from nceref.training.quadrants import replay
from nceref.verification import identify, several_reports
from nceref.verification import page as report_pieces
from nceref.verification.audit import page as audit_page
from nceref.verification.audit.audit import AuditRow
from nceref.verification.equal import equality
from nceref.verification.equal import page_of as equality_page
from nceref.verification.manifest import page as manifest_page
from nceref.verification.manifest import write
from nceref.verification.manifest.package import Package, PublicCallable
from nceref.verification.manifest.read import ManifestTarget
from nceref.verification.manifest.recognize import RecognizedTarget
from nceref.verification.manifest.run import ManifestResult
from nceref.verification.report import page_of as report_page
from nceref.verification.vectors.ranks_file import read_ranks
from nceref.verification.vectors.store import read_vectors
from nceref.verification.verifier import corpus_of

CLAIMS = ("WL-13", "QT-1", "PC-19", "IS-7", "SC-4", "WL-4")
"""With a formula or without, a table, numbers, a counterexample, a derivation."""


CASES = ("designed-0.3", "seven-0.5", "aligned-0.07", "opposed-0.3")


def sum_of_rows(query, keys, temperature=0.1):
    s = query @ keys.T / temperature
    top = s.max(axis=1, keepdims=True)
    return np.sum(np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - np.diag(s))


@cache
def report(**options):
    return nceref.verify(sum_of_rows, loss="info_nce", suite="quick", case=CASES, normalize="none", **options)


def derived(name):
    def unchecked(topic):
        chain = topic.steps()
        return chain, tuple(step.check for step in chain.steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derivation, "follow", unchecked)
        return derivation.page_of(derivation.get(name))


def identified():
    with pytest.MonkeyPatch.context() as patch:
        chosen = {name: all_losses()[name] for name in ("alignment", "info_nce")}
        patch.setattr("nceref.verification.loss_search.all_losses", lambda: chosen)
        return identify.page_of(
            "mine.py:f", identify.candidates(sum_of_rows, normalize="none"), "nceref verify mine.py:f"
        )


@cache
def vectors():
    read = read_vectors(losses=("clip",))
    return read, read_ranks(read.manifest, losses=("clip",))


def of_a_vector(id_):
    read, ranks = vectors()
    return (
        vectors_page.page_of(read.cases["clip"][0]) if id_ == "one" else vectors_page.page_of(ranks[0].joined, ranks[0])
    )


def recognized():
    targets = [RecognizedTarget(PublicCallable("mine.py:sum_of_rows"), "info_nce", report=report())]
    targets += [RecognizedTarget(PublicCallable(f"mine.py:{name}"), reason="differs from every loss") for name in "fg"]
    return write.page_of(write.ManifestDraft(Package("mine.py", (), {"mine.gone": "no such module"}), tuple(targets)))


def scored():
    bug, correct = (
        ScoredProgram(
            "nt-xent-own-logit-kept", "nt_xent", "float64", group, "x", "differs", (id,), "", *[right] * 2, *[0] * 3
        )
        for group, id, right in (("tuning", "outer-factor-2", False), (CORRECT, "unexplained", True))
    )
    return score_page(Score((bug, correct)))


def audited():
    row = AuditRow(
        "optax-ntxent", "optax", "0.2.3", "nt_xent", "float32", "known", "differs", ("exp-underflows",), 28, 3
    )
    return audit_page.page_of(
        [replace(row, why=("It underflows.",)), replace(row, peer="gone", status="missing", why=("pip install gone",))]
    )


def of_an_experiment():
    content = json.loads((Path(__file__).parents[2] / "docs" / "experiments" / "long-tail.json").read_text())
    return experiment_page.page_of(experiment_page.experiments()["long-tail"], experiment_page.recorded(content))


PAGES = {
    "losses": lambda: losses_page.overview(all_losses().values()),
    "claims": lambda: claims_page.overview(prove.chosen(())),
    "conventions": report_pieces.conventions,
    "list of cases": lambda: report_pieces.cases(corpus_of(None, loss="clip", suite="quick")),
    "mutants": lambda: mutants_page.overview(mutants_page.chosen((), mutants_page.records("known"))),
    "mutant": lambda: mutants_page.page_of(mutants_page.records("known")["nt-xent-own-logit-kept"]),
    "version": version_page.page_of,
    "expect": lambda: expect_page.page_of(
        expected := expected_readings("nt_xent", {"n": "256", "temperature": "0.07"}), locate(expected, "6.236")
    ),
    "check": lambda: check_page.page_of_all(
        [CheckResult("clip", "formula float64", "pass", "small"), CheckResult("clip", "scale", "fail", "by 2")]
    ),
    "vectors": lambda: vectors_page.cases(*vectors()),
    "vector": lambda: of_a_vector("one"),
    "vector on ranks": lambda: of_a_vector("ranks"),
    "all tables": lambda: table_formats.summary(tables().values()),
    "report": lambda: report_page(report()),
    "report of two formats": lambda: report_page(report(dtype=("float64", "float32"))),
    "several reports": lambda: several_reports.page_of([report(), report(dtype="float32")]),
    "manifest": lambda: manifest_page.page_of(
        [ManifestResult(ManifestTarget(name, None), report(), ("mine.toml:3: no such key",)) for name in ("a", "b")]
    ),
    "audit": audited,
    "init": recognized,
    "score": scored,
    "quadrants": lambda: quadrants_page.page_of(replay.run((11,)), replay.run((11,), confounder=True)),
    "experiment": of_an_experiment,
    "report of an error": lambda: report_page(nceref.verify("nowhere.py:f", loss="clip")),
    "identify": identified,
    "equal": lambda: equality_page(equality("nceref.losses:nt_xent", "dcl", "nt_xent", suite="quick", case=CASES)),
    **{f"loss {name}": lambda loss=loss: losses_page.page_of(loss) for name, loss in all_losses().items()},
    **{f"claim {one}": lambda one=one: claims_page.page_of(prove.claims()[one]) for one in CLAIMS},
    **{f"derivation {one}": lambda one=one: derived(one) for one in derivation.topics()},
    **{f"table {one}": lambda one=one: table_formats.page_of(tables()[one]) for one in
       ("temperature-easy", "losses", "conventions", "paco-optimum")},
}  # fmt: skip


@cache
def tables():
    return discover("nceref.theory.tables", "TABLE", Table)


@cache
def page(name):
    return PAGES[name]()


@cache
def said(name):
    """The words of a page; a formula has others in LaTeX."""
    shown = Page()
    shown.blocks = [block for block in page(name).blocks if not isinstance(block, Formula)]
    return words(shown.text(width=400))


def words(text):
    return set(re.findall(r"[A-Za-z]{4,}", text))


@pytest.mark.usefixtures("in_this_process")
@sweep("name", PAGES)
@sweep("width", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal(name, width):
    shown = Page()
    # What is to be copied stays in one line.
    shown.blocks = [
        block
        for block in page(name).blocks
        if not (isinstance(block, Verbatim) or (isinstance(block, Paragraph) and not block.wrap))
    ]
    lines = shown.text(width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert [line for line in lines if line != line.rstrip() or "\x1b" in line] == []


@sweep("name", PAGES)
def test_markdown_has_the_words_of_the_text_and_a_title(name):
    written = page(name).written("markdown")
    assert said(name) - words(written) == set()
    assert "\n\n\n" not in written
    assert written.count("```") % 2 == 0


@sweep("name", PAGES)
def test_html_is_well_formed_loads_nothing_and_has_the_words_of_the_text(name):
    written = page(name).written("html")
    document = Document(written)
    assert document.loads == []
    # A browser sets letters of a formula one by one.
    shown = html.unescape(re.sub("<[^>]*>", " ", written)) + html.unescape(
        " ".join(re.findall('aria-label="([^"]*)"', written))
    )
    assert said(name) - words(shown) == set()


@sweep("name", PAGES)
def test_latex_can_be_read_and_has_the_words_of_the_text(name):
    written = page(name).written("latex")
    assert latex.faults(written) == []
    assert said(name) - words(written.replace("\\allowbreak{}", "")) == set()
