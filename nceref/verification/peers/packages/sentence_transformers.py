"""sentence-transformers: cosines times a scale, 1/T, in the constructor; embeddings are given without a model."""

from nceref.verification.peers.peer import Peer, PeerTarget


def _ranking(queries, keys, *, temperature):
    return _loss(1 / temperature).compute_loss_from_embeddings([queries, keys], None)


def _symmetric(image, text, *, logit_scale):
    both = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    return _loss(logit_scale, **both).compute_loss_from_embeddings([image, text], None)


def _loss(scale, **options):
    import torch
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    return MultipleNegativesRankingLoss(torch.nn.Identity(), scale=scale, **options)


_PATH = "sentence_transformers.sentence_transformer.losses:MultipleNegativesRankingLoss"

PEER = Peer(
    name="sentence-transformers",
    package="sentence_transformers",
    pip="'sentence-transformers>=6.2'",
    link="https://github.com/huggingface/sentence-transformers",
    targets=(
        PeerTarget("mnrl", _PATH, "info_nce", _ranking, floats=("temperature",),
                   omits="hard negatives that join the keys of the batch: those of the reference replace them",
                   also=("sentence_transformers.losses:MultipleNegativesRankingLoss",),
                   init={"scale": ("temperature", lambda scale: 1 / scale)}),
        PeerTarget("mnrl-symmetric", "", "clip", _symmetric, floats=("logit_scale",)),
    ),
)  # fmt: skip
