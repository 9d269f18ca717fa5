"""The files of reference vectors of the package, from the cases of each loss, made side by side.

Functions that other processes run cannot stand in `__main__`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from nceref.engine.processes import in_processes
from nceref.engine.settings import process_count
from nceref.losses import all_losses, get_loss
from nceref.output.files import replace
from nceref.verification.vectors.large import large_case
from nceref.verification.vectors.ranks import RanksCase
from nceref.verification.vectors.ranks_file import ranks_file
from nceref.verification.vectors.records import VectorCase
from nceref.verification.vectors.store import DATA, read_vectors
from tools.vectors.cases import small_cases, with_bugs
from tools.vectors.files import large_files, package_files
from tools.vectors.ranks import ranks_cases

ON_RANKS = ("clip", "info_nce", "nt_xent", "siglip", "supcon_out")
"""Losses that trainers compute on several ranks."""


def small(name: str) -> tuple[VectorCase, ...]:
    """The small cases of a loss, with the known bugs that each sees."""
    loss = get_loss(name).declaration
    return tuple(with_bugs(loss, small_cases(loss)))


def large(name: str) -> tuple[VectorCase, ...]:
    """The large case of a loss."""
    loss = get_loss(name).declaration
    return tuple(with_bugs(loss, [large_case(loss)]))


def on_ranks(name: str) -> tuple[RanksCase, ...]:
    """The cases of a loss on several ranks."""
    return tuple(ranks_cases(get_loss(name).declaration))


def made(make: Callable[[str], tuple[Any, ...]], names: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    """The cases of each loss, made side by side."""
    names = list(names)
    return dict(zip(names, in_processes(make, names, processes=process_count()), strict=True))


def write(files: dict[str, bytes]) -> None:
    """Replace files of the package."""
    for name, content in files.items():
        replace(DATA / name, content)


def main(parts: list[str]) -> None:
    """Write the files of some parts, and the manifest of all."""
    cases = made(small, all_losses()) if "small" in parts else read_vectors().cases
    if "large" in parts:
        write(large_files(case for each in made(large, all_losses()).values() for case in each))
    if "ranks" in parts:
        write(ranks_file([case for each in made(on_ranks, ON_RANKS).values() for case in each]))
    # Last: it counts and hashes what lies there.
    write(package_files(cases))
