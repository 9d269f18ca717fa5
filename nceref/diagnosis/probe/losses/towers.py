"""Two towers: queries against keys, images against texts, with or without a queue of more negatives."""

from functools import partial

import numpy as np

from nceref.diagnosis.probe.parts.layouts import PartedFamily, PartedLoss, Texts, paired, work

_QUERIES = ("queries", "keys")


def _given(names, inputs):
    return (*names, *(x for x in ("negatives", "queue") if inputs.get(x) is not None))


def tower_works(names, both, inputs):
    """What the parts of two towers work on; with `both`, in both directions."""
    blocks = [inputs[x] for x in _given(names, inputs)]
    n, m = len(blocks[0]), sum(map(len, blocks[1:]))
    first, second = np.arange(n), n + np.arange(m)
    eye = np.eye(n, m)
    inside = np.ones((n, m), dtype=bool) if len(blocks) == 2 else (eye > 0) | (np.arange(m) >= n)
    kinds = np.where(np.arange(m) < n, np.arange(m), -1)
    made = [work(inputs, blocks, first, second, eye, inside, kinds=kinds)]
    return [*made, work(inputs, blocks, second, first, eye, inside)] if both else made


def _parts(names, candidates, inputs, reduction):
    names = _given(names, inputs)
    candidates = f"the own key and the {names[-1]}" if len(names) > 2 else candidates
    return paired(names, Texts("the own key", candidates), inputs, reduction)


def _loss(candidates, names=_QUERIES, both=False):
    return PartedLoss(partial(tower_works, names, both), partial(_parts, names, candidates))


PARTED = PartedFamily(
    "towers",
    {
        "info_nce": _loss("all keys"),
        "moco": _loss("all keys"),
        "hard_contrastive": _loss("the own key and the k hardest of the others"),
        "clip": _loss("all rows of the other input", ("image", "text"), True),
    },
)
