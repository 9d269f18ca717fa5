"""A target against an older program: what it is known to be, or else its own numbers, is the reference."""

import json
import os
import shutil

import pytest
from programs import older

import nceref
from nceref.verification.verifier import verify_with

FILE = older.__file__
CASES = ("designed", "seven", "classes", "aligned", "opposed", "separated", "zero", "n17")
"""Several numbers of rows, and one case where the loss is undefined."""
QUICK = {"suite": "quick", "dtype": "float64", "case": CASES}
UNEXPLAINED = {"calls": 0}


@pytest.fixture(autouse=True)
def no_costs(monkeypatch, request):
    """Time and memory are measured where they are looked at, in the process of each program."""
    if request.node.name != test_the_command_finds_the_loss_and_prints_the_cost.__name__:
        request.getfixturevalue("in_this_process")
        monkeypatch.setattr("nceref.verification.verifier.costs_of", lambda request, run: {})


def verified(new, old, **options):
    """Two programs by name, in this process."""
    both = {"target": getattr(older, new), "against": getattr(older, old)}
    return verify_with(loss="alignment", measure=False, training=False, **{**both, **QUICK, **options})


def _slow(*given):
    return pytest.param(*given, marks=pytest.mark.slow(reason="another program, by the same steps"))


def test_an_old_program_that_is_the_loss_has_its_numbers_and_bounds():
    report = verified("twice", "textbook")
    assert report.exit_code == 1
    assert report.diagnosis[0].id == "outer-factor-2"
    assert "textbook is alignment, whose numbers and bounds hold" in report.environment["reference"]
    assert " ".join(str(report).split()).startswith("programs.older:twice against programs.older:textbook")


def test_what_an_old_program_departs_in_is_what_a_new_one_is_held_to():
    report = verified("twice_as_sums", "twice")
    assert report.verdict == "value-only", str(report)
    assert report.settings == {"factor": "outer-factor-2"}
    assert "twice is alignment with factor=outer-factor-2" in report.environment["reference"]
    wrong = verified("textbook", "twice")
    assert wrong.exit_code == 1
    first, second = (diagnosis.sentence for diagnosis in wrong.diagnosis)
    assert first == "your loss equals 1/2 times programs.older:twice, on 7 of 7 cases"
    assert second == "your loss equals alignment as it is, on 7 of 7 cases, which programs.older:twice is not"


def test_a_program_of_no_known_loss_is_the_reference_by_its_own_numbers():
    report = verified("with_term_rewritten", "with_term", **UNEXPLAINED)
    assert report.verdict == "conforms", str(report)
    assert {"value", "grad.x", "grad.y"} <= {r.quantity for r in report.results if r.status == "pass"}
    assert "computes in float64" in report.environment["reference"]
    assert verified("with_term_rewritten", "with_term", dtype="float32", **UNEXPLAINED).ok


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("three_times", "your loss equals 3 times"),
        _slow("over_rows", "your loss equals 1/N times"),
        ("half_a_gradient", "the gradient of y departs"),
        _slow("nearly", "the value departs"),
        ("of_seven_rows", "it shows where N = 7, and at no other N"),
        _slow("textbook", "your loss equals alignment as it is"),
        _slow("twice", "your loss equals alignment with an outer factor 2"),
    ],
)
def test_a_difference_from_it_is_named(name, words):
    report = verified(name, "with_term")
    assert report.exit_code == 1
    assert words in report.diagnosis[0].sentence, str(report)


def test_where_the_old_program_has_no_number_nothing_is_compared():
    for old, why in (("not_finite", "is not finite"), ("raising", "raises ValueError: no batch of seven")):
        report = verified("with_term_rewritten", old, **UNEXPLAINED)
        assert report.verdict == "conforms", str(report)
        skipped = [r.why for r in report.results if r.status == "skip" and f"{old}, the reference, {why}" in r.why]
        assert skipped, str(report)


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("random", "it gives another value when it is called again"),
        ("rows", "on 13 cases"),
        ("nothing", "has no 'nothing'"),
    ],
)
def test_what_is_no_reference_is_no_difference_of_the_loss(old, words):
    report = verified("textbook", "textbook", against=getattr(older, old, f"{FILE}:{old}"))
    assert report.exit_code == 4
    assert f":{old} is no reference: " in report.reason
    assert words in report.reason


def test_where_the_loss_is_undefined_both_answers_are_told_apart():
    # A row of zeros has no direction.
    report = verified("zeros_as_ones", "zeros_as_halves", **UNEXPLAINED)
    assert report.exit_code == 1
    assert "where alignment is undefined," in report.reason
    assert "zeros_as_halves returns 0.5, and" in report.reason
    told = verified("zeros_as_ones", "textbook", **UNEXPLAINED)
    assert told.exit_code == 0
    assert "textbook returns NaN, and" in told.environment["undefined"]
    assert told.environment["undefined"] in " ".join(str(told).split()).replace("Where", "where")


def test_a_loss_is_no_older_program():
    with pytest.raises(nceref.InputError, match="give --loss nt_xent"):
        verified("textbook", "textbook", against="nt_xent")


def test_constants_that_both_have_fixed_must_be_the_same():
    report = verified("new", "old", **UNEXPLAINED)
    assert report.exit_code == 1
    # A free one is held to that of the old program.
    assert verified("textbook", "old", **UNEXPLAINED).settings == {"exponent": 2.0}


def test_the_command_finds_the_loss_and_prints_the_cost(run, tmp_path, monkeypatch):
    few = {name: nceref.get_loss(name) for name in ("nt_xent", "alignment")}
    monkeypatch.setattr("nceref.verification.loss_search.all_losses", lambda: few)
    name, written = f"{FILE}:textbook", tmp_path / "report.json"
    code, out, _ = run("verify", name, "--against", name, "--suite", "quick", "--json", str(written))
    assert code == 0
    assert f"{name} is alignment" in " ".join(out.split())
    assert ("cost of a call with 1024 rows" in out) == os.access("/proc/self/clear_refs", os.W_OK)
    record = json.loads(written.read_text(encoding="utf-8"))
    assert (record["loss"], record["environment"]["against"]) == ("alignment", name)


def test_a_manifest_names_the_old_program(tmp_path, monkeypatch, run):
    table = '[[target]]\ntarget = "older.py:textbook"\nagainst = "older.py:textbook"\nloss = "alignment"\n'
    (tmp_path / "of").mkdir()
    (tmp_path / "of/nceref.toml").write_text(f'{table}suite = "quick"\n', encoding="utf-8")
    shutil.copy(FILE, tmp_path / "of")
    # Files are named from the manifest's folder.
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("verify", "--manifest", "of/nceref.toml")
    assert code == 0
    assert "textbook is alignment, whose numbers" in " ".join(out.split())
