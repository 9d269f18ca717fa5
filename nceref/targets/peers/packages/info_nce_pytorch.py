"""info-nce-pytorch: one function, rows normalized inside."""

from nceref.targets.peers.peer import Peer, PeerTarget


def _info_nce(queries, keys, negatives=None, *, temperature):
    from info_nce import info_nce

    return info_nce(queries, keys, negatives, temperature=temperature, negative_mode="unpaired")


PEER = Peer(
    name="info-nce-pytorch",
    package="info_nce",
    pip="info-nce-pytorch",
    link="https://github.com/RElbers/info-nce-pytorch",
    targets=(PeerTarget("info-nce-pytorch", "info_nce:info_nce", "info_nce", _info_nce, also=("info_nce:InfoNCE",)),),
)
