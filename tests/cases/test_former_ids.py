"""What was released goes on working: every id is still there, or its successor is used in its place, with a warning."""

import json

import pytest
from programs import plain
from sweep import sweep

from nceref.cases import former_ids
from nceref.cases.former_ids import FORMER, FormerId, current
from nceref.diagnosis.intended import intentions
from nceref.errors import RenamedWarning
from nceref.losses import get_loss
from nceref.testing import Target, parametrize_with_checks
from nceref.verification.verifier import verify
from tools import released_ids

RELEASED = json.loads(released_ids.LIST.read_text(encoding="utf-8"))
PLANTED = {
    "twice-too-large": FormerId("outer-factor-2", "0.2.0"),
    "drawn-0.3": FormerId("designed-0.3", "0.2.0"),
    "loss": FormerId("value", "0.2.0"),
}


@pytest.fixture
def planted(monkeypatch):
    monkeypatch.setattr(former_ids, "FORMER", PLANTED)


def test_what_was_released_is_there_or_has_a_successor():
    present = {id for ids in released_ids.present().values() for id in ids}
    for ids in RELEASED.values():
        for id in (id for kind in ids.values() for id in kind):
            assert current(id) in present, f"{id} was released: it must have an entry in FORMER"
    assert not FORMER.keys() & present
    assert min(map(len, RELEASED["0.1.0"].values())) > 50


def test_a_release_is_written_once(tmp_path):
    path = tmp_path / "ids.json"
    path.write_text('{"0.1.0": {}}')
    released_ids.main(path, "0.2.0")
    assert json.loads(path.read_text()) == {"0.1.0": {}, "0.2.0": released_ids.present()}
    with pytest.raises(SystemExit, match=r"has the ids of 0\.2\.0: they were released, and stay"):
        released_ids.main(path, "0.2.0")


@sweep(
    ("text", "now"),
    [
        ("twice-too-large", "outer-factor-2"),
        ("twice-too-large=3", "outer-factor-2=3"),
        ("drawn-0.3/loss", "designed-0.3/value"),
        ("f-drawn-0.3-loss", "f-designed-0.3-value"),
        ("*/loss.finite", "*/value.finite"),
        ("drawn-0.35/my_loss", "drawn-0.35/my_loss"),
        ("1drawn-0.3", "1drawn-0.3"),
    ],
)
def test_an_id_is_replaced_where_it_stands_whole(text, now):
    assert current(text, PLANTED) == now


@pytest.mark.usefixtures("planted")
def test_a_former_convention_is_intended_with_a_warning():
    loss = get_loss("info_nce").declaration
    with pytest.warns(RenamedWarning, match=r"`twice-too-large` is called `outer-factor-2` since 0\.2\.0: write that"):
        assert intentions(loss, {"factor": "twice-too-large"}) == {"factor": "outer-factor-2"}
    assert intentions(loss, {"factor": "outer-factor-2"}) == {"factor": "outer-factor-2"}


@pytest.mark.usefixtures("planted")
def test_former_ids_of_cases_and_results_work_in_a_run():
    given = {"suite": "quick", "case": "drawn-0.3", "expected_failures": {"drawn-0.3/loss": "twice"}}
    with pytest.warns(RenamedWarning) as warned:
        report = verify(plain.doubled, "info_nce", **given)
    assert {str(one.message).partition(" ")[0] for one in warned} == {"`drawn-0.3`", "`loss`"}
    held = {r.id: r.status for r in report.results if r.status in ("xfail", "fail")}
    assert held["designed-0.3/value"] == "xfail"
    assert {r.case for r in report.results if r.quantity == "value"} == {"designed-0.3"}


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("entry", ["doubled-drawn-0.3-loss", "*-drawn-0.3-loss", "doubled-drawn-0.3"])
def test_former_ids_work_in_a_test_suite(entry):
    target = Target(plain.doubled, "info_nce")
    with pytest.warns(RenamedWarning):
        parameters = parametrize_with_checks([target], suite="quick", expected_failures={entry: "twice"}).mark.args[1]
    by_id = {one.id: one.values[1] for one in parameters}
    assert by_id["doubled-value"].members[0].expectation.reason == "twice"
    assert not [id for id in by_id if "expected-failure" in id]


@pytest.mark.usefixtures("planted")
@pytest.mark.filterwarnings("default::FutureWarning")
def test_the_command_prints_the_warning_as_a_sentence(run):
    words = (
        f"verify {plain.__file__}:doubled --loss info_nce --suite quick --case drawn-0.3 --set factor=twice-too-large"
    )
    status, _, error = run(*words.split())
    assert status == 0
    assert error.splitlines() == [
        f"Warning: `{old}` is called `{PLANTED[old].new}` since 0.2.0: write that"
        for old in ("twice-too-large", "drawn-0.3")
    ]
