"""Large cases as the package keeps them: their numbers in one file of arrays, inputs that are the same once.

Written out, with all numbers in place, they are cases like the others.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from nceref.errors import InputError
from nceref.targets.protocol import hex_of
from nceref.verification.vectors.formats import arrays_of_tensors
from nceref.verification.vectors.records import DIGITS_ALLOWED, VectorCase
from nceref.verification.vectors.shared_inputs import taken

RECORDS, ARRAYS = "large.json", "large.safetensors"
MOST_ENTRIES = 64
"""Of one array of a small case."""
_TENS = np.array([float(f"1e{power}") for power in range(23)])


def is_large(case: VectorCase) -> bool:
    """Whether an input has more numbers than those of small cases."""
    return any(np.size(x) > MOST_ENTRIES for x in case.inputs.values())


def digits(narrow: Any) -> Any:
    """The numbers of `DIGITS_ALLOWED` decimal digits that are nearest to some numbers, as Python reads them.

    Up to 10^22 a power of ten is a float64: a whole number times or divided by it is rounded once, as a decimal is.
    """
    # Many entries of an array have one allowed error.
    unique, places = np.unique(np.asarray(narrow, dtype=np.float64), return_inverse=True)
    with np.errstate(divide="ignore"):
        places_after = DIGITS_ALLOWED - 1 - np.floor(np.log10(unique))
    out, exact = np.zeros_like(unique), np.abs(places_after) < len(_TENS)
    x, after = unique[exact], places_after[exact].astype(int)
    tens = _TENS[np.abs(after)]
    out[exact] = np.where(after > 0, np.rint(x * tens) / tens, np.rint(x / tens) * tens)
    out[~exact] = [float(f"{x:.{DIGITS_ALLOWED}g}") for x in unique[~exact].tolist()]
    return out[places].reshape(np.shape(narrow))


def unpacked(records: bytes, arrays: bytes, losses: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The cases of some losses out of the contents of two such files, with all numbers in place.

    Each is the loss, and a record as `record_of` gives it. Raises `InputError` for a record that names an array that is
    not there.
    """
    known = arrays_of_tensors(arrays)
    for record in json.loads(records)["cases"]:
        loss = record.pop("loss")
        if loss not in losses:
            continue
        for part, with_decimals in (("inputs", False), ("outputs", True)):
            record[part] = {
                name: _with_numbers(x, known, with_decimals, f"{RECORDS}, case {record['id']}, {name}")
                for name, x in record[part].items()
            }
        yield loss, record


def _with_numbers(record: dict[str, Any], arrays: Mapping[str, Any], with_decimals: bool, where: str) -> Any:
    if "array" not in record:
        return record
    name, column = record.pop("array"), record.pop("column", None)
    if name not in arrays:
        msg = f"{where}: there is no array {name!r} in {ARRAYS}; install the package anew"
        raise InputError(msg)
    numbers = np.asarray(taken(arrays, name, column), dtype=np.float64)
    if not with_decimals:
        return {**record, "hex": hex_of(numbers)}
    allowed = {dtype: digits(arrays[f"{name}.{dtype}"]).ravel().tolist() for dtype in record["allowed"]}
    return {**record, "hex": hex_of(numbers), "decimal": list(map(repr, numbers.ravel().tolist())), "allowed": allowed}
