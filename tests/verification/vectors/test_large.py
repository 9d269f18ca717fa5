"""Large cases: inputs by a rule, rows that are listed, files of the package, and what of an answer is judged."""

import numpy as np
import pytest
from sweep import sweep

from nceref.losses import all_losses, get_loss
from nceref.verification.corpus.rounding import rounded
from nceref.verification.vectors.rows import EDGES, LISTED, listed_rows, placed, whole
from nceref.verification.vectors.shared_inputs import shared_arrays, shared_inputs


def test_inputs_follow_the_rule_and_are_exact_in_every_format():
    arrays = shared_arrays()
    # (1664525 + 1013904223) >> 16 = 15496, which is 2 more than 122 * 127.
    assert arrays["rows"][0, 0] == (2 - 63) / 64
    state = 2
    for column in range(3):
        state = (1664525 * state + 1013904223) % 2**32
        assert arrays["partners"][0, column] - arrays["rows"][0, column] == ((state >> 16) % 127 - 63) / 64
    for name, x in arrays.items():
        assert all(np.array_equal(rounded(x, dtype), x) for dtype in ("float64", "float32", "bfloat16", "float16")), (
            name
        )
    assert min(np.bincount(arrays["labels"])) >= 2


@sweep("name", all_losses())
def test_every_loss_takes_the_shared_inputs(name):
    inputs, loss = shared_inputs(get_loss(name).declaration), get_loss(name)
    assert np.isfinite(loss(**inputs))
    assert max(len(x) for x in inputs.values() if isinstance(x, np.ndarray)) >= 130


def test_rows_are_listed_from_end_to_end():
    rows = listed_rows({"value": (), "grad.a": (131, 97), "grad.b": (97, 97), "grad.t": ()})
    assert {name: len(x) for name, x in rows.items()} == {"grad.a": LISTED // 2, "grad.b": LISTED // 2}
    assert set(EDGES) <= set(rows["grad.a"])
    assert max(np.diff(rows["grad.a"])) <= 8
    assert listed_rows({"grad.a": (131, 97)})["grad.a"][:3] == (0, 1, 2)


def test_rows_that_are_not_listed_are_not_judged():
    grad, numbers = np.arange(12.0).reshape(4, 3), np.full((2, 3), 7.0)
    out, room = placed(grad, 0.5, numbers, (0, 3))
    assert np.array_equal(out[[0, 3]], numbers)
    assert np.array_equal(out[[1, 2]], grad[[1, 2]])
    assert room.tolist() == [[0.5] * 3, [np.inf] * 3, [np.inf] * 3, [0.5] * 3]
    assert placed(grad, 0.5, grad, None) == (grad, 0.5)


@pytest.mark.parametrize(
    ("given", "rows", "expected"),
    [
        (["a", "b", "c", 0, 1, "NaN"], (0, 3), ["a", "b", "c", 3, 4, 5, 6, 7, 8, 0, 1, "NaN"]),
        ([0] * 12, (0, 3), [0] * 12),
        ([0] * 6, None, [0] * 6),
        ([0] * 7, (0, 3), [0] * 7),
        ("text", (0, 3), "text"),
    ],
)
def test_the_listed_rows_alone_are_an_answer(given, rows, expected):
    assert whole(given, np.arange(12.0).reshape(4, 3), rows) == expected
