"""Pages that no example of a command prints, at every width and in every format; `test_every_option` has the others."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from output.page_text import check
from sweep import sweep

import nceref
from mutants.score import CORRECT, Score, ScoredProgram
from mutants.score_page import score_page
from nceref.checks.run import CheckResult
from nceref.cli import (
    check_page,
    claims_page,
    experiment_page,
    losses_page,
    quadrants_page,
    vectors_page,
    version_page,
)
from nceref.losses import all_losses
from nceref.registry import discover
from nceref.theory import derivation, prove, table_formats
from nceref.theory.table import Table
from nceref.training.quadrants import replay
from nceref.verification import document, several_reports
from nceref.verification.audit import page as audit_page
from nceref.verification.audit.audit import AuditRow
from nceref.verification.manifest import page as manifest_page
from nceref.verification.manifest.read import ManifestTarget
from nceref.verification.manifest.run import ManifestResult
from nceref.verification.vectors.ranks_file import read_ranks
from nceref.verification.vectors.store import read_vectors

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


def on_ranks():
    case = read_ranks(read_vectors(losses=("clip",)).manifest, losses=("clip",))[0]
    return vectors_page.page_of(case.joined, case)


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
    "version": version_page.page_of,
    "check": lambda: check_page.page_of_all(
        [CheckResult("clip", "formula float64", "pass", "small"), CheckResult("clip", "scale", "fail", "by 2")]
    ),
    "vector on ranks": on_ranks,
    "all tables": lambda: table_formats.summary(tables().values()),
    "several reports": lambda: several_reports.page_of([report(), report(dtype="float32")]),
    "report with every result": lambda: document.whole_page(report()),
    "several with every result": lambda: document.several([report(), report(dtype="float32")], "Two"),
    "manifest": lambda: manifest_page.page_of(
        [ManifestResult(ManifestTarget(name, None), report(), ("mine.toml:3: no such key",)) for name in ("a", "b")]
    ),
    "audit": audited,
    "score": scored,
    "quadrants": lambda: quadrants_page.page_of(replay.run((11,)), replay.run((11,), confounder=True)),
    "experiment": of_an_experiment,
    **{f"loss {name}": lambda loss=loss: losses_page.page_of(loss) for name, loss in all_losses().items()},
    **{f"claim {one}": lambda one=one: claims_page.page_of(prove.claims()[one]) for one in CLAIMS},
    **{f"derivation {one}": lambda one=one: derived(one) for one in derivation.topics()},
    **{f"table {one}": lambda one=one: table_formats.page_of(tables()[one]) for one in
       ("temperature-easy", "losses", "conventions", "paco-optimum")},
}  # fmt: skip


@cache
def tables():
    return discover("nceref.theory.tables", "TABLE", Table)


@pytest.mark.usefixtures("in_this_process")
@sweep("name", PAGES)
def test_it_fits_and_every_format_has_its_words(name):
    check(PAGES[name]())
