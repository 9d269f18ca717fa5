"""Writes reference vectors for other programs."""

import hashlib
import os
from collections.abc import Collection, Iterator
from dataclasses import replace as changed
from pathlib import Path

from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.output.files import make_folder, read_text, replace
from nceref.output.json_text import json_object
from nceref.verification.vectors.formats import WRITERS
from nceref.verification.vectors.packed import is_large
from nceref.verification.vectors.ranks import RanksCase
from nceref.verification.vectors.ranks_file import ranks_file, read_ranks
from nceref.verification.vectors.records import VectorCase, VectorOutput
from nceref.verification.vectors.store import MANIFEST, folder_files, read_vectors


def export(
    folder: str | os.PathLike[str],
    losses: tuple[str, ...] = (),
    dtype: str = "",
    format: str = "json",
    full: bool = False,
) -> Iterator[Path]:
    """Write vectors of the package into a folder: a file for each loss, one for several ranks, and the manifest.

    `folder`: it is made if it is not there; files of these names are replaced. `losses`: names; empty for all. `dtype`:
    cases whose numbers this format can hold, with what it is allowed; empty for all formats. `format`: in others than
    JSON, there is a second file for each loss. `full`: whether large cases have all rows of their gradients, which are
    certified anew: 3 to 20 seconds a loss. Each: each file that was written; of JSON, the manifest last. Raises
    `InputError` for a loss without vectors, or without any in the format.
    """
    read = read_vectors(losses=losses)
    large = {loss: tuple(map(_whole, each)) if full else each for loss, each in read.cases.items()}
    wanted = {loss: [case for case in each if not dtype or dtype in case.formats] for loss, each in large.items()}
    cases = {loss: tuple(_of_format(case, dtype) for case in each) for loss, each in wanted.items()}
    if empty := [loss for loss, each in cases.items() if not each]:
        msg = f"`dtype` {dtype} has no case of {empty[0]}; leave it out"
        raise InputError(msg)
    place = make_folder(folder)
    _check_empty(place, cases.keys())
    ranks = [case for case in read_ranks(read.manifest, losses=losses) if not dtype or dtype in case.joined.formats]
    on_ranks = [_ranks_of_format(case, dtype) for case in ranks]
    files = folder_files(cases, ranks_file(on_ranks) if on_ranks else {})
    if format != "json":
        ending, content_of = WRITERS[format]
        sha256 = hashlib.sha256(files[MANIFEST]).hexdigest()
        files |= {f"{loss}{ending}": content_of(loss, each, sha256) for loss, each in cases.items()}
    for name, content in files.items():
        replace(place / name, content)
        yield place / name


def _check_empty(place: Path, losses: Collection[str]) -> None:
    """Refuse a folder with vectors of other losses: its manifest would not name them any more."""
    path = place / MANIFEST
    others = sorted(json_object(path, read_text(path)).get("counts", {}).keys() - losses) if path.exists() else []
    if others:
        msg = f"`out` {place} has vectors of {', '.join(others)}, which its manifest would lose; name another folder"
        raise InputError(msg)


def _whole(case: VectorCase) -> VectorCase:
    """A large case with all rows; others as they are."""
    if not is_large(case):
        return case
    from nceref.verification.vectors.large import large_case

    return changed(large_case(get_loss(case.loss).declaration, full=True), kills=case.kills, blind=case.blind)


def _ranks_of_format(case: RanksCase, dtype: str) -> RanksCase:
    """The case on several ranks with the bounds of one format."""
    if not dtype:
        return case
    grads = tuple({name: _alone(x, dtype) for name, x in each.items()} for each in case.grads)
    values = tuple(_alone(x, dtype) for x in case.values)
    return changed(case, joined=_of_format(case.joined, dtype), values=values, grads=grads)


def _of_format(case: VectorCase, dtype: str) -> VectorCase:
    """The case with what is allowed in one format alone."""
    return changed(case, outputs={name: _alone(x, dtype) for name, x in case.outputs.items()}) if dtype else case


def _alone(output: VectorOutput, dtype: str) -> VectorOutput:
    terms = {dtype: output.terms[dtype]} if dtype in output.terms else {}
    unique = tuple(one for one in output.unique if one == dtype)
    return changed(output, allowed={dtype: output.allowed[dtype]}, terms=terms, unique=unique)
