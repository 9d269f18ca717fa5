"""Probabilistic bounds: what they promise, that right programs keep it, and that they are below the worst case."""

import math

import numpy as np
import pytest
from catalogue import arguments

from mutants.bug import correct_programs, gradient_programs, in_one_dtype, target
from mutants.score import CORRECT, group, intended
from nceref import get_loss
from nceref.cases.corpus.corpus import evaluate
from nceref.tolerance.implementation import FORMATS, walk
from nceref.tolerance.random_walk import FAILURE, PROBES, RandomRoundings, RandomWalk, confidence, likely_bounds

pytestmark = pytest.mark.machine


def probe_of(name, dtype="float16"):
    rng = np.random.default_rng(3)
    rows = [np.float16(rng.standard_normal((6, 4))).astype(float) for _ in range(2)]
    given = {"nt_xent": ("z1", "z2"), "info_nce": ("queries", "keys"), "uniformity": ("x",), "alignment": ("x", "y")}
    inputs = dict(zip(given[name], rows, strict=False))
    scalar = {"uniformity": ("t", 2.0), "alignment": ("exponent", 2.0)}.get(name, ("temperature", 0.5))
    inputs |= dict([scalar])
    return evaluate(get_loss(name).declaration, inputs, dtype)


def test_the_failure_probability_is_that_of_both_inequalities():
    # The part that the chi-squared distribution needs, found by bisection.
    low, high = 1e-9, 1.0
    for _ in range(200):
        r = (low + high) / 2
        low, high = (low, r) if (r * math.exp(1 - r)) ** (PROBES / 2) > FAILURE / 2 else (r, high)
    x = confidence() * math.sqrt(low)
    assert 2 * math.exp(-x * x / 2) == pytest.approx(FAILURE / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float32") for name in ("nt_xent", "info_nce", "uniformity", "alignment")),
        # No complex number is as short: these have programs that bring their gradients.
        *((name, "float16") for name in ("nt_xent", "info_nce", "uniformity")),
    ],
)
def test_right_programs_keep_it_and_it_is_no_larger_than_the_worst_case(name, dtype):
    probe = probe_of(name, dtype)
    likely = likely_bounds(probe.bound, dtype)
    assert likely.value <= probe.bounds.value
    assert all(np.all(likely.grads[key] <= probe.bounds.grads[key]) for key in probe.grads)
    known = correct_programs() if dtype == "float32" else gradient_programs()
    right = [p for p in known.values() if p.loss == name and group(p) == CORRECT and p.framework in ("", "numpy")]
    assert right
    for program in [p for p in right if not intended(p)]:
        value, grads = target(program)(**in_one_dtype(arguments(program, probe.inputs, dtype)))
        assert abs(value - probe.value) <= likely.value, program.id
        for key, grad in probe.grads.items():
            assert np.all(np.abs(grads[key] - grad) <= likely.grads[key]), program.id


@pytest.mark.parametrize("name", ["nt_xent", "info_nce"])
def test_it_is_sharper_than_the_worst_case_where_much_is_added_up(name):
    assert likely_bounds(probe_of(name).bound, "float16").value < 0.75 * probe_of(name).bounds.value


def test_a_probe_moves_by_what_the_roundings_do():
    """Of a dot product alone: the variance of a logit is that of its terms, by hand."""
    rows = np.eye(2)
    bound = evaluate(get_loss("simple").declaration, {"queries": rows, "keys": 4 * rows, "normalize": "none"}).bound
    fmt = RandomRoundings(**vars(FORMATS["bfloat16"].arithmetic(True)))
    rng = np.random.default_rng(1)
    moved = []
    for _ in range(400):
        probe = RandomWalk(bound.plan, fmt, "mean", rng)
        walk(probe, bound.arguments)
        moved.append(probe.logits[0][0][0, 0] - 4)
    # |a| |b| = 4: D roundings in float32 and 3 in bfloat16, and 1 of the logit itself.
    exact = 4 * (math.sqrt(2 * fmt.ratio + 3) + 1) * fmt.u * 2.0**-24
    assert np.std(moved) == pytest.approx(exact, rel=0.15)
