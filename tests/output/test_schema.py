"""Our reader of JSON Schema and a complete one agree on what is refused."""

import copy
import json

import jsonschema
import pytest
from sweep import sweep

from nceref.errors import InputError
from nceref.output.schema import check, fits
from nceref.verification.vectors.store import DATA

SCHEMAS = sorted(DATA.glob("*.schema.json"))
OTHERS = (None, True, -1, 0.5, "x", [], ["x"], {"x": 1})
"""What may stand where something else belongs."""
OUTPUTS = (
    {"manifest": "ab" * 32, "implementation": "C", "dtype": "float16"},
    {"id": "a-1", "value": "3fe0000000000000", "grad": {"z": [1, "NaN"], "temperature": 2}},
    {"id": "a-1", "error": "no"},
    {"id": "a-1", "ranks": [{"value": 1, "grad": {"z": [1]}}, {"error": "no"}]},
)


def documents(schema):
    """Some that a schema admits."""
    name = schema.name.removesuffix(".schema.json")
    if name == "outputs":
        return OUTPUTS
    file = {"cases": "nce.json", "manifest": "MANIFEST.json", "ranks": "ranks.json"}[name]
    content = json.loads((DATA / file).read_text())
    if "cases" in content:
        content["cases"] = content["cases"][-1:]
    return (_shortened(content),)


OF_ONE_KIND = {"specification", "counts", "min_cases", "files", "inputs", "outputs", "allowed", "terms"}
"""Objects with any names: of their entries, as of those of a list, two stand for all."""


def _shortened(x, name=""):
    if isinstance(x, dict):
        most = 2 if name in OF_ONE_KIND else None
        # Within the terms, those of a format are of one kind too.
        return {key: _shortened(inner, name if name == "terms" else key) for key, inner in [*x.items()][:most]}
    return [_shortened(inner) for inner in x[:2]] if isinstance(x, list) else x


def changed(content):
    """The document with one thing in it left out, added or replaced; of lists and of numbers, the first alone."""
    places = [()]
    for place in places:
        inner = content
        for step in place:
            inner = inner[step]
        if isinstance(inner, dict):
            places += [(*place, key) for key in inner]
        elif isinstance(inner, list) and inner:
            places.append((*place, 0))
    for place in places[1:]:
        for other in (*OTHERS, ...):
            copied = copy.deepcopy(content)
            inner = copied
            for step in place[:-1]:
                inner = inner[step]
            if other is ...:
                del inner[place[-1]]
            else:
                inner[place[-1]] = other
            yield copied
    yield {**content, "more": 1}


@sweep("schema", SCHEMAS, ids=lambda path: path.name)
def test_what_a_complete_reader_refuses_is_refused(schema):
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
    for document in documents(schema):
        check(document, schema, "here")
        verdicts = {True: 0, False: 0}
        for other in changed(document):
            right = validator.is_valid(other)
            verdicts[right] += 1
            if right:
                check(other, schema, "here")
            else:
                with pytest.raises(InputError, match=r"^here: "):
                    check(other, schema, "here")
        assert verdicts[False] > 10


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (3, "here: must be a JSON object, got 3"),
        ({"format": "2.0", "loss": "nce", "cases": []}, "here: `cases` must be not empty, of a size >= 1, got []"),
        ({"format": "2.0", "loss": "nce", "cases": [3]}, "here: `cases[0]` must be a JSON object, got 3"),
        ({"format": "2.0", "cases": [3]}, "here: must have the entry 'loss', got ['format', 'cases']"),
        ({"format": "2.0", "loss": "nce", "cases": [3], "x": 1}, "has the unknown entry 'x'; it may have format, loss"),
    ],
)
def test_the_place_and_what_was_expected_are_named(content, words):
    with pytest.raises(InputError) as error:
        check(content, DATA / "cases.schema.json", "here")
    assert words in str(error.value)


def test_a_part_of_a_schema_is_checked_by_itself():
    check({"manifest": "ab" * 32}, DATA / "outputs.schema.json", "here", "first")
    with pytest.raises(InputError, match="must have the entry 'manifest'"):
        check({"id": "a-1", "value": 1}, DATA / "outputs.schema.json", "here", "first")


def test_every_entry_of_a_list_is_looked_at():
    schema = {"type": "array", "items": {"type": "integer", "minimum": 0}}
    assert fits([0, 1, 2], schema)
    assert not fits([0, 1, -1], schema)
