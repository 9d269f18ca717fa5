"""Three changes each, in JAX."""

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from mutants.bug import bug


def _unit(x):
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


@bug("siglip", wrong=("logit_scale",))
def siglip_balanced_bias_on_negatives_fixed_scale(image, text, *, logit_scale, logit_bias):
    """A matching pair counts N - 1 times, the bias is added to the others alone, and the scale is stopped."""
    n = len(image)
    logits = stop_gradient(logit_scale) * _unit(image) @ _unit(text).T
    own = jnp.eye(n, dtype=bool)
    pairs = jnp.where(own, (n - 1) * jax.nn.softplus(-logits), jax.nn.softplus(logits + logit_bias))
    return jnp.sum(pairs) / n


@bug("debiased")
def debiased_all_rows_counted_first_view_twice_the_positive(z1, z2, *, temperature, positive_prior):
    """The count of negatives is 2N, the anchors are of the first view alone, and the positive is a negative too."""
    n = len(z1)
    a, b = _unit(z1), _unit(z2)
    own = jnp.eye(n, dtype=bool)
    within = jnp.where(own, 0, jnp.exp(a @ a.T / temperature))
    across = jnp.exp(a @ b.T / temperature)
    positive = jnp.diagonal(across)
    total = jnp.sum(within, axis=1) + jnp.sum(across, axis=1)
    estimate = (total - positive_prior * 2 * n * positive) / (1 - positive_prior)
    estimate = jnp.maximum(estimate, 2 * n * jnp.exp(-1 / temperature))
    return jnp.mean(jnp.log(positive + estimate) - jnp.log(positive))


@bug("clip", wrong=("text",))
def clip_centered_uneven_directions_texts_stopped(image, text, *, logit_scale):
    """Rows are centered on their mean, directions are weighted 0.7 and 0.3, and in the first the texts are stopped."""
    x, y = (_unit(rows - jnp.mean(rows, axis=0)) for rows in (image, text))
    to_texts = jnp.diagonal(jax.nn.log_softmax(logit_scale * x @ stop_gradient(y).T))
    to_images = jnp.diagonal(jax.nn.log_softmax(logit_scale * y @ x.T))
    return -(0.7 * jnp.mean(to_texts) + 0.3 * jnp.mean(to_images))


@bug("hard_contrastive")
def hard_contrastive_easiest_one_more_warm_positive(queries, keys, *, temperature, fraction):
    """The easiest negatives are kept in place of the hardest, one too many, and the positive is not divided by T."""
    n = len(queries)
    similarity = _unit(queries) @ _unit(keys).T
    positive = jnp.diagonal(similarity)
    kept = min(n - 1, max(1, int(-(-round(fraction * (n - 1), 9) // 1))) + 1)
    away = -jnp.where(jnp.eye(n, dtype=bool), jnp.inf, similarity)
    logits = jnp.concatenate([positive[:, None], -jax.lax.top_k(away, kept)[0] / temperature], axis=1)
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - positive)


@bug("nce")
def nce_ratio_not_subtracted_divides_halved(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The log of the noise ratio is not subtracted, the ratio divides the noise, and both parts are averaged."""
    data, noise = data_logits - data_log_noise, noise_logits - noise_log_noise
    return (jnp.mean(jax.nn.softplus(-data)) + jnp.mean(jax.nn.softplus(noise)) / noise_ratio) / 2


@bug("balanced_softmax")
def balanced_softmax_plain_frequencies_scaled_sum(logits, target, class_counts, *, temperature):
    """Frequencies are added in place of their logarithms, T divides them too, and rows are summed."""
    adjusted = (logits + class_counts / jnp.sum(class_counts)) / temperature
    log_prob = jax.nn.log_softmax(adjusted)
    return -jnp.sum(jnp.take_along_axis(log_prob, target[:, None], axis=1))
