"""Three changes each, in PyTorch."""

import torch
import torch.nn.functional as F

from mutants.bug import bug


@bug("nt_xent", wrong=("temperature",))
def nt_xent_cross_view_one_way_fixed_temperature(z1, z2, *, temperature):
    """Candidates are those of the other view alone, anchors those of the first, and the temperature is detached."""
    logits = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T / temperature.detach()
    return F.cross_entropy(logits, torch.arange(len(z1), device=z1.device))


@bug("moco", wrong=("keys",))
def moco_raw_queue_cold_positive_live_keys(queries, keys, queue, *, temperature):
    """The queue is not normalized, the positive is divided by T twice, and the keys get a gradient."""
    q, k = F.normalize(queries, dim=1), F.normalize(keys, dim=1)
    positive = (q * k).sum(1, keepdim=True) / temperature
    logits = torch.cat([positive, q @ queue.detach().T], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


@bug("info_nce")
def info_nce_rectified_margin_both_ways(queries, keys, *, temperature):
    """Negative cosines become 0, a margin of 0.1 comes off the positive, and keys look for queries too."""
    cosine = F.relu(F.normalize(queries, dim=1) @ F.normalize(keys, dim=1).T)
    logits = (cosine - 0.1 * torch.eye(len(cosine), dtype=cosine.dtype, device=cosine.device)) / temperature
    labels = torch.arange(len(cosine), device=cosine.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


@bug("arcface", thread="jonasgrebe/pt-femb-face-embeddings#3")
def arcface_clamped_angle_smaller_margin_sum(embeddings, class_weights, target, *, margin, scale):
    """Angles are clamped to at most 1, the margin is subtracted from the target's, and rows are summed."""
    cosine = F.normalize(embeddings, dim=1) @ F.normalize(class_weights, dim=1).T
    angle = torch.acos(cosine.clamp(-1 + 1e-7, 1 - 1e-7)).clamp(-1, 1)
    angle = angle - margin * F.one_hot(target, len(class_weights))
    return F.cross_entropy(scale * torch.cos(angle), target, reduction="sum")


@bug("supcon_in")
def supcon_in_summed_with_itself_times_temperature(embeddings, labels, *, temperature):
    """The probabilities of positives are added, the anchor stands in its denominator, and the loss is times T."""
    z = F.normalize(embeddings, dim=1)
    logits = z @ z.T / temperature
    positive = (labels[:, None] == labels).fill_diagonal_(False)
    own = torch.logsumexp(logits.masked_fill(~positive, float("-inf")), dim=1)
    return temperature * (torch.logsumexp(logits, dim=1) - own).mean()


@bug("hcl", wrong=("z1", "z2", "temperature"))
def hcl_unscaled_importance_detached_undivided_prior(z1, z2, *, temperature, positive_prior, concentration):
    """Importance weights are not divided by their mean and are detached, and 1 - prior divides nothing."""
    n = len(z1)
    z = torch.cat([F.normalize(z1, dim=1), F.normalize(z2, dim=1)])
    logits = z @ z.T / temperature
    kept = ~torch.eye(n, dtype=torch.bool, device=z.device).repeat(2, 2)
    positive = torch.exp(torch.diagonal(logits, n).repeat(2))
    negatives = logits[kept].reshape(2 * n, -1)
    count = negatives.shape[1]
    importance = torch.exp(concentration * negatives).detach()
    estimate = (importance * torch.exp(negatives)).sum(1) - positive_prior * count * positive
    estimate = torch.maximum(estimate, count * torch.exp(-1 / temperature))
    return torch.log1p(estimate / positive).mean()


@bug("uniformity")
def uniformity_plain_distances_with_itself_halved(x, *, t):
    """Distances are not squared, each point is paired with itself too, and the exponent is halved."""
    n = len(x)
    weight = torch.exp(-t / 2 * torch.pdist(F.normalize(x, dim=1)))
    return torch.log((2 * weight.sum() + n) / n**2)
