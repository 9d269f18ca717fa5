"""The same three losses in JAX, with gradients by autodiff; the variable BUG makes them wrong."""

import os

import jax
import jax.numpy as jnp

BUG = os.environ.get("BUG", "")


def _softmax(x, y, temperature, counted, positives):
    """Mean cross entropy of the rows of x against those of y."""
    u, v = (a / jnp.linalg.norm(a, axis=1, keepdims=True) for a in (x, y))
    v = jax.lax.stop_gradient(v) if BUG == "gradient" else v
    s = u @ v.T / (1 if BUG == "temperature" else temperature)
    rows = jax.nn.logsumexp(jnp.where(counted, s, -jnp.inf), axis=1) - (positives * s).sum(axis=1)
    return (2 if BUG == "factor" else 1) * rows.mean()


def nt_xent(z1, z2, temperature):
    """Of SimCLR."""
    z, n = jnp.concatenate([z1, z2]), len(z1)
    own = jnp.eye(2 * n, dtype=bool)
    return _softmax(z, z, temperature, ~own, jnp.roll(own, n, axis=1).astype(z.dtype))


def info_nce(queries, keys, temperature):
    """With the other keys of the batch as negatives."""
    same = jnp.eye(len(queries), dtype=bool)
    return _softmax(queries, keys, temperature, same | ~same, same.astype(queries.dtype))


def supcon_out(embeddings, labels, temperature):
    """Supervised, with the sum over positives outside of the logarithm."""
    rest = ~jnp.eye(len(labels), dtype=bool)
    positives = (rest & (labels[:, None] == labels)).astype(embeddings.dtype)
    return _softmax(embeddings, embeddings, temperature, rest, positives / positives.sum(axis=1, keepdims=True))
