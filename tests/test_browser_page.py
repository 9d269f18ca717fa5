"""The page that verifies in the browser, without one: its broken losses, and what the site serves with it."""

import json
import runpy
import sys

import pytest

import nceref
from tools.site import browser

# In a browser there are no processes.
pytestmark = pytest.mark.usefixtures("in_this_process")

EXPLANATIONS = {
    "nt_xent": "self-contrast-kept",
    "alignment": "gradient-parts-scaled",
    "clip": "one-direction-only",
    "dcl": "positive-kept-in-denominator",
    "info_nce": "temperature-squared",
    "supcon_out": "positives-not-averaged",
}


def test_the_first_example_is_simclr_and_each_has_a_title():
    examples = browser.examples()
    assert [one["loss"] for one in examples] == list(EXPLANATIONS)
    assert all(one["title"][0].isupper() and ": " in one["title"] for one in examples)
    assert all(one["source"].startswith("import numpy as np\n") for one in examples)


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_an_example_has_the_bug_that_its_title_names(name):
    report = nceref.verify(f"{browser.EXAMPLES / name}.py:{name}", loss=name, suite="quick")
    assert report.verdict == "differs"
    assert report.diagnosis[0].id == EXPLANATIONS[name]


def test_the_page_gets_the_verdict_and_what_is_wrong(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    judge = runpy.run_path(str(browser.SOURCE / "judge.py"))["judge"]
    said = []
    answer = json.loads(judge(browser.examples()[0]["source"], "", "nt_xent", "quick", said.append))
    assert (answer["verdict"], answer["reason"]) == ("differs", "the value fails on 28 of 28 cases")
    (first,) = answer["explanations"]
    assert first["id"] == "self-contrast-kept"
    assert first["lead"].startswith("your loss equals the reference with ")
    assert first["fix"] == "Mask the anchor itself out of its denominator, with -inf in the logits."
    assert said[0] == "Case 1 of 29"


FILES = ("pyodide.js", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip", "numpy-2.2.5-cp313-wasm32.whl")


def test_a_release_of_pyodide_is_served_from_the_site(tmp_path):
    release, folder = tmp_path / "release", tmp_path / "browser"
    release.mkdir()
    for name in (*FILES, "scipy-1.0-wasm32.whl"):
        (release / name).touch()
    browser.write_page(folder)
    browser.write_pyodide(release, folder)
    assert {path.name for path in (folder / "pyodide").iterdir()} == {*FILES}
    assert (folder / "pyodide.js").read_text() == 'export const PYODIDE = "pyodide/";\n'
    assert len(json.loads((folder / "contents.json").read_text())["examples"]) == len(EXPLANATIONS)


def test_a_folder_without_numpy_ends_the_build(tmp_path):
    release, folder = tmp_path / "release", tmp_path / "browser"
    release.mkdir()
    (release / "pyodide.js").touch()
    (release / "python_stdlib.zip").touch()
    browser.write_page(folder)
    with pytest.raises(SystemExit, match=r"NCEREF_PYODIDE must name a folder .* has no numpy-\*\.whl"):
        browser.write_pyodide(release, folder)
