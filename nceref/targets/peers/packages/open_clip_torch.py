"""open_clip: rows normalized outside; the logit scale is the factor itself, exponentiated outside.

The file of the losses is loaded by itself: the package around it needs torchvision and timm.
"""

from nceref.targets.peers.peer import Peer, PeerTarget, load

_LOSS = "open_clip/loss.py"


def _clip(image, text, *, logit_scale, local_loss=False, gather_with_grad=False, rank=0, world_size=1):
    loss = load("open_clip_torch", _LOSS).ClipLoss(local_loss, gather_with_grad, rank=rank, world_size=world_size)
    return loss(image, text, logit_scale)


def _siglip(image, text, *, logit_scale, logit_bias, dist_impl=None, rank=0, world_size=1):
    loss = load("open_clip_torch", _LOSS).SigLipLoss(rank=rank, world_size=world_size, dist_impl=dist_impl)
    return loss(image, text, logit_scale, logit_bias)


PEER = Peer(
    name="open_clip_torch",
    package="open_clip",
    pip="open_clip_torch",
    link="https://github.com/mlfoundations/open_clip",
    targets=(
        PeerTarget(
            "open-clip-clip",
            "open_clip.loss:ClipLoss",
            "clip",
            _clip,
            {"normalize": "none"},
            also=("open_clip:ClipLoss",),
            ranks=(
                {},
                {"gather_with_grad": True},
                {"local_loss": True},
                {"local_loss": True, "gather_with_grad": True},
            ),
        ),
        PeerTarget(
            "open-clip-siglip",
            "open_clip.loss:SigLipLoss",
            "siglip",
            _siglip,
            {"normalize": "none"},
            also=("open_clip:SigLipLoss",),
            ranks=({}, {"dist_impl": "shift"}, {"dist_impl": "reduce"}, {"dist_impl": "gather"}),
        ),
    ),
)
