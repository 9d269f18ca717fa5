"""Two towers: queries against keys, images against texts, with or without a queue of more negatives."""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from nceref.diagnosis.conventions import of_kind
from nceref.diagnosis.dense.batch import DenseBatch, DenseFamily, DenseForm, embed, flat, similarities
from nceref.diagnosis.dense.stages import contrast
from nceref.diagnosis.dense.temperatures import (
    PARTIAL_TEMPERATURES,
    SCALE_CONVENTIONS,
    TEMPERATURE_CONVENTIONS,
    log_counts,
    temperature,
    tempered,
)
from nceref.diagnosis.dense.ways.lineup import compared, paired, softmaxed
from nceref.diagnosis.dense.ways.logits import corrected_ways
from nceref.diagnosis.dense.ways.way import Stage
from nceref.diagnosis.tape import detached, edge
from nceref.engine.parameters import INVERSE_TEMPERATURES


def _square(inputs, roles, deviations):
    """All keys of the batch are candidates; both directions, or the one that a deviation leaves."""
    unit = embed(inputs, roles, deviations)
    one, other = ((unit[role], roles[role]) for role in ("first", "second"))
    names = one[1], other[1]
    first = _one_way(one, other, _in_direction("first", inputs), names, deviations)
    second = _one_way(other, one, _in_direction("second", inputs), names, deviations)
    if "one-direction-only" in deviations:
        return (first,)
    if "other-direction-only" in deviations:
        return (second,)
    return first, second


def _in_direction(which, inputs):
    """The inputs, whose temperature or scale has a name in each direction."""
    names = {name: f"the {name.replace('_', ' ')} in the {which} direction" for name in INVERSE_TEMPERATURES}
    return {name: edge(x, names[name]) if name in names else x for name, x in inputs.items()}


def _one_way(rows, columns, inputs, names, deviations):
    anchors, keys = (
        edge(x, f"the rows of {name} as {what}")
        for (x, name), what in zip((rows, columns), ("anchors", "candidates"), strict=True)
    )
    n = len(anchors)
    positives = np.eye(n)[(np.arange(n) + deviations.get("labels-shifted", 0)) % n]
    similar = partial(similarities, anchors, keys, deviations, positives, inputs=(rows[1], columns[1]))
    logits, numerator = tempered(similar, positives, inputs, deviations)
    nobody, everyone = np.zeros((n, n), dtype=bool), np.ones((n, n), dtype=bool)
    return DenseBatch(
        logits, numerator, everyone, positives, nobody, temperature=temperature(inputs, deviations), samples=n,
        inputs=inputs, rows=names, anchors=np.arange(n) + n * names.index(rows[1]),
        against=np.arange(n) + n * names.index(columns[1]), labels=np.arange(n), kinds=np.arange(n),
    )  # fmt: skip


def _queries(inputs, deviations):
    if inputs["negatives"] is not None:
        return _queued(inputs, {"first": "queries", "second": "keys", "queue": "negatives"}, deviations)
    batches = _square(inputs, {"first": "queries", "second": "keys"}, deviations)
    return batches if "both-directions-averaged" in deviations else batches[:1]


def _momentum(inputs, deviations):
    return _queued(inputs, {"first": "queries", "second": "keys", "queue": "queue"}, deviations)


def _ranked(inputs, deviations):
    """Documents and hard negatives, of which a query has those as candidates that a choice says."""
    hard = {} if inputs["negatives"] is None else {"queue": "negatives"}
    given = {**inputs, "negatives": flat(inputs["negatives"])}
    return _queued(given, {"first": "queries", "second": "documents", **hard}, deviations, _of_the_choice)


def _of_the_choice(inputs, own, in_queue):
    """Candidates beside the own document, and the pairs whose logits the hardness is for."""
    chosen = {"joined": np.ones_like(own), "own": ~in_queue | own, "hard": own}[inputs["candidates"]]
    weighted = {"in_batch": ~own, "hard": own & in_queue, "all": ~own | in_queue}[inputs["hardness_of"]]
    return chosen, weighted


def _of_the_queue(inputs, own, in_queue):
    return in_queue, None


def _queued(inputs, roles, deviations, choose=_of_the_queue):
    """Columns: the keys of the batch, of which the own one alone is a candidate, and the queue.

    `choose`: candidates beside the own key, and the pairs whose similarities a hardness adds to the logits.
    """
    unit = embed(inputs, roles, deviations)
    q, keys = unit["first"], np.concatenate([unit[role] for role in ("second", "queue") if role in unit])
    n, total = len(q), len(keys)
    columns = np.arange(total)
    own_key = columns == np.arange(n)[:, None]
    in_queue = np.tile(columns >= n, (n, 1))
    others, weighted = choose(inputs, columns % n == np.arange(n)[:, None], in_queue)
    # The own key has the label 0, and the queue those after it.
    shift = deviations.get("labels-shifted", 0) % (1 + total - n)
    positives = np.tile(columns == n + shift - 1, (n, 1)) if shift else own_key
    queue = _CALLED.get(roles.get("queue", ""), ""), in_queue
    similar = partial(similarities, q, keys, deviations, own_key, queue=queue)
    logits, numerator = tempered(similar, positives, inputs, deviations)
    if weighted is not None and inputs["hardness"] and "hardness-missing" not in deviations:
        added = _hardness(similar(), inputs, weighted, deviations)
        logits = logits + added
        numerator = numerator + np.where(own_key, added, 0.0)
    batch = DenseBatch(
        logits, numerator, own_key | others, positives.astype(float), np.zeros_like(own_key), in_queue=in_queue,
        excluded=~own_key & ~others, temperature=temperature(inputs, deviations), samples=n, inputs=inputs,
        rows=tuple(roles.values()), anchors=np.arange(n), against=n + columns, labels=np.arange(n),
        kinds=np.where(columns < n, columns, -1),
    )  # fmt: skip
    return (_in_one_column(batch, own_key) if "softmax-over-wrong-axis" in deviations else batch,)


_CALLED = {"queue": "the queue", "negatives": "the negatives that are passed"}
"""By name of an input, what its rows are called as candidates."""


def _hardness(s, inputs, weighted, deviations):
    """Similarities that are added to the logits, and count as constants."""
    weighted = np.ones_like(weighted) if "hardness-on-every-candidate" in deviations else weighted
    by = temperature(inputs, deviations) if "hardness-over-temperature" in deviations else 1.0
    added = edge(s * inputs["hardness"], "the hardness of the negatives", passes=0.0)
    return np.where(weighted, added / by, 0.0)


def _in_one_column(batch, own_key):
    """The own keys in the first column, as programs have them that take a softmax down the columns."""

    def beside(x):
        own = np.sum(np.where(own_key, x, 0), axis=1, keepdims=True)
        return np.concatenate([own, x[:, batch.samples :]], axis=1)

    names = ("logits", "numerator", "candidates", "positives", "own", "in_queue", "excluded")
    moved = {name: beside(getattr(batch, name)) for name in names}
    masks = {name: moved[name] > 0 for name in ("candidates", "own", "in_queue", "excluded")}
    return replace(batch, **{**moved, **masks})


def _sampled(inputs, deviations):
    """Items of the batch; their counts are taken off the logits, and accidental hits are no candidates."""
    (batch,) = _square(inputs, {"first": "queries", "second": "items"}, deviations)[:1]
    own = batch.positives > 0
    taken = log_counts(inputs["expected_counts"], inputs, deviations, "logq") * (
        np.ones_like(own) if inputs["correction"] == "all" else ~own
    )
    names = np.arange(len(own)) if inputs["item_ids"] is None else inputs["item_ids"]
    hits = (names[:, None] == names) & ~own
    weighted = inputs["correction"] == "weighted"
    return (
        replace(
            batch, logits=batch.logits - taken, numerator=batch.numerator - taken, excluded=hits,
            candidates=~hits & ~own if weighted else ~hits,
        ),
    )  # fmt: skip


def _sampled_rows(batches, deviations):
    """Row losses; with weights, the positive is in no denominator, and what is left is weighted by its sigmoid."""
    rows = contrast(batches, deviations)
    if batches[0].inputs["correction"] != "weighted":
        return rows
    weights = edge(1 / (1 + np.exp(-rows.values)), "the weights", passes=0.0)
    return replace(rows, values=weights * rows.values)


def _of_probabilities(inputs):
    """The batches of rows that are logarithms of a softmax; None for the weighted ones."""
    return None if inputs["correction"] == "weighted" else _sampled(inputs, {})


def _sampled_stages(inputs, reduction):
    """The logits are less the logarithms of the expected counts, of the negatives alone or of all items."""
    logits = Stage("logits", "l_ij = ", corrected_ways(inputs.get("correction") != "negatives"))
    hits = ", but for those of its id" * (inputs.get("item_ids") is not None)
    return softmaxed(compared(("queries", "items"), inputs), logits, "its item", f"all items{hits}", reduction)


def _hardest(inputs, deviations):
    """The own key and the most similar of the others, ties to the lower index."""
    batches = _square(inputs, {"first": "queries", "second": "keys"}, deviations)
    batches = batches if "both-directions-averaged" in deviations else batches[:1]
    down = "count-rounded-down" in deviations
    return tuple(replace(batch, candidates=_kept(batch, inputs["fraction"], down)) for batch in batches)


def _kept(batch, fraction, down):
    s = detached(batch.logits)
    n = len(s)
    # A product such as 0.07 * 100 lies just above the integer that is meant.
    count = (math.floor if down else math.ceil)(round(fraction * (n - 1), 9))
    count = min(n - 1, max(1, count))
    order = np.argsort(-np.where(np.eye(n, dtype=bool), -np.inf, s), axis=1, kind="stable")
    hard = np.zeros((n, n), dtype=bool)
    np.put_along_axis(hard, order[:, :count], True, axis=1)
    return hard | np.eye(n, dtype=bool)


def _symmetric(inputs, deviations):
    return _square(inputs, {"first": "image", "second": "text"}, deviations)


def _unranked(inputs):
    """The batch with all candidates: a way of the denominator chooses the hardest of them."""
    return _square(inputs, {"first": "queries", "second": "keys"}, {})[:1]


def _without_hardness(inputs):
    """The batches whose logits are similarities over the temperature; None where a hardness is added."""
    return None if inputs["hardness"] else _ranked(inputs, {})


def _stages(names, candidates, inputs, reduction):
    queue = [name for name in ("negatives", "queue") if inputs.get(name) is not None]
    candidates = f"the own key and the {queue[0]}" if queue else candidates
    return paired((*names, *queue), "the own key", candidates, inputs, reduction)


def _ranked_stages(inputs, reduction):
    documents = {
        "joined": "all documents and all hard negatives",
        "own": "all documents and its hard negatives",
        "hard": "its document and its hard negatives",
    }
    names = ("queries", "documents", *(["negatives"] if inputs.get("negatives") is not None else []))
    return paired(names, "its document", documents[inputs.get("candidates") or "joined"], inputs, reduction)


_QUERIES = partial(_stages, ("queries", "keys"))

EVERY = (
    *of_kind("rows", "two inputs", "mean", "softmax"), "softplus-threshold", "positive-dropped-from-denominator",
    "softmax-applied-twice", "similarity-clamped", "negatives-ignored", "first-input-detached", "negatives-detached",
)  # fmt: skip
WITH_TEMPERATURE = (*EVERY, *TEMPERATURE_CONVENTIONS, *PARTIAL_TEMPERATURES)
_EXTRA = ("label-smoothing", "softmax-over-wrong-axis",
          "queue-not-normalized", "queue-dropped", "in-batch-negatives-added")  # fmt: skip

_SAMPLED = (
    "logq-missing", "logq-added", "logq-without-log", "logq-divided-by-temperature", "accidental-hits-kept",
)  # fmt: skip
_HARD_NEGATIVES = (
    "label-smoothing", "queue-not-normalized", "queue-dropped", "in-batch-negatives-dropped",
    "hardness-missing", "hardness-over-temperature", "hardness-on-every-candidate",
)  # fmt: skip

DENSE = DenseFamily(
    name="towers",
    losses={
        "info_nce": DenseForm(
            _queries,
            contrast,
            (*WITH_TEMPERATURE, *_EXTRA, "both-directions-averaged", "keys-detached", "a-negative-dropped"),
            partial(_QUERIES, "all keys"),
        ),
        "moco": DenseForm(
            _momentum,
            contrast,
            (*WITH_TEMPERATURE, *_EXTRA, "constants-get-gradient", "a-negative-dropped"),
            partial(_QUERIES, "all keys"),
        ),
        "mnrl": DenseForm(
            _ranked,
            contrast,
            (*WITH_TEMPERATURE, *_HARD_NEGATIVES, "keys-detached", "a-negative-dropped"),
            _ranked_stages,
            _without_hardness,
        ),
        "sampled_softmax": DenseForm(
            _sampled,
            _sampled_rows,
            (
                *WITH_TEMPERATURE,
                *_SAMPLED,
                "label-smoothing",
                "keys-detached",
                "softmax-over-wrong-axis",
                "weights-not-detached",
            ),
            _sampled_stages,
            _of_probabilities,
        ),
        "hard_contrastive": DenseForm(
            _hardest,
            contrast,
            (
                *WITH_TEMPERATURE,
                "both-directions-averaged",
                "softmax-over-wrong-axis",
                "keys-detached",
                "count-rounded-down",
            ),
            partial(_QUERIES, "the own key and the k hardest of the others"),
            _unranked,
        ),
        "clip": DenseForm(
            _symmetric,
            contrast,
            (
                *EVERY,
                *SCALE_CONVENTIONS,
                "one-direction-only",
                "other-direction-only",
                "directions-summed",
                "label-smoothing",
                "a-negative-dropped",
                "keys-detached",
                "gradient-clamped",
            ),
            partial(_stages, ("image", "text"), "all rows of the other input"),
        ),
    },
)
