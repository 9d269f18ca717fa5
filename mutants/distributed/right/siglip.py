"""The sigmoid loss of two towers."""

import torch
import torch.distributed as dist
import torch.nn.functional as F

from mutants.bug import correct
from mutants.distributed.collectives import gathered, offset, unit


def _block(image, text, scale, bias, places=None):
    """The sum over the pairs of a block; the positives are at `places`, and nowhere if there are none."""
    logits = scale * image @ text.T + bias
    sign = -torch.ones_like(logits)
    if places is not None:
        sign = sign.scatter(1, places[:, None], 1.0)
    return -F.logsigmoid(sign * logits).sum()


def _passed(x, step):
    """The array of the rank that lies `step` places before this one."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    both = [
        dist.P2POp(dist.isend, x.contiguous(), (rank + step) % ranks),
        dist.P2POp(dist.irecv, out, (rank - step) % ranks),
    ]
    for request in dist.batch_isend_irecv(both):
        request.wait()
    return out


class _Ring(torch.autograd.Function):  # type: ignore[misc]
    """The rows of the rank before; backward, gradients go the other way."""

    @staticmethod
    def forward(ctx, x):
        return _passed(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return _passed(grad, -1)


@correct("siglip")
def siglip_ring(image, text, *, logit_scale, logit_bias):
    """The texts go round, and their gradients go back."""
    image, text = unit(image), unit(text)
    loss = _block(image, text, logit_scale, logit_bias, torch.arange(len(image)))
    for _ in range(dist.get_world_size() - 1):
        text = _Ring.apply(text)
        loss = loss + _block(image, text, logit_scale, logit_bias)
    return loss / len(image)


@correct("siglip")
def siglip_gathered_in_chunks(image, text, *, logit_scale, logit_bias):
    """All texts are gathered, and the own images are compared with them in chunks of two."""
    image, text = unit(image), gathered(unit(text))
    parts = zip(image.split(2), offset(image).split(2), strict=True)
    return sum(_block(rows, text, logit_scale, logit_bias, places) for rows, places in parts) / len(image)


@correct("siglip", options={"value": "sum", "sync": "sum"})
def siglip_shares_are_summed(image, text, *, logit_scale, logit_bias):
    """The sum over the own rows divided by the number of all rows; values and gradients are summed over the ranks."""
    image, text = unit(image), gathered(unit(text))
    return _block(image, text, logit_scale, logit_bias, offset(image)) / len(text)
