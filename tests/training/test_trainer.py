"""Training by name: which losses can be fed, what they are fed with, and what happens to a run that diverges."""

from itertools import pairwise

import numpy as np
import pytest
from sweep import every_loss
from training.recipes import CENTERS, CLASSES, NETWORK, data_and_noise, normal, recipe, views

import nceref
from nceref.training import SGD, Adam, Batch, Member, Recipe, Tanh, mlp, train
from nceref.training.network import initial


def batches_for(name):
    return data_and_noise if name == "nce" else views


def at_temperature(name, t=0.3):
    names = {p.name for p in nceref.get_loss(name).parameters}
    return t if names & {"temperature", "logit_scale", "scale"} else None


@every_loss
def test_every_loss_trains_an_encoder(loss_name):
    members = [Member(0, at_temperature(loss_name)), Member(1, at_temperature(loss_name))]
    trained = train(recipe(loss_name), members, batches_for(loss_name))
    assert trained.stopped == (None, None)
    first, last = trained.losses[:5].mean(axis=0), trained.losses[-5:].mean(axis=0)
    assert (last < first).all()


@pytest.mark.parametrize("name", ["cross_entropy", "arcface"])
def test_a_step_follows_the_gradient_of_the_whole_program(name):
    """One step of plain descent moves weight and center by -rate times the derivative, found by differences."""
    settings, classes = ({"scale": 2.0, "margin": 0.1}, CLASSES) if name == "arcface" else ({}, 0)
    rate, h = 1e-3, 1e-6
    batch = views(np.random.default_rng([3, 1]), count=1)
    one = Recipe(name, NETWORK, 1, SGD(rate), settings=settings, classes=classes)
    after = train(one, [Member(3)], lambda rng: views(rng, count=1))
    before = train(Recipe(name, NETWORK, 1, SGD(1e-300), settings=settings, classes=classes), [Member(3)],
                   lambda rng: views(rng, count=1))  # fmt: skip

    def value(parameters, learned):
        features = NETWORK(batch.views[0], *parameters)[0]
        given = dict(settings) | learned | {"target": batch.labels}
        return nceref.get_loss(name)(features, **given)

    start, centers = [w[0] for w in before.parameters], {key: w[0] for key, w in before.learned.items()}
    assert value(start, centers) == pytest.approx(after.losses[0, 0], rel=1e-12)
    for k, array in [(k, start[k]) for k in range(len(start))] + [(key, centers[key]) for key in centers]:
        i = (0,) * array.ndim
        ends = []
        for sign in (1, -1):
            moved = array.copy()
            moved[i] += sign * h
            new = ([*start[:k], moved, *start[k + 1 :]], centers) if isinstance(k, int) else (start, {k: moved})
            ends.append(value(*new))
        trained_array = after.learned[k][0] if isinstance(k, str) else after.parameters[k][0]
        # Differences of a float64 loss near 1 with this step are good to 1e-9.
        assert (array[i] - trained_array[i]) / rate == pytest.approx((ends[0] - ends[1]) / (2 * h), abs=1e-8)


def test_both_views_pull():
    """Two views, one as queries, one as keys: the update is that of value_and_grad through both."""
    seen = []
    train(recipe("info_nce", steps=1), [Member(0, 0.2)], views, watch=seen.append)
    (moment,) = seen
    batch = views(np.random.default_rng([0, 1]))
    weights = [w[0] for w in initial(NETWORK, (0,))]
    for name, view in zip(("queries", "keys"), batch.views, strict=True):
        np.testing.assert_allclose(moment.inputs[name], NETWORK(view, *weights)[0], rtol=1e-12, atol=1e-14)
        assert np.abs(moment.grads[name]).max() > 0
    assert moment.inputs["temperature"] == 0.2
    assert moment.value == pytest.approx(nceref.get_loss("info_nce")(**moment.inputs))


def test_labels_follow_the_rows():
    seen = []
    train(recipe("paco", steps=1), [Member(0, 0.2)], views, watch=seen.append)
    batch = views(np.random.default_rng([0, 1]))
    np.testing.assert_array_equal(seen[0].inputs["labels"], [*batch.labels, *batch.labels])
    assert seen[0].inputs["embeddings"].shape == (24, CLASSES)
    train(recipe("supcon_out", steps=1), [Member(0, 0.2)], views, watch=seen.append)
    assert seen[1].inputs["embeddings"].shape == (12, 2, CLASSES)
    np.testing.assert_array_equal(seen[1].inputs["labels"], batch.labels)


def test_a_queue_holds_the_latest_keys():
    seen = []
    train(recipe("moco", steps=3, queue=20), [Member(0, 0.2)], views, watch=seen.append)
    for old, new in pairwise(seen):
        np.testing.assert_array_equal(new.inputs["queue"], [*old.inputs["keys"], *old.inputs["queue"][:8]])
        assert "queue" not in new.grads


def test_the_slow_encoder_of_the_keys_is_a_running_mean_of_the_encoder():
    """Written out for three steps: keys come from the mean of earlier weights, and only the queries are pulled."""
    rate, keep, network = 0.5, 0.9, mlp((6, CLASSES), bias=False)
    seen = []
    train(recipe("moco", 3, network=network, queue=12, momentum=keep, optimizer=SGD(rate)), [Member(0, 0.2)], views,
          watch=seen.append)  # fmt: skip
    rng = np.random.default_rng([0, 1])
    fast = slow = initial(network, (0,))[0][0]
    queue = views(rng).views[1] @ slow.T
    for moment in seen:
        x, y = views(rng).views
        np.testing.assert_allclose(moment.inputs["queries"], x @ fast.T, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(moment.inputs["keys"], y @ slow.T, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(moment.inputs["queue"], queue, rtol=1e-12, atol=1e-14)
        queue = y @ slow.T
        fast = fast - rate * moment.grads["queries"].T @ x
        slow = keep * slow + (1 - keep) * fast
    assert np.abs(fast - slow).max() > 1e-3


def test_with_a_slow_encoder_no_gradient_goes_through_the_last_view():
    one = {"network": mlp((6, CLASSES), bias=False), "optimizer": SGD(1.0), "momentum": 1.0}
    seen = []
    trained = train(recipe("info_nce", 1, **one), [Member(0, 0.2)], views, watch=seen.append)
    (x, _), before = views(np.random.default_rng([0, 1])).views, initial(one["network"], (0,))[0][0]
    np.testing.assert_allclose(before - trained.parameters[0][0], seen[0].grads["queries"].T @ x, rtol=1e-10)


def test_scalars_are_learned_one_for_each_member():
    """SigLIP's bias moves by -rate times its gradient, its scale by the exponential of that by the logarithm."""
    rate, seen = 0.1, []
    learning = recipe("siglip", 1, learn=("logit_scale", "logit_bias"), optimizer=SGD(rate),
                      settings={"logit_bias": -10.0})  # fmt: skip
    trained = train(learning, [Member(0, 0.1), Member(1, 0.5)], views, watch=seen.append)
    for e, (moment, scale) in enumerate(zip(seen, (10.0, 2.0), strict=True)):
        assert (moment.inputs["logit_scale"], moment.inputs["logit_bias"]) == (pytest.approx(scale), -10.0)
        moved = scale * np.exp(-rate * scale * moment.grads["logit_scale"])
        assert trained.learned["logit_scale"][e] == pytest.approx(moved, rel=1e-12)
        assert trained.learned["logit_bias"][e] == pytest.approx(-10 - rate * moment.grads["logit_bias"], rel=1e-12)


@pytest.mark.parametrize("name", ["clip", "arcface", "info_nce"])
def test_a_learned_temperature_leaves_its_start_and_stays_positive(name):
    scalar = {"clip": "logit_scale", "arcface": "scale"}.get(name, "temperature")
    trained = train(recipe(name, 20, learn=(scalar,), optimizer=Adam(0.3)), [Member(0, 0.3)], views)
    start = 0.3 if scalar == "temperature" else 1 / 0.3
    assert trained.learned[scalar][0] > 0
    assert abs(np.log(trained.learned[scalar][0] / start)) > 0.3


def test_a_network_learns_a_density_with_its_normalizer():
    """Noise-contrastive estimation: the network's output becomes the log-density of the data, not just its shape."""
    learned = Recipe("nce", mlp((1, 32, 1), activation=Tanh), 500, Adam(1e-2), settings={"noise_ratio": 2.0})
    trained = train(learned, [Member(0)], lambda rng: data_and_noise(rng, 1, (512, 1024)))
    x = np.linspace(-1.5, 1.5, 7)[:, None]
    # Of seeds 0 to 5, the largest difference is 0.09 to 0.15; without the normalizer, log(2 pi) / 2 = 0.92, it fails.
    np.testing.assert_allclose(trained.features(x)[0, :, 0], normal(x, 1.0), atol=0.3)


def test_a_queue_may_have_labels():
    seen = []
    train(recipe("supcon_out", steps=2, queue=15), [Member(0, 0.2)], views, watch=seen.append)
    np.testing.assert_array_equal(seen[1].inputs["queue_labels"][:12], seen[0].inputs["labels"])


def test_a_scale_gets_the_inverse_of_the_temperature():
    seen = []
    train(recipe("siglip", steps=1), [Member(0, 0.25)], views, watch=seen.append)
    assert seen[0].inputs["logit_scale"] == 4.0


def test_members_do_not_disturb_each_other():
    members = [Member(0, 0.2), Member(1, 0.5), Member(0, 0.5)]
    together = train(recipe("paco", steps=5), members, views)
    for e, member in enumerate(members):
        alone = train(recipe("paco", steps=5), [member], views)
        np.testing.assert_allclose(together.losses[:, e], alone.losses[:, 0], rtol=1e-10)
        np.testing.assert_allclose(together.learned["centers"][e], alone.learned["centers"][0], rtol=1e-9)
    np.testing.assert_array_equal(together.features(CENTERS).shape, (3, CLASSES, CLASSES))


def test_centers_are_drawn_from_the_seed_of_their_member():
    trained = train(recipe("paco", 1, optimizer=SGD(1e-300)), [Member(0, 0.2), Member(1, 0.2)], views)
    assert np.abs(np.diff(trained.learned["centers"], axis=0)).max() > 0.1


def test_a_run_that_diverges_stops_alone_with_its_last_sound_weights():
    linear = Recipe("simple", mlp((6, 5, 4)), 6, SGD((1e-2, 1e200)), settings={"normalize": "none"})
    trained = train(linear, [Member(0), Member(1)], views)
    assert trained.stopped[0] is None
    assert trained.stopped[1] == (2, "the features are infinite or NaN")
    assert np.isnan(trained.losses[1:, 1]).all()
    assert np.isfinite(trained.losses[:, 0]).all()
    start = train(Recipe("simple", mlp((6, 5, 4)), 1, SGD(1e-300), settings={"normalize": "none"}), [Member(1)], views)
    for trained_array, initial_weights in zip(trained.parameters, start.parameters, strict=True):
        np.testing.assert_array_equal(trained_array[1], initial_weights[0])


def test_weights_that_leave_the_range_are_not_kept():
    def large(rng):
        return Batch(tuple(1e3 * view for view in views(rng).views))

    wild = Recipe("simple", mlp((6, 5, 4)), 3, SGD(1e308), settings={"normalize": "none"})
    trained = train(wild, [Member(0)], large)
    assert trained.stopped == ((1, "the parameters are infinite or NaN"),)
    assert all(np.isfinite(w).all() for w in trained.parameters)


def with_a_zero_row(rng):
    """A batch whose first row is 0 once in ten times."""
    batch = views(rng)
    batch.views[0][0] *= rng.random() > 0.1
    return batch


@pytest.mark.parametrize("normalize", [True, False])
def test_a_row_without_a_direction_stops_one_member_and_no_other(normalize):
    one = Recipe("info_nce", mlp((6, 4), bias=False, normalize=normalize), 8, SGD(1e-3))
    # In the first batch it would be refused.
    begin = {seed: with_a_zero_row(np.random.default_rng([seed, 1])).views[0][0] for seed in range(9)}
    members = [Member(seed, 0.2) for seed, row in begin.items() if row.any()]
    trained = train(one, members, with_a_zero_row)
    assert None in trained.stopped
    (step, why) = next(filter(None, trained.stopped))
    assert 1 < step <= 8
    assert "zero" in why
    for e, member in enumerate(members):
        alone = train(one, [member], with_a_zero_row)
        assert alone.stopped[0] == trained.stopped[e]
        np.testing.assert_array_equal(alone.losses[:, 0], trained.losses[:, e])
        np.testing.assert_array_equal(alone.parameters[0][0], trained.parameters[0][e])


def test_the_last_update_counts_only_if_the_encoder_survives_it():
    def one(steps):
        return Recipe("simple", mlp((6, 5, 4)), steps, SGD(1e200), settings={"normalize": "none"})

    once, twice = (train(one(steps), [Member(1)], views) for steps in (1, 2))
    assert once.stopped == twice.stopped == ((2, "the features are infinite or NaN"),)
    for a, b in zip(once.parameters, twice.parameters, strict=True):
        np.testing.assert_array_equal(a, b)


def test_means_of_the_optimizer_that_overflow_stop_a_member():
    def large(rng):
        return Batch(tuple(1e82 * view for view in views(rng).views))

    trained = train(Recipe("simple", mlp((6, 5, 4)), 3, settings={"normalize": "none"}), [Member(0)], large)
    assert trained.stopped == ((1, "the optimizer's means are infinite or NaN"),)


@pytest.mark.parametrize("number", [np.float32, np.float64])
def test_numpy_s_own_numbers_do_not_change_the_dtype(number):
    for optimizer in (SGD(number(0.1), number(0.9)), Adam(number(0.1), epsilon=number(1e-8))):
        trained = train(recipe("info_nce", 2, dtype="float32", optimizer=optimizer), [Member(0, 0.2)], views)
        assert {w.dtype for w in trained.parameters} == {np.dtype("float32")}


def test_training_ends_when_all_have_stopped():
    steps = []
    trained = train(
        Recipe("info_nce", mlp((6, 5, 4)), 50, SGD(1e200)), [Member(0, 0.2)], views, on_progress=steps.append
    )
    assert trained.stopped[0][0] == len(steps) < 50
