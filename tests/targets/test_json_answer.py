"""Answers in JSON: what is one, and a sentence for everything else."""

import base64
import math

import numpy as np
import pytest

from nceref.targets.frameworks.call import CallRequest, Trouble
from nceref.targets.json_answer import answer_of, refusal

INPUTS = {"z": np.zeros((2, 3)), "temperature": 0.5}
MEAN = CallRequest(INPUTS, frozenset({"z"}), frozenset({"temperature"}))
SIX = {"shape": [3, 2], "base64": base64.b64encode(bytes(48)).decode()}
ROWS = CallRequest(INPUTS, frozenset({"z"}), frozenset({"temperature"}), reduction="none", shape=(2,))


def test_numbers_are_read_in_every_form():
    grads = {"z": [0, 1e-3, "3fd5555555555555", "NaN", "Infinity", "-Infinity"], "temperature": [-2]}
    answer = answer_of({"id": "a", "value": "3FE0000000000000", "grad": grads}, MEAN)
    assert (answer.value, answer.grads["temperature"], answer.unjudged) == (0.5, -2.0, {})
    expected = np.array([[0.0, 1e-3, 1 / 3], [math.nan, math.inf, -math.inf]])
    np.testing.assert_array_equal(answer.grads["z"], expected)
    assert answer_of({"value": [3.0]}, MEAN).unjudged == dict.fromkeys(
        ("temperature", "z"), "the target returns no gradients"
    )
    assert answer_of({"value": 1, "grad": {"temperature": 1}}, MEAN).unjudged == {
        "z": "the target returns no gradient of it"
    }
    np.testing.assert_array_equal(answer_of({"value": [1, 2]}, ROWS).value, [1.0, 2.0])
    # The bytes of 1.0 and -2.0.
    rows = {"shape": [2], "base64": "AAAAAAAA8D8AAAAAAAAAwA=="}
    np.testing.assert_array_equal(answer_of({"value": rows}, ROWS).value, [1.0, -2.0])


@pytest.mark.parametrize(
    ("request_", "record", "trouble", "words"),
    [
        (MEAN, {}, "wrong-shape", "without a value"),
        (MEAN, {"value": 1, "gradients": {}}, "wrong-shape", "the entry 'gradients'"),
        (MEAN, {"value": [1, 2]}, "wrong-shape", "returns 2 numbers, but the reduction 'mean' asks for one number"),
        (ROWS, {"value": 1}, "wrong-shape", "returns one number, but the reduction 'none' asks for rows (2,)"),
        (ROWS, {"value": [1, 2, 3]}, "wrong-shape", "returns 3 numbers"),
        (MEAN, {"value": 1, "grad": [1]}, "wrong-shape", "`grad` [1] instead of an object"),
        (MEAN, {"value": 1, "grad": {"z1": 1}}, "wrong-shape", "named 'z1'; the inputs are temperature, z"),
        (
            MEAN,
            {"value": 1, "grad": {"z": [1, 2]}},
            "wrong-shape",
            "returns 2 numbers as the gradient of `z`, whose shape is (2",
        ),
        (MEAN, {"value": {"shape": [1]}}, "not-a-number-type", "instead of an array {"),
        *(
            (MEAN, {"value": {"shape": shape, "base64": text, **more}}, "not-a-number-type", words)
            for shape, text, more, words in (
                ([1], "AAAAAAAA8D8", {}, "padding"),
                ([1], "AAAA", {}, "it has 3 bytes, and <f8 numbers of shape [1] have 8"),
                ([-1], "AAAAAAAA8D8=", {}, "its `shape` must be a list of sizes"),
                ([1], "AAAAAAAA8D8=", {"dtype": "<i8"}, "its numbers must be float64"),
                ([1], "AAAAAAAA8D8=", {"dtype": "O"}, "its `dtype` or `order`"),
            )
        ),
        (MEAN, {"value": 1, "grad": {"z": SIX}}, "wrong-shape", "with the shape (3, 2), but the input has (2, 3)"),
        (MEAN, {"value": 1, "grad": {"z": 1}}, "wrong-shape", "returns one number as the gradient"),
        (MEAN, {"value": 1, "grad": {"z": [[1, 2, 3]] * 2}}, "wrong-shape", "a list of lists instead of a flat list"),
        *(
            (MEAN, {"value": 1, "grad": {"z": [x] * 6}}, "not-a-number-type", "instead of a finite JSON number, 16")
            for x in (None, True, "nan", "0.5", "3fe000000000000", math.nan, 10**400, {})
        ),
    ],
)
def test_what_is_no_answer_has_its_sentence(request_, record, trouble, words):
    with pytest.raises(Trouble) as error:
        answer_of(record, request_)
    assert error.value.name == trouble
    assert words in str(error.value)


def test_an_error_and_what_is_not_supported_are_outcomes():
    assert refusal({"error": "no\nrows"}).sentence == "answers with an error: no rows"
    assert refusal({"error": None}).trouble == "raises"
    unsupported = refusal({"unsupported": "float16"})
    assert (unsupported.trouble, unsupported.sentence) == ("unsupported", "does not support this: float16")
