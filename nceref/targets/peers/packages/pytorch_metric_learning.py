"""pytorch-metric-learning: labelled rows, normalized inside; angles in degrees; the mean leaves out rows of loss 0."""

from math import degrees, radians

from nceref.targets.peers.peer import Peer, PeerTarget


def _ntxent(z1, z2, *, temperature, efficient=None, rank=0):
    import torch
    from pytorch_metric_learning.losses import NTXentLoss, SelfSupervisedLoss
    from pytorch_metric_learning.utils.distributed import DistributedLossWrapper

    loss = NTXentLoss(temperature=temperature)
    if efficient is None:
        return SelfSupervisedLoss(loss)(z1, z2)
    # Ranks that each counted from 0 would share labels.
    samples = torch.arange(len(z1)) + rank * len(z1)
    return DistributedLossWrapper(loss, efficient=efficient)(torch.cat([z1, z2]), torch.cat([samples, samples]))


def _supcon(embeddings, labels=None, *, temperature):
    import torch
    from pytorch_metric_learning.losses import SupConLoss

    labels = torch.arange(len(embeddings)) if labels is None else labels
    if embeddings.ndim == 3:
        labels, embeddings = labels.repeat(embeddings.shape[1]), torch.cat(embeddings.unbind(dim=1))
    return SupConLoss(temperature=temperature)(embeddings, labels)


def _arcface(embeddings, class_weights, target, *, margin, scale):
    from pytorch_metric_learning.losses import ArcFaceLoss

    return _with_weights(ArcFaceLoss, degrees(margin), scale, embeddings, class_weights, target)


def _cosface(embeddings, class_weights, target, *, margin, scale):
    from pytorch_metric_learning.losses import CosFaceLoss

    return _with_weights(CosFaceLoss, margin, scale, embeddings, class_weights, target)


def _with_weights(kind, margin, scale, embeddings, class_weights, target):
    """Call a loss with given class weights; its own are a parameter of shape (D, C) that it initializes at random."""
    loss = kind(*class_weights.shape, margin=margin, scale=scale)
    del loss.W
    loss.W = class_weights.T
    return loss(embeddings, target)


_HOME = "pytorch_metric_learning.losses"
_WRAPPED = ({"efficient": False}, {"efficient": True})
"""Options of the `DistributedLossWrapper` around the loss."""

PEER = Peer(
    name="pytorch-metric-learning",
    package="pytorch_metric_learning",
    pip="pytorch-metric-learning",
    link="https://github.com/KevinMusgrave/pytorch-metric-learning",
    targets=(
        PeerTarget("pml-ntxent", f"{_HOME}:NTXentLoss", "nt_xent", _ntxent, floats=("temperature",), ranks=_WRAPPED),
        PeerTarget("pml-supcon", f"{_HOME}:SupConLoss", "supcon_out", _supcon,
                   {"no_positive": "skip", "reduction": "mean-over-nonzero-rows"},
                   floats=("temperature",), omits="masks, queues, anchors of one view"),
        PeerTarget("pml-arcface", f"{_HOME}:ArcFaceLoss", "arcface", _arcface, {"fallback": "linear"},
                   floats=("margin", "scale"), init={"margin": ("margin", radians)}),
        PeerTarget("pml-cosface", f"{_HOME}:CosFaceLoss", "cosface", _cosface, floats=("margin", "scale")),
    ),
)  # fmt: skip
