"""solo-learn: its functions in one process; the file of a loss alone, without the training framework around it.

Its supervised form adds the probabilities of the positives up; MoCo v3 has 2 T in front, as in the paper.
"""

from nceref.targets.peers.peer import Checkout, Peer, PeerTarget, load

_SIMCLR, _MOCO_V2, _MOCO_V3 = (f"solo/losses/{name}.py" for name in ("simclr", "mocov2plus", "mocov3"))
_ONE_PROCESS = {
    "solo.utils.misc": {
        "concat_all_gather_no_grad": lambda x: x,
        "gather": lambda x: x,
        "get_rank": lambda: 0,
    }
}
"""Functions that the files import from the rest of the checkout, as they act in a single process."""


def _simclr(z1, z2, *, temperature):
    import torch

    samples = torch.arange(len(z1))
    loss = load("solo-learn", _SIMCLR, _ONE_PROCESS).simclr_loss_func
    return loss(torch.cat([z1, z2]), torch.cat([samples, samples]), temperature)


def _classes(embeddings, labels, *, temperature):
    return load("solo-learn", _SIMCLR, _ONE_PROCESS).simclr_loss_func(embeddings, labels, temperature)


def _moco_v2(queries, keys, queue, *, temperature):
    # Keys come from a momentum encoder without gradient, and the queue is stored as columns.
    loss = load("solo-learn", _MOCO_V2).mocov2plus_loss_func
    return loss(queries, keys.detach(), queue.detach().T, temperature)


def _moco_v3(queries, keys, *, temperature):
    return load("solo-learn", _MOCO_V3, _ONE_PROCESS).mocov3_loss_func(queries, keys, temperature)


PEER = Peer(
    name="solo-learn",
    package="",
    pip="",
    link="https://github.com/vturrisi/solo-learn",
    checkout=Checkout((_SIMCLR, _MOCO_V2, _MOCO_V3), "NCEREF_SOLO_LEARN"),
    targets=(
        PeerTarget("solo-learn-simclr", "", "nt_xent", _simclr),
        PeerTarget("solo-learn-supcon", "", "supcon_in", _classes,
                   {"row": "positives-summed-inside-log"}, omits="masks, views, lonely anchors"),
        PeerTarget("solo-learn-mocov2plus", "", "moco", _moco_v2, {"normalize": "none"}),
        PeerTarget("solo-learn-mocov3", "", "info_nce", _moco_v3,
                   {"factor": "outer-factor-2-temperature"}, omits="explicit negatives"),
    ),
)  # fmt: skip
