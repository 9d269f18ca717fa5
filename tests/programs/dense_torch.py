"""The same three losses in PyTorch, with gradients by autograd; the variable BUG makes them wrong."""

import os

import torch

BUG = os.environ.get("BUG", "")


def _softmax(x, y, temperature, counted, positives):
    """Mean cross entropy of the rows of x against those of y."""
    u, v = (a / a.norm(dim=1, keepdim=True) for a in (x, y.detach() if BUG == "gradient" else y))
    s = u @ v.T / (1 if BUG == "temperature" else temperature)
    rows = torch.logsumexp(s.masked_fill(~counted, -torch.inf), dim=1) - (positives * s).sum(dim=1)
    return (2 if BUG == "factor" else 1) * rows.mean()


def nt_xent(z1, z2, temperature):
    """Of SimCLR."""
    z, n = torch.cat([z1, z2]), len(z1)
    own = torch.eye(2 * n, dtype=torch.bool)
    return _softmax(z, z, temperature, ~own, own.roll(n, 1).to(z.dtype))


def info_nce(queries, keys, temperature):
    """With the other keys of the batch as negatives."""
    same = torch.eye(len(queries), dtype=torch.bool)
    return _softmax(queries, keys, temperature, same | ~same, same.to(queries.dtype))


def supcon_out(embeddings, labels, temperature):
    """Supervised, with the sum over positives outside of the logarithm."""
    rest = ~torch.eye(len(labels), dtype=torch.bool)
    positives = (rest & (labels[:, None] == labels)).to(embeddings.dtype)
    return _softmax(embeddings, embeddings, temperature, rest, positives / positives.sum(dim=1, keepdim=True))
