"""`nceref.testing`: an assertion, and one pytest case for every target and check."""

import pytest
from targets import plain

from nceref.errors import InputError
from nceref.testing import Check, Target, assert_conforms, checks, parametrize_with_checks
from nceref.verification.explain import ExplainedDifference

RIGHT = Target(plain.with_gradients, "info_nce", "right")
WRONG = Target(plain.keys_detached, "info_nce", "wrong", {"framework": "numpy"})


@parametrize_with_checks([RIGHT], suite="quick")
def test_a_right_target_passes_every_check(target, check):
    check(target)


@parametrize_with_checks(
    [WRONG],
    suite="quick",
    # One sample, and samples that are all alike, have no gradient that could be missing.
    expected_failures={f"wrong-{c}": "keys are detached" for c in checks(WRONG, "quick")
                       if str(c) not in ("single-0.3", "collapsed-0.3", "collapsed-0.01")},
)  # fmt: skip
def test_expected_failures_are_marked_and_strict(target, check, monkeypatch):
    # Why a case fails takes longer to find than that it does.
    monkeypatch.setattr("nceref.verification.verifier.explain", lambda *given: ExplainedDifference())
    check(target)


def test_an_assertion_shows_the_report():
    assert_conforms(plain.with_gradients, "info_nce", suite="quick")
    with pytest.raises(AssertionError, match="keys-detached"):
        assert_conforms(plain.keys_detached, "info_nce", suite="quick")


def test_ids_are_readable():
    mark = parametrize_with_checks([(plain.info_nce, "info_nce")], suite="quick").mark
    ids = [parameter.id for parameter in mark.args[1]]
    assert ids[0] == "info_nce-designed-0.3"
    assert ids[-1] == "info_nce-whole-run"


def test_a_check_for_each_number_of_ranks():
    mark = parametrize_with_checks([(plain.info_nce, "info_nce")], ranks=(1, 2)).mark
    assert [parameter.id for parameter in mark.args[1]] == ["info_nce-1-rank", "info_nce-2-ranks"]


def test_an_expected_failure_that_names_no_check_is_an_error():
    with pytest.raises(InputError, match="'right-nothing'"):
        parametrize_with_checks([RIGHT], suite="quick", expected_failures={"right-nothing": "gone"})


def test_a_single_case_does_not_have_to_see_everything():
    Check("collapsed-0.3", "quick")(RIGHT)
    with pytest.raises(AssertionError, match="detached"):
        Check("", "quick")(WRONG)
