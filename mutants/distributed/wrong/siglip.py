"""The sigmoid loss of two towers."""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from mutants.bug import bug
from mutants.distributed.collectives import constants, gathered, offset, unit


def _block(image, text, scale, bias, places=None):
    """The sum over the pairs of a block; the positives are at `places`, and nowhere if there are none."""
    logits = scale * image @ text.T + bias
    sign = -torch.ones_like(logits)
    if places is not None:
        sign = sign.scatter(1, places[:, None], 1.0)
    return -F.logsigmoid(sign * logits).sum()


@bug("siglip", named="cross-rank-terms-missing", thread="mlfoundations/open_clip#618")
def siglip_texts_of_others_are_constants(image, text, *, logit_scale, logit_bias):
    """The texts go from rank to rank without their gradient."""
    image, text = unit(image), unit(text)
    loss = _block(image, text, logit_scale, logit_bias, torch.arange(len(image)))
    for rank, others in enumerate(constants(text)):
        if rank != dist.get_rank():
            loss = loss + _block(image, others, logit_scale, logit_bias)
    return loss / len(image)


@bug("siglip", named="rank-offset-forgotten", seen="mlfoundations/open_clip commit 357bd97")
def siglip_square_targets(image, text, *, logit_scale, logit_bias):
    """The targets are the first columns of the unit matrix on every rank."""
    image = unit(image)
    loss = _block(image, gathered(unit(text)), logit_scale, logit_bias, torch.arange(len(image)))
    return loss / len(image)


@bug("siglip", named="local-candidates-only", seen="fine-tuning scripts with the loss of a single process")
def siglip_pairs_of_this_rank(image, text, *, logit_scale, logit_bias):
    """The pairs between ranks are left out."""
    return _block(unit(image), unit(text), logit_scale, logit_bias, torch.arange(len(image))) / len(image)


@bug("siglip", named="divided-by-n-twice", thread="google-research/big_vision#115")
def siglip_mean_over_pairs_of_all_ranks(image, text, *, logit_scale, logit_bias):
    """The mean over the pairs, not the sum over the row; the gather has its gradient."""
    image, text = unit(image), gathered(unit(text))
    return _block(image, text, logit_scale, logit_bias, offset(image)) / (len(image) * len(text))


@bug(
    "siglip",
    named="gradient-divided-by-ranks+value-is-a-share",
    seen="re-implementations that divide by the global batch size",
    also=("value-is-a-share",),
)
def siglip_divided_by_the_whole_batch(image, text, *, logit_scale, logit_bias):
    """The sum over the own rows is divided by the number of all rows, and the trainer averages."""
    image, text = unit(image), gathered(unit(text))
    return _block(image, text, logit_scale, logit_bias, offset(image)) / len(text)


@bug("siglip", named="scalar-not-synchronized", seen="trainers that learn the scale on the main process")
def siglip_scalars_are_learned_on_rank_0(image, text, *, logit_scale, logit_bias):
    """Scale and bias are detached on all ranks but the first."""
    image = unit(image)
    if dist.get_rank():
        logit_scale, logit_bias = logit_scale.detach(), logit_bias.detach()
    return _block(image, gathered(unit(text)), logit_scale, logit_bias, offset(image)) / len(image)


@bug("siglip", named="one-shard-missing", seen="re-implementations of the ring exchange")
def siglip_ring_ends_one_step_early(image, text, *, logit_scale, logit_bias):
    """Of W - 1 steps in which texts of other ranks arrive, the last is not made."""
    image, text = unit(image), unit(text)
    loss = _block(image, text, logit_scale, logit_bias, torch.arange(len(image)))
    shards, ranks = gathered(text).chunk(dist.get_world_size()), dist.get_world_size()
    for step in range(1, ranks - 1):
        loss = loss + _block(image, shards[(dist.get_rank() - step) % ranks], logit_scale, logit_bias)
    return loss / len(image)
