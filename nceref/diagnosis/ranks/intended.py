"""The reference under what a target intends between ranks: a gather without gradient."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nceref.cases.records import Observation, Outcome, Probe
from nceref.diagnosis.dense.forms import is_dense
from nceref.diagnosis.ranks.fits import ValueFit, parts, room
from nceref.diagnosis.ranks.parts import JOINED, RankCase
from nceref.errors import InputError
from nceref.spec import Loss
from nceref.targets.ranks.contract import Contract, rows_of
from nceref.tolerance import Bounds

GATHER = "gather"
KEPT = {"cross-rank-terms-missing": (0, 1), "own-shard-detached": (0,)}
"""The roles of rows whose part of the gradient is left."""


def check_gather(loss: Loss, intended: Mapping[str, str], contracts: Sequence[Contract]) -> None:
    """Raise InputError for a gather that cannot be intended.

    `intended`: conventions by axis. `contracts`: the runs on ranks.
    """
    if (id := intended.get(GATHER)) is None:
        return
    if id not in KEPT:
        listed = " or ".join(KEPT)
        msg = f"`{GATHER}={id}` is what may be seen of a target; a gather that is intended is {listed}"
    elif not contracts:
        msg = f"`{GATHER}={id}` is about ranks, but `ranks` is not given; add ranks, such as 2"
    elif not is_dense(loss):
        msg = f"`{GATHER}={id}` means nothing for {loss.name}, which has no dense form"
    elif others := sorted(intended.keys() - {GATHER}):
        msg = f"`{GATHER}={id}` cannot be intended beside {', '.join(others)}; leave out one of the two"
    elif any(contract.duplicate for contract in contracts):
        msg = f"`{GATHER}={id}` is not known of repeated rows; leave out `duplicate`"
    else:
        return
    raise InputError(msg)


def intended_gather(probe: Probe, contract: Contract, id: str) -> Probe:
    """The case with the gradient that such a gather leaves.

    `probe`: with the reference's own answer. `id`: one of `KEPT`. Result: of a large case, whose gradient has too many
    entries, the value alone is judged.
    """
    if probe.skip or probe.bounds is None:
        return probe
    if probe.is_large:
        return replace(probe, grads={})
    answers = (Outcome(probe.value, probe.grads),) * contract.world_size
    case = RankCase(Observation(probe, replace(answers[0], ranks=answers)), contract, {})
    fit = ValueFit((JOINED,) * contract.world_size, "own", 0)
    grads, rooms = dict(probe.grads), dict(probe.bounds.grads)
    for name in case.split & probe.grads.keys():
        total, bound = np.zeros_like(probe.grads[name]), np.zeros_like(probe.grads[name])
        for rank, own in enumerate(contract.rows(rows_of(probe))):
            three = parts(case, fit, name, rank)
            np.add.at(total, own, sum(three[k] for k in KEPT[id]) / contract.divisor)
            np.add.at(bound, own, room(case, name, rank, three) / contract.divisor)
        grads[name], rooms[name] = total, np.maximum(bound, rooms[name])
    return replace(probe, grads=grads, bounds=Bounds(probe.bounds.value, rooms))
