"""OUTPUTS: lines of JSON are read in any order, and what is no such line is named with its place."""

import json

import pytest

from nceref.errors import InputError
from nceref.verification.vectors.outputs import read_outputs
from nceref.verification.vectors.store import DATA

SHA = "0123456789abcdef" * 4
FIRST = json.dumps({"manifest": SHA})
LINE = '{"id": "a-1", "value": 0.5}\n'


def read(folder, text):
    (folder / "run.jsonl").write_text(text)
    return read_outputs(folder / "run.jsonl")


def test_lines_are_kept_by_id_with_their_places(tmp_path):
    plain = read(tmp_path, f'{FIRST}\n{LINE}\n  \r\n{{"id": "b-1", "error": "no"}}\n')
    assert (plain.manifest, plain.implementation, plain.dtype) == (SHA, "run.jsonl", "float64")
    assert {id: line.record for id, line in plain.lines.items()} == {
        "a-1": {"id": "a-1", "value": 0.5},
        "b-1": {"id": "b-1", "error": "no"},
    }
    assert plain.lines["b-1"].where.endswith("run.jsonl, line 5")
    about = {"manifest": SHA.upper(), "implementation": "C++\x1b" + 99 * "x", "dtype": "float32"}
    full = read(tmp_path, f"\ufeff{json.dumps(about)}")
    assert (full.manifest, full.dtype, dict(full.lines)) == (SHA, "float32", {})
    assert full.implementation.isprintable()
    assert len(full.implementation) < 99


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        (FIRST, True),
        (f'{{"manifest": "{SHA}", "implementation": "C++", "dtype": "float16"}}', True),
        (LINE, True),
        ('{"id": "a-1", "value": "3fe0000000000000", "grad": {"z": [1, "NaN", "-Infinity"], "temperature": 2}}', True),
        ('{"id": "a-1", "error": "no"}', True),
        ('{"id": "a-1", "unsupported": "labels"}', True),
        ('{"id": "a-1", "ranks": [{"value": 1, "grad": {"z": [1]}}, {"value": 2}]}', True),
        (f'{{"manifest": "{SHA}", "format": "2.0"}}', False),
        ('{"value": 0.5}', False),
        ('{"id": "a-1", "value": 0.5, "error": "no"}', False),
        ('{"id": "a-1", "value": "0.5"}', False),
        ('{"id": "a-1", "value": 1, "grad": {"z": [[1]]}}', False),
    ],
)
def test_the_schema_has_what_a_line_is(line, is_one):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install jsonschema")
    schema = json.loads((DATA / "outputs.schema.json").read_text())
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(line)) == is_one


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; the first line must be"),
        (f"{LINE}{FIRST}\n", "line 1: the first line must be"),
        (f"hello\n{FIRST}\n", "line 1 is not JSON"),
        ("[1]\n", "line 1 must hold a JSON object, got a list"),
        ('{"manifest": "abc"}\n', "line 1: `manifest` must be text of the form ^[0-9a-fA-F]{64}$"),
        ('{"manifest": 5}\n', "`manifest` must be text, got 5"),
        (f'{{"manifest": "{SHA}", "format": "2.0"}}\n', "has the unknown entry 'format'; it may"),
        (f'{{"manifest": "{SHA}", "dtype": "float8"}}\n', "`dtype` must be one of 'float64'"),
        (f'{{"manifest": "{SHA}", "dtype": ["float32"]}}\n', "`dtype` must be one of 'float64'"),
        (f'{{"manifest": "{SHA}", "dtype": {{}}}}\n', "`dtype` must be one of 'float64'"),
        (f'{{"manifest": "{SHA}", "implementation": 5}}\n', "`implementation` must be text, got 5"),
        (f"{FIRST}\n{LINE}{LINE}", "line 3: a-1 is answered a second time, first in"),
        (f"{FIRST}\n{LINE}{FIRST}\n", "line 3: `id` must name a case, got a second first line"),
        (f'{FIRST}\n{{"value": 1}}\n', "line 2: `id` must name a case, got {'value': 1}"),
        (f'{FIRST}\n{{"id": "a-1"}}\n', "line 2: a line has `value`, `error` or `unsupported`, got none of them"),
        (f'{FIRST}\n{{"id": "a-1", "value": 1, "error": "no"}}\n', "got value and error"),
        (
            f'{FIRST}\n{{"id": "a-1", "value": NaN}}\n',
            'line 2 is not JSON: NaN is no number of JSON; write the string "NaN"',
        ),
        (f'{FIRST}\n{{"id": "a-1", "id": "a-2", "value": 1}}\n', "two entries of the same name"),
        (f'{FIRST}\n{LINE}{{"id": "a-2", "value', "is cut off within line 3, its last; write it again"),
        (f'{FIRST}\n{{"id": "a-2", "value\n', "line 2 is not JSON"),
    ],
)
def test_what_is_no_line_is_named_with_its_place(tmp_path, text, words):
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert "run.jsonl" in str(error.value)
    assert words in str(error.value)
