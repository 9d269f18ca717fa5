"""Losses of two views of the same samples."""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from mutants.bug import bug
from mutants.distributed.collectives import (
    against_all,
    constants,
    gathered,
    offset,
    own,
    put_back,
    two_views,
    unit,
)


def _rows(z1, z2, everything1, everything2, temperature):
    """The own rows of both views against all rows of both."""
    everything, count, places = torch.cat([everything1, everything2]), len(everything1), offset(z1)
    first = against_all(z1, everything, places, places + count, temperature)
    return (first + against_all(z2, everything, places + count, places, temperature)) / 2


class _OwnSlice(torch.autograd.Function):  # type: ignore[misc]
    """The rows of all ranks; backward, this rank's slice of its own gradient."""

    @staticmethod
    def forward(ctx, x):
        return torch.cat(constants(x))

    @staticmethod
    def backward(ctx, grad):
        return own(grad).clone()


class _AveragingGather(torch.autograd.Function):  # type: ignore[misc]
    """The rows of all ranks; backward, the mean over the ranks."""

    @staticmethod
    def forward(ctx, x):
        return torch.cat(constants(x))

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return own(grad) / dist.get_world_size()


class _SlicedFirst(torch.autograd.Function):  # type: ignore[misc]
    """The rows of all ranks; backward, each rank takes its slice before they are summed."""

    @staticmethod
    def forward(ctx, x):
        return torch.cat(constants(x))

    @staticmethod
    def backward(ctx, grad):
        grad = own(grad).clone()
        dist.all_reduce(grad)
        return grad


class _MultiplyingGather(torch.autograd.Function):  # type: ignore[misc]
    """The rows of all ranks; backward, the sum times the number of ranks."""

    @staticmethod
    def forward(ctx, x):
        return torch.cat(constants(x))

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        dist.all_reduce(grad)
        return own(grad) * dist.get_world_size()


@bug("nt_xent", named="gradient-divided-by-ranks", thread="Spijkervet/SimCLR#33")
def nt_xent_joined_with_own_slice(z1, z2, *, temperature):
    """The loss of the whole batch on every rank, through a gather that gives back this rank's slice alone."""
    return two_views(_OwnSlice.apply(unit(z1)), _OwnSlice.apply(unit(z2)), temperature)


@bug("nt_xent", named="cross-rank-terms-missing", thread="lightly-ai/lightly#1528")
def nt_xent_local_with_own_slice(z1, z2, *, temperature):
    """The loss of the own rows, through a gather that gives back this rank's slice alone."""
    z1, z2 = unit(z1), unit(z2)
    return _rows(z1, z2, _OwnSlice.apply(z1), _OwnSlice.apply(z2), temperature)


@bug("nt_xent", named="gradient-divided-by-ranks", thread="facebookresearch/vissl#230")
def nt_xent_averaging_gather(z1, z2, *, temperature):
    """The loss of the whole batch on every rank, through a gather whose backward pass averages."""
    return two_views(_AveragingGather.apply(unit(z1)), _AveragingGather.apply(unit(z2)), temperature)


@bug("nt_xent", named="value-right-gradient-wrong", thread="cellarium-ai/cellarium-ml#184")
def nt_xent_slices_are_summed(z1, z2, *, temperature):
    """Each rank takes its own slice of the gradient, and then the slices of all are summed."""
    z1, z2 = unit(z1), unit(z2)
    return _rows(z1, z2, _SlicedFirst.apply(z1), _SlicedFirst.apply(z2), temperature)


@bug("nt_xent", named="gradient-times-ranks", thread="Tencent/TFace#34")
def nt_xent_multiplying_gather(z1, z2, *, temperature):
    """The backward pass of the gather sums over the ranks, and multiplies by their number once more."""
    return two_views(_MultiplyingGather.apply(unit(z1)), _MultiplyingGather.apply(unit(z2)), temperature)


@bug("nt_xent", named="gradient-times-ranks", thread="google/edward2#428", options={"sync": "sum"})
def nt_xent_mean_where_gradients_are_summed(z1, z2, *, temperature):
    """The mean over the own rows, in a trainer that sums gradients over the ranks."""
    z1, z2 = unit(z1), unit(z2)
    return _rows(z1, z2, gathered(z1), gathered(z2), temperature)


@bug(
    "nt_xent",
    named="value-times-ranks",
    thread="KevinMusgrave/pytorch-metric-learning#712",
    also=("scalar-not-synchronized+value-times-ranks",),
)
def nt_xent_joined_times_ranks(z1, z2, *, temperature):
    """The loss of the whole batch, where only the own rows have a gradient, times the number of ranks."""
    return dist.get_world_size() * two_views(put_back(unit(z1)), put_back(unit(z2)), temperature)


@bug("nt_xent", named="local-candidates-only", thread="Lightning-Universe/lightning-bolts#179")
def nt_xent_negatives_of_this_rank(z1, z2, *, temperature):
    """Nothing is gathered: the negatives are those of the own rows."""
    return two_views(unit(z1), unit(z2), temperature)


@bug("nt_xent", named="rank-offset-forgotten", thread="facebookresearch/OTTER#3")
def nt_xent_self_mask_of_the_first_rank(z1, z2, *, temperature):
    """The self-similarities are left out where those of rank 0 stand."""
    z1, z2 = unit(z1), unit(z2)
    everything, count = torch.cat([gathered(z1), gathered(z2)]), len(z1) * dist.get_world_size()
    first, places = torch.arange(len(z1)), offset(z1)
    rows = against_all(z1, everything, first, places + count, temperature)
    return (rows + against_all(z2, everything, first + count, places, temperature)) / 2


@bug("nt_xent", named="shards-reordered", thread="Spijkervet/SimCLR#46")
def nt_xent_views_gathered_together(z1, z2, *, temperature):
    """Both views of a rank are gathered in one piece, and the partner is sought half of all rows away."""
    z = gathered(torch.cat([unit(z1), unit(z2)]))
    first, second = z.chunk(2)
    return two_views(first, second, temperature)


@bug("nt_xent", named="outer-factor-2", thread="Spijkervet/SimCLR#18", also=("directions-summed",))
def nt_xent_views_added_up(z1, z2, *, temperature):
    """The means of both views are added up, not averaged; the gather has its gradient."""
    z1, z2 = unit(z1), unit(z2)
    return 2 * _rows(z1, z2, gathered(z1), gathered(z2), temperature)


@bug("nt_xent", named="self-contrast-kept", thread="Lightning-Universe/lightning-bolts#252")
def nt_xent_self_among_all_rows(z1, z2, *, temperature):
    """Each row is among its own candidates; the gather has its gradient."""
    z = torch.cat([gathered(unit(z1)), gathered(unit(z2))])
    return F.cross_entropy(z @ z.T / temperature, torch.arange(len(z)).roll(len(z) // 2))


def _negatives(z, everything, places, count, temperature):
    """Log of the sum over all rows but the two of the sample."""
    logits = z @ everything.T / temperature
    sample = torch.zeros_like(logits, dtype=torch.bool)
    sample = sample.scatter(1, places[:, None], value=True).scatter(1, places[:, None] + count, value=True)
    return logits.masked_fill(sample, -torch.inf)


@bug("dcl", named="own-shard-detached", seen="re-implementations of DCL", also=("candidates-detached",))
def dcl_candidates_are_constants(z1, z2, *, temperature):
    """The candidates are gathered constants, own rows included."""
    z1, z2 = unit(z1), unit(z2)
    first, second = torch.cat(constants(z1)), torch.cat(constants(z2))
    everything, count, places = torch.cat([first, second]), len(first), offset(z1)
    one = _negatives(z1, everything, places, count, temperature).logsumexp(1) - (z1 * own(second)).sum(1) / temperature
    two = _negatives(z2, everything, places, count, temperature).logsumexp(1) - (z2 * own(first)).sum(1) / temperature
    return (one.mean() + two.mean()) / 2


@bug("dcl", named="denominators-added-as-logs", thread="lightly-ai/lightly#1826")
def dcl_two_logs_of_sums(z1, z2, *, temperature):
    """Negatives of the own and of the other view are in a log-sum-exp each, and these are added; all are gathered."""
    z1, z2 = unit(z1), unit(z2)
    first, second, places = gathered(z1), gathered(z2), offset(z1)
    positive = (z1 * z2).sum(1) / temperature
    return (
        _log_sums(z1, first, second, places, temperature) + _log_sums(z2, second, first, places, temperature)
    ).mean() / 2 - positive.mean()


def _log_sums(z, same, other, places, temperature):
    out = 0
    for candidates in (same, other):
        logits = z @ candidates.T / temperature
        self_pair = torch.zeros_like(logits, dtype=torch.bool).scatter(1, places[:, None], value=True)
        out = out + logits.masked_fill(self_pair, -torch.inf).logsumexp(1)
    return out


@bug("dclw", named="weights-of-own-shard", seen="lightly 1.5, DCLWLoss with gather_distributed")
def dclw_weights_of_own_pairs(z1, z2, *, temperature, sigma):
    """The softmax of the weights is over the own pairs; the candidates are those of all ranks, with their gradient."""
    z1, z2 = unit(z1), unit(z2)
    first, second, places = gathered(z1), gathered(z2), offset(z1)
    everything, count, pair = torch.cat([first, second]), len(first), (z1 * z2).sum(1)
    pulled = (2 - len(z1) * (pair.detach() / sigma).softmax(0)) * pair / temperature
    pushed = [_negatives(z, everything, places, count, temperature).logsumexp(1) for z in (z1, z2)]
    return ((pushed[0] + pushed[1]) / 2 - pulled).mean()
