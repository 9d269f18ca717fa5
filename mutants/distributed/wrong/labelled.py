"""Losses with labels: several positives for an anchor."""

import torch
import torch.distributed as dist

from mutants.bug import bug
from mutants.distributed.collectives import constants, gathered, offset, put_back, unit


def _supcon(z, everything, same, places, temperature):
    """The losses of the own rows: the mean log-probability of the positives; 0 where there is none."""
    logits = z @ everything.T / temperature
    self_pair = torch.zeros_like(same).scatter(1, places[:, None], value=True)
    positives = same & ~self_pair
    log_prob = logits - logits.masked_fill(self_pair, -torch.inf).logsumexp(1, keepdim=True)
    return -log_prob.masked_fill(~positives, 0).sum(1) / positives.sum(1).clamp(min=1), positives.any(1)


def _same(labels, everywhere):
    return labels[:, None] == everywhere[None]


@bug("supcon_out", named="shards-reordered", seen="gathers that put the own embeddings first")
def supcon_own_embeddings_first(embeddings, labels, *, temperature):
    """The own embeddings stand before those of the other ranks, the labels in the order of the ranks."""
    z = unit(embeddings)
    shards = list(gathered(z).chunk(dist.get_world_size()))
    everything = torch.cat([shards.pop(dist.get_rank()), *shards])
    same = _same(labels, torch.cat(constants(labels)))
    return _supcon(z, everything, same, torch.arange(len(z)), temperature)[0].mean()


@bug("supcon_out", named="rank-offset-forgotten", thread="vturrisi/solo-learn#206")
def supcon_diagonal_of_the_first_rank(embeddings, labels, *, temperature):
    """The diagonal that is cut out of the own rows is that of rank 0."""
    z = unit(embeddings)
    same = _same(labels, torch.cat(constants(labels)))
    return _supcon(z, gathered(z), same, torch.arange(len(z)), temperature)[0].mean()


@bug("supcon_out", named="local-candidates-only", thread="HobbitLong/SupContrast#26")
def supcon_rows_of_this_rank(embeddings, labels, *, temperature):
    """Positives and negatives are those of the own rows; an anchor without a positive there counts as 0."""
    z = unit(embeddings)
    return _supcon(z, z, _same(labels, labels), torch.arange(len(z)), temperature)[0].mean()


@bug(
    "supcon_out",
    named="mean-of-means",
    thread="vllm-project/speculators#942",
    settings={"no_positive": "skip"},
)
def supcon_mean_over_own_anchors(embeddings, labels, *, temperature):
    """Each rank takes the mean over those of its anchors that have a positive, some ranks over more than others."""
    z = unit(embeddings)
    losses, counted = _supcon(z, gathered(z), _same(labels, torch.cat(constants(labels))), offset(z), temperature)
    return losses.sum() / counted.sum().clamp(min=1)


@bug("supcon_out", named="outer-factor-temperature-over-base", thread="HobbitLong/SupContrast#73")
def supcon_times_temperature_over_base(embeddings, labels, *, temperature):
    """The loss is multiplied by T / 0.07, which does not follow from its formula; the gather has its gradient."""
    z = unit(embeddings)
    same = _same(labels, torch.cat(constants(labels)))
    return temperature / 0.07 * _supcon(z, gathered(z), same, offset(z), temperature)[0].mean()


@bug("supcon_out", named="scalar-not-synchronized", seen="trainers that average a learned temperature when it is used")
def supcon_temperature_is_averaged(embeddings, labels, *, temperature):
    """The mean of the ranks' temperatures is used, of which each rank has a share of the gradient."""
    z = unit(embeddings)
    others = [t.squeeze() for t in constants(temperature.reshape(1))]
    others[dist.get_rank()] = temperature
    mean = sum(others) / dist.get_world_size()
    return _supcon(z, gathered(z), _same(labels, torch.cat(constants(labels))), offset(z), mean)[0].mean()


@bug("supcon_out", named="own-labels-repeated", seen="re-implementations that gather the embeddings alone")
def supcon_labels_are_repeated(embeddings, labels, *, temperature):
    """The own labels are repeated for the embeddings of all ranks."""
    z = unit(embeddings)
    same = _same(labels, labels.repeat(dist.get_world_size()))
    return _supcon(z, gathered(z), same, offset(z), temperature)[0].mean()


@bug("supcon_out", named="own-labels-repeated+gradient-divided-by-ranks", seen="the same, with the joined loss",
     also=("own-labels-repeated+cross-rank-terms-missing",))  # fmt: skip
def supcon_labels_are_repeated_for_all(embeddings, labels, *, temperature):
    """Every rank has the loss of all embeddings, of which only its own have a gradient, with its labels repeated."""
    z, labels = put_back(unit(embeddings)), labels.repeat(dist.get_world_size())
    return _supcon(z, z, _same(labels, labels), torch.arange(len(z)), temperature)[0].mean()
