"""sentence-transformers: cosines times a scale, 1/T, in the constructor; embeddings are given without a model."""

from nceref.targets.peers.peer import Peer, PeerTarget


def _ranking(queries, keys, *, temperature, gather_across_devices=False):
    loss = _loss(1 / temperature, gather_across_devices=gather_across_devices)
    return loss.compute_loss_from_embeddings([queries, keys], None)


def _hard_negatives(queries, documents, negatives, *, temperature, hardness=0.0):
    weighted = {"hardness_mode": "hard_negatives", "hardness_strength": hardness} if hardness else {}
    loss = _loss(1 / temperature, **weighted)
    return loss.compute_loss_from_embeddings([queries, documents, *negatives.unbind(1)], None)


def _directions(queries, documents, negatives, *, temperature, directions):
    sums = {"qd": "query_to_doc", "qq": "query_to_query", "dq": "doc_to_query", "dd": "doc_to_doc"}
    names = {"all": sums, "symmetric": ("qd", "dq")}.get(directions) or directions.split("_")
    mode = "per_direction" if directions == "symmetric" else "joint"
    loss = _loss(1 / temperature, directions=tuple(sums[name] for name in names), partition_mode=mode)
    return loss.compute_loss_from_embeddings([queries, documents, *negatives.unbind(1)], None)


def _guided(queries, documents, guide_queries, guide_documents, *, temperature, margin, margin_of, directions):
    from sentence_transformers.sentence_transformer.losses import GISTEmbedLoss
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    class Given:
        """Embeddings that were given, by their name among the features of a sentence."""

        tokenizer, max_seq_length = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({}))), 1

        def __init__(self, name):
            self.name = name

        def __call__(self, features):
            return {"sentence_embedding": features[self.name]}

    also = {"contrast_anchors": "qq" in directions, "contrast_positives": "dd" in directions}
    loss = GISTEmbedLoss(Given("model"), Given("guide"), temperature, margin_of, margin, **also)
    features = [{"model": queries, "guide": guide_queries}, {"model": documents, "guide": guide_documents}]
    return loss(features, None)


def _symmetric(image, text, *, logit_scale, gather_across_devices=False):
    both = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    loss = _loss(logit_scale, gather_across_devices=gather_across_devices, **both)
    return loss.compute_loss_from_embeddings([image, text], None)


def _loss(scale, **options):
    import torch
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    return MultipleNegativesRankingLoss(torch.nn.Identity(), scale=scale, **options)


_PATH = "sentence_transformers.sentence_transformer.losses:MultipleNegativesRankingLoss"

_RANKS: tuple[dict[str, bool], ...] = ({}, {"gather_across_devices": True})

PEER = Peer(
    name="sentence-transformers",
    package="sentence_transformers",
    pip="'sentence-transformers>=6.2'",
    link="https://github.com/huggingface/sentence-transformers",
    targets=(
        PeerTarget("mnrl", _PATH, "info_nce", _ranking, floats=("temperature",),
                   omits="hard negatives: mnrl-hard-negatives has them",
                   also=("sentence_transformers.losses:MultipleNegativesRankingLoss",),
                   init={"scale": ("temperature", lambda scale: 1 / scale)}, ranks=_RANKS),
        PeerTarget("mnrl-hard-negatives", "", "mnrl", _hard_negatives, {"negatives": ..., "hardness_of": "hard"},
                   floats=("temperature", "hardness")),
        PeerTarget("mnrl-directions", "", "multi_direction", _directions, {"negatives": ...}, floats=("temperature",)),
        PeerTarget("gist", "", "guided_info_nce", _guided, {"guide_queries": ..., "guide_documents": ...},
                   floats=("temperature", "margin"), omits="hard negatives"),
        PeerTarget("mnrl-symmetric", "", "clip", _symmetric, floats=("logit_scale",), ranks=_RANKS),
    ),
)  # fmt: skip
