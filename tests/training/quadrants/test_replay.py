"""The replay of source 003's toy: random numbers bit by bit, weights against the framework, numbers of the pictures."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sweep import sweep

from nceref import losses
from nceref.errors import InputError
from nceref.training.quadrants import batch, fused, indices, plain, record, replay, samples, statistics
from nceref.training.quadrants.batch import PUBLISHED, Setup

DATA = json.loads((Path(__file__).parents[2] / "data" / "quadrants.json").read_text(encoding="utf-8"))
SEEDS = [int(seed) for seed in DATA["seeds"]]
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
"""Of final weights at temperatures from 0.05 on, where rounding errors do not grow."""
# Temperature: mean loss of the first and last 1000 steps, positive on top, standard deviations, cosines within and
# between classes, uniformity, distance to the square, radius, accuracy of neighbors; as printed for seed 0.
PICTURES = [
    (0.05, 0.5976, 0.4513, 0.9073, 0.498, 0.451, 0.8679, -0.2898, -1.5759, 0.0168, 0.633, 0.98),
    (0.99, 0.7540, 0.7381, 0.9079, 0.141, 0.131, 0.8527, -0.2848, -1.5803, 0.2759, 0.178, 0.97),
    (0.5, 0.4827, 0.4478, 0.9063, 0.164, 0.135, 0.8536, -0.2854, -1.5753, 0.2583, 0.196, 0.97),
    (0.05, 0.5829, 0.3168, 0.9150, 0.473, 0.450, 0.8669, -0.2894, -1.5735, 0.0202, 0.614, 0.98),
    (0.01, 2.4816, 0.3917, 0.9567, 0.832, 0.853, 0.9328, -0.3096, -1.5086, 0.1131, 1.168, 1.00),
]
PLACES = (4, 4, 4, 3, 3, 4, 4, 4, 4, 3, 2)


@pytest.fixture(scope="module", params=["float32", "float64"])
def runs(request):
    """All published runs of all seeds of the data, as one batch."""
    return replay.run(SEEDS, dtype=request.param)


def apart(run, weights):
    return max(np.abs(a - np.array(b)).max() for a, b in zip((run.W1, run.W2), weights, strict=True))


def test_the_data_say_where_they_come_from():
    assert "torch 2.13.0" in DATA["made with"]
    assert DATA["temperatures"] == list(PUBLISHED)
    assert set(SEEDS) == {0, 1}


@pytest.mark.parametrize("seed", SEEDS)
def test_samples_and_initial_weights_are_the_framework_s_bit_by_bit(seed):
    drawn, data = samples.draw(seed), DATA["seeds"][str(seed)]
    for name in ("samples", "W1", "W2"):
        result = getattr(drawn, name)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result.astype(np.float64), np.array(data[name]))


@pytest.mark.parametrize("seed", [0, 1, 7, 2**32 - 1])
def test_indices_are_those_of_python_s_random(seed):
    generator, result = random.Random(seed), indices.numbers(seed, 3000)
    for row in result.tolist():
        label, anchor, positive = generator.randint(0, 3), *(generator.sample(range(25), 1) for _ in range(2))
        assert row == [label, *anchor, *positive, *generator.sample(range(75), 3)]


def test_indices_name_an_own_positive_and_three_others():
    rows = indices.draw(3, 2, 500)
    assert rows.shape == (2, 500, 5)
    label = samples.LABELS[rows]
    assert (label[..., 0] == label[..., 1]).all()
    assert (label[..., 2:] != label[..., :1]).all()
    assert all(len(set(row)) == 3 for row in rows[..., 2:].reshape(-1, 3).tolist())


def test_the_random_state_goes_on_from_run_to_run():
    np.testing.assert_array_equal(indices.draw(0, 2, 30).reshape(-1, 5), indices.draw(0, 1, 60)[0])


def test_weights_end_where_the_framework_s_do(runs):
    dtype = runs.setup.dtype
    for run, data in zip(runs.runs, [r for s in SEEDS for r in DATA["seeds"][str(s)][dtype]], strict=True):
        assert run.temperature == data["temperature"]
        assert run.W1.dtype == run.features.dtype == np.dtype(dtype)
        if run.temperature >= 0.05:
            assert apart(run, data["end"]) <= TOLERANCE[dtype]
            assert run.comparable_until == 10_000


def test_cold_runs_agree_as_long_as_rounding_stays_small(runs):
    dtype = runs.setup.dtype
    near = {"float32": 1e-4, "float64": 1e-10}[dtype]
    for run, data in zip(runs.runs, [r for s in SEEDS for r in DATA["seeds"][str(s)][dtype]], strict=True):
        early = replace(run, W1=run.weights_at_500[0], W2=run.weights_at_500[1])
        if run.temperature == 0.01:
            assert apart(early, data["at 500"]) <= near
            if run.seed == 0:
                assert apart(run, data["end"]) <= near
        if run.temperature == 0.001:
            assert run.growth[-1][1] > replay.LIMIT
            if run.comparable_until >= 500:
                assert apart(early, data["at 500"]) <= (1e-3 if dtype == "float32" else near)


def test_growth_tells_chaos_from_rounding(runs):
    for run in runs.runs:
        assert [step for step, _ in run.growth] == list(range(250, 10_001, 250))
        ends = run.growth[-1][1]
        if run.temperature >= 0.05:
            assert ends <= 100 * np.finfo(runs.setup.dtype).eps
        if run.temperature == 0.001:
            assert ends > 1e-2


def test_at_the_lowest_temperature_all_points_sit_in_two_opposite_corners():
    """In float64, where of 48 starts an ulp apart every one ends so; of 48 in float32, 2 end in all four corners."""
    run = replay.run(temperatures=PUBLISHED, dtype="float64").runs[-1]
    f = run.features
    near = np.abs(np.abs(f) - 1).max(axis=1) < 0.1
    assert near.mean() > 0.9
    corners, counts = np.unique(np.sign(f[near]), axis=0, return_counts=True)
    assert counts[np.argsort(counts)[-2:]].sum() >= 0.97 * near.sum()
    first, second = corners[np.argsort(counts)[-2:]]
    np.testing.assert_array_equal(first, -second)


def test_the_encoder_is_odd(runs):
    run = runs.runs[0]
    mirrored = replace(run, samples=-run.samples)
    np.testing.assert_array_equal(mirrored.features, -run.features)


def test_the_pictures_in_numbers(runs):
    for run, row in zip(runs.of(0), PICTURES, strict=False):
        s, steps = run.statistics, run.over_steps
        result = (steps.loss_first, steps.loss_last, steps.positive_on_top, *s.std, s.cosine_within, s.cosine_between,
                 s.uniformity, s.square_distance, s.radius, s.neighbor_accuracy)  # fmt: skip
        assert run.temperature == row[0]
        for value, printed, places in zip(result, row[1:], PLACES, strict=True):
            # Half a unit of the last printed digit, and room for float32.
            assert abs(value - printed) <= 0.51 * 10.0**-places + 1e-7 * abs(value)


def test_the_numbers_of_untrained_features():
    drawn = samples.draw(0)
    s = statistics.of_features(np.tanh(drawn.samples @ drawn.W1.T @ drawn.W2.T))
    expected = ((0.151, 0.040), 0.3114, -1.2430, 0.8443, -0.2829, 0.3222, 0.136, 0.98)
    result = (s.std, s.alignment, s.uniformity, s.cosine_within, s.cosine_between, s.square_distance, s.radius,
             s.neighbor_accuracy)  # fmt: skip
    np.testing.assert_allclose(np.hstack(result), np.hstack(expected), atol=0.51e-3)
    assert statistics.square_distance(drawn.samples.astype(np.float64)) == pytest.approx(0.0059, abs=0.5e-4)


def test_neighbors_that_are_equally_near_count_by_their_share():
    corners = np.repeat([(1.0, 1.0), (1.0, 1.0), (-1.0, -1.0), (-1.0, 1.0)], samples.PER_CLASS, axis=0)
    # Of 49 neighbors in the shared corner 24 have the own class; the other two classes are alone.
    assert statistics.of_features(corners).neighbor_accuracy == pytest.approx((24 / 49 + 1) / 2)


def test_the_distance_to_a_lattice_is_0_for_the_lattice():
    middles = (np.arange(40) + 0.5) / 20 - 1
    lattice = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    assert statistics.square_distance(lattice) == pytest.approx(0, abs=1e-12)


def first_steps(seed=2, temperatures=PUBLISHED, steps=40):
    drawn = samples.draw(seed)
    points = drawn.samples.astype(np.float64)
    x = points[np.swapaxes(indices.draw(seed, len(temperatures), steps), 0, 1)]
    weights = np.stack([np.stack([w] * len(temperatures)) for w in (drawn.W1, drawn.W2.T)]).astype(np.float64)
    return weights, x, np.array(temperatures), np.full(len(temperatures), 3e-4)


def test_the_fused_step_is_the_plain_step():
    weights, x, temperature, rate = first_steps()
    parameters, expected = (weights[0].copy(), np.swapaxes(weights[1], 1, 2).copy()), []
    for one in x:
        parameters, logits = plain.step(parameters, one, temperature, rate)
        expected.append(logits)
    logits, lengths = fused.advance(weights, x, temperature, rate)
    # The growth of rounding in 40 steps at 0.001, measured, is below 1e-12.
    np.testing.assert_allclose(logits, np.array(expected), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(weights[0], parameters[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.swapaxes(weights[1], 1, 2), parameters[1], rtol=0, atol=1e-12)
    f = plain.ENCODER(x[-1], *parameters)[0]
    np.testing.assert_allclose(
        lengths[-1], np.linalg.norm(f[:, :1], axis=-1) * np.linalg.norm(f[:, 1:], axis=-1), rtol=1e-2
    )


def test_a_step_descends_the_package_s_own_loss():
    weights, x, temperature, rate = first_steps(steps=1)
    parameters = (weights[0], np.swapaxes(weights[1], 1, 2))
    features, vjp = plain.ENCODER(x[0], *parameters)
    g = np.empty_like(features)
    values = []
    for r, f in enumerate(features):
        value, grads = losses.info_nce.value_and_grad(f[:1], f[1:2], f[2:], temperature=temperature[r])
        g[r] = np.concatenate([grads["queries"], grads["keys"], grads["negatives"]])
        values.append(value)
    _, gradients = vjp(g)
    moved, logits = plain.step(parameters, x[0], temperature, rate)
    for old, new, gradient in zip(parameters, moved, gradients, strict=True):
        np.testing.assert_allclose((old - new) / rate[:, None, None], gradient, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(batch.losses_of(logits), values, rtol=1e-9, atol=1e-12)


def test_short_features_are_divided_by_the_clamp_as_in_the_framework():
    a, b = np.array([[[3e-9, 4e-9]]]), np.array([[[0.6, 0.8], [0.0, 0.0]]])
    value, vjp = plain.cosine(a, b)
    np.testing.assert_allclose(value, [[0.5, 0.0]], rtol=1e-15)
    by_a, by_b = vjp(np.array([[1.0, 1.0]]))
    # (v - s d) / clamp with v = (0.6, 0.8), s = 0.5, d = (0.6, 0.8); and of the row of zeros u / clamp.
    np.testing.assert_allclose(by_a, [[[0.3e8, 0.4e8]]], rtol=1e-14)
    np.testing.assert_allclose(by_b[0, 1], [0.3e8, 0.4e8], rtol=1e-14)


def test_a_diverging_run_is_stopped_alone_and_keeps_its_last_sound_weights(monkeypatch):
    monkeypatch.setattr(Setup, "rates", property(lambda self: np.array([3e-4, np.inf])))
    good, bad = replay.run((0,), (0.05, 1e-3), 600).runs
    assert good.stopped is None
    assert len(good.losses) == 600
    assert bad.stopped == 1
    np.testing.assert_array_equal(bad.W1, bad.initial[0])
    assert bad.weights_at_500 is None
    assert bad.over_steps is None
    assert bad.comparable_until == 0
    assert [np.isinf(apart) for _, apart in bad.growth] == [True] * 3
    assert record.record(replay.run((0,), (0.05, 1e-3), 20))["runs"][1]["growth"] == [{"step": 20, "apart": None}]


@pytest.mark.parametrize(("seed", "temperature"), [(0, 1e-30), (5, 1e-37), (3, 1e-24)])
def test_a_run_stops_before_its_features_depend_on_the_order_of_a_sum(seed, temperature):
    """Products of weights overflow there; the original program goes NaN at step 6, 29 and 7 (PyTorch 2.13, CPU)."""
    bad, good = replay.run((seed,), (temperature, 0.05), 300).runs
    assert bad.stopped is not None
    assert bad.stopped <= {0: 6, 5: 29, 3: 7}[seed]
    assert np.isfinite(bad.features).all()
    assert good.stopped is None


def test_the_twin_does_not_depend_on_the_place_in_the_batch():
    alone, both = replay.run((7,), (0.01,), 500), replay.run((3, 7), (0.01,), 500)
    assert alone.runs[0].growth == both.of(7)[0].growth


def test_runs_diverge_at_the_same_step_whatever_the_blocks(monkeypatch):
    temperatures = (1e-30, 1e-36, 0.05, 1e-25)
    whole = [run.stopped for run in replay.run((0,), temperatures, 300).runs]
    monkeypatch.setattr(batch, "BLOCK", 2)
    assert [run.stopped for run in replay.run((0,), temperatures, 300).runs] == whole
    assert len(set(whole)) > 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_twin_is_one_unit_away_in_every_weight(dtype):
    own, twins = np.split(batch.begin(Setup(dtype=dtype)).weights, 2, axis=1)
    up = twins == np.nextafter(own, np.inf)
    assert np.all(up | (twins == np.nextafter(own, -np.inf)))
    assert up.mean() == 0.5


def test_short_features_are_divided_by_the_clamp_also_in_a_whole_run():
    """Weights so small that features are shorter than the clamp: the run is that of the plain step."""
    setup = Setup((4,), (0.5,), 30, "float64")
    start = batch.begin(setup)
    start = replace(start, weights=1e-5 * start.weights)
    parameters = (start.weights[0, :1], np.swapaxes(start.weights[1, :1], 1, 2))
    result = batch.advance(setup, start)
    for rows in indices.draw(4, 1, 30)[0]:
        x = samples.draw(4).samples.astype("float64")[rows][None]
        parameters, _ = plain.step(parameters, x, np.array([0.5]), setup.rates)
    np.testing.assert_array_equal(result.weights[0, :1], parameters[0])
    np.testing.assert_array_equal(np.swapaxes(result.weights[1, :1], 1, 2), parameters[1])


def test_seeds_in_one_batch_are_those_alone():
    both = replay.run((0, 5), (0.05, 0.5), 300, "float64")
    for seed in (0, 5):
        for a, b in zip(both.of(seed), replay.run((seed,), (0.05, 0.5), 300, "float64").runs, strict=True):
            np.testing.assert_allclose(a.W1, b.W1, rtol=0, atol=1e-14)
            assert a.seed == b.seed == seed


def test_the_confounder_holds_rate_over_temperature():
    run = replay.run(temperatures=(0.05, 0.5), steps=10, confounder=True)
    assert [r.rate for r in run.runs] == pytest.approx([3e-4, 3e-3])
    assert [r.rate for r in replay.run(temperatures=(0.05, 0.5), steps=10).runs] == [3e-4, 3e-4]
    assert Setup((0, 1), (0.05, 0.5), confounder=True).rates == pytest.approx([3e-4, 3e-3] * 2)


def test_noted_counts_up_to_the_last_step():
    seen = []
    replay.run(temperatures=(0.5,), steps=600, on_progress=seen.append)
    assert seen == [250, 500, 600]


@sweep(
    ("arguments", "message"),
    [
        ({"seeds": (-1,)}, "`seed` must be an integer from 0 to 4,294,967,295, got -1"),
        ({"seeds": (2**32,)}, "`seed` must be an integer"),
        ({"seeds": (0.5,)}, "`seed` must be an integer"),
        ({"seeds": (3, 3)}, r"`seeds` must be different ones, got \(3, 3\)"),
        ({"seeds": ()}, "`seeds` and `temperatures` must not be empty"),
        ({"temperatures": (0.5, 0.0)}, "`temperatures` must be > 0, from 1e-37 to 1e37, got 0.0"),
        ({"temperatures": (-1.0,)}, "`temperatures` must be > 0"),
        ({"temperatures": (float("nan"),)}, "`temperatures` must be > 0"),
        ({"steps": 0}, "`steps` must be an integer from 1 to 10,000,000, got 0"),
        ({"steps": 2.0}, "`steps` must be an integer from 1 to 10,000,000, got 2.0"),
        ({"dtype": "float16"}, "`dtype` must be 'float32' or 'float64', got 'float16'"),
    ],
)
def test_senseless_setups_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        replay.run(**arguments)


def test_the_framework_itself_takes_the_same_steps():
    torch = pytest.importorskip("torch", reason="the script that is replayed needs PyTorch")
    from benchmarks.quadrants import listing

    torch.manual_seed(11)
    np.testing.assert_array_equal(torch.rand(3).numpy(), samples._uniforms(11, 3).astype(np.float32))
    steps, warm = 150, (0.05, 0.5)
    for dtype, near in TOLERANCE.items():
        runs = replay.run((11,), warm, steps, dtype).runs
        for run, (weights,) in zip(runs, listing(11, warm, steps, dtype), strict=True):
            assert apart(run, weights) <= near
