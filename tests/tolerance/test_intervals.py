"""Intervals hold what they are said to hold: every value of a head over the box of errors, corners or not."""

import mpmath
import numpy as np
import pytest
from sweep import every_loss, sweep

from nceref import get_loss
from nceref.checks.cases import cases
from nceref.engine.arguments import bind
from nceref.spec import Array
from nceref.tolerance import bounds
from nceref.tolerance.analysis import Analysis
from nceref.tolerance.forward import RoundingFormat
from nceref.tolerance.intervals import NAMESPACE as XP
from nceref.tolerance.intervals import Interval, Unsure, statistics

pytestmark = pytest.mark.machine

EXACT = RoundingFormat(0.0, 0.0)
LOW = np.array([-3.0, -1e-3, 0.25, 0.0])
HIGH = np.array([-1.0, 2.0, 0.25, 5e-17])


def box(low, high, fmt=EXACT):
    low, high = np.asarray(low), np.asarray(high)
    return Interval((low + high) / 2, fmt, low, high, rest=(high - low) / 2)


@sweep(("width", "temperature"), [(1.0, 0.1), (2.0**46, 1.0)], ids=lambda x: f"{x:.0e}")
@every_loss
def test_every_point_of_the_box_is_inside(loss_name, width, temperature):
    """From boxes of rounding errors in float64 to some that are wider than the statistics; moves of all signs at once.

    A head that is said to be monotone and is not leaves points outside.
    """
    rng = np.random.default_rng(7)
    loss = get_loss(loss_name).declaration
    for case in cases(loss, ("random",), (temperature,)):
        with np.errstate(all="ignore"):
            analysis = Analysis(loss.plan(**bind(loss, (), case.inputs)), RoundingFormat(2.0**-53, 1e-300))
            analysis.fold()
            analysis.apply_head()
            spread = {name: width * x for name, x in analysis.spread.items()}
            rows, slopes = analysis.moved_by(spread)
            # Both are rounded, where an exact number was to be compared with a rounded one.
            rows = rows + analysis.own_rounding()
            for trial in range(6):
                moves = {name: rng.uniform(-1, 1, x.shape) if trial % 3 else rng.choice([-1, 1], x.shape)
                         for name, x in spread.items()}  # fmt: skip
                # The mass of a set of positives is exact.
                stats = {name: within(x, moves[name] * np.where(np.arange(x.shape[-1]) < 2 if x.ndim == 2 else True,
                                                                spread[name], 0.0), spread[name])
                         for name, x in analysis.stats.items()}  # fmt: skip
                there, slopes_there = analysis.head_at(stats)
                assert np.all(np.abs(there - analysis.rows) <= rows)
                for name, slope in slopes_there.items():
                    assert np.all(np.abs(slope - analysis.slopes[name]) <= slopes[name])


@every_loss
def test_the_last_bit_of_a_statistic_does_not_move_a_bound(loss_name):
    """Taken as a difference of ends, a bound of float64 is a few units in the last place of a row, and jumps by one."""
    rng = np.random.default_rng(3)
    loss = get_loss(loss_name).declaration
    for case in cases(loss, ("random",), (0.1,)):
        with np.errstate(all="ignore"):
            analysis = Analysis(loss.plan(**bind(loss, (), case.inputs)), RoundingFormat(2.0**-53, 1e-300)).run()
            before = [analysis.row_errors, *analysis.slope_errors.values()]
            for _ in range(2):
                analysis.stats = {
                    name: np.where(np.arange(x.shape[-1]) < 2 if x.ndim == 2 else True,
                                   np.nextafter(x, rng.choice([-np.inf, np.inf], x.shape)), x)
                    for name, x in analysis.stats.items()
                }  # fmt: skip
                rows, slopes = analysis.moved_by(analysis.spread)
                for one, other in zip(before, [rows, *slopes.values()], strict=True):
                    # Slopes that are all 0, and sums of nothing, have no error but what underflows.
                    assert np.all(np.abs(one - other) <= 1e-9 * np.abs(one) + 1e-290)


def test_errors_of_one_origin_cancel_and_those_of_two_rows_do_not():
    x = statistics({"x": np.array([3.0, 5.0])}, {"x": np.array([0.25, 0.25])}, EXACT)["x"]
    assert (x - x).error.tolist() == [0.0, 0.0]
    assert (x * 2.0 - x).error.tolist() == [0.25, 0.25]
    assert float(XP.sum(x).error) == 0.5
    # Once a row has moved, its error is no longer that of the row beside it.
    moved = XP.concat([x[1:], x[:1]])
    assert (x - moved).error.tolist() == [0.5, 0.5]


def within(x, move, spread):
    """A number moved, but for where rounding the sum would move it beyond the spread."""
    return np.where(np.abs((x + move) - x) <= spread, x + move, x)


def test_what_lies_between_the_corners_is_inside():
    """The square of [-1, 2] has its smallest value at 0; at both ends it is larger."""
    x = box([-1.0], [2.0])
    assert (x * x).low <= 0 < (x * x).high < 4.1
    # Two numbers of the same interval are not one: their product may be -2.
    other = box([-1.0], [2.0])
    assert (x * other).low <= -2


@sweep("name", ["exp", "expm1", "log", "log1p", "sqrt", "abs", "neg", "double", "product", "quotient"])
def test_operations_hold_what_multiprecision_intervals_hold(name):
    """The other side is mpmath's interval arithmetic with 60 digits."""
    low, high = (LOW + 4, HIGH + 4) if name in ("log", "log1p", "sqrt", "quotient") else (LOW, HIGH)
    x, y = box(low, high), box(low[::-1], high[::-1])
    ours = {"neg": lambda: -x, "double": lambda: x + x, "product": lambda: x * y, "quotient": lambda: x / y}
    got = ours.get(name, lambda: getattr(XP, name)(x))()
    mpmath.iv.dps = 60
    theirs = {
        "neg": lambda a, b: -a, "double": lambda a, b: a + a, "product": lambda a, b: a * b,
        "quotient": lambda a, b: a / b, "expm1": lambda a, b: mpmath.iv.exp(a) - 1,
        "log1p": lambda a, b: mpmath.iv.log(1 + a), "abs": lambda a, b: abs(a),
    }  # fmt: skip
    for i in range(len(low)):
        a, b = mpmath.iv.mpf([low[i], high[i]]), mpmath.iv.mpf([low[3 - i], high[3 - i]])
        exact = theirs[name](a, b) if name in theirs else getattr(mpmath.iv, name)(a)
        assert got.low[i] <= exact.a.a
        assert exact.b.b <= got.high[i]
        # And little more than that.
        room = 1e-14 * (1 + abs(float(exact.a.a)) + abs(float(exact.b.b)))
        assert float(exact.a.a) - room <= got.low[i]
        assert got.high[i] <= float(exact.b.b) + room


def test_where_it_is_not_sure_both_are_held():
    x = box(LOW, HIGH)
    below = x < 0
    assert isinstance(below, Unsure)
    chosen = XP.where(below, 10.0, x)
    assert chosen.low.tolist() == [10.0, -1e-3, 0.25, 0.0]
    assert chosen.high.tolist() == [10.0, 10.0, 0.25, 5e-17]
    assert XP.where(~below, 10.0, x).low.tolist() == [-3.0, -1e-3, 10.0, 10.0]


def test_a_quotient_by_what_may_be_0_has_no_ends():
    with np.errstate(invalid="ignore"):
        out = 1 / box(LOW, HIGH)
    assert np.isinf(out.low).tolist() == np.isinf(out.high).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("name", "rows", "settings"),
    [
        ("dclw", [[1.0, 2.0], [3.0, -1.0]], {"temperature": 0.8, "sigma": 1e-12}),
        ("uniformity", [[1.0], [0.2]], {"t": 1e8}),
    ],
)
def test_an_exponent_that_rounding_makes_large_leaves_a_finite_bound(name, rows, settings):
    loss, x = get_loss(name), np.asarray(rows, np.float32)
    arrays = [p for p in loss.declaration.parameters if isinstance(p, Array)]
    allowed = bounds(loss, *[x, x[::-1]][: len(arrays)], **settings)
    # Weights are between 2 - N and 2, and no distance is above 2.
    assert allowed.value < 1e5
    assert all(np.max(bound) < 1e5 for bound in allowed.grads.values())
