"""Bugs in guided losses: who is left out by the guide's similarities, and against which limit."""

import numpy as np

from mutants.bug import CONSTRUCTED, bug, cross_entropy, stop, unit

GUIDED = {"directions": "qd"}


def masked(queries, documents, above, temperature):
    """Cross-entropy of queries against documents, those above the limit at minus infinity but for the positive."""
    own = np.eye(len(queries), dtype=bool)
    logits = unit(queries) @ unit(documents).T / temperature
    return cross_entropy(np.where(above & ~own, -np.inf, logits), np.arange(len(queries)))


def guide(guide_queries, guide_documents):
    """Similarities of the guide, and those of the positives."""
    g = unit(guide_queries) @ unit(guide_documents).T
    return g, np.diagonal(g)[:, None]


@bug("guided_info_nce", named="guide-ignored", seen=CONSTRUCTED, settings=GUIDED)
def guided_without_mask(queries, documents, guide_queries, guide_documents, *, temperature):
    """The guide encodes both sides, and the mask is computed after the loss."""
    return cross_entropy(unit(queries) @ unit(documents).T / temperature, np.arange(len(queries)))


@bug("guided_info_nce", named="guided-by-itself", seen=CONSTRUCTED, settings=GUIDED)
def guided_by_the_student(queries, documents, guide_queries, guide_documents, *, temperature):
    """The rows of the model are handed to the mask, not those of the guide."""
    g, own = guide(stop(queries), stop(documents))
    return masked(queries, documents, g > own, temperature)


@bug("guided_info_nce", named="guide-margin-added", seen=CONSTRUCTED, settings={**GUIDED, "margin": 0.2})
def guided_with_the_margin_added(queries, documents, guide_queries, guide_documents, *, temperature, margin):
    """The margin is meant to leave out more, and lets more in."""
    g, own = guide(guide_queries, guide_documents)
    return masked(queries, documents, g > own + margin, temperature)


@bug(
    "guided_info_nce",
    named="guide-margin-of-signed-similarity",
    thread="huggingface/sentence-transformers#3821",
    settings={**GUIDED, "margin": 0.2, "margin_of": "relative"},
)
def guided_relative_to_a_negative_positive(queries, documents, guide_queries, guide_documents, *, temperature, margin):
    """The limit is the positive's similarity times 1 - m: of a negative similarity it rises above it."""
    g, own = guide(guide_queries, guide_documents)
    return masked(queries, documents, g > own * (1 - margin), temperature)


@bug("guided_info_nce", named="guide-limit-of-the-candidate", seen=CONSTRUCTED, settings=GUIDED)
def guided_by_the_limits_of_columns(queries, documents, guide_queries, guide_documents, *, temperature):
    """The diagonal is broadcast along the rows: candidate j is held against the similarity of pair j."""
    g, own = guide(guide_queries, guide_documents)
    return masked(queries, documents, g > own.T, temperature)


@bug("guided_info_nce", named="guide-not-normalized", seen=CONSTRUCTED, settings=GUIDED)
def guided_by_rows_of_any_length(queries, documents, guide_queries, guide_documents, *, temperature):
    """The encoder of the guide is taken to return rows of length 1, and does not."""
    g = guide_queries @ guide_documents.T
    return masked(queries, documents, g > np.diagonal(g)[:, None], temperature)


@bug("guided_info_nce", named="guide-transposed", seen=CONSTRUCTED, settings=GUIDED)
def guided_by_documents_as_rows(queries, documents, guide_queries, guide_documents, *, temperature):
    """The guide's matrix has the documents as rows."""
    g, own = guide(guide_queries, guide_documents)
    return masked(queries, documents, own < g.T, temperature)


@bug(
    "guided_info_nce",
    named="other-setting",
    seen=CONSTRUCTED,
    settings={**GUIDED, "margin": 0.2, "margin_of": "relative"},
)
def guided_with_an_absolute_margin(queries, documents, guide_queries, guide_documents, *, temperature, margin):
    """The strategy is not passed on: the margin is a difference, where a part was meant."""
    g, own = guide(guide_queries, guide_documents)
    return masked(queries, documents, g > own - margin, temperature)


@bug(
    "guided_info_nce",
    named="other-setting",
    seen="sentence-transformers, contrast_anchors and contrast_positives, both on by default",
    settings=GUIDED,
)
def guided_in_all_directions(queries, documents, guide_queries, guide_documents, *, temperature):
    """Queries among themselves and documents among themselves are candidates too, where pairs alone are meant."""
    q, d, gq, gd = (unit(x) for x in (queries, documents, guide_queries, guide_documents))
    limit, own = np.sum(gq * gd, axis=1)[:, None], np.eye(len(q), dtype=bool)
    across = np.where((gq @ gd.T > limit) & ~own, -np.inf, q @ d.T / temperature)
    within = [np.where((g @ g.T > limit) | own, -np.inf, x @ x.T / temperature) for x, g in ((q, gq), (d, gd))]
    return cross_entropy(np.concatenate([across, *within], axis=1), np.arange(len(q)))


@bug("guided_info_nce", named="masked-entries-count-one", seen=CONSTRUCTED, settings=GUIDED)
def guided_masked_by_zero(queries, documents, guide_queries, guide_documents, *, temperature):
    """What is left out has a logit of 0, and counts as much as an orthogonal document."""
    g, own = guide(guide_queries, guide_documents)
    s = unit(queries) @ unit(documents).T / temperature
    return cross_entropy(np.where((g > own) & ~np.eye(len(g), dtype=bool), 0.0, s), np.arange(len(s)))


@bug("guided_info_nce", named="keys-detached", seen=CONSTRUCTED, settings={**GUIDED, "margin": -3.0})
def guided_with_detached_documents(queries, documents, *, temperature, margin):
    """The documents are detached with the limit, as the guide's are."""
    return masked(queries, stop(documents), np.zeros((len(queries), len(queries)), dtype=bool), temperature)


@bug("guided_info_nce", named="sum-instead-of-mean", seen=CONSTRUCTED, settings=GUIDED)
def guided_sum(queries, documents, guide_queries, guide_documents, *, temperature):
    """The rows are added up."""
    g, own = guide(guide_queries, guide_documents)
    return len(queries) * masked(queries, documents, g > own, temperature)


@bug(
    "guided_info_nce",
    named="guide-asked-about-the-row-itself",
    seen="sentence-transformers 6.2.0, GISTEmbedLoss",
    settings={"directions": "qd_qq"},
)
def guided_with_the_row_itself(queries, documents, guide_queries, guide_documents, *, temperature):
    """The diagonal of queries with queries is left to the guide, which may find query and document the same."""
    q, d, gq, gd = (unit(x) for x in (queries, documents, guide_queries, guide_documents))
    limit, own = np.sum(gq * gd, axis=1)[:, None] + 1e-6, np.eye(len(q), dtype=bool)
    across = np.where((gq @ gd.T > limit) & ~own, -np.inf, q @ d.T / temperature)
    within = np.where(gq @ gq.T > limit, -np.inf, q @ q.T / temperature)
    return cross_entropy(np.concatenate([across, within], axis=1), np.arange(len(q)))
