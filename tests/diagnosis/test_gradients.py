"""A right value with a wrong gradient: what is wrong is named input by input."""

import numpy as np
import pytest
from diagnosis.altered_losses import altered, samples

from mutants.bug import logsumexp, slopes, stop, unit
from nceref.diagnosis.diagnose import diagnose
from nceref.losses import LossFunction


def first(observations):
    return diagnose(observations)[0]


def gradient(change):
    return lambda probe, value, grads: (value, change(probe, grads))


def _without(name):
    return lambda probe, grads: {**grads, name: 0 * grads[name]}


def _but_last(x):
    return x * (np.arange(len(x)) < max(len(x) - 1, 1))[:, None]


@pytest.mark.parametrize(
    ("name", "id", "words", "change"),
    [
        ("nt_xent", "gradient-constant-factor", "of z1 is 1/2 times", lambda p, g: {**g, "z1": 0.5 * g["z1"]}),
        ("nt_xent", "gradient-constant-factor", "1/N times", lambda p, g: {n: x / samples(p) for n, x in g.items()}),
        ("nt_xent", "gradient-sign-flipped", "has the other sign", lambda p, g: {n: -x for n, x in g.items()}),
        ("nt_xent", "gradient-zero", "is 0 on", lambda p, g: {n: 0 * x for n, x in g.items()}),
        ("nt_xent", "keys-detached", "of z2 is 0", _without("z2")),
        ("info_nce", "first-input-detached", "of queries is 0", _without("queries")),
        ("nt_xent", "temperature-detached", "of temperature is 0", _without("temperature")),
        ("siglip", "bias-detached", "of logit_bias is 0", _without("logit_bias")),
        ("cosface", "centers-detached", "of class_weights is 0", _without("class_weights")),
        ("nt_xent", "gradient-missing-rows", "in the last row", lambda p, g: {**g, "z1": _but_last(g["z1"])}),
        ("nt_xent", "gradient-radial-only", "along the rows", lambda p, g: {**g, "z1": g["z1"] + p.inputs["z1"]}),
        ("alignment", "value-right-gradient-wrong", "and off by", lambda p, g: {**g, "x": np.roll(g["x"], 1)}),
        ("alignment", "value-right-gradient-wrong", "right in the last row only",
         lambda p, g: {**g, "x": g["x"] + _but_last(np.cos(np.arange(g["x"].size).reshape(g["x"].shape)))}),
        ("cross_entropy", "value-right-gradient-wrong", "exactly those where label_smoothing is not 0",
         lambda p, g: {**g, "logits": g["logits"] + p.inputs["label_smoothing"] * np.cos(p.inputs["logits"])}),
    ],
)  # fmt: skip
def test_a_right_value_with_a_wrong_gradient_is_called_that(name, id, words, change):
    found = first(altered(name, gradient(change)))
    assert found.id == id
    assert found.sentence.startswith("the value is right on ")
    assert words in found.sentence


def test_one_constant_of_two_that_gets_a_gradient_beside_a_wrong_value_is_said_as_that():
    def logits(queries, keys, queue, temperature):
        q, k, m = unit(queries), stop(unit(keys)), unit(queue)
        return np.concatenate([np.sum(q * k, axis=1, keepdims=True), q @ m.T / temperature], axis=1)

    def moco(**given):
        return np.mean(logsumexp(logits(**given)) - logits(**given)[:, 0])

    def target(probe, value, grads):
        given = {name: probe.inputs[name] for name in ("queries", "keys", "queue", "temperature")}
        s = logits(**given)
        shares = np.exp(s - logsumexp(s)[:, None])[:, 1:]
        slope = -np.mean(np.sum(shares * s[:, 1:], axis=1)) / given["temperature"]
        moved = slopes(moco, given, ["queries", "queue"])
        return float(moco(**given)), {**moved, "keys": np.zeros_like(given["keys"]), "temperature": slope}

    found = first(altered("moco", target, every=3))
    assert "a gradient reaches queue; none should" in found.sentence
    assert "Detach queue." in found.fix


@pytest.mark.slow(reason="a search in vain")
def test_lengths_that_are_constants_are_told_from_any_other_radial_gradient():
    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    def target(probe, value, grads):
        given = probe.inputs
        inside = {**given, "z1": unit(given["z1"]), "z2": unit(given["z2"]), "normalize": "none"}
        _, raw = LossFunction(probe.loss).value_and_grad(**inside)
        back = {n: raw[n] / np.linalg.norm(given[n], axis=1, keepdims=True) for n in ("z1", "z2")}
        return value, {**grads, **back}

    assert first(altered("nt_xent", target)).id == "normalization-detached"


def test_a_gradient_to_a_declared_constant_is_named():
    found = first(altered("moco", lambda probe, value, grads: (value, {**grads, "queue": probe.inputs["queue"]})))
    assert found.id == "constants-get-gradient"
    assert "queue" in found.sentence


def test_several_patterns_are_named_together():
    def change(probe, grads):
        return {**grads, "z1": 0.5 * grads["z1"], "temperature": 0 * grads["temperature"]}

    found = diagnose(altered("nt_xent", gradient(change)))
    assert [one.id for one in found] == ["temperature-detached+gradient-constant-factor"]


def test_a_pattern_is_named_beside_a_convention_of_the_value():
    def target(probe, value, grads):
        return 2 * value, {name: 2 * (_but_last(x) if name == "z1" else x) for name, x in grads.items()}

    assert [one.id for one in diagnose(altered("nt_xent", target))] == ["outer-factor-2+gradient-missing-rows"]


def test_gradients_of_large_cases_are_judged_too():
    """A part that is wrong in a batch of thousands of rows alone is no factor of the small ones."""

    def change(probe, grads):
        return {**grads, "logits": (7.0 if probe.is_large else 2.0) * grads["logits"]}

    assert first(altered("cross_entropy", gradient(change))).id == "value-right-gradient-wrong"


def test_beside_another_value_the_gradient_may_be_that_of_the_reference_but_for_one_input():
    def thresholded(probe, value, grads):
        given = probe.inputs
        image, text = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (given["image"], given["text"]))
        logits = given["logit_scale"] * image @ text.T + given["logit_bias"]
        steep = np.where(np.eye(len(logits), dtype=bool), -logits, logits)
        value = np.sum(np.where(steep > 20, steep, np.logaddexp(0, steep))) / len(logits)
        return value, {**grads, "logit_scale": 0.5 * grads["logit_scale"]}

    found = first(altered("siglip", thresholded))
    assert found.id == "softplus-threshold+gradient-constant-factor+gradient-of-a-variant"
    assert "the gradient is otherwise that of the reference" in found.sentence
    assert "the gradient of logit_scale is 1/2 times what it should be" in found.sentence
    assert "the gradient of image, text and logit_bias is right" in found.sentence
