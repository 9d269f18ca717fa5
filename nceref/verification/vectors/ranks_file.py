"""The file of cases on several ranks."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nceref.cases.records import Probe
from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.targets.ranks.contract import rows_of
from nceref.verification.vectors.ranks import RanksCase, contract_of, label
from nceref.verification.vectors.records import VectorCase, case_of, output_of, output_record, record_of
from nceref.verification.vectors.store import DATA, FORMAT, RANKS, PathLike, cases_in, read_manifest


def ranks_file(cases: Sequence[RanksCase]) -> dict[str, bytes]:
    """The file of some cases, one on each line, by its name."""
    lines = ",\n".join(json.dumps(ranks_record(case), allow_nan=False) for case in cases)
    return {RANKS: f'{{"format": "{FORMAT}", "cases": [\n{lines}\n]}}\n'.encode()}


def ranks_record(case: RanksCase) -> dict[str, Any]:
    """A case as plain data: its loss, the record of the joined batch, and ``ranks``."""
    contract = case.contract
    ranks = {
        "world_size": contract.world_size,
        "shards": [own.tolist() for own in contract.rows(joined_rows(case.joined))],
        "formulation": case.formulation,
        "value": contract.value,
        "sync": contract.sync,
        "values": [output_record(x) for x in case.values],
        "grads": [{name: output_record(x) for name, x in each.items()} for each in case.grads],
    }
    return {"loss": case.joined.loss, **record_of(case.joined), "ranks": ranks}


def joined_rows(joined: VectorCase) -> int:
    """Samples of the joined batch."""
    return rows_of(Probe(joined.id, get_loss(joined.loss).declaration, joined.arguments, "float64"))


def read_ranks(
    manifest: Mapping[str, Any], folder: PathLike | None = None, losses: tuple[str, ...] = ()
) -> tuple[RanksCase, ...]:
    """The cases on several ranks of a folder of vectors; empty where it has none.

    `manifest` is that of the folder, as `read_vectors`, which has the other parameters, returns it and raises for it.
    """
    path = (DATA if folder is None else Path(folder)) / RANKS
    if RANKS not in manifest["files"]:
        return ()

    def is_wanted(loss: str) -> bool:
        return not losses or loss in losses

    read = cases_in(
        path,
        manifest,
        lambda: read_ranks(read_manifest()),
        lambda _, record, where: ranks_case_of(record, where) if is_wanted(record["loss"]) else None,
        "ranks.schema.json" if folder is not None else "",
    )
    cases = tuple(case for case in read if case and is_wanted(case.joined.loss))
    if len({case.id for case in cases}) < len(cases):
        msg = f"{path}: two cases have one id; export the vectors anew"
        raise InputError(msg)
    return cases


def ranks_case_of(record: Mapping[str, Any], where: str) -> RanksCase:
    """The case of plain data; raises `InputError` as `case_of` does, and where shards and numbers do not fit."""
    joined, taken = case_of(record["loss"], record, where), record["ranks"]
    here = f"{where}, case {joined.id}, ranks"
    contract = contract_of(taken["formulation"], taken["shards"])
    values = tuple(output_of(x, f"{here}, values") for x in taken["values"])
    grads = tuple({n: output_of(x, f"{here}, grads, {n}") for n, x in each.items()} for each in taken["grads"])
    case = RanksCase(joined, contract, taken["formulation"], values, grads)
    again = ranks_record(case)["ranks"]
    if wrong := [name for name in taken if taken[name] != again[name]]:
        msg = f"{here}: `{wrong[0]}` is not what follows from the formulation and the shards, {again[wrong[0]]!r}"
        raise InputError(msg)
    _check_shapes(case, here)
    return case


def _check_shapes(case: RanksCase, where: str) -> None:
    contract, joined = case.contract, case.joined
    if not case.id.startswith(f"{label(contract, case.formulation)}-"):
        msg = f"{where}: the id must begin with {label(contract, case.formulation)}"
        raise InputError(msg)
    probe = Probe(case.id, get_loss(joined.loss).declaration, joined.arguments, "float64")
    shards = [contract.shard(probe, rank) for rank in range(contract.world_size)]
    names = {name.removeprefix("grad.") for name in joined.outputs if name != "value"}
    shapes = [{name: np.shape(shard.inputs[name]) for name in names} for shard in shards]
    if len(case.values) != contract.world_size or shapes != [{n: x.shape for n, x in g.items()} for g in case.grads]:
        msg = f"{where}: `values` and `grads` must have an entry for each rank, in the shapes of its shard"
        raise InputError(msg)
