"""Statistics: with and without running maxima they agree, folds of parts are merged, and float32 keeps its range."""

import numpy as np
import pytest
from engine.small_cases import assert_within_bounds, small_cases
from sweep import every_loss, sweep

from nceref import config, get_loss
from nceref.engine.label_patterns import OtherLabel
from nceref.engine.statistics import LogSumExp, PositiveSet, Sum
from nceref.engine.tiles import Tile, View
from nceref.engine.unshifted_statistics import ExpMeanNearOne, ExpSum, PositiveSums
from nceref.tolerance import bounds, close

pytestmark = pytest.mark.machine


@every_loss
def test_statistics_with_and_without_running_maxima_agree(loss_name):
    """At this temperature every exponential is in range, so that both kinds can do the work."""
    loss = get_loss(loss_name)
    for case, expected, allowed in small_cases(loss_name, geometries=("odd", "aligned")):
        with pytest.MonkeyPatch.context() as patch:
            for statistic in (LogSumExp, PositiveSet):
                patch.setattr(statistic, "within", lambda self, bound, most: self)
            assert_within_bounds(case, loss.value_and_grad(**case.inputs), expected, allowed)


@sweep("temperature", [0.05, 0.01, 0.001])
@sweep("name", ["nt_xent", "info_nce", "clip", "supcon_out"])
def test_float32_is_right_on_both_sides_of_the_range_of_its_exponentials(name, temperature):
    """exp(1 / temperature) leaves the range of float32 below 0.011; half of it is used without maxima."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 40, 6))
    labels = rng.integers(0, 4, 40)
    arguments = {
        "nt_xent": {"z1": x, "z2": y, "temperature": temperature},
        "info_nce": {"queries": x, "keys": y, "temperature": temperature},
        "clip": {"image": x, "text": y, "logit_scale": 1 / temperature},
        "supcon_out": {"embeddings": x, "labels": labels, "temperature": temperature},
    }[name]
    single = {k: v.astype(np.float32) if getattr(v, "dtype", None) == np.float64 else v for k, v in arguments.items()}
    wide = {k: v.astype(np.float64) if getattr(v, "dtype", None) == np.float32 else v for k, v in single.items()}
    loss, allowed = get_loss(name), bounds(get_loss(name), **single)
    with config(block=16):
        value, grads = loss.value_and_grad(**single)
    exact, truth = loss.value_and_grad(**wide)
    assert abs(value - exact) <= allowed.value
    for entry, grad in grads.items():
        assert np.all(np.abs(grad - truth[entry]) <= allowed.grads[entry])


@sweep(
    "statistic",
    [
        LogSumExp(),
        LogSumExp(2.0),
        Sum(),
        PositiveSet(),
        PositiveSet(inside=True),
        ExpSum(),
        ExpSum(2.0),
        ExpMeanNearOne(2.0, 6),
        PositiveSums(),
        PositiveSums(inside=True),
    ],
)
def test_merging_two_folds_is_folding_both(statistic):
    s = np.random.default_rng(0).standard_normal((3, 8))
    pattern = OtherLabel(np.arange(3), np.arange(8) % 4)
    half = [View(Tile(s[:, at], slice(0, 3), at, bounded=True), flip=False) for at in (slice(0, 4), slice(4, 8))]
    start = statistic.start(np.zeros(3))
    left, right = (statistic.fold(start, view, pattern) for view in half)
    both = statistic.fold(left, half[1], pattern)
    assert close(statistic.finish(statistic.merge(left, right)), statistic.finish(both), scale=1.0)
    assert close(statistic.finish(statistic.merge(left, start)), statistic.finish(left), scale=1.0)
