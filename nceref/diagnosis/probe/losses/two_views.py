"""Two views of every sample below one another: each row is an anchor, all the others are candidates."""

from functools import partial

import numpy as np

from nceref.diagnosis.probe.parts import pairs
from nceref.diagnosis.probe.parts.estimates import estimated, weighed
from nceref.diagnosis.probe.parts.layouts import (
    PartedFamily,
    PartedLoss,
    Texts,
    compared,
    mean_part,
    paired,
    tempered,
    work,
)
from nceref.diagnosis.probe.parts.work import LossPart, log_sum

_NAMES = ("z1", "z2")


def _works(kept, inputs):
    z1, z2 = inputs["z1"], inputs["z2"]
    n = len(z1)
    r = np.arange(2 * n)
    own, positives = np.eye(2 * n, dtype=bool), (r == ((r + n) % (2 * n))[:, None]).astype(float)
    inside = ~own if kept else ~own & (positives == 0)
    view = (r[:, None] < n) == (r < n)
    return [work(inputs, (z1, z2), r, r, positives, inside, own=own, view=view, labels=r % n, kinds=r % n, samples=n)]


def _corrected(inputs, reduction):
    return (*compared(_NAMES, inputs), tempered(inputs), *estimated(), mean_part(reduction))


def _weighed(inputs, reduction):
    return (
        *compared(_NAMES, inputs),
        tempered(inputs),
        LossPart("denominator", "Z_i over ", pairs.denominators(_DECOUPLED.candidates)),
        *weighed(log_sum),
        mean_part(reduction),
    )


_COUPLED, _DECOUPLED = Texts("the other view", "all j != i"), Texts("the other view", "all j but i and p")
_without = partial(_works, False)
PARTED = PartedFamily(
    "two_views",
    {
        "nt_xent": PartedLoss(partial(_works, True), partial(paired, _NAMES, _COUPLED)),
        "dcl": PartedLoss(_without, partial(paired, _NAMES, _DECOUPLED)),
        "dclw": PartedLoss(_without, _weighed),
        "debiased": PartedLoss(_without, _corrected),
        "hcl": PartedLoss(_without, _corrected),
    },
)
