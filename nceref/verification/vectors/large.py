"""Makes the large case of a loss, where bugs of chunks, tiles and the width of an index live."""

from dataclasses import replace

import numpy as np

from nceref.exact.certified import certified
from nceref.losses import default_of
from nceref.spec import Choice, Loss
from nceref.verification.vectors.proven import vector_outputs
from nceref.verification.vectors.records import VALUE, VectorCase, content_id
from nceref.verification.vectors.rows import listed_rows
from nceref.verification.vectors.shared_inputs import TEMPERATURE, shared_inputs


def large_case(loss: Loss, full: bool = False) -> VectorCase:
    """The large case of a loss: its value, the gradients by vectors and numbers, and listed rows of all others.

    With `full` all rows are listed; the bugs that it sees are not in it. Takes seconds, and python-flint. Raises
    `NotProvenError` where something that the formula compares is equal.
    """
    choices = {p.name: default_of(p) for p in loss.parameters if isinstance(p, Choice)}
    arguments = choices | shared_inputs(loss)
    settings = {name: x for name, x in arguments.items() if name in choices}
    inputs = {name: x for name, x in arguments.items() if name not in choices}
    proven = {name: np.asarray(x, dtype=object) for name, x in certified(loss, **arguments).items() if name != "rows"}
    rows = {} if full else listed_rows({name: x.shape for name, x in proven.items()})
    held = {name: x[list(rows[name])] if name in rows else x for name, x in proven.items()}
    outputs = {
        name: replace(output, shape=proven[name].shape, rows=rows.get(name))
        for name, output in vector_outputs(loss, arguments, {"arb": held}, rows).items()
    }
    id = content_id(f"large-{TEMPERATURE}", loss.name, settings, inputs)
    return VectorCase(id, loss.name, settings, inputs, VALUE, outputs, ("sizes",))
