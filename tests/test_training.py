"""Training by name: which losses can be fed, what they are fed with, and what happens to a run that diverges."""

from itertools import pairwise

import numpy as np
import pytest

import nceref
from nceref.errors import InputError
from nceref.network import Tanh, initial, mlp
from nceref.optimizers import SGD, Adam
from nceref.training import Batch, Member, Recipe, train

CLASSES = 4
CENTERS = np.random.default_rng(9).standard_normal((CLASSES, 6))
NETWORK = mlp((6, 16, CLASSES), activation=Tanh)
SETTINGS = {"fraction": 0.5, "alpha": 0.05, "class_counts": np.full(CLASSES, 10.0)}
NOT_FED = {"nce"}
"""Its inputs are log-densities of a model and of noise, which no encoder makes."""


def views(rng, labeled=True, count=2):
    y = rng.integers(0, CLASSES, 12)
    x = CENTERS[y]
    return Batch(tuple(x + 0.3 * rng.standard_normal(x.shape) for _ in range(count)), y if labeled else None)


def recipe(name, steps=40, **more):
    given = {p.name for p in nceref.get_loss(name).parameters}
    settings = {key: value for key, value in SETTINGS.items() if key in given}
    needs = {"queue": 16} if name == "moco" else {}
    return Recipe(
        name, **{"network": NETWORK, "optimizer": Adam(1e-2), "settings": settings, "classes": CLASSES} | needs | more,
        steps=steps,
    )  # fmt: skip


def heat(name, t=0.3):
    names = {p.name for p in nceref.get_loss(name).parameters}
    return t if names & {"temperature", "logit_scale", "scale"} else None


def test_every_loss_trains_an_encoder(loss_name):
    if loss_name in NOT_FED:
        with pytest.raises(InputError, match=f"cannot supply {loss_name}: none of its inputs takes the features"):
            train(recipe(loss_name), [Member(0)], views)
        return
    trained = train(recipe(loss_name), [Member(0, heat(loss_name)), Member(1, heat(loss_name))], views)
    assert trained.stopped == (None, None)
    first, last = trained.losses[:5].mean(axis=0), trained.losses[-5:].mean(axis=0)
    assert (last < first).all()


@pytest.mark.parametrize("name", ["cross_entropy", "arcface"])
def test_a_step_follows_the_gradient_of_the_whole_program(name):
    """One step of plain descent moves weight and center by -rate times the derivative, found by differences."""
    settings = {"scale": 2.0, "margin": 0.1} if name == "arcface" else {}
    rate, h = 1e-3, 1e-6
    batch = views(np.random.default_rng([3, 1]), count=1)
    one = Recipe(name, NETWORK, 1, SGD(rate), settings=settings, classes=CLASSES)
    after = train(one, [Member(3)], lambda rng: views(rng, count=1))
    before = train(Recipe(name, NETWORK, 1, SGD(1e-300), settings=settings, classes=CLASSES), [Member(3)],
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
        found = after.learned[k][0] if isinstance(k, str) else after.parameters[k][0]
        # Differences of a float64 loss near 1 with this step are good to 1e-9.
        assert (array[i] - found[i]) / rate == pytest.approx((ends[0] - ends[1]) / (2 * h), abs=1e-8)


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


def test_a_run_that_diverges_stops_alone_with_its_last_sound_weights():
    linear = Recipe("simple", mlp((6, 5, 4)), 6, SGD((1e-2, 1e200)), settings={"normalize": "none"})
    trained = train(linear, [Member(0), Member(1)], views)
    assert trained.stopped[0] is None
    assert trained.stopped[1] == (2, "the features are infinite or NaN")
    assert np.isnan(trained.losses[1:, 1]).all()
    assert np.isfinite(trained.losses[:, 0]).all()
    start = train(Recipe("simple", mlp((6, 5, 4)), 1, SGD(1e-300), settings={"normalize": "none"}), [Member(1)], views)
    for found, initial_weights in zip(trained.parameters, start.parameters, strict=True):
        np.testing.assert_array_equal(found[1], initial_weights[0])


def test_weights_that_leave_the_range_are_not_kept():
    def large(rng):
        return Batch(tuple(1e3 * view for view in views(rng).views))

    wild = Recipe("simple", mlp((6, 5, 4)), 3, SGD(1e308), settings={"normalize": "none"})
    trained = train(wild, [Member(0)], large)
    assert trained.stopped == ((1, "the parameters are infinite or NaN"),)
    assert all(np.isfinite(w).all() for w in trained.parameters)


def test_training_ends_when_all_have_stopped():
    steps = []
    trained = train(Recipe("info_nce", mlp((6, 5, 4)), 50, SGD(1e200)), [Member(0, 0.2)], views, noted=steps.append)
    assert trained.stopped[0][0] == len(steps) < 50


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train(Recipe("infonce", NETWORK, 1), [Member(0, 1.0)], views), "did you mean 'info_nce'"),
        (lambda: train(Recipe("moco", NETWORK, 1), [Member(0, 1.0)], views), "moco needs a queue"),
        (lambda: train(Recipe("clip", NETWORK, 1, queue=4), [Member(0, 1.0)], views), "clip has no `queue`"),
        (lambda: train(Recipe("paco", NETWORK, 1), [Member(0, 1.0)], views), "say how many `classes` there are"),
        (lambda: train(Recipe("balanced_softmax", NETWORK, 1), [Member(0, 1.0)], views), "pass it in the settings"),
        (lambda: train(Recipe("hard_contrastive", NETWORK, 1), [Member(0, 1.0)], views), "needs `fraction`"),
        (lambda: train(Recipe("simple", NETWORK, 1), [Member(0, 1.0)], views), "has no temperature"),
        (lambda: train(Recipe("dcl", NETWORK, 1), [Member(0)], views), "needs `temperature`"),
        (lambda: train(Recipe("dcl", NETWORK, 1), [Member(0, 1.0)], lambda r: views(r, count=1)), "draw two"),
        (lambda: train(recipe("paco"), [Member(0, 1.0)], lambda r: views(r, labeled=False)), "draw labeled ones"),
        (lambda: train(recipe("dcl"), [], views), "`members` must not be empty"),
        (lambda: recipe("dcl", steps=0), "`steps` must be an integer >= 1, got 0"),
        (lambda: recipe("dcl", dtype="float16"), "`dtype` must be 'float32' or 'float64', got 'float16'"),
        (lambda: Member(0, 0.0), "`temperature` must be > 0 and finite, got 0.0"),
        (lambda: Member(-1), "`seed` must be an integer >= 0, got -1"),
    ],
)
def test_what_cannot_be_trained_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
