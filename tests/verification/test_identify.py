"""Which loss of the family a target is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from programs import plain

import nceref
from nceref.cases.records import Result
from nceref.cli import nceref as cli
from nceref.diagnosis.probe import composed
from nceref.errors import TargetError
from nceref.targets.search import Search
from nceref.verification import identify, loss_search
from nceref.verification.report import Report
from nceref.verification.trials import REFUSED, RIGHT, RUNS, until_ended

pytestmark = pytest.mark.usefixtures("in_this_process")
PLAIN = str(Path(__file__).parents[1] / "programs" / "plain.py")


def unwrapped(result):
    """The output on one line: where its lines break depends on how long the path of the target is."""
    return " ".join(result.output.split())


@pytest.fixture
def few_losses(monkeypatch):
    """Identify tries three losses, one of which has other inputs, instead of all."""
    some = {name: nceref.get_loss(name) for name in ("nt_xent", "uniformity", "info_nce")}
    monkeypatch.setattr(loss_search, "all_losses", lambda: some)


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


@pytest.mark.usefixtures("few_losses")
def test_every_loss_is_tried_and_the_nearest_are_explained():
    search = loss_search.LossSearch(plain.info_nce)
    reached = {trial.loss: trial.reached for trial in search.as_declared()}
    assert reached == {"info_nce": RIGHT, "nt_xent": RUNS, "uniformity": REFUSED}
    found = identify.candidates(plain.doubled)
    assert [(one.loss, len(one.report.diagnosis)) for one in found] == [("info_nce", 1), ("nt_xent", 0)]
    assert found[1].report.reason == "the value fails on 3 of 3 cases"


@pytest.mark.usefixtures("few_losses")
def test_the_loss_that_is_right_but_for_a_factor_is_explained_first(monkeypatch):
    monkeypatch.setattr(loss_search, "_NEAREST", 1)
    for factor in (lambda q, tau: 2 * tau, lambda q, tau: len(q), lambda q, tau: 1 / tau):
        found = identify.candidates(lambda q, k, tau, factor=factor: factor(q, tau) * plain.info_nce(q, k, tau))
        assert (found[0].loss, len(found[0].report.diagnosis)) == ("info_nce", 1)


@pytest.mark.usefixtures("few_losses")
def test_what_is_right_in_part_is_that_loss_and_a_constant_is_none():
    def of_even(queries, keys, temperature):
        if len(queries) % 2:
            raise ValueError
        return plain.info_nce(queries, keys, temperature)

    found = identify.candidates(of_even)
    assert identify.page_of("f", found).text().startswith("f: it is info_nce wherever it returns a number\n")
    assert "it is right where N is a multiple of 2, and at no other N above 1 that was tried" in found[0].report.reason
    with pytest.raises(TargetError, match="returns the same number on 3 of 3 cases, as no loss does"):
        identify.candidates(lambda queries, keys, temperature: 1.0)


@pytest.mark.usefixtures("few_losses")
def test_the_command_passes_the_arrays_that_were_passed():
    def doubled(queries, keys, negatives, temperature):
        return 2 * nceref.losses.info_nce(queries, keys, negatives, temperature=temperature)

    found = identify.candidates(doubled)
    page = identify.page_of("f", found, "nceref verify f").text()
    assert page.endswith("  nceref verify f --loss info_nce --set negatives=given\n")


@pytest.mark.usefixtures("few_losses")
def test_a_loss_whose_value_is_right_goes_before_one_that_explains_another_value():
    def with_half_a_gradient(queries, keys, temperature):
        value, grads = nceref.losses.info_nce.value_and_grad(queries, keys, temperature=temperature)
        return value, {name: grad / 2 for name, grad in grads.items()}

    found = identify.candidates(with_half_a_gradient)
    assert identify.page_of("f", found, "nceref verify f").text().startswith("f: its value is that of info_nce\n")
    results = {"value": "fail", "grad.queries": "pass"}
    wrong = [Result(name, "0", name, status, None, None, None, "") for name, status in results.items()]
    beside = replace(found[0].report, diagnosis=(), results=tuple(replace(r, status="pass") for r in wrong[:1]))
    explained = replace(found[0].report, results=tuple(wrong))
    assert loss_search.Candidate("a", beside).distance < loss_search.Candidate("b", explained).distance


@pytest.mark.usefixtures("few_losses")
def test_of_what_nothing_explains_no_other_call_is_named(monkeypatch):
    # It would look for a formula in vain.
    monkeypatch.setattr(composed, "EFFORT", 0)
    monkeypatch.setattr(identify, "_MEASURED", 1)
    found = identify.candidates(lambda views, temperature: stacked(views, temperature, np.sum(views**4)))
    page = identify.page_of("f", found, "nceref verify f").text()
    assert page.startswith("f: it is none of them\n")
    assert "--call" not in page


@pytest.mark.usefixtures("few_losses")
def test_a_pair_that_is_no_value_with_gradients_is_called_for_its_first_part():
    found = identify.candidates(lambda queries, keys, tau: (plain.info_nce(queries, keys, tau), queries @ keys.T))
    assert found[0].report.ok
    assert identify.record(found[0])["call"] == "f(queries, keys, tau=temperature)[0]"


@pytest.mark.usefixtures("few_losses")
def test_a_loss_that_its_name_does_not_say_is_pointed_out():
    page = identify.page_of("my.py:clip_loss", identify.candidates(plain.info_nce)).text()
    assert "its name says clip, which it is not: --loss clip says what differs" in page
    assert "its name" not in identify.page_of("my.py:info_nce", identify.candidates(plain.info_nce)).text()


STACKED = "f(np.stack([queries, keys], 1), temperature=temperature)"


def stacked(views, temperature, factor=1.0):
    if views.ndim < 3:
        raise ValueError
    return factor * plain.info_nce(views[:, 0], views[:, 1], temperature)


@pytest.mark.usefixtures("few_losses")
@pytest.mark.parametrize(("factor", "answer"), [(1, "info_nce"), (0.5, "info_nce with outer-factor-half")])
def test_where_no_loss_is_called_so_other_calls_are_tried(factor, answer):
    found = identify.candidates(lambda views, temperature: stacked(views, temperature, factor))
    assert identify.record(found[0])["call"] == STACKED
    page = identify.page_of("my.py:stacked", found, "nceref verify my.py:stacked").text()
    assert page.startswith(f"my.py:stacked: it is {answer}\n")
    assert f'it is called so:\n  --call "{STACKED}"' in page
    assert (f'--loss info_nce --call "{STACKED}"' in page) == (factor != 1)


@pytest.mark.usefixtures("few_losses")
def test_a_call_ends_at_the_first_wrong_case_and_those_of_a_loss_at_the_first_right_call():
    search = loss_search.LossSearch(lambda views, temperature: stacked(views, temperature))
    trials = list(search.with_calls(list(search.as_declared())))
    # Calls that another loss has shown to fail are not made again: which these are depends on the frameworks.
    *before, last = [trial.right for trial in trials if trial.loss == "info_nce"]
    assert (any(before), last) == (False, True)
    wrong = [trial for trial in trials if trial.ran and not trial.right]
    assert {len(trial.observations) for trial in wrong} == {1}


@pytest.mark.usefixtures("few_losses")
def test_other_calls_end_with_their_number_or_with_the_target():
    def raises(*given):
        raise ValueError

    def exits(a, b, c, d=None):
        raise ValueError if isinstance(a, np.ndarray) and a.ndim == 2 and d is None else SystemExit

    for target, most in ((raises, 10), (exits, 5000)):
        search = loss_search.LossSearch(target, search=Search(most))
        trials = list(until_ended(search.with_calls(list(search.as_declared()))))
        assert not any(trial.ran for trial in trials)
        assert (search.search.made == most) == (target is raises)
        assert ([t.trouble for t in trials].count("exits") == 1) == (target is exits)


def test_the_loss_that_a_target_is_named_after_is_shown_however_far_it_is(monkeypatch):
    monkeypatch.setattr(identify, "SHOWN", 1)
    tried = tuple(
        identify.Candidate(loss, Report("my.py:f", loss, "differs", 1, "")) for loss in ("clip", "dcl", "nce")
    )
    shown = identify.page_of("my.py:nce_loss", tried).text()
    assert ("clip" in shown, "dcl" in shown, "nce  " in shown) == (True, False, True)
    assert "1 more loss takes such inputs" in shown
