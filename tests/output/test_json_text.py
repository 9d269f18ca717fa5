"""JSON is printable and the same data again; what is no JSON object is refused by the name of its file."""

import json

import pytest

from nceref.errors import FileError
from nceref.output.json_text import json_object, json_text


def test_json_has_no_nan():
    assert json_text({"τ": 1.0}, indent=None) == '{"τ": 1.0}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text([float("nan")])


def test_json_keeps_text_of_others_and_is_printable():
    text = "é τ 猫\x1b\x7f\x9b\u202e\u2028\ufeff\udcff\U000e0001 ::a:: \n##[b] ##vso[c]"
    written = json_text({text: [text]})
    assert json.loads(written.encode()) == {text: [text]}
    assert written.replace("\n", "").isprintable()
    assert "##" not in written
    assert "é τ 猫" in written
    assert json_text("\x7f") == '"\\u007f"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "f is not JSON: Expecting property name"),
        ("[" * 10**5, "f is not JSON: maximum recursion depth exceeded"),
        ('{"a": ' + "1" * 5000 + "}", "f is not JSON: Exceeds the limit"),
        ('{"a": {"b": 1, "b": 2}}', "f is not JSON: an object has two entries of the same name"),
        ("[]", "f must hold a JSON object, got a list"),
    ],
)
def test_json_that_is_no_object_is_named(text, message):
    with pytest.raises(FileError) as caught:
        json_object("f", text)
    assert message in str(caught.value)
    assert json_object("f", json.dumps({"a": [1]})) == {"a": [1]}
