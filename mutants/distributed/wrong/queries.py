"""Losses of queries against keys."""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from mutants.bug import bug
from mutants.distributed.collectives import constants, gathered, offset, put_back, unit


def _against(queries, keys, temperature):
    return F.cross_entropy(queries @ keys.T / temperature, offset(queries))


def _joined(queries, keys, temperature):
    return F.cross_entropy(queries @ keys.T / temperature, torch.arange(len(queries)))


@bug("info_nce", named="gradient-divided-by-ranks", thread="modelscope/ms-swift#10081")
def info_nce_joined_loss_of_constants(queries, keys, *, temperature):
    """The loss of the whole batch on every rank, in which only the own rows have a gradient."""
    return _joined(put_back(unit(queries)), put_back(unit(keys)), temperature)


@bug("info_nce", named="own-shard-detached", thread="huggingface/accelerate#76", also=("keys-detached",))
def info_nce_keys_are_constants(queries, keys, *, temperature):
    """The keys are gathered by an operation that has no gradient."""
    return _against(unit(queries), torch.cat(constants(unit(keys))), temperature)


@bug("info_nce", named="cross-rank-terms-missing", thread="NVIDIA-NeMo/Automodel#2283")
def info_nce_keys_of_others_are_constants(queries, keys, *, temperature):
    """The own queries against all keys, of which only the own have a gradient."""
    return _against(unit(queries), put_back(unit(keys)), temperature)


@bug(
    "info_nce",
    named="value-times-ranks",
    thread="texttron/tevatron#143",
    also=("scalar-not-synchronized+value-times-ranks",),
)
def info_nce_joined_times_ranks(queries, keys, *, temperature):
    """The loss of the whole batch times the number of ranks: the gradient is right, and the value is not."""
    return dist.get_world_size() * _joined(put_back(unit(queries)), put_back(unit(keys)), temperature)


@bug(
    "info_nce",
    named="local-candidates-only+value-times-ranks",
    thread="lightonai/pylate#156",
    also=("gradient-times-ranks+local-candidates-only", "gradient-times-ranks+local-candidates-only+value-times-ranks"),
)
def info_nce_multiplied_without_a_gather(queries, keys, *, temperature):
    """The loss is multiplied by the number of ranks where nothing is gathered too."""
    return dist.get_world_size() * _joined(unit(queries), unit(keys), temperature)


@bug("info_nce", named="outer-factor-2-temperature", thread="facebookresearch/moco-v3#31")
def info_nce_twice_the_temperature(queries, keys, *, temperature):
    """The loss is multiplied by 2 T; the gather has its gradient."""
    return 2 * temperature * _against(unit(queries), gathered(unit(keys)), temperature)


@bug("info_nce", named="temperature-multiplied", thread="UKPLab/sentence-transformers#3054")
def info_nce_scale_that_multiplies(queries, keys, *, temperature):
    """The similarities are multiplied by the temperature; the gather has its gradient."""
    return _against(unit(queries), gathered(unit(keys)), 1 / temperature)


def _moco(queries, keys, negatives, temperature):
    positive = (queries * keys.detach()).sum(1, keepdim=True)
    logits = torch.cat([positive, queries @ negatives.detach().T], dim=1) / temperature
    return -logits.log_softmax(1)[:, 0]


@bug("moco", named="gradient-divided-by-ranks", thread="Haochen-Wang409/U2PL#16")
def moco_loss_is_reduced(queries, keys, queue, *, temperature):
    """The loss is summed over the ranks by an operation without a gradient, and divided by their number."""
    loss = _moco(unit(queries), unit(keys), unit(queue), temperature).mean()
    dist.all_reduce(loss.data)
    return loss / dist.get_world_size()


@bug("moco", named="mean-of-means", thread="facebookresearch/fairchem#269", options={"shards": "3,1"})
def moco_mean_over_uneven_shards(queries, keys, queue, *, temperature):
    """Each rank takes the mean over its own queries, of which some ranks have more than others."""
    return _moco(unit(queries), unit(keys), unit(queue), temperature).mean()


@bug("moco", named="in-batch-negatives-added", seen="memory banks that are filled before they are read")
def moco_keys_of_all_ranks_are_negatives(queries, keys, queue, *, temperature):
    """The keys of the other samples of all ranks are negatives too."""
    queries, keys = unit(queries), unit(keys)
    logits = torch.cat([queries @ torch.cat(constants(keys)).T, queries @ unit(queue).detach().T], dim=1)
    return F.cross_entropy(logits / temperature, offset(queries))
