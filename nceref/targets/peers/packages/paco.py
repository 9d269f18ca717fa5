"""PaCo and GPaCo: the authors' code; rows normalized outside, the queue below the batch, class scores made outside."""

from nceref.targets.peers.peer import Checkout, Peer, PeerTarget, load


def _gpaco(
    embeddings, labels, centers, *, alpha, temperature, queue=None, queue_labels=None, class_prior=None,
    center_features=None, center_bias=None,
):  # fmt: skip
    loss = load("paco", "GPaCo/LT/losses.py").PaCoLoss(alpha, temperature=temperature)
    loss.K = 0 if queue is None else len(queue)
    return _called(loss, embeddings, labels, centers, queue, queue_labels, class_prior, center_features, center_bias)


def _paco(
    embeddings, labels, centers, *, alpha, temperature, queue=None, queue_labels=None, class_prior=None,
    center_features=None, center_bias=None,
):  # fmt: skip
    loss = load("paco", "PaCo/LT/losses.py").PaCoLoss(alpha, temperature=temperature)
    # It expects a second view, as many rows, between the batch and the queue: here those are the queue's first rows.
    loss.K = (0 if queue is None else len(queue)) - len(embeddings)
    return _called(loss, embeddings, labels, centers, queue, queue_labels, class_prior, center_features, center_bias)


def _called(loss, embeddings, labels, centers, queue, queue_labels, class_prior, center_features, center_bias):
    import torch

    features = embeddings if center_features is None else center_features
    scores = features @ centers.T
    loss.num_classes = len(centers)
    loss.weight = torch.ones_like(centers[:, 0]) if class_prior is None else class_prior
    if queue is not None:
        # Rows of earlier batches carry no gradient.
        embeddings, labels = torch.cat([embeddings, queue.detach()]), torch.cat([labels, queue_labels])
    return loss(embeddings, labels, scores if center_bias is None else scores + center_bias)


_SETTINGS = {"normalize": "none", "form": "normalized", "queue": ..., "queue_labels": ..., "class_prior": ...}
_NUMBERS = ("alpha", "temperature")

PEER = Peer(
    name="paco",
    package="",
    pip="",
    link="https://github.com/dvlab-research/Parametric-Contrastive-Learning",
    checkout=Checkout(("PaCo/LT/losses.py", "GPaCo/LT/losses.py"), "NCEREF_PACO"),
    targets=(
        PeerTarget("paco", "", "paco", _paco, _SETTINGS, floats=_NUMBERS),
        PeerTarget("gpaco", "", "paco", _gpaco, _SETTINGS, floats=_NUMBERS),
    ),
)
