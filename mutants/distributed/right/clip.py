"""Losses of an image and a text tower."""

import torch
import torch.distributed as dist
import torch.distributed.nn.functional
import torch.nn.functional as F

from mutants.bug import correct
from mutants.distributed.collectives import (
    both_directions,
    constants,
    gathered,
    offset,
    total,
    uneven,
    unit,
)


@correct("clip")
def clip_local_with_gradient(image, text, *, logit_scale):
    """Own rows against all, through a gather whose backward pass sums over the ranks."""
    image, text = unit(image), unit(text)
    places = offset(image)
    rows = F.cross_entropy(logit_scale * image @ gathered(text).T, places)
    return (rows + F.cross_entropy(logit_scale * text @ gathered(image).T, places)) / 2


@correct("clip", options={"value": "each"})
def clip_joined_with_gradient(image, text, *, logit_scale):
    """The loss of the whole batch on every rank, through a gather whose backward pass sums over the ranks."""
    return both_directions(gathered(unit(image)), gathered(unit(text)), logit_scale)


@correct("clip")
def clip_gather_of_torch(image, text, *, logit_scale):
    """The loss of the whole batch on every rank, through the gather with gradient of PyTorch itself."""
    images = torch.cat(torch.distributed.nn.functional.all_gather(unit(image)))
    texts = torch.cat(torch.distributed.nn.functional.all_gather(unit(text)))
    return both_directions(images, texts, logit_scale)


@correct("clip")
def clip_own_shard_counts_for_all(image, text, *, logit_scale):
    """The others' rows are constants; the own have a gradient that is multiplied by the number of ranks."""
    return both_directions(_amplified(unit(image)), _amplified(unit(text)), logit_scale)


def _amplified(x):
    shards, ranks = constants(x), dist.get_world_size()
    shards[dist.get_rank()] = _Amplified.apply(x, ranks)
    return torch.cat(shards)


class _Amplified(torch.autograd.Function):  # type: ignore[misc]
    """The same rows with a gradient that is so many times larger."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


@correct("clip")
def clip_own_rows_first(image, text, *, logit_scale):
    """Images and texts of the own rank stand before those of the others, so that both are in the same order."""
    return both_directions(_own_first(unit(image)), _own_first(unit(text)), logit_scale)


def _own_first(x):
    shards = list(gathered(x).chunk(dist.get_world_size()))
    return torch.cat([shards.pop(dist.get_rank()), *shards])


@correct("clip")
def clip_in_chunks_of_two(image, text, *, logit_scale):
    """The own rows in chunks of two, each against all."""
    image, text = unit(image), unit(text)
    pairs = ((image, gathered(text)), (text, gathered(image)))
    chunks = (
        F.cross_entropy(logit_scale * part @ everything.T, places, reduction="sum")
        for rows, everything in pairs
        for part, places in zip(rows.split(2), offset(rows).split(2), strict=True)
    )
    return sum(chunks) / (2 * len(image))


@correct("clip", options={"shards": "3,1"})
def clip_weighted_by_the_rows_of_a_rank(image, text, *, logit_scale):
    """The sum over the own rows, divided by the mean number of rows of a rank."""
    image, text = unit(image), unit(text)
    images, texts = uneven(image), uneven(text)
    counts = torch.zeros(dist.get_world_size(), dtype=torch.int64)
    counts[dist.get_rank()] = len(image)
    places = total(counts)[: dist.get_rank()].sum() + torch.arange(len(image))
    rows = F.cross_entropy(logit_scale * image @ texts.T, places, reduction="sum")
    rows = rows + F.cross_entropy(logit_scale * text @ images.T, places, reduction="sum")
    return rows * dist.get_world_size() / (2 * len(images))


@correct("clip")
def clip_texts_stay_where_they_are(image, text, *, logit_scale):
    """Images are gathered, texts are not: each rank has its columns, and the denominators of rows are summed."""
    images, text = gathered(unit(image)), unit(text)
    logits, places = logit_scale * images @ text.T, offset(text)
    columns = F.cross_entropy(logits.T, places, reduction="sum")
    top = logits.detach().amax(1)
    dist.all_reduce(top, dist.ReduceOp.MAX)
    mass = torch.distributed.nn.functional.all_reduce((logits - top[:, None]).exp().sum(1))
    # Every rank has all denominators, and its own share of the positives.
    rows = (top + mass.log()).sum() / dist.get_world_size() - logits[places].diagonal().sum()
    return (rows + columns) / (2 * len(text))
