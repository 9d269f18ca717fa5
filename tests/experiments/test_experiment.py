"""The rule of the verdicts, and runs that can be had again, in one process or in several."""

from dataclasses import replace

import pytest
from experiments.small_runs import ALL, NAMES, shortened, trained

from nceref.errors import InputError
from nceref.experiments.experiment import (
    FIRST_SEED,
    PARTLY,
    REVERSED,
    SHOWN,
    UNDECIDED,
    UNSEEN,
    Contrast,
    Results,
    Statement,
    difference,
    half_interval,
    judge,
    run,
)


def results(**values):
    return Results((0, 1, 2), {name: {"m": x} for name, x in values.items()})


@pytest.mark.parametrize(
    ("a", "b", "verdict", "same"),
    [
        ((4.0, 4.1, 4.2), (1.0, 1.0, 1.0), SHOWN, UNSEEN),
        ((1.0, 1.0, 1.0), (4.0, 4.1, 4.2), REVERSED, UNSEEN),
        ((1.1, 1.0, 0.9), (1.0, 1.0, 1.0), UNSEEN, SHOWN),
        # The mean is above its standard deviation, 2 and 1, but not above its interval, 2 +- 2.48.
        ((1.0, 2.0, 3.0), (0.0, 0.0, 0.0), UNSEEN, UNSEEN),
        # 0.4 +- 0.99: the mean is within the margin of 0.5, the interval is not.
        ((0.0, 0.4, 0.8), (0.0, 0.0, 0.0), UNSEEN, UNSEEN),
    ],
)
def test_the_verdict_is_that_of_the_interval_of_the_mean(a, b, verdict, same):
    statement = Statement("a above b", "nowhere", (difference("m", "a", "b"),))
    assert judge(statement, results(a=a, b=b)).verdict == verdict
    assert judge(replace(statement, margin=0.5), results(a=a, b=b)).verdict == same


def test_an_interval_is_student_s():
    """Three values: 4.30265 standard errors, from any table of Student's t with two degrees of freedom."""
    assert half_interval((1.0, 2.0, 3.0)) == pytest.approx(4.30265 / 3**0.5, rel=1e-5)


def test_a_statement_holds_in_part_and_pairs_seeds():
    """Seeds that differ more than the losses do hide nothing: 1, 11 and 21 are all above 0, 10 and 20 by 1."""
    r = results(a=(1.0, 11.1, 20.9), b=(0.0, 10.0, 20.0), c=(5.0, 15.0, 25.0))
    finding = judge(Statement("a above b and c", "", (difference("m", "a", "b"), difference("m", "a", "c"))), r)
    assert finding.verdict == PARTLY
    assert finding.numbers[0] == pytest.approx((1.0, 0.1 * 4.30265 / 3**0.5), rel=1e-5)


def test_contrasts_say_what_they_are():
    assert str(difference("all", "PaCo", "CE")) == "all: PaCo - CE"
    assert str(Contrast("all", {"no prior": 2, "CE": -1, "PaCo": -0.5})) == "all: 2 no prior - CE - 0.5 PaCo"
    assert str(Contrast("slope", {"sum": -1})) == "slope: - sum"


def test_one_seed_has_no_verdict():
    one = Results((0,), {"a": {"m": (2.0,)}, "b": {"m": (1.0,)}})
    assert judge(Statement("", "", (Contrast("m", {"a": 1, "b": -1}),)), one).verdict == UNDECIDED


@pytest.mark.parametrize("seeds", [0, -1, True])
def test_no_seeds_are_refused(seeds):
    with pytest.raises(InputError, match="`seeds` must be an integer >= 1"):
        run(ALL["long-tail"], seeds)


@pytest.mark.parametrize("name", NAMES)
def test_fewer_seeds_are_the_first_ones_and_every_seed_can_be_had_again(name):
    two, jobs = trained(name)
    one = run(shortened(name, settings=2), 1)
    settings = shortened(name).settings
    assert [job.id for job in jobs] == [f"{name}, seed {seed}" for seed in two.seeds for name in settings]
    assert (one.seeds, two.seeds) == ((FIRST_SEED,), (FIRST_SEED, FIRST_SEED + 1))
    assert all(two.values[s][m][:1] == x for s, rows in one.values.items() for m, x in rows.items())
    assert all(two.curves[s][:1] == rows for s, rows in one.curves.items())


def test_processes_change_nothing():
    few, jobs, expected = shortened(NAMES[-1], settings=2), [], []
    together = run(few, on_progress=jobs.append, processes=2)
    alone = run(few, on_progress=expected.append)
    assert (together.seeds, together.values, together.classes) == (alone.seeds, alone.values, alone.classes)
    assert repr(together.curves) == repr(alone.curves), "NaN is a class that was never seen"
    assert jobs == expected
