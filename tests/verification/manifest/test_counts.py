"""The numbers of checks: what counts as one, what is lost, and the sentences of a run that makes fewer."""

from pathlib import Path

import pytest
from programs.project import LOSSES

from nceref.cases.records import Result
from nceref.verification.manifest.checks import checks_of
from nceref.verification.manifest.counts import KINDS, count_checks, in_words, lost_checks, total, why_lost
from nceref.verification.manifest.read import read_manifest
from nceref.verification.manifest.run import left_out, verify_manifest

pytestmark = pytest.mark.usefixtures("in_this_process")
# The gradient is written out by hand: of the mean of log-sum-exp minus the diagonal, row by row.
GRADED = """
WHOLE = True


def unit_backward(x, gradient):
    length = np.linalg.norm(x, axis=1, keepdims=True)
    u = x / length
    return (gradient - u * np.sum(u * gradient, axis=1, keepdims=True)) / length


def graded(queries, keys, temperature):
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
    s = q @ k.T / temperature
    terms = np.exp(s - s.max(axis=1, keepdims=True))
    slopes = (terms / terms.sum(axis=1, keepdims=True) - np.eye(len(q))) / len(q)
    value = info_nce(queries, keys, temperature)
    if not WHOLE:
        return value
    return value, {
        "queries": unit_backward(queries, slopes @ k / temperature),
        "keys": unit_backward(keys, slopes.T @ q / temperature),
        "temperature": -np.sum(slopes * s) / temperature,
    }
"""
TABLE = """\
[[target]]
name = "{name}"
target = "losses.py:graded"
loss = "info_nce"
suite = "{suite}"
dtypes = {dtypes}
checks = {checks}
calls = 0
"""


def result(case, quantity, status):
    return Result(f"{case}/{quantity}", case, quantity, status, None, None, None, "because")


def test_a_check_is_a_quantity_of_a_case_that_was_judged():
    results = [
        result("a", "value.finite", "pass"),
        result("a", "value", "pass"),
        # Not finite is judged too.
        result("b", "value.finite", "fail"),
        result("b", "value", "skip"),
        result("c", "value", "skip"),
        result("a", "grad.x", "xfail"),
        result("a", "grad.y", "xpass"),
        result("b", "grad.x", "skip"),
        result("a", "identity.scale", "error"),
        result("float32/a", "identity.scale", "pass"),
        result("a", "mode.again", "fail"),
        result("d", "behavior.refusal", "pass"),
        # Neither says how much was judged.
        result("a", "behavior.prints", "fail"),
        result("", "expected-failure", "fail"),
    ]
    made = count_checks(results)
    assert made == {"values": 2, "gradients": 2, "identities": 2, "modes": 1, "refusals": 1}
    assert list(made) == list(KINDS)
    assert in_words(made) == "2 values, 2 gradients, 2 identities, 1 mode, 1 refusal"
    assert total([made, {"modes": 1000}]) == {**made, "modes": 1001}
    assert count_checks([]) == total([]) == {}
    assert lost_checks({"values": 2, "gradients": 3, "identities": 9}, made) == {
        "gradients": "2 of 3 gradients",
        "identities": "2 of 9 identities",
    }
    assert lost_checks({"values": 1}, {}) == {"values": "0 of 1 value"}
    # One value more would be lost than were skipped for that reason.
    assert [why_lost("values", results, number) for number in (2, 3)] == ["because", ""]
    assert why_lost("modes", results, 1) == ""


@pytest.fixture
def verified(tmp_path, monkeypatch):
    """A function that verifies a manifest with one target, whose report and problems it returns."""
    monkeypatch.chdir(tmp_path)

    def verified(whole=True, checks="{}", more="", **options):
        (tmp_path / "losses.py").write_text(LOSSES + GRADED.replace("WHOLE = True", f"WHOLE = {whole}"))
        table = {"name": "graded", "suite": "quick", "dtypes": '["float64"]', **options}
        (tmp_path / "nceref.toml").write_text(TABLE.format(checks=checks, **table) + more)
        (only,) = verify_manifest(read_manifest("nceref.toml"))
        return only

    return verified


def table_of(numbers):
    return "{" + ", ".join(f"{kind} = {number}" for kind, number in numbers.items()) + "}"


WRITTEN = {"values": 28, "gradients": 84, "identities": 4, "modes": 5}


@pytest.mark.machine
def test_a_loss_that_no_longer_returns_its_gradients_is_too_little(verified):
    whole = verified(checks=table_of(WRITTEN))
    assert (whole.report.exit_code, whole.report.verdict, whole.problems) == (0, "conforms", ())
    assert whole.checks == WRITTEN
    # A newer version may check more.
    assert verified(checks="{values = 1, refusals = 0}").report.exit_code == 0
    # Nothing is remembered but what the manifest has.
    assert verified(whole=False).report.verdict == "value-only"
    lost = verified(whole=False, checks=table_of(WRITTEN))
    assert (lost.report.exit_code, lost.report.verdict) == (5, "inconclusive")
    judged = "0 of 84 gradients and 3 of 4 identities of the manifest were judged"
    assert lost.report.reason == f"too little was executed: {judged}"
    assert lost.problems == (
        "nceref.toml:7: 84 gradients were judged when the manifest was written, now 0 (skipped: the target returns no"
        " gradients); 4 identities, now 3; restore them, or if that is meant, nceref verify --update-checks writes the"
        " numbers anew",
    )
    assert lost.checks == {"values": 28, "identities": 3, "modes": 5}


@pytest.mark.machine
def test_the_numbers_are_those_of_all_formats(verified):
    both = {kind: 2 * number for kind, number in WRITTEN.items()}
    formats = '["float64", "float32"]'
    enough = verified(dtypes=formats, checks=table_of(both))
    assert (enough.report.exit_code, enough.checks) == (0, both)
    one = verified(checks=table_of(both))
    assert one.report.exit_code == 5
    assert "56 values were judged when the manifest was written, now 28; 168 gradients, now 84;" in one.problems[0]


@pytest.mark.machine
def test_a_loss_that_fails_goes_on_failing_and_no_failure_is_said_twice(verified):
    # What fails stays what it is, whatever else is lost.
    wrong = "set = {reduction = 'sum'}\n"
    for whole in (True, False):
        failing = verified(whole=whole, checks=table_of(WRITTEN), more=wrong)
        assert (failing.report.exit_code, failing.report.verdict, failing.problems) == (1, "differs", ())
    require = verified(whole=False, checks=table_of(WRITTEN), more="require_grad = true\n")
    assert (require.report.exit_code, require.problems) == (1, ())
    vanished = verified(checks=table_of(WRITTEN), more="init = {gone = 1}\n")
    assert (vanished.report.exit_code, len(vanished.problems)) == (4, 1)
    # Too few cases, and too few checks: the first reason stays.
    sized = verified(checks=table_of(WRITTEN), more="shape = [1, 3]\n")
    assert sized.report.exit_code == 5


def test_a_package_that_is_missing_leaves_out_no_target_whose_checks_are_counted(verified):
    more = 'needs = "no-such-package"\n'
    missing = verified(checks=table_of(WRITTEN), more=more)
    why = "nceref.toml:9: graded is not judged: no-such-package is not installed: pip install no-such-package"
    assert (missing.report.exit_code, missing.report.verdict) == (5, "inconclusive")
    parts = "0 of 28 values and 0 of 84 gradients and 0 of 4 identities and 0 of 5 modes"
    assert missing.report.reason == f"{why}; {parts} of the manifest were judged"
    assert missing.problems[0].startswith("nceref.toml:7: 28 values were judged when the manifest was written, now 0;")
    manifest = read_manifest("nceref.toml")
    assert left_out(manifest) == {}
    (check,) = checks_of(manifest)
    with pytest.raises(AssertionError, match="no-such-package is not installed"):
        check.run()
    text = manifest.text.replace(f"checks = {table_of(WRITTEN)}\n", "")
    Path("nceref.toml").write_text(text)
    assert list(left_out(read_manifest("nceref.toml"))) == ["graded"]


@pytest.mark.machine
def test_tests_of_a_manifest_have_one_about_its_numbers(verified):
    def outcome():
        (check,) = [each for each in checks_of(read_manifest("nceref.toml")) if each.name == "graded-checks"]
        assert check.line == 7
        try:
            check.run()
        except AssertionError as failure:
            return str(failure)
        except pytest.skip.Exception as skipped:
            return f"skipped: {skipped}"
        return "passed"

    verified(checks=table_of(WRITTEN))
    assert outcome() == "passed"
    lost = verified(whole=False, checks=table_of(WRITTEN))
    assert outcome() == f"{lost.report.reason}\n{lost.problems[0]}"
    failing = verified(whole=False, checks=table_of(WRITTEN), more="set = {reduction = 'sum'}\n")
    assert outcome() == f"skipped: {failing.report.reason}"
    verified()
    assert [each.name for each in checks_of(read_manifest("nceref.toml")) if each.name == "graded-checks"] == []
