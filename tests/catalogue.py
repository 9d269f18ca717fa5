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


def observed(program, dtype="float64", every=1):
    """Answers on the quick corpus, as the score calls for them. `every`: 2 for every other case, 3 for every third."""
    settings, declaration, run = intended(program), get_loss(program.loss).declaration, target(program)
    taken = {*inspect.signature(program.function).parameters, *settings}
    # Scalars that the program takes nowhere have their default, as a target's have.
    fixed = {
        p.name: p.default
        for p in declaration.parameters
        if isinstance(getattr(p, "default", None), float) and p.name not in taken
    }
    for probe in corpus(declaration, settings, suite="quick", dtype=dtype, fixed=fixed)[::every]:
        if not probe.skip:
            yield Observation(probe, Outcome(*run(**arguments(program, probe.inputs, probe.dtype))))
