"""Programs in JAX whose reverse pass is not that of their value."""

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from mutants.bug import bug


def _unit(x):
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


@jax.custom_vjp
def _sigmoid_loss(logits, bias):
    signs = 2 * jnp.eye(len(logits), dtype=logits.dtype) - 1
    return jnp.sum(jax.nn.softplus(-signs * (logits + bias))) / len(logits)


def _sigmoid_forward(logits, bias):
    return _sigmoid_loss(logits, bias), (logits, bias)


def _sigmoid_backward(saved, upstream):
    logits, bias = saved
    signs = 2 * jnp.eye(len(logits), dtype=logits.dtype) - 1
    grad = -signs * jax.nn.sigmoid(-signs * (logits + bias)) * upstream / len(logits)
    return grad, jnp.mean(grad)


_sigmoid_loss.defvjp(_sigmoid_forward, _sigmoid_backward)


@bug("siglip", wrong=("logit_bias",))
def siglip_bias_gradient_averaged(image, text, *, logit_scale, logit_bias):
    """The bias stands in all N^2 logits, and its gradient is the mean of theirs in place of the sum."""
    return _sigmoid_loss(logit_scale * _unit(image) @ _unit(text).T, logit_bias)


@bug("alignment", wrong=("y",))
def alignment_second_view_stopped(x, y, *, exponent):
    """The second view is a target without gradient, as in SimSiam; here both views are trained."""
    square = jnp.sum((_unit(x) - stop_gradient(_unit(y))) ** 2, axis=1)
    # A distance of 0 has no slope to a power below 2.
    apart = square > 0
    return jnp.mean(jnp.where(apart, jnp.where(apart, square, 1) ** (exponent / 2), 0))


@bug("info_nce", wrong=("queries", "keys", "temperature"), thread="huggingface/sentence-transformers#3862")
def info_nce_gradient_of_the_last_chunk(queries, keys, *, temperature):
    """The sum over chunks of four queries is carried on without its gradient: only the last chunk has one."""
    q, k, total = _unit(queries), _unit(keys), 0.0
    for start in range(0, len(q), 4):
        log_prob = jax.nn.log_softmax(q[start : start + 4] @ k.T / temperature)
        total = stop_gradient(total) - jnp.sum(jnp.diagonal(log_prob, start))
    return total / len(q)


@bug("debiased", wrong=("z1", "z2", "temperature"))
def debiased_correction_stopped(z1, z2, *, temperature, positive_prior):
    """The positives that are subtracted from the negatives pass no gradient."""
    n = len(z1)
    z = _unit(jnp.concatenate([z1, z2]))
    power = jnp.exp(z @ z.T / temperature)
    positive = jnp.tile(jnp.diagonal(power, n), 2)
    negatives = jnp.sum(jnp.where(jnp.tile(jnp.eye(n, dtype=bool), (2, 2)), 0, power), axis=1)
    count = 2 * n - 2
    estimate = (negatives - positive_prior * count * stop_gradient(positive)) / (1 - positive_prior)
    estimate = jnp.maximum(estimate, count * jnp.exp(-1 / temperature))
    return jnp.mean(jnp.log(positive + estimate) - jnp.log(positive))


@bug("nce", wrong=("noise_logits",))
def nce_noise_scores_stopped(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """The scores of the noise samples are stopped with the samples, so that nothing lowers the density there."""
    shift = jnp.log(noise_ratio)
    data = data_logits - data_log_noise - shift
    noise = stop_gradient(noise_logits - noise_log_noise) - shift
    return jnp.mean(jax.nn.softplus(-data)) + noise_ratio * jnp.mean(jax.nn.softplus(noise))


@bug("hard_contrastive", wrong=("queries", "keys", "temperature"))
def hard_contrastive_mined_logits_stopped(queries, keys, *, temperature, fraction):
    """The hardest negatives are mined without gradient, and their mined similarities enter the loss."""
    n = len(queries)
    similarity = _unit(queries) @ _unit(keys).T / temperature
    positive = jnp.diagonal(similarity)
    others = jnp.where(jnp.eye(n, dtype=bool), -jnp.inf, similarity)
    kept = max(1, int(-(-round(fraction * (n - 1), 9) // 1)))
    hard = stop_gradient(jax.lax.top_k(others, kept)[0])
    logits = jnp.concatenate([positive[:, None], hard], axis=1)
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - positive)


@jax.custom_vjp
def _tempered_cross_entropy(logits, target, temperature):
    log_prob = jax.nn.log_softmax(logits / temperature)
    return -jnp.mean(log_prob[jnp.arange(len(target)), target])


def _tempered_forward(logits, target, temperature):
    return _tempered_cross_entropy(logits, target, temperature), (logits, target, temperature)


def _tempered_backward(saved, upstream):
    logits, target, temperature = saved
    scale = 1 / temperature
    hot = jax.nn.one_hot(target, logits.shape[1], dtype=logits.dtype)
    probability = jax.nn.softmax(logits * scale)
    upstream = upstream / len(logits)
    slope = -jnp.sum((probability - hot) * logits) * scale**2
    return upstream * (scale * probability - hot), None, upstream * slope


_tempered_cross_entropy.defvjp(_tempered_forward, _tempered_backward)


@bug("cross_entropy", wrong=("logits",), thread="ServiceNow/Fast-LLM#228")
def cross_entropy_scaled_probabilities_only(logits, target, *, temperature):
    """In the gradient the inverse temperature multiplies the probabilities and not the one-hot target."""
    return _tempered_cross_entropy(logits, target, temperature)
