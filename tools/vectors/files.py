"""The files of the package's own folder of vectors, in which large cases have two of their own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nceref.losses import get_loss
from nceref.output.files import read
from nceref.verification.vectors.formats import tensors
from nceref.verification.vectors.packed import ARRAYS, RECORDS, digits, is_large, unpacked
from nceref.verification.vectors.records import VectorCase, case_of, record_of
from nceref.verification.vectors.shared_inputs import shared_arrays, shared_by, taken
from nceref.verification.vectors.store import DATA, FORMAT, MANIFEST, RANKS, folder_files, manifest_file


def package_files(cases: Mapping[str, Sequence[VectorCase]]) -> dict[str, bytes]:
    """The contents of the folder by name of file, the manifest last.

    `cases` has the small cases by name of the loss; large ones among them are left out. Large cases, and those on
    several ranks, are those that are there.
    """
    others = {name: read(DATA / name) for name in (RECORDS, ARRAYS, RANKS)}
    whole = {loss: [case for case in each if not is_large(case)] for loss, each in cases.items()}
    files = folder_files(whole, others)
    for loss, record in unpacked(others[RECORDS], others[ARRAYS], whole):
        whole[loss].append(case_of(loss, record, RECORDS))
    del files[MANIFEST]
    return {**files, MANIFEST: manifest_file(whole, files)}


def large_files(cases: Iterable[VectorCase]) -> dict[str, bytes]:
    """The two files of large cases, at most one of a loss, by name; equal cases give equal bytes."""
    arrays, lines = dict(shared_arrays()), []
    for case in cases:
        record, shared = record_of(case), shared_by(get_loss(case.loss).declaration)
        for name, (array, column) in shared.items():
            assert np.array_equal(taken(arrays, array, column), case.inputs[name])
            record["inputs"][name] = _without_numbers(record["inputs"][name], array=array, column=column)
        for name, output in case.outputs.items():
            if output.rows is not None:
                own = f"{case.loss}.{name}"
                arrays[own] = output.numbers
                arrays |= {f"{own}.{dtype}": _narrow(room) for dtype, room in output.allowed.items()}
                kept = _without_numbers(record["outputs"][name], array=own)
                record["outputs"][name] = {**kept, "allowed": list(output.allowed)}
        lines.append(json.dumps({"loss": case.loss, **record}, allow_nan=False))
    body = ",\n".join(lines)
    return {RECORDS: f'{{"format": "{FORMAT}", "cases": [\n{body}\n]}}\n'.encode(), ARRAYS: tensors(arrays)}


def _narrow(room: Any) -> Any:
    """Allowed errors in float32, where that holds the few digits that they have."""
    with np.errstate(over="ignore"):
        narrow = np.asarray(room, dtype=np.float32)
    return narrow if np.array_equal(digits(narrow), room) else room


def _without_numbers(record: Mapping[str, Any], **where: Any) -> dict[str, Any]:
    kept = {key: x for key, x in record.items() if key not in ("hex", "decimal")}
    return {**kept, **{key: x for key, x in where.items() if x is not None}}
