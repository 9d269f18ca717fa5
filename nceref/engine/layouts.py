"""Comparisons that several losses are built on: two towers, two views, labelled samples."""

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from nceref.engine.chunks import ChunkedTable
from nceref.engine.embeddings import embed
from nceref.engine.heads import has_positive
from nceref.engine.label_patterns import OtherLabel, SameLabel, Unlisted, Weighted
from nceref.engine.namespaces import array_namespace, device
from nceref.engine.patterns import Diagonal, Except, Only, itself, other_view
from nceref.engine.plan import Comparison
from nceref.engine.similarity import Dot, Factor, Offset, divided_by
from nceref.engine.statistics import LogSumExp, PositiveSet, Sum, Term
from nceref.errors import InputError

Array = Any


def two_towers(
    normalize: str, factor: Factor, offset: Offset | None = None, constants: tuple[str, ...] = (), **towers: Array
) -> Dot:
    """Logits of every row of the first input against every row of the second; equal indices are positive pairs.

    `factor` multiplies the dot products, and `offset` is added to them. `towers` are two inputs by name, (n, D) and (m,
    D); those in `constants` get no gradient.
    """
    anchors, candidates = (embed(normalize, constants, **{name: tower}) for name, tower in towers.items())
    return Dot(anchors, candidates, factor, offset)


def one_tower(normalize: str, factor: Factor, **inputs: Array) -> Dot:
    """Logits of the rows of the inputs among themselves; the same object on both sides makes them symmetric."""
    rows = embed(normalize, **inputs)
    return Dot(rows, rows, factor)


def among_themselves(
    which: Collection[str],
    normalize: str,
    factor: Factor,
    queries: Array,
    documents: Array,
    term: Callable[[str], Term],
) -> list[Comparison]:
    """Queries with the other queries, "qq", and documents with the other documents, "dd": those that `which` names.

    `term` makes the statistic "other_queries" of "queries", and "other_documents" of "documents".
    """
    towers = {"qq": ("queries", queries), "dd": ("documents", documents)}
    return [
        Comparison(one_tower(normalize, factor, **{name: rows}), {f"other_{name}": term(name)})
        for sums, (name, rows) in towers.items()
        if sums in which
    ]


@lru_cache
def one_positive(n: int) -> Mapping[str, Term]:
    """Candidate i is anchor i's positive, the others its negatives."""
    return {"negatives": Term(LogSumExp(), Except(itself(n))), "positive": Term(Sum(), Only(itself(n)))}


def two_views(
    name: str, z1: Array, z2: Array, temperature: float, normalize: str, least: int = 1, **k: float
) -> Comparison:
    """2N anchors, view 1 first; each has its other view as the positive and 2N - 2 negatives.

    `z1` and `z2` are the two views, (N, D); fewer than `least` pairs are refused, since they have no negatives. `k`
    names log-sum-exps over the negatives, each with the coefficient of its exponents, by default one named "negatives";
    beside them stands the sum "positive".
    """
    n = z1.shape[0]
    if n < least:
        msg = f"{name} has no negatives for {n} pair of views in `z1` and `z2`; pass at least {least} pairs"
        raise InputError(msg)
    logits = one_tower(normalize, divided_by(temperature), z1=z1, z2=z2)
    return Comparison(logits, _one_partner(n, tuple((k or {"negatives": 1.0}).items())))


@lru_cache
def _one_partner(n: int, negatives: tuple[tuple[str, float], ...]) -> Mapping[str, Term]:
    others = Except((*itself(2 * n), *other_view(n)))
    terms = {name: Term(LogSumExp(k), others) for name, k in negatives}
    return {**terms, "positive": Term(Sum(), Only(other_view(n)))}


def labelled(
    embeddings: Array,
    labels: Array | None,
    mask: Array | None,
    queue: Array | None,
    queue_labels: Array | None,
    *,
    anchor_mode: str,
    normalize: str,
    temperature: float,
    inside: bool,
) -> Comparison:
    """Samples with labels, a mask, or neither: other views of a sample are its positives then.

    `embeddings` are (N, D), or (N, V, D) for V views of each sample. Equal `labels`, (N,), are positives of each other;
    in their place `mask`, (N, N), has the weight of sample j as a positive of sample i. `queue` and `queue_labels`, (K,
    D) and (K,), are more candidates without a gradient. The statistics are "negatives", a log-sum-exp, and "positives",
    a `PositiveSet` with the mean over positives inside the logarithm or outside. Raises `InputError` for labels beside
    a mask, or a queue that lacks labels.
    """
    _check_labelling(labels, mask, queue, queue_labels)
    views = embeddings.shape[1] if embeddings.ndim == 3 else 1
    queued = {} if queue is None else {"queue": queue}
    candidates = embed(normalize, ("queue",), embeddings=embeddings, **queued)
    one = anchor_mode == "one" and views > 1
    # The same object on both sides makes the logits symmetric, so that each pair of blocks is computed once.
    anchors = candidates if not (one or queued) else embed(normalize, first_view=one, embeddings=embeddings)
    own = (Diagonal(0, anchors.values.shape[0]),)
    positives, negatives = _labelling(embeddings, labels, mask, queue_labels, views, anchors.values.shape[0], own)
    terms = {"negatives": Term(LogSumExp(), negatives), "positives": Term(PositiveSet(inside), positives)}
    return Comparison(Dot(anchors, candidates, divided_by(temperature)), terms)


def _check_labelling(labels: Any, mask: Any, queue: Any, queue_labels: Any) -> None:
    if labels is not None and mask is not None:
        msg = "`labels` and `mask` both say which samples are positives; pass one of them"
        raise InputError(msg)
    if (queue is None) != (queue_labels is None):
        given, missing = ("queue", "queue_labels") if queue_labels is None else ("queue_labels", "queue")
        msg = f"`{given}` was given without `{missing}`; pass both or neither"
        raise InputError(msg)
    if queue is not None and labels is None:
        msg = "`queue` needs `labels`: a mask says nothing about the queue's rows"
        raise InputError(msg)


def _labelling(embeddings: Any, labels: Any, mask: Any, queue_labels: Any, views: int, anchors: int, own: Any) -> Any:
    """The patterns of positives and of negatives."""
    xp = array_namespace(embeddings)
    if mask is not None:
        # Of a single view, the diagonal weighs an anchor with itself: it takes no part, not even as the largest weight.
        table = Weighted(mask if views > 1 else _without_diagonal(mask), own)
        return table, Unlisted(table)
    labels = xp.arange(embeddings.shape[0], device=device(embeddings)) if labels is None else labels
    rows = labels if views == 1 else xp.concat([labels] * views)
    columns = rows if queue_labels is None else xp.concat([rows, xp.astype(queue_labels, rows.dtype)])
    # The negatives need no `own`: an anchor has its own label.
    return SameLabel(rows[:anchors], columns, own), OtherLabel(rows[:anchors], columns)


def _without_diagonal(table: Any) -> Any:
    """The table with 0 on its diagonal."""
    if isinstance(table, ChunkedTable):
        return table.without_diagonal()
    xp = array_namespace(table)
    i = xp.arange(table.shape[0], device=device(table))
    return xp.where(i[:, None] == i[None, :], 0.0, table)


def per_anchor(weights: Array | None, comparison: Comparison) -> Array | None:
    """One weight a row of the comparison, from one a sample, (N,): all views of a sample weigh the same."""
    if weights is None:
        return None
    return array_namespace(weights).concat([weights] * (comparison.logits.shape[0] // weights.shape[0]))


def counted_rows(no_positive: str) -> Any:
    """Rows that take part in the mean under the policy; None: all."""
    return has_positive if no_positive == "skip" else None
