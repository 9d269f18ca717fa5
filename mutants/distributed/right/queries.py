"""Losses of queries against keys."""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from mutants.bug import correct
from mutants.distributed.collectives import gathered, offset, uneven, unit


@correct("info_nce", options={"value": "each"})
def info_nce_averaged_on_all_ranks(queries, keys, *, temperature):
    """Own queries against all keys; each rank shows the mean of all, and trains on its own."""
    queries = unit(queries)
    loss = F.cross_entropy(queries @ gathered(unit(keys)).T / temperature, offset(queries))
    shown = loss.detach().clone()
    dist.all_reduce(shown)
    return shown / dist.get_world_size() + (loss - loss.detach())


@correct("info_nce", options={"value": "sum", "sync": "sum"})
def info_nce_shares_are_summed(queries, keys, *, temperature):
    """The sum over the own queries divided by the number of all; values and gradients are summed over the ranks."""
    queries, keys = unit(queries), gathered(unit(keys))
    return F.cross_entropy(queries @ keys.T / temperature, offset(queries), reduction="sum") / len(keys)


@correct("info_nce", options={"shards": "3,1"})
def info_nce_joined_uneven_shards(queries, keys, *, temperature):
    """The loss of the whole batch on every rank, some of which have more rows."""
    logits = uneven(unit(queries)) @ uneven(unit(keys)).T / temperature
    return F.cross_entropy(logits, torch.arange(len(logits)))


@correct("moco")
def moco_nothing_between_ranks(queries, keys, queue, *, temperature):
    """The queue is the same on all ranks, so that nothing is gathered."""
    queries, keys, queue = unit(queries), unit(keys).detach(), unit(queue).detach()
    logits = torch.cat([(queries * keys).sum(1, keepdim=True), queries @ queue.T], dim=1)
    return F.cross_entropy(logits / temperature, torch.zeros(len(queries), dtype=torch.int64))
