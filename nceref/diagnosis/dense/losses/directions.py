"""Queries and documents as candidates of one another and among themselves, all of them or those that a guide keeps."""

from dataclasses import replace

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch, DenseFamily, DenseForm, embed, flat, similarities
from nceref.diagnosis.dense.losses.towers import WITH_TEMPERATURE
from nceref.diagnosis.dense.stages import contrast
from nceref.diagnosis.dense.temperatures import temperature, tempered
from nceref.diagnosis.dense.ways.lineup import paired
from nceref.diagnosis.tape import detached
from nceref.engine.guides import rounding
from nceref.family.guided_info_nce import SUMS as GUIDED_SUMS
from nceref.family.multi_direction import SUMS


def _in_all_directions(inputs, deviations):
    """Blocks of candidates side by side; for `symmetric` a batch of each direction."""
    given = {**inputs, "negatives": flat(inputs["negatives"])}
    unit, directions = _rows(given, deviations), inputs["directions"]
    denominators = [["qd"], ["dq"]] if directions == "symmetric" else [["qd", *SUMS[directions]]]
    if {"one-direction-only", "other-direction-only"} & {*deviations}:
        denominators = [["qd" if "one-direction-only" in deviations else "dq"]]
    return tuple(_side_by_side(_chosen(names, unit), unit, given, deviations) for names in denominators)


def _rows(inputs, deviations):
    """Rows by role: queries, documents and hard negatives."""
    hard = {} if inputs["negatives"] is None else {"queue": "negatives"}
    return embed(inputs, {"first": "queries", "second": "documents", **hard}, deviations)


_DOCUMENTS_HARD = ("second", "queue")


def _chosen(names, unit):
    """Pairs of roles that are there in some directions, each with the rows themselves and the positives."""
    n = len(unit["first"])
    own, nobody = np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool)
    of_query = np.tile(own, (1, len(unit.get("queue", ())) // n))
    blocks = {
        "qd": [("first", "second", nobody, own), ("first", "queue", of_query & False, of_query & False)],
        "qq": [("first", "first", own, nobody)],
        "dq": [("second", "first", nobody, own)],
        "dd": [("second", "second", own, nobody), (*_DOCUMENTS_HARD, of_query, of_query & False)],
    }
    return [block for name in names for block in blocks[name] if block[1] in unit]


def _side_by_side(blocks, unit, inputs, deviations):
    n = len(unit["first"])
    own, together = (np.concatenate([block[k] for block in blocks], axis=1) for k in (2, 3))
    in_queue = np.concatenate([np.full(block[2].shape, block[1] == "queue") for block in blocks], axis=1)
    # Beside the first block, which has the positive, it is one more candidate.
    first = np.arange(own.shape[1]) < n
    positives, again = together & first, together & ~first
    positives = np.roll(positives, -deviations.get("labels-shifted", 0), axis=0)

    def similar(part=""):
        parts = [similarities(unit[a], unit[b], deviations, positive, part=part) for a, b, _, positive in blocks]
        return np.concatenate(parts, axis=1)

    logits, numerator = tempered(similar, positives, inputs, deviations)
    candidates = ~own & ~again if "positive-counted-once" in deviations else ~own
    of_role = {"first": np.arange(n), "second": np.arange(n, 2 * n), "queue": np.arange(2 * n, 2 * n + _hard(unit))}
    return DenseBatch(
        logits, numerator, candidates, positives.astype(float), own, in_queue=in_queue,
        same_view=np.concatenate([np.full(block[2].shape, block[0] == block[1]) for block in blocks], axis=1),
        temperature=temperature(inputs, deviations), samples=n, inputs=inputs,
        rows=("queries", "documents", *(["negatives"] if "queue" in unit else [])),
        anchors=tuple(of_role[block[0]] for block in blocks), against=tuple(of_role[block[1]] for block in blocks),
        labels=np.arange(n),
        kinds=np.concatenate([np.arange(n) if block[1] != "queue" else np.full(_hard(unit), -1) for block in blocks]),
    )  # fmt: skip


def _hard(unit):
    return len(unit.get("queue", ()))


def _of_one_width(inputs):
    """The batches; none where one direction alone has hard negatives, so that their rows are no one matrix."""
    batches = _in_all_directions(inputs, {})
    return batches if len({batch.own.shape for batch in batches}) == 1 else None


def _stages(inputs, reduction):
    hard = ["negatives"] if inputs.get("negatives") is not None else []
    # The mean over two directions is half of the sum of their rows.
    halved = (lambda batch: 0.5) if inputs.get("directions") == "symmetric" and reduction != "mean" else None
    candidates = "the candidates of all directions" + ", but for those above the limit" * ("margin" in inputs)
    return paired(("queries", "documents", *hard), "the own document", candidates, inputs, reduction, factor=halved)


def _mean_of_directions(batches, deviations):
    """Row losses, where two directions have a softmax each the mean of both."""
    rows = contrast(batches, deviations)
    if len(batches) == 1:
        return rows
    n = batches[0].samples
    return replace(rows, values=(rows.values[:n] + rows.values[n:]) / 2, pairs=rows.pairs[:n])


def _guided(inputs, deviations):
    """The blocks of the directions without the candidates that are above the limit of the row."""
    given = {name: flat(x) if name.endswith("negatives") else x for name, x in inputs.items()}
    unit = _rows(given, deviations)
    # Documents do not meet hard negatives here.
    known = [
        block for block in _chosen(("qd", *GUIDED_SUMS[inputs["directions"]]), unit) if block[:2] != _DOCUMENTS_HARD
    ]
    batch = _side_by_side(known, unit, given, deviations)
    kept = _kept(known, given, unit, deviations)
    others = batch.in_queue & ~batch.of_query if inputs["candidates"] == "own" else batch.in_queue & False
    own = batch.own & ~kept if "guide-asked-about-the-row-itself" in deviations else batch.own
    candidates = (kept | batch.together) & ~own & ~others
    return (replace(batch, candidates=candidates, own=own, excluded=others),)


def _kept(blocks, inputs, unit, deviations):
    """Candidates of all blocks that the guide does not find above the limit."""
    if "guide-ignored" in deviations:
        return np.concatenate([np.ones_like(block[2]) for block in blocks], axis=1)
    rows, margin = unit, detached(inputs["margin"])
    if inputs["guide_queries"] is not None and "guided-by-itself" not in deviations:
        roles = {"first": "guide_queries", "second": "guide_documents", "queue": "guide_negatives"}
        as_they_are = "guide-not-normalized" in deviations
        rows = embed({**inputs, "normalize": "none"} if as_they_are else inputs, roles, {})
    # What decides goes by the numbers alone.
    rows = {role: detached(x) for role, x in rows.items()}
    own = np.sum(rows["first"] * rows["second"], axis=1)
    size = own if "guide-margin-of-signed-similarity" in deviations else np.abs(own)
    taken = margin * (size if inputs["margin_of"] == "relative" else 1.0)
    limit = own + taken if "guide-margin-added" in deviations else own - taken
    limit = limit + rounding(rows["first"].shape[1], np.finfo(float).eps)
    by_candidate = "guide-limit-of-the-candidate" in deviations
    turned = {("first", "second"): ("second", "first")} if "guide-transposed" in deviations else {}
    return np.concatenate(
        [
            rows[a] @ rows[b].T <= (np.tile(limit, len(rows[b]) // len(limit)) if by_candidate else limit[:, None])
            for a, b in (turned.get(block[:2], block[:2]) for block in blocks)
        ],
        axis=1,
    )


_EVERY = (
    *(id for id in WITH_TEMPERATURE if id != "positive-dropped-from-denominator"), "label-smoothing",
    "queue-not-normalized", "queue-dropped", "keys-detached", "a-negative-dropped", "positive-counted-twice",
    "mask-leaks", "masked-entries-count-one",
)  # fmt: skip
"""Without the positive that is dropped: left out of one sum, it may still be in another."""
_UNGUIDED = (
    "one-direction-only", "other-direction-only", "self-contrast-kept", "self-mask-shifted", "positive-counted-once",
)  # fmt: skip
_BY_A_GUIDE = (
    "guide-ignored", "guided-by-itself", "guide-margin-added", "guide-margin-of-signed-similarity",
    "guide-limit-of-the-candidate", "guide-not-normalized", "guide-transposed", "guide-asked-about-the-row-itself",
    "positive-dropped-from-denominator",
)  # fmt: skip

DENSE = DenseFamily(
    name="directions",
    losses={
        "multi_direction": DenseForm(
            _in_all_directions, _mean_of_directions, (*_EVERY, *_UNGUIDED), _stages, _of_one_width
        ),
        "guided_info_nce": DenseForm(_guided, contrast, (*_EVERY, *_BY_A_GUIDE), _stages),
    },
)
