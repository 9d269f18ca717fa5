"""Small recipes and batches that training is tested with."""

import numpy as np

import nceref
from nceref.training import Adam, Batch, Recipe, Tanh, mlp

CLASSES = 4
CENTERS = np.random.default_rng(9).standard_normal((CLASSES, 6))
NETWORK = mlp((6, 16, CLASSES), activation=Tanh)
SETTINGS = {"fraction": 0.5, "alpha": 0.05, "class_counts": np.full(CLASSES, 10.0), "noise_ratio": 2.0,
            "expected_counts": np.full(12, 2.0)}  # fmt: skip
WIDE = 3.0
"""Standard deviation of the noise that data are told from."""


def views(rng, labeled=True, count=2):
    y = rng.integers(0, CLASSES, 12)
    x = CENTERS[y]
    return Batch(tuple(x + 0.3 * rng.standard_normal(x.shape) for _ in range(count)), y if labeled else None)


def normal(x, width):
    """Log-density of a normal law around 0 with this deviation along each axis."""
    return -(x**2 / width**2 / 2 + np.log(width) + np.log(2 * np.pi) / 2).sum(axis=1)


def data_and_noise(rng, features=6, each=(12, 24)):
    """Samples of two normal laws, with the log-density of the second one at both."""
    x, y = rng.standard_normal((each[0], features)), WIDE * rng.standard_normal((each[1], features))
    return Batch((x, y), given={"data_log_noise": normal(x, WIDE), "noise_log_noise": normal(y, WIDE)})


def recipe(name, steps=40, **more):
    given = {p.name for p in nceref.get_loss(name).parameters}
    settings = {key: value for key, value in SETTINGS.items() if key in given}
    needs = {"queue": 16} if name == "moco" else {"classes": CLASSES} if given & {"centers", "class_weights"} else {}
    if name == "nce":
        needs = {"network": mlp((6, 16, 1), activation=Tanh)}
    return Recipe(
        name, **{"network": NETWORK, "optimizer": Adam(1e-2), "settings": settings} | needs | more,
        steps=steps,
    )  # fmt: skip


def changing(change, **options):
    """Batches that are changed from the third on."""
    drawn = []

    def draw(rng):
        drawn.append(views(rng, **options))
        return change(drawn[-1]) if len(drawn) > 2 else drawn[-1]

    return draw
