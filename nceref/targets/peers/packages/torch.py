"""PyTorch: the InfoNCE and the CLIP loss as they are usually written around its cross-entropy."""

from nceref.targets.peers.peer import Peer, PeerTarget


def _info_nce(queries, keys, *, temperature):
    import torch
    from torch.nn.functional import cross_entropy, normalize

    logits = normalize(queries, dim=1) @ normalize(keys, dim=1).T / temperature
    return cross_entropy(logits, torch.arange(len(logits), device=logits.device))


def _clip(image, text, *, logit_scale):
    import torch
    from torch.nn.functional import cross_entropy, normalize

    logits = logit_scale * normalize(image, dim=1) @ normalize(text, dim=1).T
    own = torch.arange(len(logits), device=logits.device)
    return (cross_entropy(logits, own) + cross_entropy(logits.T, own)) / 2


def _cross_entropy(logits, target, *, temperature, label_smoothing):
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits / temperature, target, label_smoothing=label_smoothing)


PEER = Peer(
    name="torch",
    package="torch",
    pip="torch",
    link="https://github.com/pytorch/pytorch",
    targets=(
        PeerTarget("torch-info-nce", "", "info_nce", _info_nce, omits="explicit negatives"),
        PeerTarget("torch-clip", "", "clip", _clip),
        PeerTarget("torch-cross-entropy", "torch.nn.functional:cross_entropy", "cross_entropy", _cross_entropy,
                   floats=("label_smoothing",), also=("torch.nn:CrossEntropyLoss",)),
    ),
)  # fmt: skip
