"""A case of the reference vectors: inputs, proven outputs and allowed errors, and its JSON."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.output.text import shown
from nceref.tolerance.implementation import FORMATS
from nceref.verification.corpus.corpus import evaluate
from nceref.verification.records import Probe
from nceref.verification.targets.protocol import INTEGER, encoded, hex_of
from nceref.verification.vectors.rows import placed

VALUE, ERROR = "value", "error"
"""What is expected of a case: a number, or that an implementation refuses the inputs."""
FEW_BITS = "bfloat16"
"""Numbers of this format, within the range of float16, are numbers of all four formats: inputs are such."""
_BITS = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, eq=False)
class VectorOutput:
    """What is known of one output: the value, or the gradient by one input.

    Attributes
    ----------
    numbers : array
        The float64 numbers nearest to the true ones.
    shape : tuple of int
        Of the whole output.
    rows : tuple of int or None
        Of the gradient of a large case: those that `numbers` holds; None for all.
    radius : float
        The true numbers are no farther than that from `numbers`, the worst entry.
    engines : mapping
        Name of each engine that enclosed the true numbers, with the radius of its widest enclosure.
    exact : bool
        Whether `numbers` are the true ones.
    unique : tuple of str
        Formats in which every true number has one nearest number, with 10 bits of the enclosure to spare.
    allowed : mapping
        Format to the largest absolute error that the derived bounds admit for an entry.
    terms : mapping
        Of a value: format to what `allowed` is made of, by stage.
    """

    numbers: Any
    shape: tuple[int, ...]
    radius: float
    engines: Mapping[str, float]
    exact: bool
    unique: tuple[str, ...]
    allowed: Mapping[str, float]
    terms: Mapping[str, Mapping[str, float]]
    rows: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class VectorCase:
    """One case: arguments of a loss under the reduction "mean", and what a right implementation answers.

    Attributes
    ----------
    id : str
        Geometry, temperature and a hash of the contents, such as ``designed-0.3-1a2b3c4d``.
    loss : str
    settings : mapping
        Arguments that are no numbers, by name.
    inputs : mapping
        Arrays and scalars by name, exact in every format of `formats`.
    expect : {"value", "error"}
        Whether there are outputs, or whether the settings demand that the inputs are refused.
    outputs : mapping
        ``value``, and ``grad.NAME`` for each input with a gradient.
    clauses : tuple of str
        What the case tests, see `nceref.verification.corpus.clauses`.
    kills, blind : tuple of str
        Known bugs that fail on the case, and that pass, in float64.
    """

    id: str
    loss: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, Any]
    expect: str
    outputs: Mapping[str, VectorOutput]
    clauses: tuple[str, ...] = ()
    kills: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()

    @property
    def formats(self) -> tuple[str, ...]:
        """Formats in which there is something to judge."""
        every = [set(output.allowed) for output in self.outputs.values()]
        return tuple(dtype for dtype in FORMATS if not every or dtype in set.intersection(*every))

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments of the loss."""
        return {**self.inputs, **self.settings}


def content_id(name: str, loss: str, settings: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """The id of a case: its name, and the first digits of the hash of what it hands to the loss."""
    content = {"loss": loss, "settings": dict(settings), "inputs": {key: encoded(x) for key, x in inputs.items()}}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def probe_of(case: VectorCase, dtype: str) -> Probe:
    """A case as a probe of the verifier, with the proven numbers for a reference.

    Parameters
    ----------
    case : VectorCase
    dtype : str
        One of ``case.formats``.

    Returns
    -------
    Probe
        With `skip` where the loss refuses the inputs, or where the format cannot hold the numbers.

    Raises
    ------
    InputError
        Where an allowed error of the record is not that of this version.
    """
    probe = evaluate(get_loss(case.loss).declaration, case.arguments, dtype, id=case.id)
    if probe.skip or case.expect == ERROR:
        return probe
    for name, output in case.outputs.items():
        _check_allowed(case.id, name, dtype, output.allowed.get(dtype), largest_bound(probe, name))
    assert probe.bounds is not None
    grads, rooms = dict(probe.grads), dict(probe.bounds.grads)
    for name in grads:
        output = case.outputs[f"grad.{name}"]
        grads[name], rooms[name] = placed(grads[name], rooms[name], output.numbers, output.rows)
    value = float(case.outputs["value"].numbers)
    return replace(probe, value=value, grads=grads, bounds=replace(probe.bounds, grads=rooms))


def largest_bound(probe: Probe, output: str) -> float:
    """The largest absolute error that a probe admits for an entry of an output."""
    assert probe.bounds is not None
    return float(np.max(probe.bounds.value if output == "value" else probe.bounds.grads[output.removeprefix("grad.")]))


def _check_allowed(id: str, name: str, dtype: str, stored: float | None, computed: float) -> None:
    # Three digits are stored, rounded upward.
    if stored is None or not computed * (1 - 1e-6) <= stored <= computed * 1.011:
        msg = (
            f"case {id}, {name}: the record allows an error of {stored!r} in {dtype}, this version {computed!r}; "
            "use the vectors of this version: nceref vectors export"
        )
        raise InputError(msg)


# To and from JSON.


def record_of(case: VectorCase) -> dict[str, Any]:
    """A case as plain data."""
    return {
        "id": case.id,
        "settings": dict(case.settings),
        "inputs": {name: encoded(x) for name, x in case.inputs.items()},
        "expect": case.expect,
        "outputs": {name: output_record(x) for name, x in case.outputs.items()},
        "clauses": list(case.clauses),
        "kills": list(case.kills),
        "blind": list(case.blind),
    }


def output_record(output: VectorOutput) -> dict[str, Any]:
    """An output as plain data."""
    rows = {} if output.rows is None else {"rows": list(output.rows)}
    return {
        "shape": list(output.shape),
        **rows,
        "hex": hex_of(output.numbers),
        "decimal": [repr(float(x)) for x in output.numbers.flat],
        "radius": output.radius,
        "exact": output.exact,
        "engines": dict(output.engines),
        "unique": list(output.unique),
        "allowed": dict(output.allowed),
        "terms": {dtype: dict(terms) for dtype, terms in output.terms.items()},
    }


def case_of(loss: str, record: Any, where: str) -> VectorCase:
    """The case of plain data; nothing in it is ignored.

    Parameters
    ----------
    loss : str
    record : mapping
    where : str
        File and place, for messages.

    Raises
    ------
    InputError
        For a key that is missing, unknown or of the wrong kind, and where an id, bits and decimals contradict another.
    """
    taken = fields(record, where, id=str, settings=dict, inputs=dict, expect=str, outputs=dict,
                   clauses=list, kills=list, blind=list)  # fmt: skip
    id = taken["id"]
    here = f"{where}, case {id}"
    inputs = {name: _given(x, f"{here}, input {name}") for name, x in taken["inputs"].items()}
    outputs = {name: output_of(x, f"{here}, output {name}") for name, x in taken["outputs"].items()}
    if taken["expect"] not in (VALUE, ERROR) or (taken["expect"] == VALUE) != bool(outputs):
        msg = f"{here}: `expect` must be {VALUE!r} with outputs or {ERROR!r} without, got {taken['expect']!r}"
        raise InputError(msg)
    if id != (right := content_id(id.rpartition("-")[0], loss, taken["settings"], inputs)):
        msg = f"{here}: its contents have the id {right}; a changed case needs a new id"
        raise InputError(msg)
    lists = {name: tuple(taken[name]) for name in ("clauses", "kills", "blind")}
    return VectorCase(id, loss, taken["settings"], inputs, taken["expect"], outputs, **lists)


def fields(record: Any, where: str, optional: Sequence[str] = (), **kinds: Any) -> dict[str, Any]:
    """The entries of an object, each of its kind, and no others."""
    if not isinstance(record, dict):
        msg = f"{where}: expected a JSON object, got {shown(record)}"
        raise InputError(msg)
    if unknown := sorted(set(record) - set(kinds)):
        msg = f"{where}: unknown key {unknown[0]!r}; it may have {', '.join(kinds)}"
        raise InputError(msg)
    for name, kind in kinds.items():
        if name not in record and name in optional:
            continue
        # To Python, True is a number.
        if name not in record or not isinstance(record[name], kind) or (record[name] is True and kind is not bool):
            what = getattr(kind, "__name__", "number")
            msg = f"{where}: `{name}` must be a {what}, got {shown(record.get(name, 'nothing'))}"
            raise InputError(msg)
    return record


def numbers_of(hexes: Sequence[Any], shape: Sequence[Any], where: str) -> Any:
    """The float64 array of bits and a shape."""
    size = math.prod(shape) if all(type(n) is int and n >= 0 for n in shape) else -1
    if size != len(hexes):
        msg = f"{where}: `shape` {shown(list(shape))} does not hold the {len(hexes)} numbers of `hex`"
        raise InputError(msg)
    if wrong := [x for x in hexes if not (isinstance(x, str) and _BITS.fullmatch(x))]:
        msg = f"{where}: `hex` must have 16 digits of 0-9 and a-f a number, got {shown(wrong[0])}"
        raise InputError(msg)
    return np.frombuffer(bytes.fromhex("".join(hexes)), dtype=">f8").astype(np.float64).reshape(tuple(shape))


def _given(record: Any, where: str) -> Any:
    taken = fields(record, where, optional=("kind",), shape=list, hex=list, kind=str)
    x = numbers_of(taken["hex"], taken["shape"], where)
    if taken.get("kind", INTEGER) != INTEGER:
        msg = f"{where}: `kind` must be {INTEGER!r} or be left out, got {taken['kind']!r}"
        raise InputError(msg)
    if "kind" in taken:
        x = x.astype(np.int64)
    return x if x.ndim else x.item()


def output_of(record: Any, where: str) -> VectorOutput:
    """The output of plain data; raises `InputError` as `case_of` does."""
    number = (int, float)
    taken = fields(record, where, optional=("rows",), shape=list, rows=list, hex=list, decimal=list, radius=number,
                   exact=bool, engines=dict, unique=list, allowed=dict, terms=dict)  # fmt: skip
    rows, shape = taken.get("rows"), taken["shape"]
    held = shape if rows is None else [len(rows), *shape[1:]]
    if rows is not None and not (shape and all(type(i) is int and 0 <= i < shape[0] for i in rows)):
        msg = f"{where}: `rows` must be indices below the first number of `shape`, got {shown(rows)}"
        raise InputError(msg)
    numbers = numbers_of(taken["hex"], held, where)
    if taken["decimal"] != [repr(float(x)) for x in numbers.flat]:
        msg = f"{where}: `decimal` and `hex` are not the same numbers"
        raise InputError(msg)
    if unknown := sorted({*taken["unique"], *taken["allowed"], *taken["terms"]} - set(FORMATS)):
        msg = f"{where}: unknown format {unknown[0]!r}; there are {', '.join(FORMATS)}"
        raise InputError(msg)
    return VectorOutput(
        numbers,
        shape=tuple(shape),
        rows=None if rows is None else tuple(rows),
        unique=tuple(taken["unique"]),
        **{name: taken[name] for name in ("radius", "exact", "engines", "allowed", "terms")},
    )
