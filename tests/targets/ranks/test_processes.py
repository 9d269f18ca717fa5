"""Targets of PyTorch on ranks, a process each: right ones, and what fails on a single rank."""

import importlib
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import nceref
from nceref.testing import Check, Target

pytest.importorskip("torch", reason="torch is not installed")

HERE = Path(__file__).parent / "on_ranks.py"


def verified(name, **options):
    return nceref.verify(f"{HERE}:{name}", "clip", **{"suite": "quick", "ranks": 2, "timeout": 20, **options})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("right", {"ranks": (2, 3)}),
        ("right", {"dtype": ("float64", "float32")}),
        ("Loss", {}),
        ("by_functional", {"case": ["designed-0.3", "designed-0.07"]}),
        ("placed", {"call": "f(image, text, logit_scale, (rank, world_size))"}),
        ("right", {"value": "each"}),
        ("summed", {"value": "sum", "sync": "sum"}),
        ("on_rank_0", {"value": "rank0"}),
        ("uneven", {"shards": "3,1"}),
    ],
)
def test_a_right_loss_conforms(name, options):
    report = verified(name, **options)
    assert report.ok, str(report)
    assert report.verdict == "conforms"
    assert report.scope.ranks == (1, *([2] if options.get("ranks") is None else options["ranks"]))
    assert "2-rank" in str(report)


def test_a_check_runs_on_its_number_of_ranks(monkeypatch):
    monkeypatch.syspath_prepend(HERE.parent)
    programs = importlib.import_module("on_ranks")
    for ranks in (1, 2):
        Check("", "quick", ranks)(Target(programs.right, "clip"))
    with pytest.raises(AssertionError, match="gradient-divided-by-ranks"):
        Check("", "quick", 2)(Target(programs.without_gradient, "clip"))


@pytest.mark.parametrize(("other", "verdict"), [("right", "conforms"), ("without_gradient", "differs")])
def test_the_mix_of_two_losses(other, verdict):
    report = verified("right", added=f"{HERE}:{other}:0.5")
    assert report.verdict == verdict
    if verdict == "differs":
        assert report.diagnosis[0].id == "mix-depends-on-ranks"
        assert "1/2 times: the weight 0.5 counts as 1/4" in report.diagnosis[0].sentence


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("raises", ["raises ValueError: rank 1 has no text (on_ranks.py", "on rank 1 of 2; rank 0 is in all_gather"]),
        ("dies", ["ends the process with exit code 7 on rank 1 of 2"]),
        ("hangs", ["within 3 s (--timeout); it is in all_gather (on_ranks.py", "on rank 0 of 2; rank 1 has returned"]),
        ("sleeps", ["it is in on_ranks.py"]),
    ],
)
def test_what_fails_on_one_rank_names_it(name, named):
    report = verified(name, timeout=3, case=["designed-0.3", "designed-0.07"])
    assert report.exit_code == 4
    assert all(words in report.reason for words in named)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("not_a_number", "a value that is not finite on rank 1 of 2"),
        ("wrong_shape", "returns shape (3,), but the reduction 'mean' asks for one number"),
    ],
)
def test_a_rank_without_a_number_is_named(name, named):
    report = verified(name, case=["designed-0.3", "designed-0.07"])
    assert report.exit_code == 1
    assert named in report.reason
    assert "on rank 1 of 2" in report.reason
    ranks = json.loads(report.to_json())["ranks"]
    assert [(each["world_size"], each["rank"], each["right"]) for each in ranks] == [(2, 0, True), (2, 1, False)]
    assert {*ranks[1]["not_finite"], *ranks[1]["trouble"]} == {"designed-0.3", "designed-0.07"}
    _, *suites = ET.fromstring(report.to_junit())
    assert [suite.get("failures") for suite in suites] == ["0", "1"]
    properties = {p.get("name"): p.get("value") for p in suites[1].find("properties")}
    assert (properties["world_size"], properties["rank"]) == ("2", "1")


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("without_gradient", "gradient-divided-by-ranks"),
        ("twice_without_gradient", "directions-summed+gradient-divided-by-ranks"),
    ],
)
def test_what_is_wrong_between_ranks_is_named(name, id):
    report = verified(name)
    assert report.diagnosis[0].id == id
    assert "on all 27 cases of 2 ranks, and as a check on all 27 cases of 3 ranks" in report.diagnosis[0].sentence
