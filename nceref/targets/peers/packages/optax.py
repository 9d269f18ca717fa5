"""optax: NT-Xent of labelled rows, one loss for every pair of positives; two views are labels given twice.

Compiled, as training steps are.
"""

from nceref.targets.peers.peer import Peer, PeerTarget


def _ntxent(z1, z2, *, temperature):
    import jax
    import jax.numpy as jnp
    from optax.losses import ntxent

    samples = jnp.arange(z1.shape[0])
    return jax.jit(ntxent)(jnp.concatenate([z1, z2]), jnp.concatenate([samples, samples]), temperature)


def _classes(embeddings, labels, *, temperature):
    import jax
    from optax.losses import ntxent

    return jax.jit(ntxent)(embeddings, labels, temperature)


PEER = Peer(
    name="optax",
    package="optax",
    pip="optax",
    link="https://github.com/google-deepmind/optax",
    framework="jax",
    targets=(
        PeerTarget("optax-ntxent", "optax.losses:ntxent", "nt_xent", _ntxent),
        PeerTarget("optax-ntxent-labels", "", "supcon_out", _classes,
                   {"no_positive": "skip", "denominator": "other-positives-dropped", "reduction": "mean-over-pairs"},
                   omits="masks, views and queues"),
    ),
)  # fmt: skip
