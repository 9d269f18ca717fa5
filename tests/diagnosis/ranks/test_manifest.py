"""A manifest whose target runs on ranks, and is mixed with a second one."""

import json
from pathlib import Path

import pytest

from nceref.verification.manifest.page import record
from nceref.verification.manifest.read import read_manifest
from nceref.verification.manifest.run import verify_manifest

pytest.importorskip("torch", reason="PyTorch is not installed; `make test-peers` runs this")
SCHEMA = Path(record.__code__.co_filename).with_name("results.schema.json")
PROGRAMS = Path(__file__).parents[2] / "targets" / "ranks" / "on_ranks.py"
MANIFEST = f"""\
[defaults]
loss = "clip"
suite = "quick"
ranks = 2

[[target]]
target = "{PROGRAMS}:right"
with = "{PROGRAMS}:without_gradient:0.5"
[[target.expected_failures]]
id = "2-ranks/*"
reason = "rows of other ranks are constants in the second"
strict = "some"
"""


def test_targets_on_ranks_and_a_mix(tmp_path):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install jsonschema")
    (tmp_path / "nceref.toml").write_text(MANIFEST)
    manifest = read_manifest(tmp_path / "nceref.toml")
    (mixed,) = results = verify_manifest(manifest)
    assert (mixed.report.exit_code, mixed.problems) == (0, ())
    failed = {r.id for r in mixed.report.results if r.status == "xfail"}
    assert mixed.as_expected == {"2-ranks/*": len(failed)}
    assert any("mix" in id for id in failed)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(record(manifest, results))
