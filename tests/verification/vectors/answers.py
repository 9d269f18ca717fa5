"""OUTPUTS as implementations write them: right ones, those of known bugs, and bits of numbers."""

import json
from inspect import signature

import numpy as np

from mutants.bug import target
from mutants.score import intended
from nceref.losses import get_loss
from nceref.targets.runner import in_process
from nceref.verification.vectors.records import probe_of


def flat(x):
    """Numbers of JSON in row-major order; words for the others."""
    return [
        y if np.isfinite(y) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(y)]
        for y in np.ravel(x).tolist()
    ]


def bits(x):
    """The same as 16 hexadecimal digits each."""
    return [np.array(y, dtype=">f8").tobytes().hex() for y in np.ravel(x)]


def proven(record):
    """A record without its bounds, which may differ between machines within a slack."""
    if isinstance(record, dict):
        return {name: proven(x) for name, x in record.items() if name not in ("allowed", "terms")}
    return [proven(x) for x in record] if isinstance(record, list) else record


def right_answers(cases, written=flat):
    """The lines of a right implementation: the proven numbers."""
    return [right_answer(case, written) for case in cases]


def right_answer(case, written=flat):
    if case.expect == "error":
        return {"id": case.id, "error": "refused"}
    numbers = {name: written(output.numbers) for name, output in case.outputs.items()}
    [value] = numbers.pop("value")
    return {"id": case.id, "value": value, "grad": {name.removeprefix("grad."): x for name, x in numbers.items()}}


def right_ranks(cases):
    """The lines of a right implementation of cases on several ranks."""
    return [{"id": case.id, "ranks": list(map(_on_rank, case.values, case.grads))} for case in cases]


def _on_rank(value, grads):
    return {"value": flat(value.numbers)[0], "grad": {name: flat(x.numbers) for name, x in grads.items()}}


def of_bug(cases, program):
    """The lines of a known bug, which declares which cases it was not written for."""
    declared = get_loss(program.loss).declaration
    with in_process(target(program), declared, framework="numpy", settings=intended(program)) as run:
        return [_line(case, program, run) for case in cases]


def _line(case, program, run):
    if missing := _missing(case, program):
        return {"id": case.id, "unsupported": ", ".join(missing)}
    outcome = run(probe_of(case, "float64"))
    if outcome.trouble:
        return {"id": case.id, "error": outcome.sentence}
    return {
        "id": case.id,
        "value": flat(outcome.value)[0],
        "grad": {name: flat(g) for name, g in outcome.grads.items()},
    }


def _missing(case, program):
    """Arguments of a case that a program does not take, and that are not what it takes for granted."""
    taken = signature(program.function).parameters
    known = {p.name: getattr(p, "default", None) for p in get_loss(program.loss).declaration.parameters}
    usual = {**known, **program.settings}
    extra = [
        name for name, x in case.arguments.items() if name not in taken and not (np.ndim(x) == 0 and x == usual[name])
    ]
    return extra + [name for name in taken if name not in case.arguments]


def written(path, sha256, lines, **about):
    """The path of a file of outputs."""
    records = [{"manifest": sha256, **about}, *lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in records))
    return path
