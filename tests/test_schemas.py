"""Workflows, hosted and documented, and CITATION.cff against schemas of check-jsonschema, without network."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = {
    f"{page.stem}-{name}": text
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if "generated" not in page.parts
    for name, text in re.findall(
        r"```yaml\n# \.github/workflows/([\w-]+)\.yml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    )
}
HOSTED = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")}
WORKFLOWS |= HOSTED
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
SCHEMAS = {"workflow": "vendor.github-workflows", "citation": "vendor.citation-file-format"}
# What a slip would change, in one of the workflows and in the citation.
SLIPS = {
    "no-trigger": ("workflow", "on:", "onn:"),
    "unknown-key-of-a-job": ("workflow", "runs-on:", "run-on:"),
    "unknown-key-of-a-step": ("workflow", "      - uses: actions/checkout@v4", "      - use: actions/checkout@v4"),
    "another-type": ("workflow", "timeout-minutes: 30", "timeout-minutes: [30]"),
    "no-authors": ("citation", "authors:", "author:"),
    "no-date": ("citation", "2026-11-22", "22.11.2026"),
    "unknown-license": ("citation", "license: BSD-3-Clause", "license: BSD-3"),
}
pytestmark = pytest.mark.skipif(
    find_spec("check_jsonschema") is None, reason="check-jsonschema is not installed: pip install 'nceref[dev]'"
)


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """The names of the files that a schema refuses; all files in two processes."""
    folder, refused = tmp_path_factory.mktemp("schemas"), set()
    right = {"workflow": WORKFLOWS["ci-losses"], "citation": CITATION}
    files = [("workflow", name, text) for name, text in WORKFLOWS.items()]
    files += [("citation", "citation", CITATION)]
    for name, (kind, old, new) in SLIPS.items():
        assert old in right[kind]
        files.append((kind, name, right[kind].replace(old, new, 1)))
    for kind, schema in SCHEMAS.items():
        paths = [folder / f"{name}.yml" for of, name, _ in files if of == kind]
        for path, text in zip(paths, (text for of, _, text in files if of == kind), strict=True):
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, "--output-format", "json"]
        done = subprocess.run([*command, *paths], capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stderr
        refused |= {Path(error["filename"]).stem for error in json.loads(done.stdout)["errors"]}
    return refused


def test_both_workflows_of_the_documentation_are_read():
    assert {"ci-losses", "security-verify"} <= WORKFLOWS.keys()


def test_hosted_runs_have_a_line_for_each_system_and_processor():
    named = set(re.findall(r"- machine: (.+)\n", HOSTED["test"]))
    assert {"Linux on ARM64", "macOS on ARM64", "Windows on x86-64"} <= named


def test_workflows_and_citation_are_what_their_schemas_ask_for(refused):
    assert not refused & {*WORKFLOWS, "citation"}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_refused(refused, slip):
    assert slip in refused
