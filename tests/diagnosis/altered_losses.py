"""Losses written plainly in NumPy, with one thing or two done otherwise, and right answers that are altered."""

from functools import cache

import numpy as np

from mutants import bug
from mutants.bug import logsumexp, stop, unit
from nceref import get_loss
from nceref.cases.corpus.corpus import corpus, evaluate
from nceref.cases.records import Observation, Outcome
from nceref.losses import differentiable


@cache
def observed(target, name, *, dtype="float64", suite="quick", every=2, **settings):
    """What a plain function of the inputs answers on the corpus, its gradients by the complex step.

    `every`: 2 for every other case, 3 for every third.
    """
    loss = get_loss(name).declaration
    with np.errstate(all="ignore"):
        return [
            # One complex step for each entry would take minutes on a large case.
            Observation(p, Outcome(float(stop(target(**p.inputs))), {} if p.is_large else slopes(target, p)))
            for p in corpus(loss, settings, suite=suite, dtype=dtype)[::every]
            if not p.skip
        ]


def altered(name, target, suite="quick", settings=None, every=2, **options):
    """The corpus of a loss with what `target(probe, value, grads)` answers, given the right answer.

    `every`: 2 for every other case, 3 for every third.
    """
    probes = corpus(get_loss(name).declaration, settings or {}, suite=suite, **options)[::every]
    out = []
    for probe in probes:
        answer = None if probe.skip else target(probe, probe.value, dict(probe.grads))
        out.append(Observation(probe, Outcome() if answer is None else Outcome(answer[0], answer[1])))
    return out


def times(factor):
    def target(probe, value, grads):
        by = factor(probe) if callable(factor) else factor
        return by * value, {name: by * grad for name, grad in grads.items()}

    return target


def at(name, f, slope):
    """A target that computes the loss at another temperature or scale."""

    def target(probe, value, grads):
        given = probe.inputs[name]
        moved = evaluate(probe.loss, {**probe.inputs, name: f(given)})
        if moved.skip:
            return None
        by = {name: slope(given) * moved.grads[name]} if name in moved.grads else {}
        return moved.value, moved.grads | by

    return target


def temperature(probe):
    return probe.inputs["temperature"]


def samples(probe):
    return len(next(iter(probe.inputs.values())))


def slopes(target, probe):
    """Gradients by the complex step."""
    names = [n for n in differentiable(probe.loss) if probe.inputs.get(n) is not None]
    return bug.slopes(target, bug.in_one_dtype(probe.inputs), names)


def views(z1, z2, temperature, *, self_kept=False, inverse_temperature=None):
    """Logits of all rows against all rows, and those of the positives."""
    z = np.concatenate([z1, z2])
    logits = z @ z.T / temperature if inverse_temperature is None else z @ z.T * inverse_temperature
    positive = np.diagonal(np.roll(logits, len(z1), axis=1))
    return logits if self_kept else np.where(np.eye(len(z), dtype=bool), -np.inf, logits), positive


def two_views(z1, z2, temperature, **choices):
    logits, positive = views(unit(z1), unit(z2), temperature, **choices)
    return logsumexp(logits) - positive


def towers(queries, keys, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    return logsumexp(logits) - np.diagonal(logits)


def right(queries, keys, temperature):
    return np.mean(towers(queries, keys, temperature))
