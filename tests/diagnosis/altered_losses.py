"""Losses written plainly in NumPy, with one thing or two done otherwise, and right answers that are altered."""

from functools import cache

import numpy as np

from nceref import get_loss
from nceref.cases.corpus.corpus import corpus, evaluate
from nceref.cases.records import Observation, Outcome
from nceref.losses import differentiable

STEP = 1e-20


def real(x):
    return np.real(x)


def unit(x):
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def logsumexp(x, axis=-1):
    top = np.max(real(x), axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=axis)) + np.squeeze(top, axis)


@cache
def observed(target, name, *, dtype="float64", suite="quick", every=2, **settings):
    """What a plain function of the inputs answers on the corpus, its gradients by the complex step.

    `every`: 2 for every other case, 3 for every third.
    """
    loss = get_loss(name).declaration
    with np.errstate(all="ignore"):
        return [
            # One complex step for each entry would take minutes on a large case.
            Observation(p, Outcome(float(real(target(**p.inputs))), {} if p.is_large else slopes(target, p)))
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
    """Gradients by the complex step, one entry at a time."""
    names = [n for n in differentiable(probe.loss) if probe.inputs.get(n) is not None]
    by_name = {}
    for name in names:
        x = np.asarray(probe.inputs[name], dtype=complex)
        slope = np.zeros(x.shape)
        for index in np.ndindex(x.shape):
            moved = x.copy()
            moved[index] += 1j * STEP
            slope[index] = np.imag(target(**{**probe.inputs, name: moved if x.ndim else complex(moved)})) / STEP
        by_name[name] = slope
    return by_name


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


def without_positive(z1, z2, temperature):
    logits, positive = views(unit(z1), unit(z2), temperature)
    n = len(z1)
    gone = np.roll(np.eye(2 * n, dtype=bool), n, axis=1)
    return np.mean(logsumexp(np.where(gone, -np.inf, logits)) - positive)


def raw(z1, z2, temperature):
    logits, positive = views(z1, z2, temperature)
    return np.mean(logsumexp(logits) - positive)


def twice(queries, keys, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    p = np.exp(logits - logsumexp(logits)[:, None])
    return np.mean(logsumexp(p) - np.diagonal(p))


def with_epsilon(queries, keys, temperature):
    return -np.mean(np.log(np.exp(-towers(queries, keys, temperature)) + 1e-6))


def next_key(queries, keys, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    return np.mean(logsumexp(logits) - np.diagonal(np.roll(logits, -1, axis=1)))


def subtracted_in_the_graph(z1, z2, temperature, normalize):
    """The self-contrast is subtracted as a constant, so that its gradient stays."""
    logits, positive = views(z1, z2, temperature, self_kept=True)
    own = np.exp(real(np.diagonal(logits)))
    return np.mean(np.log(np.sum(np.exp(logits), axis=1) - own) - positive)


def of_views(program):
    """A target of `nt_xent` from a function of both views and the temperature."""
    return "nt_xent", lambda z1, z2, temperature: program(z1, z2, temperature)


def of_towers(program):
    """A target of `info_nce` from a function of queries, keys and the temperature."""
    return "info_nce", lambda queries, keys, temperature: program(queries, keys, temperature)


def of_pictures(program):
    """A target of `clip` from a function of images, texts and the inverse of the scale."""
    return "clip", lambda image, text, logit_scale: program(image, text, 1 / logit_scale)


SINGLES = {
    "self-contrast-kept": of_views(lambda a, b, t: np.mean(two_views(a, b, t, self_kept=True))),
    "positive-dropped-from-denominator": of_views(without_positive),
    "sum-instead-of-mean": of_views(lambda a, b, t: np.sum(two_views(a, b, t))),
    "outer-factor-2-temperature": of_towers(lambda q, k, t: 2 * t * np.mean(towers(q, k, t))),
    "outer-factor-temperature-over-base": of_views(lambda a, b, t: t / 0.07 * np.mean(two_views(a, b, t))),
    "one-direction-only": of_pictures(lambda a, b, t: np.mean(towers(a, b, t))),
    "directions-summed": of_pictures(lambda a, b, t: np.mean(towers(a, b, t)) + np.mean(towers(b, a, t))),
    "keys-detached": of_towers(lambda q, k, t: np.mean(towers(q, real(k), t))),
    "temperature-detached": of_towers(lambda q, k, t: np.mean(towers(q, k, real(t)))),
    "gradient-zero": of_towers(lambda q, k, t: real(np.mean(towers(q, k, t)))),
    "rows-not-normalized": of_views(raw),
    "temperature-multiplied": of_views(lambda a, b, t: np.mean(two_views(a, b, t, inverse_temperature=t))),
    "temperature-ignored": of_views(lambda a, b, t: np.mean(two_views(a, b, 0.07))),
    "softmax-applied-twice": of_towers(twice),
    "epsilon-in-log": of_towers(with_epsilon),
    "labels-shifted": of_towers(next_key),
    "log-base-2": of_towers(lambda q, k, t: np.mean(towers(q, k, t)) / np.log(2)),
    "sign-flipped": of_towers(lambda q, k, t: -np.mean(towers(q, k, t))),
    "outer-factor-constant": of_towers(lambda q, k, t: 1.7 * np.mean(towers(q, k, t))),
    "offset-constant": of_towers(lambda q, k, t: 0.3 + np.mean(towers(q, k, t))),
}

PAIRS = {
    ("self-contrast-kept", "sum-instead-of-mean"): of_views(
        lambda a, b, t: np.sum(two_views(a, b, t, self_kept=True))
    ),
    ("self-contrast-kept", "anchor-as-positive"): of_views(
        lambda a, b, t: np.mean(logsumexp(logits := views(unit(a), unit(b), t, self_kept=True)[0]) - np.diag(logits))
    ),
    ("temperature-multiplied", "self-contrast-kept"): of_views(
        lambda a, b, t: np.mean(two_views(a, b, t, self_kept=True, inverse_temperature=t))
    ),
    ("outer-factor-temperature-over-base", "keys-detached"): of_towers(
        lambda q, k, t: t / 0.07 * np.mean(towers(q, real(k), t))
    ),
    ("labels-shifted", "sign-flipped"): of_towers(lambda q, k, t: -next_key(q, k, t)),
}  # fmt: skip


def right(queries, keys, temperature):
    return np.mean(towers(queries, keys, temperature))


def of_rows(program):
    """A target of `info_nce` that does something to the rows that nobody does."""
    return lambda queries, keys, temperature: program(towers(queries, keys, temperature))


STRANGE = {
    "steps": of_rows(lambda rows: np.mean(np.where(real(rows) > 1, 2.0, 0.5))),
    "a length added": lambda queries, keys, temperature: right(queries, keys, temperature) + 0.1 * np.mean(queries**2),
}
