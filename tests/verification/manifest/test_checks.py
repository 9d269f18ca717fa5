"""The tests of a manifest: one fails as expected only if all that fails in it is expected."""

import pytest
from programs.project import write_project

from nceref.verification.manifest.checks import checks_of
from nceref.verification.manifest.read import read_manifest
from nceref.verification.manifest.run import verify_manifest

pytestmark = pytest.mark.usefixtures("in_this_process")
MANIFEST = """
[[target]]
target = "losses.py:doubled"
loss = "info_nce"
suite = "quick"
[[target.expected_failures]]
id = {ids}
reason = "twice"
strict = "some"
"""


def outcomes(folder, ids):
    (folder / "some.toml").write_text(MANIFEST.format(ids=ids))
    out = {}
    for check in checks_of(read_manifest("some.toml", "--manifest")):
        try:
            check.run()
            out[check.name] = "passed", ""
        except pytest.skip.Exception as skipped:
            out[check.name] = "skipped", str(skipped)
        except pytest.xfail.Exception as expected:
            out[check.name] = "xfailed", str(expected)
        except AssertionError as failure:
            out[check.name] = "failed", str(failure)
    return out


def test_what_is_not_listed_fails_and_is_named_with_its_id(tmp_path, monkeypatch):
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    of_some = outcomes(tmp_path, '"designed-*/value"')
    word, text = of_some["doubled-value"]
    assert word == "failed"
    (named,) = [line for line in text.splitlines() if line.startswith("not among the expected failures: ")]
    first = named.partition(": ")[2].partition(",")[0]
    case, _, quantity = first.partition("/")
    assert (case.startswith("designed-"), quantity) == (False, "value")
    assert text.splitlines()[-1] == "the whole report: nceref verify --manifest some.toml --only doubled"
    assert 'if you mean it: set = {factor = "outer-factor-2"}' in text
    # That id, and what is like it, written down as it is named.
    assert outcomes(tmp_path, '["*/value", "*/identity.closed-form"]')["doubled-value"] == ("xfailed", "twice")
    everything = outcomes(tmp_path, '["*/value", "*/identity.closed-form"]')
    assert {name for name, (word, _) in everything.items() if word == "failed"} == set()
    assert 8 < len(everything) < 14


def test_a_listed_bug_that_has_become_another_one_fails_and_says_what_it_is(tmp_path, monkeypatch):
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    every = '"*"\ndiagnosis = '
    same, other = (outcomes(tmp_path, f'{every}"{id}"') for id in ("outer-factor-2", "epsilon-in-log"))
    assert "failed" not in {word for word, _ in same.values()}
    failing = {name: text for name, (word, text) in other.items() if word == "failed"}
    sentence = (
        "some.toml:6: `*` is expected to fail (twice), but its explanation has changed: expected `epsilon-in-log`,"
        " found `outer-factor-2`; mend what is new, or correct `diagnosis` and `reason`"
    )
    assert failing == {"doubled-expected-failure-*": sentence}
    (result,) = verify_manifest(read_manifest("some.toml", "--manifest"))
    assert (result.report.verdict, result.problems, result.as_expected) == ("differs", (sentence,), {})
    assert result.report.diagnosis[0].intend == 'set = {factor = "outer-factor-2"}'
    # Without calls nothing is compared, and the report says that nothing was looked for.
    (tmp_path / "some.toml").write_text((tmp_path / "some.toml").read_text().replace("suite", "calls = 0\nsuite"))
    (result,) = verify_manifest(read_manifest("some.toml", "--manifest"))
    assert (result.report.exit_code, result.report.search["ended"]) == (0, "calls")
