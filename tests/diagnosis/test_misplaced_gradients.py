"""Right numbers in a wrong place are said to be that."""

import numpy as np
import pytest
from diagnosis.altered_losses import altered

from nceref.diagnosis.diagnose import diagnose


def one(name, change):
    return lambda probe, value, grads: (value, {**grads, name: change(grads)})


def swapped(probe, value, grads):
    return value, {**grads, "z1": grads["z2"], "z2": grads["z1"]}


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (swapped, "the gradient of z1 is that of z2"),
        (one("z1", lambda g: g["z1"][::-1]), "the gradient of z1 is that of the rows in reverse order"),
        (one("z2", lambda g: np.roll(g["z2"], 1, axis=0)), "the gradient of z2 is that of the row before"),
        (one("z1", lambda g: (g["z1"] + g["z2"]) / 2), "is the mean of its own and that of z2"),
        (one("z1", lambda g: np.clip(g["z1"], -0.02, 0.02)), "is cut to entries of at most 0.02"),
    ],
)
def test_what_stands_in_the_wrong_place_is_named(target, words):
    (found,) = diagnose(altered("nt_xent", target))
    assert found.id == "gradient-misplaced"
    assert words in found.sentence


def test_one_case_alone_is_not_said_to_be_cut():
    def target(probe, value, grads):
        off = 0.9 if probe.id == "designed-0.3" else 1.0
        largest = np.abs(grads["z1"]) == np.max(np.abs(grads["z1"]))
        return value, {**grads, "z1": np.where(largest, off, 1.0) * grads["z1"]}

    assert "cut" not in diagnose(altered("nt_xent", target))[0].sentence


def test_what_is_cut_only_on_some_cases_is_not_said_to_be_cut():
    def target(probe, value, grads):
        cut = np.clip(grads["z1"], -0.02, 0.02) if len(grads["z1"]) > 5 else grads["z1"]
        return value, {**grads, "z1": cut}

    assert diagnose(altered("nt_xent", target))[0].id == "value-right-gradient-wrong"
