"""Every parameter of the documented functions with values that nobody should pass: a refusal in words, or a result."""

import numpy as np
from engine.odd_values import NO_NUMBER, Raising, strict
from sweep import sweep

from nceref import config, exact, losses, tolerance
from nceref.checks.expect import expected_readings
from nceref.checks.locate import locate
from nceref.engine import settings
from nceref.errors import NcerefError
from nceref.experiments import experiment
from nceref.testing import Target, checks, parametrize_with_checks
from nceref.training import SGD, Adam, Batch, Linear, Member, Network, Recipe, mlp, train
from nceref.verification.verifier import corpus_of

X = np.random.default_rng(0).standard_normal((8, 3))
NETWORK = mlp((3, 2))
ODD = {
    **NO_NUMBER, "false": False, "zero": 0, "negative": -1, "fraction": 2.5, "largest": 1e308, "smallest": 5e-324,
    "words": ["a", "b"], "ragged": [[1], [1, 2]], "empty": [], "mapping": {1: 2}, "set": {1}, "object": object(),
    "array": X, "three axes": X[None], "complex array": X + 0j, "objects": X.astype(object), "nan array": X * np.nan,
    "escape": "\x1b[31m", "surrogate": "\udc80", "long": "x" * 10**4, "raising items": [Raising(RuntimeError())],
    "tiny integer": np.int8(3), "namespace": {"x": 1j}, "no items": iter(()),
}  # fmt: skip


def draw(rng):
    return Batch((X, X + 0.1), np.arange(8) % 2)


def trained(loss="nt_xent", make=draw, member=None, **changed):
    recipe = Recipe(**{"loss": loss, "network": NETWORK, "steps": 1, **changed})
    return train(recipe, [member or Member(0, 0.5)], make)


TRAINED = trained()
MOCO = {"queue": 8, "momentum": 0.9}
READ = expected_readings("nt_xent", {"n": 8, "temperature": 0.5})
CHECKED = Target(len, "alignment", options={"suite": "quick"})
TOY = experiment.Experiment(
    "toy", "", (), None, (experiment.Measure("m", ""),), ("s",), (),
    lambda seed, done: experiment.Results((seed,), {"s": {"m": (1.0,)}}), None, "", 1, 1.0,
)  # fmt: skip
VERIFY = (
    "call", "init", "framework", "suite", "dtype", "device", "seed", "algorithm", "timeout", "case", "require_grad",
    "expected_failures", "explain", "repro", "temperature", "normalize", "reduction", "factor", "negatives",
)  # fmt: skip
SIZES = ("n", "dim", "classes", "views", "queue", "positives", "temperature", "logit_scale", "normalize")
FUNCTIONS = {
    "config": (config, ("block", "threads", "keep")),
    "get_loss": (losses.get_loss, ("name",)),
    "reference": (lambda **k: exact.reference("alignment", X[:2], X[:2], gradients=False, **k), ("system", "digits")),
    "Symbolic": (lambda by: exact.Symbolic("alignment", X[:1], X[1:2], by=by), ("by",)),
    "bounds": (lambda **k: tolerance.bounds(losses.alignment, X, X, **k), ("accumulate", "exponent")),
    "close": (lambda **k: tolerance.close(**{"actual": 1, "expected": 1, **k}), ("actual", "scale", "ulps", "dtype")),
    "mlp": (lambda **k: mlp(**{"sizes": (3, 4), **k}), ("sizes", "activation", "bias", "normalize")),
    "mlp, a size": (lambda size: mlp((3, size)), ("size",)),
    "Linear": (lambda **k: Linear(**{"inputs": 3, "outputs": 2, **k}), ("inputs", "outputs", "bias")),
    "Network": (Network, ("layers",)),
    "Network, a layer": (lambda layer: Network((layer,)), ("layer",)),
    "Network()": (lambda x: NETWORK(x, *TRAINED.parameters), ("x",)),
    "Network(), a weight": (lambda w: NETWORK(X, w, w), ("w",)),
    "SGD": (SGD, ("rate", "momentum")),
    "Adam": (Adam, ("rate", "first", "second", "epsilon")),
    "Batch": (lambda **k: Batch(**{"views": (X, X), **k}), ("views", "labels", "given")),
    "Batch, a view": (lambda view: Batch((X, view)), ("view",)),
    "Batch, given": (lambda t: trained("dcl", lambda rng: Batch((X, X), given={"sigma": t})), ("t",)),
    "Member": (lambda **k: trained(member=Member(**{"seed": 0, "temperature": 0.5, **k})), ("seed", "temperature")),
    "Recipe": (trained, ("loss", "network", "steps", "optimizer", "settings", "classes", "queue", "learn", "dtype")),
    "Recipe, moco": (lambda **k: trained("moco", **{**MOCO, **k}), ("momentum", "learn")),
    "Recipe, settings": (lambda s: trained("clip", settings={"logit_scale": s}, learn=("logit_scale",)), ("s",)),
    "train": (
        lambda **k: train(**{"recipe": TRAINED.recipe, "members": TRAINED.members, "draw": draw, **k}),
        ("recipe", "members", "draw", "on_progress", "watch"),
    ),
    "train, a batch": (lambda batch: trained(make=lambda rng: batch), ("batch",)),
    "features": (TRAINED.features, ("x",)),
    "expect": (lambda **k: expected_readings(**{"name": "nt_xent", "given": {}, **k}), ("name", "given")),
    "expect, a size": (lambda **k: expected_readings("supcon_out", {"n": 8, "temperature": 0.5, **k}), SIZES),
    "locate": (lambda value: locate(READ, value), ("value",)),
    "verify": (lambda **k: corpus_of(len, **{"loss": "info_nce", "suite": "quick", **k}), ("loss", *VERIFY)),
    "verify, a target": (lambda target: corpus_of(target, "alignment", suite="quick"), ("target",)),
    "Target": (lambda **k: list(checks(Target(**{"function": len, "loss": "moco", **k}))), ("loss", "name", "options")),
    "checks": (lambda **k: list(checks(**{"target": CHECKED, **k})), ("target", "suite")),
    "parametrize": (
        lambda **k: parametrize_with_checks(**{"targets": [], "suite": "quick", **k}),
        ("targets", "expected_failures"),
    ),
    "experiment": (lambda **k: experiment.run(**{"experiment": TOY, **k}), ("experiment", "on_progress", "first")),
    "experiment, processes": (lambda **k: experiment.run(TOY, **k), ("seeds", "processes")),
}
OWN_EXCEPTIONS = {(name, kind) for name in ("draw", "watch", "on_progress") for kind in ("function", "type")}
"""A caller's function that raises when it is called: that reaches the caller as it is."""
TOO_LARGE = {("seeds", "large integer")}


@sweep("name", FUNCTIONS)
def test_an_odd_value_is_refused_in_words_or_works(name):
    function, parameters = FUNCTIONS[name]
    for parameter in parameters:
        for kind, value in ODD.items():
            if (parameter, kind) in OWN_EXCEPTIONS | TOO_LARGE:
                continue
            refusal = attempt(function, parameter, value)
            assert refusal.isprintable(), (parameter, kind)
            assert len(refusal) < 1000, (parameter, kind)


def attempt(function, parameter, value):
    """The message of the refusal, if it is one; any other exception, and any warning, fails the test."""
    reset = config(block=1, threads=1, keep=1)
    try:
        with strict():
            function(**{parameter: value})
    except NcerefError as error:
        return str(error)
    finally:
        with reset:
            pass
        assert settings.thread_count() >= 1
    return ""
