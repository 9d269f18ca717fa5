"""The reference vectors, answered by the program of each loss and judged, in a process of the line that is tried.

`python -m tools.machines.vectors FILE [FORMAT]` writes the outputs to FILE and prints a line of JSON for each loss.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.spec import Array, Scalar
from nceref.verification.vectors.compare import compare
from nceref.verification.vectors.ranks import RanksCase
from nceref.verification.vectors.ranks_file import read_ranks
from nceref.verification.vectors.records import ERROR, VectorCase
from nceref.verification.vectors.store import DATA, Vectors, read_vectors


def answer(case: VectorCase, dtype: str) -> dict[str, Any]:
    """The line of one case: what the program of the loss returns in a format, or that it refuses."""
    if case.expect == ERROR:
        return {"id": case.id, "error": "refused"}
    value, grads = evaluated(case, dtype)
    return {"id": case.id, "value": _hex(value)[0], "grad": {name: _hex(grad) for name, grad in grads.items()}}


def evaluated(case: VectorCase, dtype: str) -> tuple[Any, dict[str, Any]]:
    """Value and gradients of a case by the program of its loss, in a format."""
    loss = get_loss(case.loss)
    kinds = {p.name: p for p in loss.declaration.parameters}
    floats = {name for name in case.inputs if isinstance(kinds[name], Array | Scalar) and np.ndim(case.inputs[name])}
    inputs = {name: np.asarray(x, dtype=dtype) if name in floats else x for name, x in case.arguments.items()}
    value, grads = loss.value_and_grad(**inputs)
    return value, dict(grads)


def ranks_answer(case: RanksCase) -> dict[str, Any]:
    """The line of a case on several ranks: what the record says that each has."""
    ranks = [
        {"value": _hex(value.numbers)[0], "grad": {name: _hex(one.numbers) for name, one in grads.items()}}
        for value, grads in zip(case.values, case.grads, strict=True)
    ]
    return {"id": case.id, "ranks": ranks}


def outputs(vectors: Vectors, dtype: str) -> Iterator[dict[str, Any]]:
    """The lines of a file of outputs of all losses."""
    yield {"manifest": vectors.sha256, "implementation": f"nceref in {dtype}", "dtype": dtype}
    for cases in vectors.cases.values():
        yield from (answer(case, dtype) for case in cases if case.expect == ERROR or dtype in case.formats)
    if dtype == "float64":
        yield from map(ranks_answer, read_ranks(vectors.manifest))


def _hex(x: Any) -> list[str]:
    return [np.array(y, dtype=">f8").tobytes().hex() for y in np.ravel(x)]


def main(file: str, dtype: str = "float64") -> None:
    """Write the outputs, judge them, and print what became of each loss."""
    lines = (f"{json.dumps(line)}\n" for line in outputs(read_vectors(), dtype))
    Path(file).write_text("".join(lines), encoding="utf-8")
    try:
        reports = compare(DATA, file)
    except InputError as error:
        sys.exit(str(error))
    for report in reports:
        failed = [r.id for r in report.results if r.status in ("fail", "error")]
        about = {"target": report.target, "loss": report.loss, "verdict": report.verdict, "exit": report.exit_code}
        print(json.dumps({**about, "failed": failed}))  # noqa: T201 - for the process that started this one


if __name__ == "__main__":
    main(*sys.argv[1:])
