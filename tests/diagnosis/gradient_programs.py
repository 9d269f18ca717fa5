"""Losses with a right value and a wrong gradient, written with a tape in place of a framework."""

import numpy as np

from nceref import get_loss
from nceref.cases.corpus.corpus import corpus
from nceref.cases.records import Observation, Outcome
from nceref.diagnosis.tape import Graph, Variable, detached, recorded


def unit(x, length=lambda n: n):
    return x / length(np.sqrt(np.sum(x * x, axis=-1, keepdims=True)))


def times(x, factor):
    """The same numbers, whose gradient is multiplied."""
    return recorded(detached(x), [(x, lambda g: factor * g)])


def log_sum_exp(x, below=detached, above=detached):
    top = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - below(top)), axis=1)) + np.squeeze(above(top), axis=1)


def entropy(logits, log_sum_exp=log_sum_exp):
    return log_sum_exp(logits) - np.sum(logits * np.eye(len(logits)), axis=1)


def queries_and_keys(change):
    """`info_nce`, from the logits that `change(queries, keys, temperature)` makes."""
    return "info_nce", lambda queries, keys, temperature, **_: np.mean(entropy(change(queries, keys, temperature)))


def of_rows(change):
    """`info_nce` with something done to its rows."""
    return "info_nce", lambda queries, keys, temperature, **_: np.mean(
        change(entropy(unit(queries) @ unit(keys).T / temperature))
    )


def views(anchors=lambda u: u, candidates=lambda u: u, change=unit):
    """`nt_xent` with something done to its rows as anchors, as candidates and to their normalization."""

    def target(z1, z2, temperature, **_):
        z = np.concatenate([change(z1), change(z2)])
        n = len(z)
        logits = anchors(z) @ candidates(z).T / temperature
        positive = np.arange(n)[:, None] == (np.arange(n) + n // 2) % n
        row = log_sum_exp(np.where(np.eye(n, dtype=bool), -np.inf, logits))
        return np.mean(row - np.sum(np.where(positive, logits, 0.0), axis=1))

    return "nt_xent", target


def both_ways(lengths=lambda n: n, candidates=lambda t: t, weights=(1.0, 1.0), scales=(lambda s: s, lambda s: s)):
    """`clip` with something done on the way back."""

    def target(image, text, logit_scale, **_):
        i, t = unit(image, lengths), unit(text)
        rows = (i @ t.T * scales[0](logit_scale), t @ candidates(i).T * scales[1](logit_scale))
        return sum(times(np.mean(entropy(x)), w) for x, w in zip(rows, weights, strict=True)) / 2

    return "clip", target


def answer(target, probe):
    """What a target answers to a probe, with its gradients."""
    names = [n for n in probe.loss.differentiable if probe.inputs.get(n) is not None]
    leaves = {n: Variable(probe.inputs[n]) for n in names}
    with np.errstate(all="ignore"):
        value = target(**{**probe.inputs, **leaves})
        grads = Graph(value, tuple(leaves.values())).gradients()
    return Outcome(float(detached(value)), dict(zip(names, grads, strict=True)))


def observed(name, target, seed=0, every=1, **settings):
    """Answers on the corpus. `every`: 2 for every other case, 3 for every third."""
    probes = corpus(get_loss(name).declaration, settings, suite="quick", seed=seed)[::every]
    return [Observation(p, answer(target, p)) for p in probes if not p.skip]
