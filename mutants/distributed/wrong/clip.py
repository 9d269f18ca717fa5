"""Losses of an image and a text tower."""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from mutants.bug import bug
from mutants.distributed.collectives import (
    both_directions,
    constants,
    gathered,
    offset,
    put_back,
    total,
    uneven,
    unit,
)


def _own_rows(image, text, images, texts, scale):
    """Own images against all texts, own texts against all images."""
    places = offset(image)
    return (F.cross_entropy(scale * image @ texts.T, places) + F.cross_entropy(scale * text @ images.T, places)) / 2


@bug("clip", named="gradient-divided-by-ranks", thread="mlfoundations/open_clip#616")
def clip_joined_loss_of_constants(image, text, *, logit_scale):
    """Every rank computes the loss of the whole batch, in which only its own rows have a gradient."""
    return both_directions(put_back(unit(image)), put_back(unit(text)), logit_scale)


@bug("clip", named="own-shard-detached", thread="mlfoundations/open_clip#894", also=("candidates-detached",))
def clip_local_loss_of_constants(image, text, *, logit_scale):
    """The own rows are compared with gathered constants, their own part of them included."""
    image, text = unit(image), unit(text)
    return _own_rows(image, text, torch.cat(constants(image)), torch.cat(constants(text)), logit_scale)


@bug("clip", named="rank-offset-forgotten", thread="galilai-group/stable-pretraining#409")
def clip_targets_of_the_first_rank(image, text, *, logit_scale):
    """The targets begin at 0 on every rank, although the candidates are those of all."""
    image, text = unit(image), unit(text)
    targets = torch.arange(len(image))
    rows = F.cross_entropy(logit_scale * image @ gathered(text).T, targets)
    return (rows + F.cross_entropy(logit_scale * text @ gathered(image).T, targets)) / 2


@bug("clip", named="local-candidates-only", thread="microsoft/UniCL#5")
def clip_nothing_gathered(image, text, *, logit_scale):
    """Each rank contrasts its own rows with one another."""
    return both_directions(unit(image), unit(text), logit_scale)


@bug(
    "clip",
    named="gradient-times-ranks+value-times-ranks",
    seen="trainers that multiply the loss by the world size whatever the gather does",
    also=("value-times-ranks", "gradient-times-ranks"),
)
def clip_times_the_number_of_ranks(image, text, *, logit_scale):
    """The gather has its gradient, and the loss is multiplied by the number of ranks as if it had none."""
    image, text = unit(image), unit(text)
    return dist.get_world_size() * _own_rows(image, text, gathered(image), gathered(text), logit_scale)


@bug("clip", named="shards-reordered", seen="re-implementations of open_clip's gather_features")
def clip_own_images_first(image, text, *, logit_scale):
    """The own images stand before those of the other ranks, the texts in the order of the ranks."""
    image, text = unit(image), unit(text)
    shards = list(gathered(image).chunk(dist.get_world_size()))
    images = torch.cat([shards.pop(dist.get_rank()), *shards])
    return both_directions(images, gathered(text), logit_scale)


@bug("clip", named="scalar-not-synchronized", seen="Inf-CLIP 1.2.1, GradientGather")
def clip_scale_is_summed_over_the_ranks(image, text, *, logit_scale):
    """The gradient of the scale is summed in the backward pass, and again by the trainer."""
    image, text = unit(image), unit(text)
    scale = _SummedBackward.apply(logit_scale)
    return _own_rows(image, text, gathered(image), gathered(text), scale)


class _SummedBackward(torch.autograd.Function):  # type: ignore[misc]
    """A parameter whose gradient each rank gets as the sum over all ranks."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


@bug("clip", named="scalar-not-synchronized", seen="trainers that learn the scale on the main process")
def clip_scale_is_learned_on_rank_0(image, text, *, logit_scale):
    """The scale is detached on all ranks but the first, and its gradient is divided by their number all the same."""
    image, text = unit(image), unit(text)
    scale = logit_scale if dist.get_rank() == 0 else logit_scale.detach()
    return _own_rows(image, text, gathered(image), gathered(text), scale)


@bug("clip", named="one-direction-only", thread="tensorflow/similarity#262")
def clip_images_against_all_texts(image, text, *, logit_scale):
    """All texts are gathered with their gradient, and the texts are never anchors."""
    image = unit(image)
    return F.cross_entropy(logit_scale * image @ gathered(unit(text)).T, offset(image))


@bug(
    "clip",
    named="gradient-divided-by-ranks+value-is-a-share",
    thread="google-research/simclr#202",
    also=("value-is-a-share",),
)
def clip_divided_by_the_number_of_ranks(image, text, *, logit_scale):
    """The mean over the own rows is divided by the number of ranks, as where gradients are summed."""
    image, text = unit(image), unit(text)
    return _own_rows(image, text, gathered(image), gathered(text), logit_scale) / dist.get_world_size()


@bug("clip", named="mean-of-means", thread="pytorch/pytorch#67253", options={"shards": "3,1"})
def clip_mean_over_uneven_shards(image, text, *, logit_scale):
    """Each rank takes the mean over its own rows, of which some ranks have more than others."""
    image, text = unit(image), unit(text)
    images, texts, places = uneven(image), uneven(text), _uneven_places(image)
    rows = F.cross_entropy(logit_scale * image @ texts.T, places)
    return (rows + F.cross_entropy(logit_scale * text @ images.T, places)) / 2


def _uneven_places(x):
    lengths = torch.zeros(dist.get_world_size(), dtype=torch.int64)
    lengths[dist.get_rank()] = len(x)
    return total(lengths)[: dist.get_rank()].sum() + torch.arange(len(x))


@bug("clip", named="duplicated-rows", thread="pytorch/pytorch#25162", options={"duplicate": True})
def clip_with_the_padding_of_the_sampler(image, text, *, logit_scale):
    """Rows that the sampler repeats are anchors and candidates twice."""
    image, text = unit(image), unit(text)
    return _own_rows(image, text, gathered(image), gathered(text), logit_scale)


@bug("clip", named="one-input-not-gathered", seen="re-implementations that gather the texts alone")
def clip_texts_against_own_images(image, text, *, logit_scale):
    """The texts of all ranks are gathered with their gradient; texts are compared with the own images."""
    image, text = unit(image), unit(text)
    rows = F.cross_entropy(logit_scale * image @ gathered(text).T, offset(image))
    return (rows + F.cross_entropy(logit_scale * text @ image.T, torch.arange(len(text)))) / 2


@bug("clip", named="one-rank-apart", seen="trainers that add a term on the main process")
def clip_penalty_on_rank_0(image, text, *, logit_scale):
    """A penalty on the scale is added on the first rank alone."""
    image, text = unit(image), unit(text)
    loss = _own_rows(image, text, gathered(image), gathered(text), logit_scale)
    return loss if dist.get_rank() else loss + 0.01 * logit_scale**2


@bug("clip", named="one-rank-apart", seen="trainers that freeze a tower on some processes")
def clip_anchors_are_constants_on_rank_1(image, text, *, logit_scale):
    """The images of the second rank have no gradient as anchors; the gather has its own."""
    image, text = unit(image), unit(text)
    anchors = image.detach() if dist.get_rank() == 1 else image
    return _own_rows(anchors, text, gathered(image), gathered(text), logit_scale)
