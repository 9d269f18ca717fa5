"""Whether two programs are one loss: as they are, up to a factor or a reduction, or with a setting of one of them."""

import json
import textwrap

import pytest

from nceref.verification.equal import DIFFERENT, EQUAL, NOT_JUDGED, equality

PROGRAMS = """
    import numpy as np

    def unit(z):
        return z / np.linalg.norm(z, axis=1)[:, None]

    def with_margin(queries, keys, temperature, margin=0.2, symmetric=False):
        s = unit(queries) @ unit(keys).T
        s = (s - margin * np.eye(len(s))) / temperature
        m = s.max(1)
        rows = np.log(np.exp(s - m[:, None]).sum(1)) + m - np.diag(s)
        return rows.mean()

    def info_nce(queries, keys, temperature):
        return with_margin(queries, keys, temperature, 0.0)

    def summed(queries, keys, temperature):
        return len(keys) * info_nce(queries, keys, temperature)

    def half(queries, keys, temperature):
        return info_nce(queries, keys, temperature) / 2

    def without_positive(queries, keys, temperature):
        s = np.exp(unit(queries) @ unit(keys).T / temperature)
        return -np.log(np.diag(s) / (s.sum(1) - np.diag(s))).mean()

    def nothing(queries, keys, temperature):
        raise ValueError("not today")
"""
QUICK = {"suite": "quick"}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("equal") / "losses.py"
    path.write_text(textwrap.dedent(PROGRAMS), encoding="utf-8")
    return path


def _slow(*given):
    return pytest.param(*given, marks=pytest.mark.slow(reason="another pair of programs, by the same steps"))


@pytest.mark.parametrize(
    ("first", "second", "code", "words"),
    [
        _slow("info_nce", "info_nce", EQUAL, "info_nce equals info_nce; no gradients were compared"),
        _slow("info_nce", "half", EQUAL, "half equals info_nce with an outer factor 1/2"),
        ("half", "info_nce", EQUAL, "info_nce equals 2 times half"),
        _slow("info_nce", "summed", EQUAL, "summed equals info_nce with the sum instead of the mean"),
        ("info_nce", "with_margin", EQUAL, "with_margin(margin=0) equals info_nce"),
        _slow("with_margin", "info_nce", EQUAL, "with_margin(margin=0) equals info_nce"),
        ("info_nce", "without_positive", DIFFERENT, "the value fails on"),
        _slow("info_nce", "nothing", NOT_JUDGED, "not today"),
        ("nothing", "info_nce", NOT_JUDGED, "nothing is no reference: "),
    ],
)
def test_two_programs_of_one_loss(file, first, second, code, words):
    found = equality(f"{file}:{first}", f"{file}:{second}", "info_nce", **QUICK)
    assert (found.exit_code, found.report.target) == (code, f"{file}:{second}"), found.sentence
    assert words in found.sentence.replace(f"{file}:", "")


def test_the_loss_is_found_by_calls(file):
    assert equality(f"{file}:info_nce", f"{file}:info_nce", **QUICK).report.loss == "info_nce"


def test_losses_of_the_package_are_named_by_their_names(file):
    assert equality("info_nce", f"{file}:info_nce", **QUICK).exit_code == EQUAL
    known = equality("mnrl", "info_nce", **QUICK)
    assert known.sentence == "info_nce equals mnrl; no gradients were compared"
    assert known.identity == "it is InfoNCE: declared with negatives=None and hardness=0.0, holds on 86 cases"


def test_the_command_prints_the_answer(file, run):
    words = ("equal", f"{file}:info_nce", f"{file}:half", "--loss", "info_nce", "--suite", "quick")
    code, out, _ = run(*words)
    assert code == 0
    page = " ".join(out.split())
    assert page.startswith("EQUAL: ")
    assert "info_nce is info_nce, whose numbers and bounds hold" in page
    record = json.loads(run(*words, "--json")[1])
    assert record["exit_code"] == 0
    assert record["report"]["diagnosis"][0]["id"] == "outer-factor-half"
    code, out, _ = run("equal", f"{file}:info_nce", f"{file}:without_positive", *words[3:])
    assert code == 1
    assert out.startswith("DIFFERENT: ")
