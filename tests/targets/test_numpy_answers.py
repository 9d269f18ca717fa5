"""Answers of NumPy targets: a list may be a pair, and other forms are told what is read."""

import numpy as np
import pytest

import nceref


def values(x, y):
    return np.mean(np.sum((x - y) ** 2, axis=1))


def gradients(x, y, factor=1.0):
    g = factor * 2 * (x - y) / len(x)
    return {"x": g, "y": -g}


def verified(target):
    return nceref.verify(target, loss="alignment", suite="quick", normalize="none")


def test_a_list_with_a_mapping_is_a_value_with_gradients():
    assert verified(lambda x, y: [values(x, y), gradients(x, y)]).verdict == "conforms"
    report = verified(lambda x, y: [values(x, y), gradients(x, y, 7)])
    assert [d.id for d in report.diagnosis] == ["gradient-constant-factor"]


def test_a_dictionary_is_no_pair_and_is_told_so():
    report = verified(lambda x, y: {"loss": values(x, y), "grad": gradients(x, y)})
    assert report.verdict == "value-only"
    assert "returns a mapping with loss, grad; gradients are read from a pair" in report.reason


@pytest.mark.parametrize(("name", "hint"), [("yy", "did you mean `y`?"), ("weights", "the inputs are x, y")])
def test_a_gradient_of_another_name_is_no_other_call(name, hint):
    report = verified(lambda x, y: (values(x, y), {"x": gradients(x, y)["x"], name: gradients(x, y)["y"]}))
    assert report.exit_code == 4
    assert report.reason.endswith(f"returns a gradient named {name!r}; {hint}")


def test_a_value_that_is_wrong_beside_a_right_gradient_leaves_the_gradient():
    report = verified(lambda x, y: (len(x) * values(x, y), gradients(x, y)))
    (first, *_) = report.diagnosis
    assert first.id == "sum-instead-of-mean"
    assert "the gradient is that of the reference, as it should be" in first.sentence
    assert first.fix.endswith("Leave the gradient as it is: it is right.")
