"""Right numbers in a wrong place are said to be that."""

import numpy as np
import pytest
from diagnosis.altered_losses import altered, times

from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.diagnose import diagnose
from nceref.diagnosis.gradient_fit import GradientFit, judged_gradients
from nceref.diagnosis.misplaced_gradients import misplaced


def one(name, change):
    return lambda probe, value, grads: (value, {**grads, name: change(grads)})


def swapped(probe, value, grads):
    return value, {**grads, "x": grads["y"], "y": grads["x"]}


def found(target):
    """What the gradient of an input that departs is said to be, without the search for anything else."""
    analyses = [CaseAnalysis(o) for o in altered("nt_xent", target) if not o.probe.skip]
    fit = GradientFit((), [one for analysis in analyses for one in judged_gradients(analysis)])
    name = next(one.name for one in fit.judged if fit.misfit(one) > 1)
    return f"the gradient of {name} is {misplaced(fit, [one for one in fit.judged if one.name == name])}"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (one("z1", lambda g: g["z1"][::-1]), "the gradient of z1 is that of the rows in reverse order"),
        (one("z2", lambda g: np.roll(g["z2"], 1, axis=0)), "the gradient of z2 is that of the row before"),
        (one("z1", lambda g: (g["z1"] + g["z2"]) / 2), "is the mean of its own and that of z2"),
        (one("z1", lambda g: np.clip(g["z1"], -0.02, 0.02)), "is cut to entries of at most 0.02"),
    ],
)
def test_what_stands_in_the_wrong_place_is_told(target, words):
    assert words in found(target)


def test_what_stands_in_the_wrong_place_is_named():
    (diagnosis,) = diagnose(altered("alignment", swapped))
    assert diagnosis.id == "gradient-misplaced"
    assert "the gradient of x is that of y" in diagnosis.sentence


def test_one_case_alone_is_not_said_to_be_cut():
    sizes = sorted(np.max(np.abs(o.outcome.grads["x"])) for o in altered("alignment", times(1.0)) if o.outcome.grads)
    # It is said with three digits.
    limit = float(f"{np.mean(sizes[-2:]):.3g}")
    (found, *_) = diagnose(altered("alignment", one("x", lambda g: np.clip(g["x"], -limit, limit))))
    assert "on 1 of" in found.sentence
    assert "cut" not in found.sentence


def test_what_is_cut_only_on_some_cases_is_not_said_to_be_cut():
    def target(probe, value, grads):
        cut = np.clip(grads["z1"], -0.02, 0.02) if len(grads["z1"]) > 5 else grads["z1"]
        return value, {**grads, "z1": cut}

    assert found(target) == "the gradient of z1 is None"
