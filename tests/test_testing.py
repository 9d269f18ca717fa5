"""`nceref.testing`: an assertion, and about ten pytest cases for a target."""

import re
import warnings
from functools import partial
from pathlib import Path

import pytest
from programs import plain
from sweep import sweep

from nceref import testing
from nceref.cases.expected_failures import ExpectedFailure
from nceref.cases.records import Result
from nceref.errors import InputError, OneValueWarning
from nceref.targets.process.child import ChildRunner
from nceref.testing import Check, Target, assert_conforms, checks, parametrize_with_checks
from nceref.verification.conformance import verification
from nceref.verification.conformance.expected import expected_failures_of
from nceref.verification.conformance.failure_line import failure_line
from nceref.verification.conformance.target import former_name
from nceref.verification.explain import ExplainedDifference
from nceref.verification.report import Report

RIGHT = Target(plain.with_gradients, "info_nce", "right")
WRONG = Target(plain.keys_detached, "info_nce", "wrong", {"framework": "numpy"})
FILE = Path(plain.__file__)
# One sample, and samples that are all alike, have no gradient that could be missing.
ZERO = ("single-0.3", "collapsed-0.3", "collapsed-0.01")


def parameters(targets, **options):
    return parametrize_with_checks(targets, suite="quick", **options).mark.args[1]


def outcome(check, target):
    """What pytest would make of a check: a word, and the message."""
    try:
        check(target)
    except (AssertionError, pytest.skip.Exception, pytest.xfail.Exception) as raised:
        return {pytest.skip.Exception: "skipped", pytest.xfail.Exception: "xfailed"}.get(type(raised), "failed"), str(
            raised
        )
    return "passed", ""


def outcomes(parameters):
    return {p.id: outcome(p.values[1], p.values[0]) for p in parameters}


@pytest.fixture
def unexplained(monkeypatch):
    """Why a case fails takes longer to find than that it does."""
    monkeypatch.setattr("nceref.verification.verifier.explain", lambda *given: iter([ExplainedDifference()]))


def fresh(target):
    """The same target, not yet verified."""
    return Target(target.function, target.loss, target.name, target.options)


@parametrize_with_checks([RIGHT], suite="quick")
def test_a_right_target_passes_every_check(target, check):
    check(target)


def test_a_target_is_loaded_and_verified_once(monkeypatch, unexplained):
    # What other tests have collected, and not run.
    verification.stop_processes()
    verified, started = [], []
    verify_with, begin = verification.verify_with, ChildRunner._begin
    monkeypatch.setattr(verification, "verify_with", lambda *a, **k: verified.append(a[0]) or verify_with(*a, **k))
    monkeypatch.setattr(ChildRunner, "_begin", lambda self, words: started.append(self) or begin(self, words))
    # Functions of one file share a process, and the last of them ends it.
    targets = [fresh(RIGHT), (f"{FILE}:with_gradients", "info_nce"), (f"{FILE}:keys_detached", "info_nce")]
    results = outcomes(parameters(targets))
    assert len(verified) == 3 < len(results) / 5
    assert len(started) == 1
    assert not started[0].running
    assert not verification._PROCESSES
    failed = {id: text for id, (word, text) in results.items() if word == "failed"}
    assert set(failed) == {"keys_detached-whole-run", "keys_detached-gradient-keys"}
    cases = [c.case for c in checks(RIGHT, "quick") if c.quantity == "grad.keys"]
    own = [case for case in cases if case not in ZERO]
    shown = f"fails on {len(own)} of {len(cases)} cases: {', '.join(own[:6])}, and {len(own) - 6} more"
    assert failed["keys_detached-gradient-keys"].splitlines()[1] == shown


def test_ids_are_readable():
    ids = [p.id for p in parameters([(plain.info_nce, "info_nce")])]
    assert ids == [
        f"info_nce-{name}"
        for name in (
            "value", "gradient-queries", "gradient-keys", "gradient-temperature", "identities", "repeated-calls",
            "memory-layouts", "whole-run",
        )
    ]  # fmt: skip
    singles = [str(check) for check in checks(Target(plain.info_nce, "info_nce"), "quick")]
    assert singles[:2] == ["designed-0.3-value", "designed-0.3-gradient-queries"]
    assert {"identity-scale", "mode-again"} < set(singles)
    assert len(set(singles)) == len(singles)
    ranks = parametrize_with_checks([(plain.info_nce, "info_nce")], ranks=(1, 2)).mark.args[1]
    assert [p.id for p in ranks] == ["info_nce-1-rank", "info_nce-2-ranks"]


class Module:
    def __repr__(self):
        return "Module(\n  (scale): 1\n)"

    def __call__(self, q, k, tau):
        return plain.info_nce(q, k, tau)


def test_names_of_targets_are_short_and_unique():
    same = "case"
    given = [
        Module(),
        Module(),
        partial(plain.by_sum),
        "my/losses.py:nt_xent",
        "package.module:Loss",
        "known",
        "cmd:./a/b",
    ]
    targets = [*((thing, "info_nce") for thing in given), Target(len, "info_nce", "two\nlines", {"case": [same]}),
               Target(len, "info_nce", "Module-2")]  # fmt: skip
    names = [p.id.removesuffix("-1-rank") for p in parametrize_with_checks(targets, ranks=[1]).mark.args[1]]
    assert names == ["Module", "Module-3", "by_sum", "nt_xent", "Loss", "known", "b", "two lines", "Module-2"]


JUDGED = [c for c in checks(WRONG, "quick") if c.quantity == "grad.keys" and c.case not in ZERO]


@sweep(
    "expected",
    [
        # By the id of a check, by that of a case as before, and by a function.
        {f"wrong-{check}": "known" for check in JUDGED},
        {"wrong-whole-run": "known", **{f"wrong-{check.case}": "known" for check in JUDGED}},
        lambda target, check: "known" if check in JUDGED else None,
    ],
)
def test_expected_failures(expected):
    assert {word for word, _ in outcomes(parameters([WRONG], expected_failures=expected)).values()} == {
        "passed",
        "xfailed",
    }


def test_expected_failures_of_a_target_itself():
    """They name results, as those of `verify`; one that passes fails the test that reads it, and the whole run."""
    options = {"framework": "numpy", "expected_failures": {"*/grad.keys": ExpectedFailure("known", "link")}}
    results = outcomes(parameters([Target(plain.keys_detached, "info_nce", "wrong", options)]))
    failed = {id: text for id, (word, text) in results.items() if word == "failed"}
    assert set(failed) == {"wrong-whole-run", "wrong-gradient-keys"}
    assert f"fails on {len(ZERO)} of " in failed["wrong-gradient-keys"]
    assert all(case in failed["wrong-gradient-keys"] for case in ZERO)
    assert "expected to fail (known, link), but it passes" in failed["wrong-gradient-keys"]
    options["expected_failures"] = {"*/grad.keys": ExpectedFailure("known", "link", strict=False)}
    results = outcomes(parameters([Target(plain.keys_detached, "info_nce", "wrong", options)]))
    assert {id: each for id, each in results.items() if each[0] != "passed"} == {
        "wrong-gradient-keys": ("xfailed", "known, link")
    }


@sweep(
    ("expected", "group", "passing"),
    [
        ({"wrong-*-gradient-keys": "known"}, "gradient-keys", [f"{case}-gradient-keys" for case in ZERO]),
        (["wrong-*-gradient-keys"], "gradient-keys", [f"{case}-gradient-keys" for case in ZERO]),
        ({"wrong-single-0.3": "known"}, "value", ["single-0.3-value"]),
        ({"wrong-designed-0.3-value": "known"}, "value", ["designed-0.3-value"]),
        ({"wrong-value": "known"}, "value", ["value"]),
        ({"wrong-memory-layouts": "known"}, "memory-layouts", ["memory-layouts"]),
        ({"wrong-identity-scale": "known"}, "identities", ["identity-scale"]),
    ],
)
def test_an_unexpected_pass_fails(expected, group, passing):
    results = outcomes(parameters([WRONG], expected_failures=expected))
    reason = "known" if isinstance(expected, dict) else "expected to fail"
    messages = {id: text for id, (word, text) in results.items() if word == "failed" and "but it passes" in text}
    assert set(messages) == {f"wrong-{group}"}
    lines = [line for line in messages[f"wrong-{group}"].splitlines() if "but it passes" in line]
    assert sorted(lines) == sorted(f"{name}: expected to fail ({reason}), but it passes" for name in passing)


def test_a_group_is_expected_to_fail_by_its_own_id():
    expected = {"wrong-gradient-keys": "known"}
    results = outcomes(parameters([WRONG], expected_failures=expected))
    assert {id: each for id, each in results.items() if each[0] != "passed"} == {
        "wrong-gradient-keys": ("xfailed", "known")
    }


def test_a_failure_that_is_not_listed_fails_its_group_and_is_named():
    left = JUDGED[-1]
    expected = {f"wrong-{check}": "known" for check in JUDGED if check != left}
    results = outcomes(parameters([WRONG], expected_failures=expected))
    failed = {id: text for id, (word, text) in results.items() if word == "failed"}
    assert set(failed) == {"wrong-gradient-keys", "wrong-whole-run"}
    lines = failed["wrong-gradient-keys"].splitlines()
    assert f"not among the expected failures: wrong-{left}; or all as wrong-gradient-keys" in lines
    assert lines[1] == f"fails on 1 of {len(JUDGED) + len(ZERO)} cases: {left.case}"


def of_one_layout(queries, keys, temperature):
    """Right for arrays whose rows lie together."""
    return plain.info_nce(queries, keys, temperature) * (1 if queries.flags.c_contiguous else 2)


@sweep("expected", [["wrong-whole-run"], ["wrong-whole*"], ["wrong-memory-layouts"], ["wrong-memory*"]])
def test_a_way_of_calling_may_fail_as_expected(expected):
    """Ways of calling had no ids of their own: who lists the whole run lists them."""
    target = Target(of_one_layout, "info_nce", "wrong")
    plainly = {id for id, (word, _) in outcomes(parameters([target])).items() if word == "failed"}
    assert plainly == {"wrong-memory-layouts", "wrong-whole-run"}
    results = outcomes(parameters([target], expected_failures=expected))
    assert "failed" not in {word for word, _ in results.values()}
    assert {id for id, (word, _) in results.items() if word == "xfailed"} - {"wrong-whole-run"} == {
        "wrong-memory-layouts"
    }


def test_what_names_no_check_or_cannot_be_loaded_fails_once_and_the_others_run():
    targets = [RIGHT, ("nowhere.py:f", "info_nce"), (plain.info_nce, "no such loss")]
    expected = {
        "right-nothing": "gone",
        "left-*": "gone",
        "f-whole-run": "known",
        "f-designed-0.3-value": "known",
        "nowhere.py:f-designed-0.3": "",
    }
    results = outcomes(parameters(targets, expected_failures=expected))
    failed = {id: text for id, (word, text) in results.items() if word == "failed"}
    assert list(failed) == [
        "f-whole-run", "info_nce-whole-run", "expected-failure-right-nothing", "expected-failure-left-*",
    ]  # fmt: skip
    for text, part in zip(failed.values(), ("nowhere.py", "no such loss", "'right-nothing'", "'left-*'"), strict=True):
        assert part in text
        assert "\n" not in text
    assert [id.partition("-")[0] for id, (word, _) in results.items() if word == "passed"] == ["right"] * 8


@sweep(
    "expected",
    [3, "right-whole-run", {"right-whole-run": 3}, {3: "reason"}, [3]],
)
def test_expected_failures_of_another_kind_are_refused(expected):
    with pytest.raises(InputError, match="expected_failures"):
        parametrize_with_checks([RIGHT], suite="quick", expected_failures=expected)


def test_an_entry_may_have_the_former_name_of_a_target():
    check = next(iter(checks(RIGHT, "quick")))
    for entry, of_case in (
        (f"losses.py:f-{check}", False),
        (f"losses.py:f-{check.case}", True),
        ("losses.py:*", False),
    ):
        expected = expected_failures_of({entry: "known"})
        assert expected.reason(RIGHT, check, ("f", former_name(Target("losses.py:f", "info_nce")))) == (
            "known",
            of_case,
        )
        assert not list(expected.unmatched())


def test_a_function_that_returns_no_reason_is_refused():
    with pytest.raises(InputError, match="reason or None"):
        parametrize_with_checks([RIGHT], suite="quick", expected_failures=lambda target, check: True)


def test_a_failure_is_short_and_explained_once():
    target = Target(plain.doubled, "info_nce")
    by_id = outcomes(parameters([target]))
    failed = [text for word, text in by_id.values() if word == "failed"]
    assert [id for id, (word, _) in by_id.items() if word == "failed"] == [
        "doubled-value", "doubled-identities", "doubled-whole-run",
    ]  # fmt: skip
    lines = failed[0].splitlines()
    assert lines[0] == "outer-factor-2: value off by 100 % at T = 0.3"
    assert lines[1].startswith("fails on 27 of 28 cases: designed-0.3, ")
    assert lines[2].startswith("designed-0.3/value: yours 2.839204417, reference ")
    assert len(lines) < 20
    page = (Path(__file__).parents[1] / "docs/tutorials/ci.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(E  .*?)```", page, re.DOTALL)
    assert [re.sub(r"^E +AssertionError: |^E {0,7}", "", line) for line in shown.splitlines()] == lines[:10]
    assert [(text.count("  fix "), text.count("if you mean it: ")) for text in failed] == [(1, 1), (0, 0), (0, 0)]
    assert all(text.endswith("the explanation is shown with the failure of value") for text in failed[1:])
    assert failed[-1].startswith("outer-factor-2: the value fails on 27 of 28 cases\n")
    # What stands there prints the page.
    assert lines[-1] == "the whole report: print(nceref.verify(doubled, loss='info_nce', suite='quick'))"
    with pytest.raises(AssertionError, match=r"(?s)^outer-factor-2: .*DIFFERS: .*first failures"):
        Check("", "quick")(fresh(target))


def test_what_has_no_gradients_is_skipped_with_the_reason():
    results = outcomes(parameters([(plain.info_nce, "info_nce")]))
    assert {(word, text) for id, (word, text) in results.items() if "gradient" in id} == {
        ("skipped", "the target returns no gradients")
    }
    assert {word for id, (word, _) in results.items() if "gradient" not in id} == {"passed"}


class Fixed:
    """A loss whose temperature is a power of what it should be."""

    def __init__(self, temperature=1.0):
        self.temperature = temperature

    def __call__(self, queries, keys):
        return plain.info_nce(queries, keys, self.temperature**2)


def test_a_scalar_that_an_object_keeps_is_warned_of_once():
    """With its class, or a function, the same loss differs."""
    words = "tested temperature at its one value 1, as the target is an object"
    for target in (Target(Fixed(), "info_nce"), Target(Fixed().__call__, "info_nce", options={"temperature": 1.0})):
        with pytest.warns(OneValueWarning, match=words) as warned:
            results = outcomes(parameters([target]))
        assert len(warned) == 1
        assert "failed" not in {word for word, _ in results.values()}
        assert words in str(verification.verification_of(target, "quick").report)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = outcomes(parameters([(Fixed, "info_nce"), RIGHT]))
    assert results["Fixed-value"][0] == "failed"


NUMBERS = {"status": "fail", "bound": 1e-14, "bits": 7.0, "why": "yours 1, reference 2"}


@sweep(
    ("result", "line"),
    [
        ({"quantity": "value", "error": 0.012, "size": 2.0}, "differs: value off by 0.6 % at T = 0.5"),
        ({"quantity": "grad.z1", "error": 3e-9, "size": 1.0}, "differs: gradient of z1 off by 3.0e-07 % at T = 0.5"),
        ({"quantity": "grad.z1", "error": 62.8, "size": 2.0}, "differs: gradient of z1 off by 3,140 % at T = 0.5"),
        ({"quantity": "grad.z1", "error": 0.3, "size": 0.0},
         "differs: gradient of z1 off by 0.3, where it must be 0, at T = 0.5"),
        ({"quantity": "value", "case": "seven", "error": 0.5, "size": 1.0}, "differs: value off by 50 % on seven"),
        ({"quantity": "value.finite", "why": "it is NaN"}, "differs: value: it is NaN at T = 0.5"),
        ({"quantity": "behavior.raises", "why": "raises KeyError"}, "raises: raises KeyError at T = 0.5"),
        ({"quantity": "value", "status": "xpass", "why": "expected, but"}, "differs: value: expected, but at T = 0.5"),
    ],
)  # fmt: skip
def test_a_failure_in_one_line(result, line):
    case = result.get("case", "designed-0.5")
    made = Result(**{"id": "", "case": case, "error": None, "size": None, **NUMBERS, **result})
    assert failure_line(Report("f", "info_nce", "differs", 1, ""), [made]) == line


def test_an_assertion_shows_the_report():
    assert_conforms(plain.with_gradients, "info_nce", suite="quick")
    with pytest.raises(AssertionError, match=r"^keys-detached: the value is right, .*\n\n(?s:.*)DIFFERS"):
        assert_conforms(plain.keys_detached, "info_nce", suite="quick")


def test_a_single_case_does_not_have_to_see_everything():
    Check("collapsed-0.3", "quick")(RIGHT)
    with pytest.raises(AssertionError, match="detached") as raised:
        Check("", "quick")(WRONG)
    # Pytest shows the line of the caller's test.
    assert all(entry.frame.f_locals["__tracebackhide__"] for entry in raised.traceback[1:])
    with pytest.raises(InputError, match=r"'collapsed-0\.4'"):
        Check("collapsed-0.4", "quick")(RIGHT)


class Unmarked:
    """Of a pytest without pytest-xdist."""

    @property
    def xdist_group(self):
        warnings.warn("unknown mark", pytest.PytestUnknownMarkWarning, stacklevel=2)


def test_the_checks_of_a_target_run_in_one_worker(monkeypatch, pytestconfig):
    groups = [mark.args for p in parameters([RIGHT, WRONG]) for mark in p.marks]
    in_use = pytestconfig.pluginmanager.hasplugin("xdist")
    assert groups == in_use * [(str(target),) for target in (RIGHT, WRONG) for test in range(8)]
    monkeypatch.setattr(pytest, "mark", Unmarked())
    assert testing._group("name") == []
