"""What cannot be trained is refused, with the reason and what to do."""

import numpy as np
import pytest
from sweep import sweep
from training.recipes import CLASSES, NETWORK, changing, data_and_noise, recipe, views

from nceref.errors import InputError
from nceref.training import SGD, Adam, Batch, Member, Recipe, mlp, train


@sweep(
    ("call", "message"),
    [
        (lambda: train(Recipe("info_nec", NETWORK, 1), [Member(0, 1.0)], views), "did you mean 'info_nce'"),
        (lambda: train(Recipe("moco", NETWORK, 1), [Member(0, 1.0)], views), "moco needs a queue"),
        (lambda: train(Recipe("clip", NETWORK, 1, queue=4), [Member(0, 1.0)], views), "clip has no `queue`"),
        (lambda: train(Recipe("paco", NETWORK, 1), [Member(0, 1.0)], views), "say how many `classes` there are"),
        (lambda: train(Recipe("balanced_softmax", NETWORK, 1), [Member(0, 1.0)], views), "pass it in the settings"),
        (lambda: train(Recipe("hard_contrastive", NETWORK, 1), [Member(0, 1.0)], views), "needs `fraction`"),
        (lambda: train(Recipe("simple", NETWORK, 1), [Member(0, 1.0)], views), "has no temperature"),
        (lambda: train(Recipe("dcl", NETWORK, 1), [Member(0)], views), "needs `temperature`"),
        (lambda: train(Recipe("dcl", NETWORK, 1), [Member(0, 1.0)], lambda r: views(r, count=1)), "draw two"),
        (lambda: train(recipe("paco"), [Member(0, 1.0)], lambda r: views(r, labeled=False)), "draw labeled ones"),
        (lambda: train(recipe("dcl"), [], views), "`members` must be one or more of Member"),
        (lambda: train(recipe("dcl"), iter([]), views), "`members` must be one or more of Member"),
        (lambda: train(recipe("dcl"), [Member(0, 1.0)], lambda r: views(r, count=3)), "the batches have 3; draw two"),
        (lambda: train(recipe("info_nce"), [Member(0, 1.0)], lambda r: data_and_noise(r)), r"got \[12, 24\] rows"),
        (lambda: train(recipe("supcon_out", queue=9), [Member(0, 1.0)], lambda r: views(r, False)), "labels, but"),
        (
            lambda: train(recipe("dcl"), [Member(0, 1.0)], changing(lambda b: Batch((b.views[0][:5], b.views[1][:5])))),
            r"all batches must have the same shapes, got \(\(5, 6\), ",
        ),
        (lambda: train(recipe("dcl"), [Member(0, 1.0)], changing(lambda b: Batch(b.views))), "'no labels'"),
        (lambda: train(recipe("dcl", classes=3), [Member(0, 1.0)], views), "leave `classes` out, got 3"),
        (
            lambda: train(recipe("dcl", settings={"normalise": "l2"}), [Member(0, 1.0)], views),
            "no argument of dcl that can be set named 'normalise'; did you mean 'normalize'",
        ),
        (lambda: train(recipe("dcl", network=mlp((5, 4))), [Member(0, 1.0)], views), "they must have 5 features"),
        (lambda: train(recipe("dcl", optimizer=SGD((0.1, 0.2))), [Member(0, 1.0)], views), "each of 1 members"),
        (
            lambda: train(recipe("arcface"), [Member(0, 1.0)], changing(lambda b: Batch(b.views, b.labels + CLASSES))),
            r"step 2, Member\(seed=0, temperature=1.0\): `target` ",
        ),
        (
            lambda: train(
                recipe("supcon_out"),
                [Member(0, 1.0)],
                changing(lambda b: Batch(b.views, np.arange(12)), count=1),
            ),
            r"Member\(seed=0, temperature=1.0\): anchor \d+ has no positive",
        ),
        (
            lambda: train(recipe("info_nce"), [Member(0, 1.0)], lambda r: Batch(views(r).views, given={"keys": 1})),
            "`keys` of info_nce comes from the trainer; leave it out",
        ),
        (
            lambda: train(
                recipe("clip", learn=("logit_scale",)),
                [Member(0, 1.0)],
                lambda r: Batch(views(r).views, given={"logit_scale": 5.0}),
            ),
            "`logit_scale` of clip comes from the trainer",
        ),
        (lambda: train(recipe("dcl"), [Member(0, 1.0)], lambda r: (1, 2)), "`draw` must return a Batch, got tuple"),
        (lambda: recipe("clip", learn="logit_scale"), r"write \('logit_scale',\)"),
        (lambda: mlp((2, 3), activation="relu"), "`activation` must be Tanh or ReLU, the class, got 'relu'"),
        (lambda: Batch(np.zeros((3, 2))), "must be a tuple of at least one array .*, got ndarray"),
        (lambda: Batch(()), "at least one array"),
        (lambda: Batch((np.zeros((0, 6)),)), r"N, F >= 1, got shape \(0, 6\) for view 0"),
        (lambda: Batch((np.zeros(6),)), r"got shape \(6,\) for view 0"),
        (lambda: Batch((np.ones((2, 3)), np.array([[1.0], [np.nan]]))), "must be finite, row 1 of view 1 is not"),
        (lambda: Batch((np.ones((2, 3)).astype("U3"),)), r"`views\[0\]` must be real numbers, got <U3"),
        (lambda: recipe("dcl", network=(6, 4)), r"`network` must be a Network, .* got \(6, 4\)"),
        (lambda: recipe("dcl", optimizer=Adam), "`optimizer` must be one, such as Adam"),
        (lambda: recipe("dcl", optimizer=0.1), "`optimizer` must be one, .* got 0.1"),
        (lambda: train(recipe("dcl"), Member(0, 1.0), views), "one or more of Member"),
        (lambda: train(recipe("dcl"), [(0, 1.0)], views), r"one or more of Member, .* got \(\(0, 1.0\),\)"),
        (
            lambda: Batch((np.zeros((2, 3)),), np.zeros(3, int)),
            r"`labels` must be integers of shape \(2,\), .* got int64 of",
        ),
        (
            lambda: train(recipe("dcl", 1), [Member(0, 1.0)], views).features(np.zeros(6)),
            r"`x` must be of shape \(N, F\), got \(6,\)",
        ),
        (lambda: train(recipe("nce"), [Member(0)], views), "cannot supply `data_log_noise` of nce .*`given` of every"),
        (lambda: train(recipe("nce", network=NETWORK), [Member(0)], data_and_noise), "give the network 1 output"),
        (
            lambda: train(recipe("uniformity", momentum=0.9), [Member(0)], lambda r: views(r, count=1)),
            "have one",
        ),
        (lambda: recipe("moco", momentum=1.5), "`momentum` must be >= 0 and <= 1, got 1.5"),
        (
            lambda: train(recipe("clip", learn=("logit_bias",)), [Member(0, 1.0)], views),
            "no scalar of clip that",
        ),
        (lambda: train(recipe("dcl", learn=("temperature",)), [Member(0)], views), "needs a number to start from"),
        (lambda: recipe("dcl", steps=0), "`steps` must be an integer from 1 to 1,000,000,000, got 0"),
        (lambda: recipe("dcl", dtype="float16"), "`dtype` must be one of 'float32', 'float64', got 'float16'"),
        (lambda: Member(0, 0.0), "`temperature` must be > 0, got 0.0"),
        (lambda: Member(-1), "`seed` must be an integer >= 0, got -1"),
    ],
)
def test_what_cannot_be_trained_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
