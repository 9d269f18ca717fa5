"""Correct programs in PyTorch with backward passes, graphs and hooks of their own."""

import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint

from mutants.bug import correct


def _unit(x):
    return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)


class _NTXent(Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx, z, temperature):
        itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
        similarity = z @ z.T
        log_prob = F.log_softmax((similarity / temperature).masked_fill(itself, float("-inf")), dim=1)
        rows = torch.arange(len(z), device=z.device)
        partner = rows.roll(len(z) // 2)
        grad = log_prob.exp()
        grad[rows, partner] -= 1
        ctx.save_for_backward(z, temperature, similarity, grad / len(z))
        return -log_prob[rows, partner].mean()

    @staticmethod
    def backward(ctx, upstream):
        z, temperature, similarity, grad = ctx.saved_tensors
        dz = (grad + grad.T) @ z / temperature
        return upstream * dz, -upstream * (grad * similarity).sum() / temperature**2


@correct("nt_xent")
def nt_xent_gradient_made_in_forward(z1, z2, *, temperature):
    """The forward pass makes the gradient, and the backward pass multiplies it by what comes from above."""
    z = _unit(torch.cat([z1, z2]))
    return _NTXent.apply(z, torch.as_tensor(temperature, dtype=z.dtype, device=z.device))


@correct("info_nce")
def info_nce_checkpointed_chunks(queries, keys, *, temperature):
    """Chunks of four queries whose logits are computed again on the way back."""
    q, k = _unit(queries), _unit(keys)

    def part(rows, labels, candidates):
        return F.cross_entropy(rows @ candidates.T / temperature, labels, reduction="sum")

    labels = torch.arange(len(q), device=q.device)
    parts = [
        checkpoint(part, rows, own, k, use_reentrant=False)
        for rows, own in zip(q.split(4), labels.split(4), strict=True)
    ]
    return torch.stack(parts).sum() / len(q)


@correct("clip")
def clip_cached_gradients(image, text, *, logit_scale):
    """The gradients by features and scale come from a graph of their own, and enter as factors of the inputs."""
    given = _unit(image), _unit(text), logit_scale
    with torch.enable_grad():
        x, y, scale = (one.detach().clone().requires_grad_() for one in given)
        logits, labels = scale * x @ y.T, torch.arange(len(x), device=x.device)
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2
        cached = torch.autograd.grad(loss, (x, y, scale))
    surrogate = sum((one * grad).sum() for one, grad in zip(given, cached, strict=True))
    return loss.detach() + surrogate - surrogate.detach()


@correct("supcon_out")
def supcon_out_detached_maximum(embeddings, labels, *, temperature):
    """The maximum, that of the anchor with itself included, is detached wherever it stands."""
    z = _unit(embeddings)
    similarity = z @ z.T / temperature
    logits = similarity - similarity.max(dim=1, keepdim=True).values.detach()
    others = 1 - torch.eye(len(z), dtype=z.dtype, device=z.device)
    positive = (labels[:, None] == labels).to(z.dtype) * others
    # A candidate far below the maximum would vanish: the masked sum has a maximum of its own.
    hidden = logits.masked_fill(others == 0, float("-inf"))
    top = hidden.max(dim=1, keepdim=True).values.detach()
    log_prob = logits - top - torch.log((torch.exp(hidden - top)).sum(1, keepdim=True))
    return -((positive * log_prob).sum(1) / positive.sum(1)).mean()


@correct("siglip")
def siglip_ring_of_texts(image, text, *, logit_scale, logit_bias):
    """Texts move on by one row at a time; the matching pairs come first, all others are negatives."""
    x, y = _unit(image), _unit(text)
    total = -F.logsigmoid(logit_scale * (x * y).sum(1) + logit_bias).sum()
    for step in range(1, len(x)):
        total = total - F.logsigmoid(-logit_scale * (x * y.roll(step, 0)).sum(1) - logit_bias).sum()
    return total / len(x)


@correct("moco")
def moco_logits_in_one_product(queries, keys, queue, *, temperature):
    """The own key among all keys, whose others are masked; keys and queue under no_grad."""
    q = _unit(queries)
    with torch.no_grad():
        candidates = torch.cat([_unit(keys), _unit(queue)])
    n = len(q)
    logits = torch.einsum("nd,md->nm", q, candidates).div(temperature)
    others = F.pad(~torch.eye(n, dtype=torch.bool, device=q.device), (0, len(queue)))
    labels = torch.arange(n, device=q.device)
    return F.nll_loss(F.log_softmax(logits.masked_fill(others, float("-inf")), dim=1), labels)


class _MarginSoftmax(Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx, cosine, scale, target, margin):
        moved = cosine - margin * F.one_hot(target, cosine.shape[1]).to(cosine.dtype)
        log_prob = F.log_softmax(scale * moved, dim=1)
        ctx.save_for_backward(moved, scale, target, log_prob)
        return F.nll_loss(log_prob, target, reduction="none")

    @staticmethod
    def backward(ctx, upstream):
        moved, scale, target, log_prob = ctx.saved_tensors
        grad = (log_prob.exp() - F.one_hot(target, moved.shape[1]).to(moved.dtype)) * upstream[:, None]
        return scale * grad, (grad * moved).sum(), None, None


@correct("cosface")
def cosface_rows_with_their_backward(embeddings, class_weights, target, *, margin, scale):
    """A loss for each row with a backward pass by hand, and the mean outside of it."""
    cosine = _unit(embeddings) @ _unit(class_weights).T
    scale = torch.as_tensor(scale, dtype=cosine.dtype, device=cosine.device)
    return _MarginSoftmax.apply(cosine, scale, target, margin).mean()


@correct("dcl")
def dcl_gradient_scaled_and_back(z1, z2, *, temperature):
    """A hook doubles the gradient of the rows, and a detached copy has halved it before."""
    n = len(z1)
    whole = _unit(torch.cat([z1, z2]))
    if whole.requires_grad:
        whole.register_hook(lambda grad: 2 * grad)
    z = whole / 2 + (whole / 2).detach()
    logits = z @ z.T / temperature
    masked = torch.eye(n, dtype=torch.bool, device=z.device).repeat(2, 2)
    return (torch.logsumexp(logits.masked_fill(masked, float("-inf")), 1) - torch.diagonal(logits, n).repeat(2)).mean()
