"""The formula judges the program: value and every gradient, on every geometry and temperature, in two dtypes."""

from itertools import groupby

import numpy as np
import pytest
from checks.frozen_references import all_cases, frozen
from sweep import every_loss, sweep

from nceref import exact, get_loss
from nceref.checks import run
from nceref.checks.cases import TEMPERATURES, cases

pytestmark = pytest.mark.machine

GROUPS = {
    group: [case for _, case in members]
    for group, members in groupby(all_cases().values(), lambda member: (member[0].name, member[1].geometry))
}


SLOW = pytest.mark.slow(reason="what breaks other temperatures and variants breaks those of the first as well")


@pytest.mark.parametrize("further", [False, pytest.param(True, marks=SLOW)], ids=["first", "further"])
@sweep("group", GROUPS, ids="-".join)
def test_program_stays_within_the_derived_bound_of_the_formula(group, further):
    loss = get_loss(group[0]).declaration
    for number, case in enumerate(GROUPS[group]):
        # Every second temperature, and the others for the next variant or geometry; the first variant at all of them,
        # and at one of them at once.
        variant, place = divmod(number, len(TEMPERATURES))
        turn = variant + place + list(GROUPS).index(group)
        quick = not variant and turn % len(TEMPERATURES) == 0
        if quick == further or (variant and turn % 2):
            continue
        truth = frozen(loss, case)
        # Single precision runs through the same code: half as many temperatures.
        single = turn % 4 == 0
        for dtype in (np.float64, np.float32) if single else (np.float64,):
            outcome = run.compare(loss, case, dtype, truth)
            assert outcome.of_bound <= 1, (case.name, np.dtype(dtype).name, outcome)


@every_loss
def test_every_loss_meets_every_geometry_that_makes_sense_for_it(loss_name):
    seen = {geometry for name, geometry in GROUPS if name == loss_name}
    assert {"random", "aligned", "collapsed", "duplicate", "odd", "wide"} <= seen
    declaration = get_loss(loss_name).declaration
    assert ("single" in seen) == declaration.single
    policies = {"no_positive"} & {p.name for p in declaration.parameters}
    assert ("lonely" in seen) == bool(policies)


@every_loss
def test_relative_error_is_near_one_rounding_on_well_conditioned_inputs(loss_name):
    loss = get_loss(loss_name).declaration
    worst = 0.0
    for case in GROUPS[loss_name, "random"]:
        if case.temperature in (1.0, 0.3) and not run.on_kink(loss, dict(case.inputs)):
            worst = max(worst, run.compare(loss, case, np.float64, frozen(loss, case)).relative)
    # A gradient entry is a sum of a dozen products of three factors each: 64 roundings are room for all of them.
    assert worst < 64 * np.finfo(np.float64).eps


def aligned_pairs(n, d, seed, noise):
    """Unit queries and keys with little noise between them."""
    rng = np.random.default_rng(seed)
    x, e = rng.standard_normal((n, d)), rng.standard_normal((n, d))
    queries, keys = x, x + noise * e
    return tuple(v / np.linalg.norm(v, axis=1, keepdims=True) for v in (queries, keys))


def test_no_digit_is_lost_when_the_loss_is_tiny():
    """At temperature 0.001 the textbook difference of logarithms returns 0; the truth is about 1.2e-158."""
    loss = get_loss("info_nce")
    queries, keys = aligned_pairs(16, 16, 0, 0.1)
    value, grad = loss.value_and_grad(queries, keys, temperature=0.001, normalize="none")
    arguments = {"queries": queries, "keys": keys, "temperature": 0.001, "normalize": "none"}
    truth = float(
        exact.as_floats(exact.reference(loss, system=run.fastest_system(), gradients=False, **arguments)["value"])
    )
    assert f"{truth:.1e}" == "1.2e-158"
    assert abs(value - truth) < 1e-10 * truth
    assert np.max(np.abs(grad["queries"])) > 0
    assert np.max(np.abs(grad["keys"])) > 0


def test_the_gradient_of_a_tiny_loss_is_right_too():
    loss = get_loss("info_nce")
    queries, keys = aligned_pairs(4, 3, 0, 0.1)
    arguments = {"queries": queries, "keys": keys, "temperature": 0.005}
    value, grad = loss.value_and_grad(**arguments)
    truth = {
        name: exact.as_floats(x) for name, x in exact.reference(loss, system=run.fastest_system(), **arguments).items()
    }
    assert value < 1e-20
    # |logit| <= 200 enters the exponent: 200 roundings and the few of the dot products.
    room = 1000 * np.finfo(np.float64).eps
    for name in ("queries", "keys", "temperature"):
        assert np.max(np.abs(grad[name] - truth[name])) <= room * np.max(np.abs(truth[name]))


@every_loss
def test_temperature_1e_minus_4_gives_neither_infinity_nor_nan(loss_name):
    """In single precision, which has the smaller range."""
    loss = get_loss(loss_name)
    for case in cases(loss.declaration, ("random", "aligned", "collapsed", "opposed"), (1e-4,)):
        value, grads = loss.value_and_grad(**case.cast(np.float32))
        assert np.isfinite(value), case.name
        assert all(np.all(np.isfinite(g)) for g in grads.values()), case.name
