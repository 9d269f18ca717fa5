"""The JSON Schema of manifests: it is that of the keys, and refuses what reading refuses."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from programs.project import MANIFEST
from sweep import sweep

from nceref.verification.audit import audit
from nceref.verification.manifest import keys
from nceref.verification.manifest.keys import DEFAULTS, KEYS, OF_CHECKS, OF_FAILURE, manifest_schema, wrong_keys

HERE = Path(keys.__file__).parent
CI = Path(__file__).parents[3] / "docs" / "tutorials" / "ci.md"
VALUES = (
    "text",
    " ",
    "",
    3,
    -3,
    0.5,
    True,
    False,
    "some",
    "outer-factor-2",
    [],
    ["text"],
    [3, 4],
    ["text", 3],
    {},
    {"a": "b"},
    {"a": 3},
    [{}],
)


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install jsonschema")
    for draft in (jsonschema.Draft4Validator, jsonschema.Draft202012Validator):
        draft.check_schema(manifest_schema())
    return jsonschema.Draft202012Validator(manifest_schema())


def test_the_file_is_the_schema_of_the_keys():
    held = json.loads((HERE / "manifest.schema.json").read_text(encoding="utf-8"))
    assert held == manifest_schema(), "run `make generate`"


@sweep("key", sorted({*KEYS, *OF_FAILURE, *OF_CHECKS}))
def test_the_schema_takes_what_reading_takes(validator, key):
    for value in VALUES:
        # What is wrong within these two is said of each.
        if key in KEYS and value != [{}] and not (key == "checks" and value in ({"a": "b"}, {"a": 3})):
            table = {"target": "a.py:f", key: value}
            wrong = list(wrong_keys(table, KEYS, "a target", ("target",), lambda *keys: ""))
            assert validator.is_valid({"target": [table]}) == (wrong == []), (key, value)
            if key in DEFAULTS:
                assert validator.is_valid({"target": [{"target": "a.py:f"}], "defaults": {key: value}}) == (wrong == [])
        if key in OF_CHECKS:
            wrong = list(wrong_keys({key: value}, OF_CHECKS, "`checks`", (), lambda *keys: ""))
            table = {"target": "a.py:f", "checks": {key: value}}
            assert validator.is_valid({"target": [table]}) == (wrong == []), (key, value)
        if key in OF_FAILURE:
            row = {"id": "*", "reason": "known", key: value}
            wrong = list(wrong_keys(row, OF_FAILURE, "an expected failure", ("id", "reason"), lambda *keys: ""))
            table = {"target": "a.py:f", "expected_failures": [row]}
            assert validator.is_valid({"target": [table]}) == (wrong == []), (key, value)


def test_whole_manifests(validator):
    peers = (HERE.parent / "audit" / audit.FILE).read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(# nceref.toml\n.*?)```", CI.read_text(encoding="utf-8"), re.DOTALL)
    assert validator.is_valid(tomllib.loads(peers))
    assert validator.is_valid(tomllib.loads(example))
    messages = {error.message for error in validator.iter_errors(tomllib.loads(MANIFEST))}
    assert len(messages) == 2
    assert {name for name in ("'targets'", "'los'") if any(name in message for message in messages)} == {
        "'targets'",
        "'los'",
    }
    for broken in (
        {},
        {"target": []},
        {"target": [{"loss": "simple"}]},
        {"target": {}},
        {"target": [{"target": "a"}], "x": 1},
        {"target": [{"target": "a", "checks": {"value": 1}}]},
        {"target": [{"target": "a"}], "defaults": {"checks": {}}},
    ):
        assert not validator.is_valid(broken)
