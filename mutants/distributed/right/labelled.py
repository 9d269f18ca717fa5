"""Losses with labels: several positives for an anchor."""

import torch
import torch.distributed as dist

from mutants.bug import correct
from mutants.distributed.collectives import constants, gathered, offset, total, unit


def _losses(embeddings, labels, temperature):
    """The losses of the own rows, and which of them have a positive."""
    z = unit(embeddings)
    everything, places = gathered(z), offset(z)
    self_pair = places[:, None] == torch.arange(len(everything))[None]
    positives = (labels[:, None] == torch.cat(constants(labels))[None]) & ~self_pair
    logits = z @ everything.T / temperature
    log_prob = logits - logits.masked_fill(self_pair, -torch.inf).logsumexp(1, keepdim=True)
    return -log_prob.masked_fill(~positives, 0).sum(1) / positives.sum(1).clamp(min=1), positives.any(1)


@correct("supcon_out")
def supcon_gathered_labels(embeddings, labels, *, temperature):
    """Own rows against all, with the labels of all."""
    return _losses(embeddings, labels, temperature)[0].mean()


@correct("supcon_out", settings={"no_positive": "skip"})
def supcon_mean_over_all_anchors(embeddings, labels, *, temperature):
    """The sum over the own anchors with a positive, divided by the mean number of these on a rank."""
    losses, counted = _losses(embeddings, labels, temperature)
    return losses.sum() * dist.get_world_size() / total(counted.sum()).clamp(min=1)
