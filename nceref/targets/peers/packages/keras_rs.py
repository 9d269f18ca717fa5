"""Keras Recommenders: layers that correct logits for how often items are sampled, and that leave accidental hits out.

Layers of Keras, on tensors of PyTorch; the softmax is PyTorch's.
"""

from nceref.targets.peers.peer import Peer, PeerTarget


def _corrected(queries, items, expected_counts, *, temperature):
    import torch

    return torch.nn.functional.cross_entropy(_logits(queries, items, expected_counts, temperature), _own(queries))


def _without_hits(queries, items, expected_counts, item_ids, *, temperature):
    import torch

    logits = _logits(queries, items, expected_counts, temperature)
    remove = _layers().RemoveAccidentalHits(dtype=_dtype(logits))
    kept = remove(logits, torch.eye(len(logits), dtype=logits.dtype), item_ids)
    return torch.nn.functional.cross_entropy(kept, _own(queries))


def _logits(queries, items, expected_counts, temperature):
    import torch

    q, v = (torch.nn.functional.normalize(x, dim=1) for x in (queries, items))
    s = q @ v.T / temperature
    # Probabilities: the layer holds what it is given between 1e-6 and 1.
    probabilities = (expected_counts / expected_counts.sum())[None, :].expand(s.shape)
    return _layers().SamplingProbabilityCorrection(dtype=_dtype(s))(s, probabilities)


def _own(queries):
    import torch

    return torch.arange(len(queries))


def _dtype(x):
    return str(x.dtype).removeprefix("torch.")


def _layers():
    import os

    os.environ.setdefault("KERAS_BACKEND", "torch")
    from keras_rs import layers

    return layers


PEER = Peer(
    name="keras-rs",
    package="keras_rs",
    pip="keras-rs",
    link="https://github.com/keras-team/keras-rs",
    targets=(
        PeerTarget("keras-rs-logq", "", "sampled_softmax", _corrected),
        PeerTarget("keras-rs-hits", "", "sampled_softmax", _without_hits, {"item_ids": ...}),
    ),
)  # fmt: skip
