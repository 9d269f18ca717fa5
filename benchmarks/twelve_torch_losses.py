"""The losses of docs/examples/twelve_losses in PyTorch, under the same names, with gradients from autograd."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

LARGEST_SCALE = 100


def _unit(x: Tensor) -> Tensor:
    # The default `eps` of F.normalize is a length that rows may have.
    return x / x.norm(dim=1, keepdim=True)


def _own(rows: Tensor) -> Tensor:
    return torch.arange(len(rows), device=rows.device)


def _without_diagonal(logits: Tensor) -> Tensor:
    itself = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    return logits.masked_fill(itself, float("-inf"))


def alignment_loss(x: Tensor, y: Tensor, exponent: float = 2.0) -> Tensor:
    return (_unit(x) - _unit(y)).square().sum(dim=1).pow(exponent / 2).mean()


def uniformity_loss(x: Tensor, t: float = 2.0) -> Tensor:
    u = _unit(x)
    first, second = torch.triu_indices(len(u), len(u), 1, device=u.device)
    return torch.exp(-t * (u[first] - u[second]).square().sum(dim=1)).mean().log()


def supervised_contrastive_loss(features: Tensor, labels: Tensor, temperature: Tensor) -> Tensor:
    z = _unit(features)
    chances = F.log_softmax(_without_diagonal(z @ z.T / temperature), dim=1)
    same = (labels[:, None] == labels).fill_diagonal_(fill_value=False)
    return -(chances.masked_fill(~same, 0).sum(dim=1) / same.sum(dim=1)).mean()


def balanced_softmax_loss(logits: Tensor, target: Tensor, class_counts: Tensor) -> Tensor:
    return F.cross_entropy(logits + class_counts.to(logits.dtype).log(), target)


def cosface_loss(
    embeddings: Tensor, class_weights: Tensor, target: Tensor, margin: float = 0.35, scale: float = 64.0
) -> Tensor:
    cosines = _unit(embeddings) @ _unit(class_weights).T
    own = F.one_hot(target, len(class_weights)).to(cosines.dtype)
    return F.cross_entropy(scale * (cosines - margin * own), target)


def arcface_loss(
    embeddings: Tensor, class_weights: Tensor, target: Tensor, margin: float = 0.5, scale: float = 64.0
) -> Tensor:
    cosines = _unit(embeddings) @ _unit(class_weights).T
    cosine = cosines.gather(1, target[:, None])
    # The root of 0 has no slope, so that a row on its class takes none through its sine.
    square = (1 - cosine.square()).clamp(min=0)
    sine = torch.where(square > 0, square, 1).sqrt() * (square > 0)
    cos, sin = math.cos(margin), math.sin(margin)
    moved = torch.where(cosine > -cos, cosine * cos - sine * sin, cosine - margin * sin)
    return F.cross_entropy(scale * cosines.scatter(1, target[:, None], moved), target)


def info_nce_loss(queries: Tensor, keys: Tensor, temperature: Tensor) -> Tensor:
    return F.cross_entropy(_unit(queries) @ _unit(keys).T / temperature, _own(queries))


def momentum_loss(queries: Tensor, keys: Tensor, temperature: Tensor) -> Tensor:
    return 2 * temperature * info_nce_loss(queries, keys, temperature)


def clip_loss(image: Tensor, text: Tensor, logit_scale: Tensor) -> Tensor:
    logits = logit_scale.clamp(max=LARGEST_SCALE) * _unit(image) @ _unit(text).T
    return (F.cross_entropy(logits, _own(image)) + F.cross_entropy(logits.T, _own(text))) / 2


def sigmoid_loss(image: Tensor, text: Tensor, logit_scale: Tensor, logit_bias: Tensor) -> Tensor:
    logits = logit_scale * _unit(image) @ _unit(text).T + logit_bias
    signs = 2 * torch.eye(len(image), dtype=logits.dtype, device=logits.device) - 1
    return -F.logsigmoid(signs * logits).sum() / len(image)


def _views(z1: Tensor, z2: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Logits of all rows with all others, and the partner of each."""
    z = _unit(torch.cat([z1, z2]))
    return _without_diagonal(z @ z.T / temperature), _own(z).roll(len(z1))


def nt_xent_loss(z1: Tensor, z2: Tensor, temperature: Tensor) -> Tensor:
    return F.cross_entropy(*_views(z1, z2, temperature))


def decoupled_loss(z1: Tensor, z2: Tensor, temperature: Tensor) -> Tensor:
    logits, partners = _views(z1, z2, temperature)
    positives = logits.gather(1, partners[:, None])
    negatives = logits.scatter(1, partners[:, None], float("-inf"))
    return (negatives.logsumexp(dim=1) - positives[:, 0]).mean()
