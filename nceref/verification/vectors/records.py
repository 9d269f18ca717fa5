"""A case of the reference vectors: inputs, proven outputs and allowed errors, and its JSON."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.cases.records import Probe
from nceref.engine.arguments import bind
from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.output.text import shown
from nceref.targets.protocol import INTEGER, encoded, hex_of
from nceref.tolerance.analysis import Bounds
from nceref.tolerance.implementation import FORMATS

VALUE, ERROR = "value", "error"
"""What is expected of a case: a number, or that an implementation refuses the inputs."""
DIGITS_ALLOWED = 4
"""Of an allowed error: rounded upward, it is larger by less than a thousandth."""
FEW_BITS = "bfloat16"
"""Numbers of this format, within the range of float16, are numbers of all four formats: inputs are such."""


@dataclass(frozen=True, eq=False)
class VectorOutput:
    """One output with all that is known of it: the value, or the gradient by one input.

    `numbers` are the float64 numbers nearest to the true ones, `exact` if they are these; the true ones are no farther
    than `radius` from them, the worst entry. `shape` is of the whole output, of which `numbers` holds `rows`: some of
    the gradient of a large case; None for all. `engines` has the radius of the widest enclosure by each engine that
    enclosed the true numbers. `unique` has the formats in which every true number has one nearest number, with 10 bits
    of the enclosure to spare. `allowed` has by format the absolute error that is admitted for each entry, an array as
    `numbers`: the derived bound of a right program, and `radius`; `terms` has of a value what that is made of, by
    stage.
    """

    numbers: Any
    shape: tuple[int, ...]
    radius: float
    engines: Mapping[str, float]
    exact: bool
    unique: tuple[str, ...]
    allowed: Mapping[str, Any]
    terms: Mapping[str, Mapping[str, float]]
    rows: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class VectorCase:
    """One case: arguments of a loss under the reduction "mean", and what a right implementation answers.

    The id is geometry, temperature and a hash of the contents, such as ``designed-0.3-1a2b3c4d``. `settings` are
    arguments that are no numbers, `inputs` arrays and scalars, exact in every format of `formats`. `expect` is
    ``error`` where the settings demand that the inputs are refused, else ``value``, and `outputs` has ``value``, and
    ``grad.NAME`` for each input with a gradient. `clauses` are what it tests, see `nceref.cases.corpus.clauses`;
    `kills` and `blind` known bugs that fail on it, and that pass, in float64.
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
    """A case as a probe of the verifier: the proven numbers for a reference, and the stored errors for bounds.

    The dtype is one of ``case.formats``. The probe is skipped where the settings demand that the inputs are refused.
    """
    loss = get_loss(case.loss).declaration
    if case.expect == ERROR:
        return Probe(case.id, loss, case.arguments, dtype, skip="its settings demand that these inputs are refused")
    judged = {name: x for name, x in case.outputs.items() if dtype in x.allowed}
    value = judged.pop(VALUE)
    grads = {name.removeprefix("grad."): placed(x.numbers, x.allowed[dtype], x) for name, x in judged.items()}
    bounds = Bounds(
        float(value.allowed[dtype]), {name: room for name, (_, room) in grads.items()}, value.terms.get(dtype, {})
    )
    numbers = {name: grad for name, (grad, _) in grads.items()}
    return Probe(case.id, loss, case.arguments, dtype, value=float(value.numbers), grads=numbers, bounds=bounds)


def placed(numbers: Any, rooms: Any, output: VectorOutput) -> tuple[Any, Any]:
    """A gradient and its bounds with the rows that a record lists; no other row is judged."""
    if output.rows is None:
        return numbers, rooms
    out, room = np.zeros(output.shape), np.full(output.shape, np.inf)
    out[list(output.rows)], room[list(output.rows)] = numbers, rooms
    return out, room


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
        "allowed": {dtype: np.ravel(room).tolist() for dtype, room in output.allowed.items()},
        "terms": {dtype: dict(terms) for dtype, terms in output.terms.items()},
    }


def case_of(loss: str, record: Mapping[str, Any], where: str) -> VectorCase:
    """The case of plain data that is as the schema has it; `where` is file and place, for messages.

    Raises `InputError` where an id, bits, decimals, shapes and the arguments of the loss contradict one another.
    """
    here = f"{where}, case {record['id']}"
    inputs = {name: _given(x, f"{here}, input {name}") for name, x in record["inputs"].items()}
    outputs = {name: output_of(x, f"{here}, output {name}") for name, x in record["outputs"].items()}
    if (record["expect"] == VALUE) != bool(outputs):
        msg = f"{here}: `expect` must be {VALUE!r} with outputs or {ERROR!r} without, got {record['expect']!r}"
        raise InputError(msg)
    if record["id"] != (right := content_id(record["id"].rpartition("-")[0], loss, record["settings"], inputs)):
        msg = f"{here}: its contents have the id {right}; a changed case needs a new id"
        raise InputError(msg)
    _check_outputs(loss, {**inputs, **record["settings"]}, outputs, here)
    lists = {name: tuple(record[name]) for name in ("clauses", "kills", "blind")}
    return VectorCase(record["id"], loss, record["settings"], inputs, record["expect"], outputs, **lists)


def _check_outputs(loss: str, arguments: Mapping[str, Any], outputs: Mapping[str, VectorOutput], where: str) -> None:
    """Refuse outputs that are none of the loss, or not in the shape of the input."""
    if not outputs:
        return
    declared = get_loss(loss).declaration
    try:
        inputs = bind(declared, (), arguments)
    except InputError as error:
        msg = f"{where}: the loss refuses its arguments: {error}"
        raise InputError(msg) from None
    given = (name for name in declared.differentiable if inputs.get(name) is not None)
    known = {VALUE: (), **{f"grad.{name}": np.shape(inputs[name]) for name in given}}
    for name, output in outputs.items():
        if name not in known:
            msg = f"{where}: `outputs` may have {', '.join(known)}, got {shown(name)}"
            raise InputError(msg)
        if known[name] != output.shape:
            msg = f"{where}, output {name}: `shape` must be {list(known[name])}, got {list(output.shape)}"
            raise InputError(msg)
    if VALUE not in outputs or not outputs[VALUE].allowed:
        msg = f"{where}: `outputs` must have a {VALUE!r} with an allowed error in some format, got {', '.join(outputs)}"
        raise InputError(msg)


def numbers_of(hexes: Sequence[str], shape: Sequence[int], where: str) -> Any:
    """The float64 array of bits and a shape."""
    if math.prod(shape) != len(hexes):
        msg = f"{where}: `shape` {shown(list(shape))} does not hold the {len(hexes)} numbers of `hex`"
        raise InputError(msg)
    return np.frombuffer(bytes.fromhex("".join(hexes)), dtype=">f8").astype(np.float64).reshape(tuple(shape))


def _given(record: Mapping[str, Any], where: str) -> Any:
    x = numbers_of(record["hex"], record["shape"], where)
    if "kind" in record:
        if not np.all(np.isfinite(x) & (x == np.round(x))):
            msg = f"{where}: `hex` must have integers where `kind` is {INTEGER!r}"
            raise InputError(msg)
        x = x.astype(np.int64)
    return x if x.ndim else x.item()


def output_of(record: Mapping[str, Any], where: str) -> VectorOutput:
    """The output of plain data; raises `InputError` as `case_of` does."""
    rows, shape = record.get("rows"), record["shape"]
    held = shape if rows is None else [len(rows), *shape[1:]]
    if rows is not None and not (shape and len({*rows}) == len(rows) and all(i < shape[0] for i in rows)):
        msg = f"{where}: `rows` must be different indices below the first number of `shape`, got {shown(rows)}"
        raise InputError(msg)
    numbers = numbers_of(record["hex"], held, where)
    if not np.all(np.isfinite(numbers)):
        msg = f"{where}: `hex` must have finite numbers; an output is proven"
        raise InputError(msg)
    if record["decimal"] != [repr(float(x)) for x in numbers.flat]:
        msg = f"{where}: `decimal` and `hex` are not the same numbers"
        raise InputError(msg)
    allowed = {dtype: np.array(room, dtype=np.float64) for dtype, room in record["allowed"].items()}
    if wrong := [dtype for dtype, room in allowed.items() if not np.all(np.isfinite(room))]:
        msg = f"{where}: `allowed` must have finite numbers, got an infinite one in {wrong[0]}"
        raise InputError(msg)
    if wrong := [dtype for dtype, room in allowed.items() if room.size != numbers.size]:
        msg = f"{where}: `allowed` must have a number for each of `hex` in {wrong[0]}, got {allowed[wrong[0]].size}"
        raise InputError(msg)
    return VectorOutput(
        numbers,
        shape=tuple(shape),
        rows=None if rows is None else tuple(rows),
        unique=tuple(record["unique"]),
        allowed={dtype: room.reshape(numbers.shape) for dtype, room in allowed.items()},
        **{name: record[name] for name in ("radius", "exact", "engines", "terms")},
    )
