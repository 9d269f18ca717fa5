"""SupContrast: the authors' code of SupCon; rows normalized outside, several views a sample, T / 0.07 in front."""

from nceref.targets.peers.peer import Checkout, Peer, PeerTarget, load


def _supcon(embeddings, labels=None, *, mask=None, temperature, base_temperature=None):
    views = embeddings if embeddings.ndim == 3 else embeddings[:, None]
    base = temperature if base_temperature is None else base_temperature
    loss = load("supcontrast", "losses.py").SupConLoss(temperature=temperature, base_temperature=base)
    return loss(views, labels, mask)


PEER = Peer(
    name="supcontrast",
    package="",
    pip="",
    link="https://github.com/HobbitLong/SupContrast",
    checkout=Checkout(("losses.py",), "NCEREF_SUPCONTRAST"),
    targets=(
        PeerTarget("supcontrast", "", "supcon_out", _supcon, {"normalize": "none", "no_positive": "zero"},
                   floats=("temperature", "base_temperature"), omits="queues"),
    ),
)  # fmt: skip
