"""lightly: two views, rows normalized inside, temperatures in the constructor, mean over both views.

The files of the losses are loaded by themselves: the package around them needs torchvision.
"""

from nceref.targets.peers.peer import Peer, PeerTarget, load

_NTXENT, _DCL = "lightly/loss/ntx_ent_loss.py", "lightly/loss/dcl_loss.py"
_ALONE: dict[str, dict[str, object]] = {"lightly.models.modules": {}, "lightly.models.utils": {}}
"""Modules that the file imports and that a memory bank of size 0 does not use; empty ones stand in for them."""
_RANKS: tuple[dict[str, bool], ...] = ({}, {"gather_distributed": True})


def _ntxent(z1, z2, *, temperature, gather_distributed=False):
    kind = load("lightly", _NTXENT, _ALONE).NTXentLoss
    return kind(temperature=temperature, gather_distributed=gather_distributed)(z1, z2)


def _dcl(z1, z2, *, temperature, gather_distributed=False):
    return load("lightly", _DCL).DCLLoss(temperature=temperature, gather_distributed=gather_distributed)(z1, z2)


def _dclw(z1, z2, *, temperature, sigma, gather_distributed=False):
    kind = load("lightly", _DCL).DCLWLoss
    return kind(temperature=temperature, sigma=sigma, gather_distributed=gather_distributed)(z1, z2)


PEER = Peer(
    name="lightly",
    package="lightly",
    pip="lightly",
    link="https://github.com/lightly-ai/lightly",
    targets=(
        PeerTarget("lightly-ntxent", "lightly.loss:NTXentLoss", "nt_xent", _ntxent, floats=("temperature",),
                   omits="the memory bank", also=("lightly.loss.ntx_ent_loss:NTXentLoss",), ranks=_RANKS),
        PeerTarget("lightly-dcl", "lightly.loss:DCLLoss", "dcl", _dcl, floats=("temperature",),
                   also=("lightly.loss.dcl_loss:DCLLoss",), ranks=_RANKS),
        PeerTarget("lightly-dclw", "lightly.loss:DCLWLoss", "dclw", _dclw, floats=("temperature", "sigma"),
                   also=("lightly.loss.dcl_loss:DCLWLoss",), ranks=_RANKS),
    ),
)  # fmt: skip
