"""Whether two programs are one loss: as they are, up to a factor or a reduction, or with a setting of one of them."""

import json

import pytest
from programs import older

from nceref import get_loss
from nceref.verification.equal import DIFFERENT, EQUAL, NOT_JUDGED, equality

FILE = older.__file__
QUICK = {"suite": "quick"}
pytestmark = pytest.mark.usefixtures("in_this_process")


@pytest.fixture(autouse=True)
def no_costs(monkeypatch):
    """Time and memory of both programs are measured in test_against.py."""
    monkeypatch.setattr("nceref.verification.verifier.costs_of", lambda request, run: {})


def _slow(*given):
    return pytest.param(*given, marks=pytest.mark.slow(reason="another pair of programs, by the same steps"))


@pytest.mark.parametrize(
    ("first", "second", "code", "words"),
    [
        _slow("textbook", "textbook", EQUAL, "textbook equals textbook; no gradients were compared"),
        _slow("textbook", "twice", EQUAL, "twice equals textbook with an outer factor 2"),
        ("twice", "textbook", EQUAL, "textbook equals 1/2 times twice"),
        _slow("textbook", "summed", EQUAL, "summed equals textbook with the sum instead of the mean"),
        ("textbook", "with_margin", EQUAL, "with_margin(margin=0) equals textbook"),
        _slow("with_margin", "textbook", EQUAL, "with_margin(margin=0) equals textbook"),
        ("with_term", "twice_in_sums", EQUAL, "twice_in_sums equals 2 N times with_term"),
        _slow("twice_in_sums", "with_term", EQUAL, "with_term equals 1/(2 N) times twice_in_sums"),
        ("textbook", "of_raw_rows", DIFFERENT, "with rows that are not scaled to length 1"),
        _slow("textbook", "never", NOT_JUDGED, "not today"),
        ("never", "textbook", NOT_JUDGED, "never is no reference: "),
    ],
)
def test_two_programs_of_one_loss(first, second, code, words):
    found = equality(f"{FILE}:{first}", f"{FILE}:{second}", "alignment", **QUICK)
    assert (found.exit_code, found.report.target) == (code, f"{FILE}:{second}"), found.sentence
    assert words in found.sentence.replace(f"{FILE}:", "")


def test_programs_that_differ_in_size_are_equal_beside_a_limit_that_both_have(tmp_path):
    (tmp_path / "naive.py").write_text(NAIVE)
    found = equality(f"{tmp_path}/naive.py:mean", f"{tmp_path}/naive.py:total", **QUICK)
    assert found.exit_code == EQUAL, found.sentence
    assert found.sentence.endswith("naive.py:mean with the sum instead of the mean")
    own = equality("info_nce", f"{tmp_path}/naive.py:mean", **QUICK)
    assert own.sentence.endswith("no gradients were compared; it is not finite on 4 cases at low temperatures")


NAIVE = """
import numpy as np

def rows(queries, keys, temperature):
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
    e = np.exp(q @ k.T / temperature)
    return -np.log(np.diag(e) / e.sum(axis=1))

def mean(queries, keys, temperature):
    return rows(queries, keys, temperature).mean()

def total(queries, keys, temperature):
    return rows(queries, keys, temperature).sum()
"""


def test_losses_of_the_package_are_named_by_their_names():
    assert equality("alignment", f"{FILE}:textbook", **QUICK).exit_code == EQUAL
    known = equality("mnrl", "info_nce", **QUICK)
    assert known.sentence == "info_nce equals mnrl; no gradients were compared"
    assert known.identity == "it is InfoNCE: declared with negatives=None and hardness=0.0, holds on 86 cases"


def test_the_command_finds_the_loss_and_prints_the_answer(run, tmp_path, monkeypatch):
    few = {name: get_loss(name) for name in ("nt_xent", "alignment")}
    monkeypatch.setattr("nceref.verification.loss_search.all_losses", lambda: few)
    first, second, written = f"{FILE}:textbook", f"{FILE}:twice", tmp_path / "equal.json"
    code, out, _ = run("equal", first, second, "--suite", "quick", "--json", str(written))
    assert code == 0
    assert "textbook is alignment, whose numbers and bounds hold" in " ".join(out.split())
    record = json.loads(written.read_text(encoding="utf-8"))
    assert (record["exit_code"], record["report"]["loss"]) == (0, "alignment")
    assert record["report"]["diagnosis"][0]["id"] == "outer-factor-2"
    code, out, _ = run("equal", first, f"{FILE}:with_term", "--loss", "alignment", "--suite", "quick", "--calls", "0")
    assert code == 1
    assert out.startswith("DIFFERENT: ")
