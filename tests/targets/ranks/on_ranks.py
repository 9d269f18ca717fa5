"""Losses of one rank each in PyTorch: a right one, and those that fail on a single rank."""

import os
import time

import torch
import torch.distributed as dist
from torch.nn import functional


class Gathered(torch.autograd.Function):
    """The rows of all ranks; the gradient of what all ranks make of them comes back."""

    @staticmethod
    def forward(ctx, rows):
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size())[dist.get_rank()]


def gathered_without_gradient(rows):
    parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, rows.detach().contiguous())
    parts[dist.get_rank()] = rows
    return torch.cat(parts)


def both_directions(image, text, logit_scale):
    logits = logit_scale * functional.normalize(image, dim=-1) @ functional.normalize(text, dim=-1).T
    target = torch.arange(len(logits))
    return (functional.cross_entropy(logits, target) + functional.cross_entropy(logits.T, target)) / 2


def right(image, text, logit_scale):
    return both_directions(Gathered.apply(image), Gathered.apply(text), logit_scale)


def by_functional(image, text, logit_scale):
    # Imported where a group is there already, whose successor must be meant.
    from torch.distributed.nn.functional import all_gather

    return both_directions(torch.cat(all_gather(image)), torch.cat(all_gather(text)), logit_scale)


def without_gradient(image, text, logit_scale):
    return both_directions(gathered_without_gradient(image), gathered_without_gradient(text), logit_scale)


def twice_without_gradient(image, text, logit_scale):
    return 2 * without_gradient(image, text, logit_scale)


class Loss:
    """Takes its place from the constructor."""

    def __init__(self, rank, world_size):
        self.place = rank, world_size

    def __call__(self, image, text, logit_scale):
        assert self.place == (dist.get_rank(), dist.get_world_size())
        return right(image, text, logit_scale)


def placed(image, text, logit_scale, place):
    assert place == (dist.get_rank(), dist.get_world_size())
    return right(image, text, logit_scale)


def summed(image, text, logit_scale):
    return right(image, text, logit_scale) / dist.get_world_size()


def on_rank_0(image, text, logit_scale):
    value = right(image, text, logit_scale)
    return value if dist.get_rank() == 0 else value - value.detach()


def raises(image, text, logit_scale):
    if dist.get_rank() == 1:
        msg = "rank 1 has no text"
        raise ValueError(msg)
    return right(image, text, logit_scale)


def dies(image, text, logit_scale):
    if dist.get_rank() == 1:
        os._exit(7)
    return right(image, text, logit_scale)


def hangs(image, text, logit_scale):
    return right(image, text, logit_scale) if dist.get_rank() == 0 else both_directions(image, text, logit_scale)


def sleeps(image, text, logit_scale):
    if dist.get_rank() == 1:
        time.sleep(1000)
    return right(image, text, logit_scale)


def not_a_number(image, text, logit_scale):
    value = right(image, text, logit_scale)
    return value * float("nan") if dist.get_rank() == 1 else value


def wrong_shape(image, text, logit_scale):
    value = right(image, text, logit_scale)
    return value.expand(3) if dist.get_rank() == 1 else value


def uneven(image, text, logit_scale):
    """Gathers shards of any sizes by padding them."""
    sizes = [torch.zeros((), dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor(len(image)))
    most = int(max(sizes))

    def joined(rows):
        parts = Gathered.apply(functional.pad(rows, (0, 0, 0, most - len(rows)))).split(most)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    return both_directions(joined(image), joined(text), logit_scale)
