"""Losses of one device each in JAX, which is a rank: right ones, and one whose gathered rows have no gradient."""

import jax
import jax.numpy as jnp


def unit(rows):
    return rows / jnp.linalg.norm(rows, axis=-1, keepdims=True)


def gathered(rows, axis="batch"):
    return jax.lax.all_gather(rows, axis, tiled=True)


def cross_entropy(logits, target):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, None], axis=1).mean()


def own_rows(image, text, logit_scale, rank, gather):
    image, text = unit(image), unit(text)
    target = len(image) * rank + jnp.arange(len(image))
    by_image = cross_entropy(logit_scale * image @ gather(text).T, target)
    return (by_image + cross_entropy(logit_scale * text @ gather(image).T, target)) / 2


def clip(image, text, logit_scale):
    return own_rows(image, text, logit_scale, jax.lax.axis_index("batch"), gathered)


def clip_on_each(image, text, logit_scale):
    """The value of the joined batch on each device, as `pmean` gives it."""
    return jax.lax.pmean(clip(image, text, logit_scale), "batch")


def clip_joined(image, text, logit_scale):
    """All rows of the joined batch on each device."""
    return own_rows(gathered(image), gathered(text), logit_scale, 0, lambda rows: rows)


def clip_without_gradient(image, text, logit_scale):
    stopped = lambda rows: gathered(jax.lax.stop_gradient(rows))  # noqa: E731
    return own_rows(image, text, logit_scale, jax.lax.axis_index("batch"), stopped)


def clip_of_another_axis(image, text, logit_scale):
    gather = lambda rows: gathered(rows, "devices")  # noqa: E731
    return own_rows(image, text, logit_scale, jax.lax.axis_index("devices"), gather)


def clip_at_a_place(image, text, logit_scale, rank, world_size):
    assert world_size == jax.lax.psum(1, "batch")
    return own_rows(image, text, logit_scale, rank, gathered)


class Clip:
    """Takes its place from the constructor."""

    def __init__(self, rank, world_size):
        self.rank, self.world_size = rank, world_size

    def __call__(self, image, text, logit_scale):
        return clip_at_a_place(image, text, logit_scale, self.rank, self.world_size)


def nt_xent(z1, z2, temperature):
    """The views of the own rows against all views."""
    views = jnp.stack([unit(z1), unit(z2)])
    everyone = gathered(jnp.moveaxis(views, 0, 1)).swapaxes(0, 1).reshape(-1, z1.shape[1])
    count, rank = len(everyone) // 2, jax.lax.axis_index("batch")
    own = len(z1) * rank + jnp.arange(len(z1))
    total = 0.0
    for view, place, positive in ((0, own, own + count), (1, own + count, own)):
        logits = views[view] @ everyone.T / temperature
        logits = jnp.where(jnp.arange(2 * count) == place[:, None], -jnp.inf, logits)
        total += cross_entropy(logits, positive) / 2
    return total


def raises(image, text, logit_scale):
    if image.shape[0] < 1000:
        msg = "too few rows"
        raise ValueError(msg)
    return clip(image, text, logit_scale)


def rows(image, text, logit_scale):
    return clip(image, text, logit_scale) * jnp.ones(3)
