"""Operations of trainers between ranks, in PyTorch: gathers without and with a gradient, and parts of losses.

All ranks have equally many rows, but for `uneven`, and come in the order of their numbers.
"""

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F


def constants(x: Any) -> list[Any]:
    """The rows of each rank, none with a gradient."""
    shards = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size())]
    dist.all_gather(shards, x.detach().contiguous())
    return shards


def put_back(x: Any) -> Any:
    """The rows of all ranks; those of this one have a gradient."""
    shards = constants(x)
    shards[dist.get_rank()] = x
    return torch.cat(shards)


class SummingGather(torch.autograd.Function):  # type: ignore[misc]
    """The rows of all ranks; each rank gets the sum of what all ranks send back to its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.cat(constants(x))

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return own(grad)


def gathered(x: Any) -> Any:
    """The rows of all ranks, with their gradient."""
    return SummingGather.apply(x)


def own(x: Any) -> Any:
    """The part of this rank, of what was gathered."""
    return x.chunk(dist.get_world_size())[dist.get_rank()]


def offset(x: Any) -> Any:
    """The places that the own rows have among those of all ranks."""
    return dist.get_rank() * len(x) + torch.arange(len(x))


class UnevenGather(torch.autograd.Function):  # type: ignore[misc]
    """A gather like `SummingGather`, for ranks with different numbers of rows."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
        dist.all_gather(lengths, torch.tensor([len(x)]))
        counts = [int(n) for n in lengths]
        shards = [x.new_zeros((max(counts), *x.shape[1:])) for _ in counts]
        dist.all_gather(shards, F.pad(x, (*(0, 0) * (x.ndim - 1), 0, max(counts) - len(x))))
        ctx.begin, ctx.length = sum(counts[: dist.get_rank()]), len(x)
        return torch.cat([shard[:n] for shard, n in zip(shards, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return grad[ctx.begin : ctx.begin + ctx.length]


def uneven(x: Any) -> Any:
    """The rows of all ranks, which may have more than others, with their gradient."""
    return UnevenGather.apply(x)


def total(x: Any) -> Any:
    """The sum over all ranks, a constant."""
    x = torch.as_tensor(x).detach().clone()
    dist.all_reduce(x)
    return x


def unit(x: Any) -> Any:
    """Rows scaled to length 1."""
    return x / x.square().sum(dim=1, keepdim=True).sqrt()


def both_directions(image: Any, text: Any, scale: Any) -> Any:
    """The softmax loss of two towers on a whole batch, the mean of both directions."""
    logits = scale * image @ text.T
    places = torch.arange(len(logits))
    return (F.cross_entropy(logits, places) + F.cross_entropy(logits.T, places)) / 2


def two_views(z1: Any, z2: Any, temperature: Any) -> Any:
    """The softmax loss of two views on a whole batch: each row against all but itself."""
    z, n = torch.cat([z1, z2]), len(z1)
    logits = (z @ z.T / temperature).masked_fill(torch.eye(2 * n, dtype=torch.bool), -torch.inf)
    return F.cross_entropy(logits, torch.arange(2 * n).roll(n))


def against_all(z: Any, everything: Any, places: Any, partners: Any, temperature: Any) -> Any:
    """Rows against all rows, themselves at `places` left out; the positives are at `partners`."""
    logits = z @ everything.T / temperature
    self_pair = torch.zeros_like(logits, dtype=torch.bool).scatter(1, places[:, None], value=True)
    return F.cross_entropy(logits.masked_fill(self_pair, -torch.inf), partners)
