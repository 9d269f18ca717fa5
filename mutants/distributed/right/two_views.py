"""Losses of two views of the same samples."""

import torch
import torch.distributed as dist

from mutants.bug import correct
from mutants.distributed.collectives import against_all, constants, gathered, offset, two_views, unit


class _ScatteringGather(torch.autograd.Function):  # type: ignore[misc]
    """The rows of all ranks; backward, each rank gets the sum for its own by a reduce-scatter."""

    @staticmethod
    def forward(ctx, x):
        return torch.cat(constants(x))

    @staticmethod
    def backward(ctx, grad):
        parts = [part.contiguous() for part in grad.chunk(dist.get_world_size())]
        out = torch.empty_like(parts[0])
        dist.reduce_scatter(out, parts)
        return out


@correct("nt_xent")
def nt_xent_reduce_scatter(z1, z2, *, temperature):
    """The own rows of both views against all, through a gather that is a reduce-scatter backward."""
    z1, z2 = unit(z1), unit(z2)
    everything, places = torch.cat([_ScatteringGather.apply(z1), _ScatteringGather.apply(z2)]), offset(z1)
    count = len(everything) // 2
    first = against_all(z1, everything, places, places + count, temperature)
    return (first + against_all(z2, everything, places + count, places, temperature)) / 2


@correct("nt_xent")
def nt_xent_views_in_one_piece(z1, z2, *, temperature):
    """Both views are gathered in one piece, and put in the order of the views again."""
    z = gathered(torch.stack([unit(z1), unit(z2)], dim=1))
    return two_views(z[:, 0], z[:, 1], temperature)


@correct("nt_xent", options={"value": "rank0", "sync": "sum"})
def nt_xent_on_rank_0(z1, z2, *, temperature):
    """Rank 0 has the loss, the others 0, and gradients are summed over the ranks."""
    first, second = gathered(unit(z1)), gathered(unit(z2))
    loss = two_views(first, second, temperature)
    # All ranks take part in the backward pass.
    return loss if dist.get_rank() == 0 else 0 * loss


@correct("dcl")
def dcl_own_positives(z1, z2, *, temperature):
    """The own positives over the negatives of all ranks."""
    z1, z2 = unit(z1), unit(z2)
    everything, places = torch.cat([gathered(z1), gathered(z2)]), offset(z1)
    sample = torch.arange(len(everything))[None] % (len(everything) // 2) == places[:, None]
    negatives = ((z @ everything.T / temperature).masked_fill(sample, -torch.inf).logsumexp(1).mean() for z in (z1, z2))
    return sum(negatives) / 2 - (z1 * z2).sum(1).mean() / temperature
