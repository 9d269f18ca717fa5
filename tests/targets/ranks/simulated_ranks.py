"""Ranks in one process: a program runs once a rank, and its gradient is that of whatever path it leaves open.

A program is ``program(own, batch, rank, n)``: the rank's own rows by input, what it gathered (a list of shards by
input), its rank, and the rows of the batch; scalars are in both. Arrays may have a leading axis of copies.
"""

from dataclasses import replace

import numpy as np

from nceref import losses
from nceref.cases.corpus.corpus import evaluate
from nceref.cases.records import Observation, Outcome
from nceref.targets.ranks.contract import split_inputs

STEP = 2.0**-60
BACKWARDS = ("none", "own", "slice", "sum", "mean")
"""What a gather does with gradients: nothing; own rows are put back; the own slice is taken; summed, or averaged."""


def leaves(program, contract, inputs, split, backward):
    """Value and gradients of every rank."""
    count = contract.world_size
    rows = contract.rows(max(len(inputs[name]) for name in split))
    shards = {name: [inputs[name][own] for own in rows] for name in split}
    rest = {name: x for name, x in inputs.items() if name not in split}
    floats = [n for n, x in inputs.items() if isinstance(x, float) or np.asarray(x).dtype.kind == "f"]

    def value(rank, own, batch):
        return program({**rest, **own}, {**rest, **batch}, rank, sum(map(len, rows)))

    out = []
    for rank in range(count):
        own = {name: shards[name][rank] for name in split}
        grads = {}
        for name in floats:
            x = np.asarray(own.get(name, inputs[name]))
            steps = np.eye(x.size).reshape(x.size, *x.shape) if x.ndim else np.ones((1, 1, 1))
            moved = x + 1j * STEP * steps
            if name not in split:
                grads[name] = slope(value(rank, {**own, name: moved}, shards), x)
                continue
            total = 0.0
            for other in range(count):
                open_ = {"none": False, "own": other == rank, "slice": other == rank}.get(backward, True)
                gathered = [moved if open_ and k == rank else shard for k, shard in enumerate(shards[name])]
                mine = {n: shards[n][other] for n in split}
                # Through the gather, and as the rank's own; a mean divides what comes through the gather.
                if backward == "mean":
                    total = total + slope(value(other, mine, {**shards, name: gathered}), x) / count
                    gathered = shards[name]
                if other == rank or (open_ and backward != "mean"):
                    live = {**mine, name: moved} if other == rank else mine
                    total = total + slope(value(other, live, {**shards, name: gathered}), x)
            grads[name] = total
        out.append(Outcome(float(np.real(np.ravel(value(rank, own, shards))[0])), grads))
    return out


def slope(result, x):
    result = np.broadcast_to(np.imag(np.ravel(result)) / STEP, (max(x.size, 1),))
    return result.reshape(x.shape)[()]


def probes(name, settings, inputs_of, sites=((6, 0.1), (6, 0.6), (12, 0.3)), scalar="temperature"):
    """Cases of random rows, of a loss or of its name."""
    rng = np.random.default_rng(3)
    loss = losses.all_losses()[name].declaration if isinstance(name, str) else name
    out = []
    for n, t in sites:
        given = {**inputs_of(rng, n), **settings, scalar: 1 / t if "scale" in scalar else t}
        out.append(evaluate(loss, given, id=f"n{n}-{t}"))
    return out


def observed(program, cases, contract, backward="sum"):
    """Joined observations of a program on as many ranks as the contract has."""
    out = []
    for probe in cases:
        given = {k: x for k, x in probe.inputs.items() if x is not None}
        answers = leaves(program, contract, given, split_inputs(probe.loss, probe.inputs), backward)
        kept = [replace(a, grads={k: g for k, g in a.grads.items() if k in probe.grads}) for a in answers]
        out.append(Observation(probe, contract.joined(kept, probe)))
    return out
