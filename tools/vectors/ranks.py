"""Makes the cases on several ranks: from enclosures of the joined loss, and of what each rank's anchors contribute."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nceref.cases.corpus.corpus import designed_inputs
from nceref.cases.corpus.resizing import Resizing
from nceref.cases.records import Probe
from nceref.exact.certified import Enclosure, certified
from nceref.losses import default_of
from nceref.spec import Choice, Loss
from nceref.targets.ranks.contract import Contract, rows_of, split_inputs
from nceref.verification.vectors.proven import bounded, enclosed_by_decimals, proven_output, vector_outputs
from nceref.verification.vectors.ranks import RanksCase, contract_of, label
from nceref.verification.vectors.records import FEW_BITS, VALUE, VectorCase, VectorOutput, content_id

SCENARIOS = (
    ("joined", ((0, 1), (2, 3)), 0.3),
    ("joined", ((0, 1), (2, 3)), 5.0),
    ("joined", ((0, 1), (2, 3), (4, 5)), 0.07),
    ("joined", ((0, 1), (2, 3), (4, 5)), 5.0),
    ("joined", ((0, 1, 2), (3,)), 0.3),
    ("joined", ((0, 1, 2), (3, 4, 0)), 0.3),
    ("joined", ((0, 1), (2, 3), (4, 0)), 0.07),
    ("local", ((0, 1), (2, 3)), 0.07),
    ("local", ((0, 1), (2, 3), (4, 5)), 0.3),
    ("share", ((0, 1), (2, 3)), 0.3),
    ("share", ((0, 1, 2), (3,)), 0.07),
    ("share", ((0, 1, 2, 3, 4, 5), (6, 7)), 0.3),
)
"""Formulation, rows of each rank, temperature; what ranks do otherwise is told from three cases of 2, and of 3."""


def ranks_cases(loss: Loss) -> Iterator[RanksCase]:
    """The cases of a loss that is a mean over rows."""
    for formulation, shards, temperature in SCENARIOS:
        count = len({row for own in shards for row in own})
        contract, name = contract_of(formulation, shards), f"designed-{temperature:g}"
        resized = designed_inputs(loss, loss.variants[0], "quick", FEW_BITS, 0, {}, resizing=Resizing(rows=count))
        inputs = next(inputs for case, inputs in resized if case == name)
        given = {p.name: inputs.get(p.name, default_of(p)) for p in loss.parameters}
        arguments = {key: x for key, x in given.items() if x is not None}
        joined = _joined(loss, arguments, f"{label(contract, formulation)}-{temperature:g}")
        values, grads = zip(*_of_ranks(loss, arguments, formulation, contract), strict=True)
        yield RanksCase(joined, contract, formulation, values, grads)


def _joined(loss: Loss, arguments: Mapping[str, Any], name: str) -> VectorCase:
    choices = {p.name for p in loss.parameters if isinstance(p, Choice)}
    settings = {key: x for key, x in arguments.items() if key in choices}
    inputs = {key: x for key, x in arguments.items() if key not in choices}
    id = content_id(name, loss.name, settings, inputs)
    engines = {"arb": _outputs(loss, arguments), "decimal": enclosed_by_decimals(loss, arguments)}
    return VectorCase(id, loss.name, settings, inputs, VALUE, vector_outputs(loss, arguments, engines))


def _outputs(loss: Loss, arguments: Mapping[str, Any], of_rows: Collection[int] | None = None) -> dict[str, Any]:
    proven = certified(loss, of_rows=of_rows, **arguments)
    return {name: np.asarray(x, dtype=object) for name, x in proven.items() if name != "rows"}


def _of_ranks(
    loss: Loss, arguments: Mapping[str, Any], formulation: str, contract: Contract
) -> Iterator[tuple[VectorOutput, dict[str, VectorOutput]]]:
    """Value and gradients of each rank."""
    probes = bounded(loss, arguments)
    count, split = rows_of(probes["float64"]), split_inputs(loss, arguments)
    total = certified(loss, **arguments)["rows"].size
    joined, seen = _outputs(loss, arguments), set()
    for rank, own in enumerate(contract.rows(count)):
        # Of a row that is there twice, the first copy counts.
        fresh = np.array([row not in seen for row in own])
        seen |= {*own.tolist()}
        shared, times = joined, 1
        if formulation != "joined":
            shared = _outputs(loss, arguments, frozenset(i for i in range(total) if i % count in own))
            times = contract.divisor
        made = {name: _times(times, x) for name, x in shared.items()}
        for name in split & {name.removeprefix("grad.") for name in joined}:
            weights = np.where(fresh, contract.divisor, 0).reshape(-1, *[1] * (joined[f"grad.{name}"].ndim - 1))
            made[f"grad.{name}"] = _times(weights, joined[f"grad.{name}"][own])
        shards = {dtype: _shard(contract, probe, rank) for dtype, probe in probes.items()}
        outputs = {name: _without_terms(proven_output(name, {"arb": x}, shards)) for name, x in made.items()}
        yield outputs.pop("value"), {name.removeprefix("grad."): x for name, x in outputs.items()}


def _times(factor: Any, enclosures: Any) -> Any:
    """Each enclosure times an integer >= 0, in the shape of both."""
    scaled = np.frompyfunc(lambda n, one: Enclosure(int(n) * one.middle, int(n) * one.radius), 2, 1)
    return np.asarray(scaled(factor, enclosures), dtype=object)


def _shard(contract: Contract, probe: Probe, rank: int) -> Probe:
    """The shard of one rank with gradients, so that there are bounds to take."""
    return replace(contract.shard(probe, rank), grads=probe.grads)


def _without_terms(output: VectorOutput) -> VectorOutput:
    return replace(output, terms={})
