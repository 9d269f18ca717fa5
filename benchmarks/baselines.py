"""Programs that people write in PyTorch, whole: nceref is compared with them.

Each takes tensors under the names that nceref uses and returns the loss; `backward()` of it gives the gradients.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def nt_xent(z1: Tensor, z2: Tensor, *, temperature: float) -> Tensor:
    """Baseline A: one matrix of both views, the diagonal masked out."""
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    logits = z @ z.T / temperature
    logits = logits.masked_fill(torch.eye(len(z), dtype=torch.bool, device=z.device), float("-inf"))
    target = torch.arange(len(z), device=z.device).roll(len(z1))
    return F.cross_entropy(logits, target)


def nt_xent_tuned(z1: Tensor, z2: Tensor, *, temperature: float) -> Tensor:
    """Baseline A with two matrices fewer: the temperature goes into the rows, the diagonal is filled in place."""
    z = F.normalize(torch.cat([z1, z2]), dim=1) / temperature**0.5
    logits = (z @ z.T).fill_diagonal_(float("-inf"))
    target = torch.arange(len(z), device=z.device).roll(len(z1))
    return F.cross_entropy(logits, target)


def info_nce(queries: Tensor, keys: Tensor, *, temperature: float) -> Tensor:
    """InfoNCE: each query picks its own key."""
    logits = F.normalize(queries, dim=1) @ F.normalize(keys, dim=1).T / temperature
    return F.cross_entropy(logits, torch.arange(len(queries), device=queries.device))


def clip(image: Tensor, text: Tensor, *, logit_scale: Tensor) -> Tensor:
    """CLIP: one matrix, read in both directions."""
    logits = logit_scale * F.normalize(image, dim=1) @ F.normalize(text, dim=1).T
    target = torch.arange(len(image), device=image.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def siglip(image: Tensor, text: Tensor, *, logit_scale: Tensor, logit_bias: Tensor) -> Tensor:
    """SigLIP: every pair is a binary problem."""
    logits = F.normalize(image, dim=1) @ F.normalize(text, dim=1).T * logit_scale + logit_bias
    labels = 2 * torch.eye(len(image), dtype=logits.dtype, device=logits.device) - 1
    return -F.logsigmoid(labels * logits).sum() / len(image)


def supcon_out(embeddings: Tensor, labels: Tensor, *, temperature: float) -> Tensor:
    """SupCon as in SupConLoss of SupContrast's losses.py: masks of ones and zeros; the row maximum is a constant."""
    z = F.normalize(embeddings, dim=1)
    others = 1 - torch.eye(len(z), dtype=z.dtype, device=z.device)
    positives = torch.eq(labels[:, None], labels[None, :]).to(z.dtype) * others
    logits = z @ z.T / temperature
    logits = logits - logits.max(dim=1, keepdim=True).values.detach()
    exponentials = torch.exp(logits) * others
    log_softmax = logits - torch.log(exponentials.sum(dim=1, keepdim=True))
    return -((positives * log_softmax).sum(dim=1) / positives.sum(dim=1)).mean()


def paco(
    embeddings: Tensor, labels: Tensor, centers: Tensor, *, queue: Tensor, queue_labels: Tensor, alpha: float,
    temperature: float,
) -> Tensor:  # fmt: skip
    """PaCo as PaCoLoss of Parametric-Contrastive-Learning, PaCo/LT/losses.py: centers first, then batch and queue."""
    anchors = F.normalize(embeddings, dim=1)
    candidates = torch.cat([anchors, F.normalize(queue, dim=1)])
    logits = torch.cat([embeddings @ centers.T, anchors @ candidates.T / temperature], dim=1)
    logits = logits - logits.max(dim=1, keepdim=True).values.detach()

    n, classes = len(anchors), len(centers)
    others = torch.ones_like(logits)
    others[:, classes : classes + n].fill_diagonal_(0)
    same = torch.eq(labels[:, None], torch.cat([labels, queue_labels])[None, :]).to(logits.dtype)
    weights = torch.cat([F.one_hot(labels, classes).to(logits.dtype), alpha * same], dim=1) * others

    exponentials = torch.exp(logits) * others
    log_softmax = logits - torch.log(exponentials.sum(dim=1, keepdim=True))
    return -((weights * log_softmax).sum(dim=1) / weights.sum(dim=1)).mean()


FORMULATIONS = {
    "baseline": {f.__name__: f for f in (nt_xent, info_nce, clip, siglip, supcon_out, paco)},
    "tuned": {"nt_xent": nt_xent_tuned},
}
