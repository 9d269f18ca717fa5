"""The pages of `nceref vectors`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nceref.output.pages import GAP, Page
from nceref.output.words import counted
from nceref.verification.vectors.check import CheckedVectors
from nceref.verification.vectors.ranks import RanksCase
from nceref.verification.vectors.ranks_file import joined_rows
from nceref.verification.vectors.records import ERROR, VectorCase
from nceref.verification.vectors.store import Vectors

_SHOWN = 8
"""Numbers of an array that are printed."""


def overview(vectors: Vectors, ranks: Sequence[RanksCase]) -> Page:
    """A line for each loss."""
    page, counts, required = Page(), vectors.manifest["counts"], vectors.manifest["min_cases"]
    header = ("loss", "cases", "required", "bugs seen")
    lines = [(loss, str(counts[loss]), str(required[loss]), _seen(cases)) for loss, cases in vectors.cases.items()]
    page.table(lines, header=[header], right=[False, True, True, True])
    page.print(
        f"\n{counted(sum(counts.values()), 'case')}, corpus {vectors.manifest['corpus']}, format"
        f" {vectors.manifest['format']}. Required: cases that every implementation of a loss has to answer; the others"
        f" have other settings. Bugs seen: known bugs of float64 that fail on some case. {counted(len(ranks), 'case')}"
        " more are on several ranks."
    )
    page.print("nceref vectors list LOSS lists cases, nceref vectors export --out FOLDER writes them.")
    return page


def _seen(cases: Sequence[VectorCase]) -> str:
    killed, every = ({bug for case in cases for bug in getattr(case, name)} for name in ("kills", "blind"))
    return f"{len(killed)} of {len(killed | every)}" if killed | every else ""


def cases(vectors: Vectors, ranks: Sequence[RanksCase]) -> Page:
    """A line for each case, those on several ranks after the others of their loss."""
    page = Page()
    header = ("id", "expect", "arrays", "settings", "bugs seen")
    for loss, in_one_process in vectors.cases.items():
        listed = [*in_one_process, *(case.joined for case in ranks if case.joined.loss == loss)]
        page.heading(loss)
        usual = listed[0].settings
        lines = [(case.id, case.expect, _arrays(case), _apart(case, usual), _seen([case])) for case in listed]
        page.table(lines, header=[header], right=[False, False, False, False, True])
        page.print()
    page.print("nceref vectors info ID shows a case.")
    return page


def _apart(case: VectorCase, usual: Any) -> str:
    return ", ".join(f"{name}={x}" for name, x in case.settings.items() if usual.get(name) != x)


def _arrays(case: VectorCase) -> str:
    return " ".join("x".join(map(str, np.shape(x))) for x in case.inputs.values() if np.ndim(x))


def line_of(case: VectorCase) -> dict[str, Any]:
    """A case of a list as plain data."""
    shapes = {name: list(np.shape(x)) for name, x in case.inputs.items()}
    lists = {"clauses": list(case.clauses), "kills": list(case.kills), "blind": list(case.blind)}
    return {"id": case.id, "loss": case.loss, "expect": case.expect, "settings": dict(case.settings), "shapes": shapes,
            "formats": list(case.formats), **lists}  # fmt: skip


def page_of(case: VectorCase, ranks: RanksCase | None = None) -> Page:
    """The page of a case; of one on several ranks, also the inputs of each."""
    page = Page()
    page.heading(case.id, 1)
    settings = ", ".join(f"{name}={x}" for name, x in case.settings.items()) or "none"
    seen = [("loss", case.loss), ("settings", settings), ("tests", ", ".join(case.clauses))]
    page.grid([*seen, *((name, _numbers(x)) for name, x in case.inputs.items())], 12)
    if case.expect == ERROR:
        page.print("\nA right implementation refuses these inputs: a setting demands it.")
    for name, output in case.outputs.items():
        page.heading(f"\n{name}")
        radii = ", ".join(f"{engine} {radius:.2g}" for engine, radius in output.engines.items())
        allowed = ", ".join(f"{dtype} {np.max(room):.3g}" for dtype, room in output.allowed.items())
        nearest = "the true numbers" if output.exact else f"within {output.radius:.2g} of the true ones"
        page.grid(
            [
                ("numbers", f"{_numbers(output.numbers)}, {nearest}"),
                ("enclosed", f"{radii} (widest radius)"),
                ("unique in", ", ".join(output.unique)),
                ("allowed", allowed),
            ],
            12,
            indent=GAP,
        )
    if ranks is not None:
        _print_ranks(page, ranks)
    page.print()
    for title, bugs in (("sees", case.kills), ("blind to", case.blind)):
        if bugs:
            page.grid([(title, ", ".join(bugs))], 12)
    return page


def _print_ranks(page: Page, case: RanksCase) -> None:
    contract = case.contract
    about = f"{case.formulation} loss; values joined by {contract.value}, gradients by {contract.sync}"
    page.heading(f"\n{counted(contract.world_size, 'rank')}: {about}")
    shards = contract.rows(joined_rows(case.joined))
    for rank, (own, value) in enumerate(zip(shards, case.values, strict=True)):
        rows = " ".join(map(str, own.tolist()))
        page.grid([(f"rank {rank}", f"rows {rows}; value {_numbers(value.numbers)}")], 12, indent=GAP)


def _numbers(x: Any) -> str:
    """Shape and first numbers of an array, or the number."""
    if np.ndim(x) == 0:
        return repr(x if isinstance(x, int) else float(x))
    first = " ".join(repr(one) for one in np.ravel(x)[:_SHOWN].tolist())
    return f"{' x '.join(map(str, np.shape(x)))}: {first}{' ...' * (np.size(x) > _SHOWN)}"


def checked(results: Sequence[CheckedVectors], files: int) -> Page:
    """The page of checked vectors: what was computed anew, and what contradicts the files."""
    page = Page()
    lines = [(one.loss, str(one.cases), str(one.numbers), str(len(one.wrong))) for one in results]
    page.table(lines, header=[("loss", "cases", "numbers", "contradicted")], right=[False, True, True, True])
    wrong = [sentence for one in results for sentence in one.wrong]
    for sentence in wrong[:_SHOWN]:
        page.print(f"\n{sentence}")
    engine = "Balls" if results[0].engine == "arb" else "Decimals"
    looked = f"{engine} enclosed {counted(sum(one.numbers for one in results), 'number')} anew"
    others = "ranks were added up, and large cases compared with the program of the loss"
    ending = f"{looked}; {others}: {counted(len(wrong), 'contradiction')}."
    page.print(f"\n{counted(files, 'file')} as in the manifest. {ending}")
    return page
