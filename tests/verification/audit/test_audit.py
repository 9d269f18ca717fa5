"""The audit: rows out of results of the manifest, the exit status, and the pages."""

import json
from dataclasses import replace

import pytest
from sweep import sweep

from nceref.cases.expected_failures import ExpectedFailure
from nceref.cases.records import Diagnosis, DiagnosisPart, Result
from nceref.errors import InputError
from nceref.targets.peers.peer import Peer
from nceref.verification.audit import audit
from nceref.verification.audit import page as audit_page
from nceref.verification.conformance.target import Target
from nceref.verification.manifest.read import ManifestTarget
from nceref.verification.manifest.run import ManifestResult
from nceref.verification.report import Report

RELEASES = {"optax": "0.2.8", "lightly": "1.6.0", "open_clip_torch": "3.3.0"}


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """Some packages, as if they were here, and no others."""
    monkeypatch.setattr(Peer, "version", property(lambda self: RELEASES.get(self.name)))


def results(*failing, cases=("designed-0.3", "designed-0.001")):
    ids = [(case, quantity) for case in cases for quantity in ("value", "grad.z1")]
    status = {f"{case}/{quantity}": "fail" if f"{case}/{quantity}" in failing else "pass" for case, quantity in ids}
    status |= dict.fromkeys(failing, "fail")
    return tuple(Result(id, *id.rsplit("/", 1), word, 1, 1, 1, "off") for id, word in status.items())


def reported(*failing, diagnosis=()):
    code = 1 if failing else 0
    diagnoses = tuple(Diagnosis(id, (DiagnosisPart("your loss equals something else"),)) for id in diagnosis)
    verdict = "differs" if failing else "conforms"
    return Report("t", "nt_xent", verdict, code, "the reason", diagnoses, results(*failing))


LISTED = reported("designed-0.001/value", diagnosis=["exp-underflows"])
UNDERFLOWS = ExpectedFailure("It underflows.", "https://x.example", "some", "exp-underflows")


def judged(report, failure=None, suite="standard", dtype="float64"):
    """The row of a target whose results at the temperature 0.001 are expected to fail, where a failure is given."""
    options = {"suite": suite, "dtype": dtype}
    table = {"target": "optax-ntxent"}
    expected = dict.fromkeys(["*-0.001/*"] * bool(failure), failure)
    target, keys = Target("optax-ntxent", "", options=options), dict.fromkeys(expected, ())
    entry = ManifestTarget("optax-ntxent", target, expected, table=table, keys=keys)
    return audit.row_of(ManifestResult(entry, report))


BOTH = reported("designed-0.001/value", "designed-0.3/value", diagnosis=["exp-underflows"])
ROWS = {
    "without failures": (reported(), None, "agrees", ""),
    "a listed difference": (LISTED, UNDERFLOWS, "known", "It underflows."),
    "one that is not listed": (BOTH, UNDERFLOWS, "new", "the reason, designed-0.3/value: off"),
    "a listed one that does not fail any more": (reported(), replace(UNDERFLOWS, diagnosis=""), "stale", "*-0.001/*"),
    "another diagnosis": (reported("designed-0.001/value", diagnosis=["value-saturates"]), UNDERFLOWS, "stale", ""),
    "one part of a joint diagnosis": (
        reported("designed-0.001/value", diagnosis=["exp-underflows+outer-factor-2"]), UNDERFLOWS, "known", ""
    ),
    "a run that proves nothing": (replace(reported(), verdict="inconclusive", exit_code=6), None, "new", ""),
}  # fmt: skip


@sweep("kind", ROWS)
def test_a_row_says_whether_a_difference_is_known(kind):
    report, failure, status, words = ROWS[kind]
    row = judged(report, failure)
    assert (row.status, bool(row.why)) == (status, status != "agrees")
    assert words in ", ".join(row.why)
    assert (row.cases, row.failed) == (2, len({r.case for r in report.results if r.status == "fail"}))


def test_a_suite_without_the_cases_of_an_entry_makes_nothing_stale():
    row = judged(reported(), UNDERFLOWS, suite="quick")
    assert (row.status, row.why) == ("agrees", ())


def test_every_target_that_is_judged_has_a_row_in_each_format(monkeypatch):
    missing = {"paco": "paco is not installed"}

    def verified(manifest, **_):
        return tuple(ManifestResult(entry, reported()) for entry in manifest.targets if entry.name not in missing)

    monkeypatch.setattr(audit, "verify_manifest", verified)
    monkeypatch.setattr(audit, "left_out", lambda manifest: missing)
    rows = audit.audit(["optax-ntxent", "paco", "lightly-dcl"], dtypes=["float64", "float32"])
    assert [(row.target, row.dtype) for row in rows] == [
        ("optax-ntxent", "float64"), ("optax-ntxent", "float32"), ("paco", ""),
        ("lightly-dcl", "float64"), ("lightly-dcl", "float32"),
    ]  # fmt: skip
    # Ways to use one target are alike where all is right.
    names = [entry.name for entry in audit.released().targets if audit.is_on_ranks(entry)]
    assert [row.entry.name for row in audit.audit_on_ranks()] == names


@sweep("given", [{"suite": "x"}, {"dtypes": ["float8"]}, {"names": ["x"]}, {"checkouts": {"x": "y"}}])
def test_a_name_that_does_not_exist_is_refused(given):
    with pytest.raises(InputError):
        audit.audit(**given)


def test_the_exit_code_is_that_of_the_worst_row():
    agrees, known = (
        judged(reported()),
        judged(LISTED, UNDERFLOWS),
    )
    new, missing = judged(reported("designed-0.3/value")), replace(agrees, status="missing")
    stale = replace(agrees, status="stale")
    groups = ([agrees, known, missing], [agrees, new], [agrees, stale], [missing], [])
    assert [audit.exit_code(rows) for rows in groups] == [0, 1, 1, 5, 5]


def test_missing_packages_are_listed_with_their_command():
    rows = audit.audit(["paco", "supcontrast"])
    assert [row.status for row in rows] == ["missing", "missing"]
    text = " ".join(audit_page.page_of(rows).text().split())
    assert "paco not installed: git clone https://github.com/dvlab-research/Parametric-Contrastive-Learning" in text
    assert "2 not installed" in text


def test_the_page_fits_a_terminal():
    rows = [
        judged(LISTED, replace(UNDERFLOWS, reason="word " * 40)),
        judged(reported("designed-0.3/value")),
        *audit.audit(["paco"]),
    ]
    text = audit_page.page_of(rows).text()
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("optax 0.2.8\n  optax-ntxent  nt_xent  float64  1 of 2 differ  known\n    exp-underflows\n")


def test_the_markdown_has_a_row_for_each_target_and_a_column_for_each_dtype():
    both = [judged(reported()), judged(reported("designed-0.3/value"), dtype="float32")]
    lines = audit_page.published(both).written("markdown").splitlines()
    assert "| target | release | loss | float64 | float32 |" in lines
    assert "| `optax-ntxent` | optax 0.2.8 | `nt_xent` | agrees, 2 cases | new, 1 of 2 differ |" in lines


def test_the_record_is_json():
    assert json.loads(json.dumps(audit.record([judged(reported())])))["rows"][0]["status"] == "agrees"


@pytest.mark.parametrize(
    ("named", "training", "words"),
    [
        ("", {}, ("right", "right")),
        ("a+value-times-ranks", {"right": ("gradient",)}, ("W times the right one", "right")),
        ("b", {"right": ("value",), "angle": (0.0, 1e-9), "length": (0.5, 0.5)}, ("right", "0.5 times the right one")),
        (
            "c",
            {"right": (), "angle": (0.0, 60.0), "length": (0.4, 1.6)},
            ("another", "cosine 0.5 to 1 with the right one, 0.4 to 1.6 times its length"),
        ),
        ("d", {"right": ("value",), "angle": None}, ("right", "none")),
    ],
)
def test_a_row_on_ranks_says_what_training_gets(named, training, words):
    failing = ["designed-0.3/grad.z1"] if named else []
    report = replace(reported(*failing, diagnosis=[named] if named else []), training=training)
    row = on_ranks("lightly-ntxent-2-ranks-gather_distributed", report)
    assert audit_page.words_of_training(row) == words
    assert row.status == ("new" if named else "agrees")
    command = "nceref verify lightly-ntxent --init gather_distributed=True --ranks 2 --suite quick"
    assert row.command == f"{command} --temperatures 0.0001"
    page = audit_page.published_on_ranks([row, replace(row, status="missing")])
    line = page.written("markdown").splitlines()[-1]
    shown = f"`{named}`" if named else "nothing"
    cells = ("`lightly-ntxent`", "`gather_distributed=True`", "lightly 1.6.0", *words, shown)
    assert line == "| " + " | ".join(cells) + " |"


def on_ranks(name, report):
    (entry,) = audit.released().chosen([name])
    return audit.row_of(ManifestResult(audit.in_format(entry, "quick", "float64"), report))


def test_what_is_known_on_ranks_is_known_there_alone():
    wrong = reported("2-ranks/designed-0.3/grad.image", diagnosis=["gradient-divided-by-ranks"])
    ways = ("", "-local_loss", "-gather_with_grad")
    rows = [on_ranks(f"open-clip-clip-2-ranks{way}", each) for way in ways for each in (wrong, reported())]
    assert [row.status for row in rows] == ["known", "stale", "stale", "stale", "new", "agrees"]
    (entry,) = audit.released().chosen(["open-clip-clip"])
    assert audit.row_of(ManifestResult(audit.in_format(entry, "standard", "float64"), wrong)).status == "new"


def test_a_target_in_one_format_has_the_expected_failures_of_that():
    (entry,) = audit.released().chosen(["optax-ntxent"])
    one = {dtype: audit.in_format(entry, "standard", dtype) for dtype in ("float64", "float32", "bfloat16")}
    assert list(one["float64"].expected) == ["*-0.0001/grad.*.finite", "*-0.001/grad.*.finite"]
    assert "extreme-*/*" in one["float32"].expected
    assert not one["bfloat16"].expected
    # The report has what fails as it is, so that it is explained.
    assert one["float64"].target.options == {"dtype": "float64", "suite": "standard", "temperatures": 1e-4}
