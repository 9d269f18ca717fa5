"""Correct programs in JAX with reverse passes, stops and loops of their own."""

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from mutants.bug import correct


def _unit(x):
    return x / jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True))


@jax.custom_vjp
def _nt_xent(z, temperature):
    return _nt_xent_forward(z, temperature)[0]


def _nt_xent_forward(z, temperature):
    similarity = z @ z.T
    log_prob = jax.nn.log_softmax(jnp.where(jnp.eye(len(z), dtype=bool), -jnp.inf, similarity / temperature))
    rows = jnp.arange(len(z))
    partner = jnp.roll(rows, len(z) // 2)
    grad = jnp.exp(log_prob).at[rows, partner].add(-1) / len(z)
    return -jnp.mean(log_prob[rows, partner]), (z, temperature, similarity, grad)


def _nt_xent_backward(saved, upstream):
    z, temperature, similarity, grad = saved
    dz = (grad + grad.T) @ z / temperature
    return upstream * dz, -upstream * jnp.sum(grad * similarity) / temperature**2


_nt_xent.defvjp(_nt_xent_forward, _nt_xent_backward)


@correct("nt_xent")
def nt_xent_reverse_pass_by_hand(z1, z2, *, temperature):
    """The reverse pass is written by hand, as anchor and as candidate."""
    return _nt_xent(_unit(jnp.concatenate([z1, z2])), temperature)


@correct("info_nce")
def info_nce_mapped_over_queries(queries, keys, *, temperature):
    """One query after the other, whose logits are computed again on the way back."""
    k = _unit(keys)

    @jax.checkpoint
    def row(query, own):
        logits = k @ (query / temperature)
        return jax.nn.logsumexp(logits) - logits[own]

    return jnp.mean(jax.lax.map(lambda one: row(*one), (_unit(queries), jnp.arange(len(queries)))))


@correct("supcon_in")
def supcon_in_log_sum_exps_written_out(embeddings, labels, *, temperature):
    """Log-sum-exps written out, each with a stopped maximum of its own."""

    def log_sum(logits):
        top = stop_gradient(jnp.max(logits, axis=1, keepdims=True))
        return jnp.squeeze(top, 1) + jnp.log(jnp.sum(jnp.exp(logits - top), axis=1))

    z = _unit(embeddings)
    others = ~jnp.eye(len(z), dtype=bool)
    logits = jnp.where(others, jnp.einsum("id,jd->ij", z, z) / temperature, -jnp.inf)
    positive = (labels[:, None] == labels) & others
    count = jnp.sum(positive, axis=1).astype(z.dtype)
    return jnp.mean(log_sum(logits) - log_sum(jnp.where(positive, logits, -jnp.inf)) + jnp.log(count))


@correct("dclw")
def dclw_stopped_weights(z1, z2, *, temperature, sigma):
    """The weights of the positives are stopped, and both directions are one matrix."""
    n = len(z1)
    z = _unit(jnp.concatenate([z1, z2]))
    similarity = z @ z.T
    positive = jnp.diagonal(similarity, n)
    weight = stop_gradient(2 - n * jax.nn.softmax(positive / sigma))
    masked = jnp.tile(jnp.eye(n, dtype=bool), (2, 2))
    push = jax.nn.logsumexp(jnp.where(masked, -jnp.inf, similarity / temperature), axis=1)
    return jnp.mean(push) - jnp.mean(weight * positive) / temperature


@correct("balanced_softmax")
def balanced_softmax_gap_to_the_target(logits, target, class_counts, *, temperature):
    """Log of the sum of exponentials of the gaps to the target, counts as weights of the sum."""

    @jax.vmap
    def row(scores, own):
        gaps = (scores - scores[own]) / temperature + jnp.log(class_counts / class_counts[own])
        top = stop_gradient(jnp.max(gaps))
        return top + jnp.log(jnp.sum(jnp.exp(gaps - top)))

    return jnp.mean(row(logits, target))
