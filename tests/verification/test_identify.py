"""Which loss of the family a target is."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import nceref
from nceref.cli import nceref as cli
from nceref.verification import identify
from nceref.verification.report import Report

PLAIN = str(Path(__file__).parents[1] / "programs" / "plain.py")


def unwrapped(result):
    """The output on one line: where its lines break depends on how long the path of the target is."""
    return " ".join(result.output.split())


@pytest.fixture
def few_losses(monkeypatch):
    """Identify tries three losses, one of which has other inputs, instead of all."""
    some = {name: nceref.get_loss(name) for name in ("alignment", "uniformity", "info_nce")}
    monkeypatch.setattr(identify, "all_losses", lambda: some)


@pytest.mark.usefixtures("few_losses")
def test_identify_says_why_nothing_could_be_run():
    result = CliRunner().invoke(cli, ["identify", f"{PLAIN}:raises"])
    assert result.exit_code == 4
    assert "no such luck" in unwrapped(result)
    result = CliRunner().invoke(cli, ["identify", f"{PLAIN}:infonce"])
    assert "has no 'infonce'; did you mean 'info_nce'?" in unwrapped(result)
    assert "fits the inputs" not in result.output


@pytest.mark.usefixtures("few_losses")
def test_identify_names_the_loss_and_the_difference():
    result = CliRunner().invoke(cli, ["identify", f"{PLAIN}:doubled"])
    assert result.exit_code == 1, result.output
    assert "it is info_nce with outer-factor-2" in unwrapped(result)
    assert CliRunner().invoke(cli, ["identify", f"{PLAIN}:info_nce"]).exit_code == 0


def test_identify_tries_every_loss_whose_inputs_fit(monkeypatch):
    tried = []

    def verify_with(target, loss, **options):
        tried.append(loss)
        return Report(target, loss, "conforms" if loss == "clip" else "differs", loss != "clip", "")

    monkeypatch.setattr(identify, "verify_with", verify_with)
    result = identify.candidates("anything.py:f")
    assert tried == list(nceref.all_losses())
    assert len(result) == len(tried)
    assert (result[0].loss, result[0].report.ok) == ("clip", True)


def test_the_loss_that_a_target_is_named_after_is_shown_however_far_it_is(monkeypatch):
    monkeypatch.setattr(identify, "SHOWN", 1)
    tried = tuple(
        identify.Candidate(loss, Report("my.py:f", loss, "differs", 1, "")) for loss in ("clip", "dcl", "nce")
    )
    shown = identify.page_of("my.py:nce_loss", tried).text()
    assert ("clip" in shown, "dcl" in shown, "nce  " in shown) == (True, False, True)
    assert "1 more loss takes such inputs" in shown
