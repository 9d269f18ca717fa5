"""What the programs of the catalogue `mutants` answer on the corpus."""

import inspect

import numpy as np

from mutants.bug import target
from mutants.score import intended
from nceref import get_loss
from nceref.cases.corpus.corpus import corpus
from nceref.cases.records import Observation, Outcome


def arguments(program, inputs, dtype):
    """What the program takes of these inputs, floats in one format."""
    return {
        name: np.asarray(inputs[name], dtype=dtype)
        if getattr(inputs.get(name), "dtype", np.dtype(int)).kind == "f"
        else inputs.get(name)
        for name in inspect.signature(program.function).parameters
    }


def answer(program, probe):
    """Value and gradients of the program on a probe."""
    return Outcome(*target(program)(**arguments(program, probe.inputs, probe.dtype)))


def observed(program, dtype="float64", every=1, seed=0):
    """Answers on the quick corpus, as the score calls for them. `every`: 2 for every other case, 3 for every third."""
    settings, declaration = intended(program), get_loss(program.loss).declaration
    taken = {*inspect.signature(program.function).parameters, *settings}
    # Scalars that the program takes nowhere have their default, as a target's have.
    fixed = {
        p.name: p.default
        for p in declaration.parameters
        if isinstance(getattr(p, "default", None), float) and p.name not in taken
    }
    for probe in corpus(declaration, settings, suite="quick", dtype=dtype, seed=seed, fixed=fixed)[::every]:
        if not probe.skip:
            yield Observation(probe, answer(program, probe))
