"""Evidence is run, and a verdict is derived from it: by one table of rules, never by hand.

    evidence that does not hold, or a counterexample that breaks nothing     no verdict: the claim is not proved
    the counterexample breaks it, and another statement holds in its place   wrong
    the counterexample breaks it, and a corrected wording holds              imprecise
    the counterexample breaks it, and it holds under a condition             true under conditions
    no evidence, and no number that could be computed                        not reproducible here
    otherwise                                                                agrees

Published numbers have verdicts of their own (see `verdicts`); the worst of all is the verdict of the claim.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from itertools import chain
from time import perf_counter
from typing import Any

from nceref.engine.processes import in_processes
from nceref.engine.settings import process_count
from nceref.errors import DeclarationError
from nceref.registry import choose, discover
from nceref.theory import derivation
from nceref.theory.claim import Chapter, Claim, Counter, Repair, Value
from nceref.theory.statements import DIGITS, DecimalSystem, SymbolicSystem, evaluate, moved, names, scenario
from nceref.theory.table import Cell, Table
from nceref.theory.table_cells import row_name
from nceref.theory.verdicts import Verdict, printed_numbers, verdict

DRAWS = 24
"""Random instances for each formula."""
_BY_REPAIR = {Repair.REPLACED: Verdict.WRONG, Repair.WORDING: Verdict.IMPRECISE, Repair.CONDITION: Verdict.CONDITIONAL}


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence: its kind, whether it held, what it took, and what it shows."""

    id: str
    kind: str
    held: bool
    seconds: float
    shown: str = ""


@dataclass(frozen=True)
class Proof:
    """The evidence of a claim, its numbers, and the verdict that follows; None where none does, with the reason."""

    claim: Claim
    evidence: tuple[Evidence, ...]
    computed: tuple[Any, ...]
    cells: tuple[Verdict, ...]
    derived: Verdict | None
    reason: str

    @property
    def as_expected(self) -> bool:
        """Whether the derived verdict is the one the claim states, of the claim and of its numbers."""
        return self.derived is self.claim.expected and not self.surprises

    @property
    def surprises(self) -> list[str]:
        """Published numbers with another verdict than the claim states."""
        split = len(self.cells) - len(self.claim.values)
        counts = {one: self.cells[:split].count(one) for one in Verdict if one in self.cells[:split]}
        wanted = dict(self.claim.cells)
        surprises = [f"table {self.claim.table}: {counts} instead of {wanted}"] if counts != wanted else []
        for value, got in zip(self.claim.values, self.cells[split:], strict=True):
            allowed = (Verdict.AGREES, Verdict.PRINTED_DIGITS) if value.expected is None else (value.expected,)
            if got not in allowed:
                surprises.append(f"{value.what}: {value.published} is {got.value}, expected {allowed[-1].value}")
        return surprises + _control(self.claim)


@cache
def chapters() -> tuple[Chapter, ...]:
    """The five sources first, then the papers; parts of one source in the order of their numbers."""

    def place(chapter: Chapter) -> tuple[bool, str, int]:
        # Ten letters are "source_004": parts of one source are alike so far, and then ordered by their first claim.
        return not chapter.name.startswith("source"), chapter.name[:10], int(chapter.claims[0].id.split("-")[1])

    return tuple(sorted(discover("nceref.theory.claims", "CHAPTER", Chapter).values(), key=place))


@cache
def claims() -> Mapping[str, Claim]:
    """Every claim by its id, in the order of the chapters."""
    listed = [claim for chapter in chapters() for claim in chapter.claims]
    ids = [claim.id for claim in listed]
    twice = {one for one in ids if ids.count(one) > 1}
    if twice:
        msg = f"two claims have the id {sorted(twice)}"
        raise ValueError(msg)
    return {claim.id: claim for claim in listed}


def chosen(ids: Sequence[str]) -> list[Claim]:
    """The claims of these ids, all for none; letter case does not matter."""
    known = {one.casefold(): one for one in claims()}
    return choose("claim", [known.get(one.casefold(), one) for one in ids], claims(), "nceref claims")


def counter(claim: Claim) -> Counter | None:
    """The counterexample, evaluated; it must break the published statement and leave the precise one whole.

    None if the claim has none.
    """
    given = claim.counterexample
    if given is None or callable(given):
        return None if given is None else given()
    system = DecimalSystem(DIGITS["numeric"])
    published = evaluate(claim.as_published, claim.scenario, given, system)
    where = ", ".join(f"{k} = {v}" for k, v in given.items() if k in used(claim))
    shown = f"published: {claim.as_published}; but {published.shown}, at {where}"
    precise = not claim.formula or evaluate(claim.formula, claim.scenario, given, system).holds
    return Counter(shown, not published.holds and precise)


def used(claim: Claim) -> set[str]:
    """The names in the formulas of a claim, and the base values that decide what they stand for."""
    named = names(" and ".join(filter(None, [claim.formula, claim.as_published])))
    return named | {base for base, terms in moved(claim.scenario).items() if terms & named}


def run(claim: Claim, kind: str) -> Evidence:
    """Run one kind of evidence that a claim has, and take its time."""
    start = perf_counter()
    held, shown = _run(claim, kind)
    # Evidence that compares arrays ends in a NumPy bool, which JSON does not have.
    return Evidence(claim.id, kind, bool(held), perf_counter() - start, shown)


def _run(claim: Claim, kind: str) -> tuple[bool, str]:
    import numpy as np

    if kind == "counterexample":
        example = counter(claim)
        return (True, "") if example is None else (example.breaks, example.shown)
    if kind == "symbolic" and claim.derivation:
        # Steps first. Where the claim has symbolic evidence of its own as well, both have to hold.
        broken = _broken(claim.derivation)
        if broken or not claim.symbolic:
            return not broken, broken
    how, rng = claim.evidence()[kind], np.random.default_rng(0)
    if callable(how):
        return how(rng) if kind == "property" else how(), ""
    here, text = scenario(claim.scenario), claim.formula if how is True else how
    if kind == "symbolic":
        held = evaluate(text, claim.scenario, here.symbols(), SymbolicSystem())
        return held.holds, held.shown if not held.holds else ""
    instances = here.fixed if kind == "numeric" else (here.draw(rng) for _ in range(DRAWS))
    system = DecimalSystem(DIGITS[kind])
    for base in instances:
        held = evaluate(text, claim.scenario, base, system)
        if not held.holds:
            return False, f"{held.shown}, at {dict(base)}"
    return True, ""


def _broken(topic: str) -> str:
    """The message on the step of a derivation that does not follow; empty if all do."""
    try:
        derivation.follow(derivation.get(topic))
    except DeclarationError as error:
        return str(error)
    return ""


def judged(claim: Claim) -> tuple[tuple[Any, ...], tuple[Verdict, ...]]:
    """Compute the published numbers of a claim, those of its table first, and the verdict on each.

    Computed are numbers, tuples of numbers, or None where nothing can be computed here.
    """
    compared = []
    for value in cells(claim):
        computed = None if value.computed is None else value.computed()
        compared.append(Cell(value.published, computed, None if value.single is None else value.single()))
    return tuple(cell.computed for cell in compared), tuple(map(verdict, compared))


def cells(claim: Claim) -> list[Value]:
    """The published numbers of a claim: those of its table first."""
    rows = discover("nceref.theory.tables", "TABLE", Table)[claim.table].rows() if claim.table else []
    own = [(f"{row_name(row)}, {name}", cell) for row in rows for name, cell in row.items() if isinstance(cell, Cell)]
    of_table = [
        Value(what, cell.published, partial(getattr, cell, "computed"), partial(getattr, cell, "single"))
        for what, cell in own
    ]
    return of_table + list(claim.values)


def derive(claim: Claim, evidence: Sequence[Evidence], cells: Sequence[Verdict]) -> tuple[Verdict | None, str]:
    """Derive the verdict of a claim by the table of rules of this module.

    `cells` are the verdicts on the published numbers. The verdict is None if something does not hold; the reason says
    why.
    """
    for piece in evidence:
        if not piece.held:
            what = "the counterexample breaks nothing" if piece.kind == "counterexample" else f"{piece.kind} evidence"
            return None, f"{what} does not hold: {piece.shown}" if piece.kind != "counterexample" else what
    if claim.repair is not Repair.NONE and claim.counterexample is None:
        return None, "a claim that needs repair needs a counterexample"
    if claim.repair in _BY_REPAIR:
        statement, reason = _BY_REPAIR[claim.repair], f"a counterexample breaks it; it needs {claim.repair}"
    elif any(piece.kind != "counterexample" for piece in evidence):
        statement, reason = Verdict.AGREES, "all evidence holds"
    else:
        # The enumeration goes from best to worst.
        return max(cells, key=list(Verdict).index, default=Verdict.NOT_REPRODUCIBLE), "the numbers alone"
    worst = max([statement, *cells], key=list(Verdict).index)
    return worst, reason if worst is statement else f"its numbers: {worst.value}"


def _control(claim: Claim) -> list[str]:
    """The numbers that cannot be computed must add up to the total that was written down apart."""
    numbers = [n for v in claim.values if v.computed is None for n in printed_numbers(v.published)]
    # NaN equals nothing: where numbers have no total to compare with, that is a surprise too.
    if not numbers or sum(numbers) == Decimal(claim.total or "NaN"):
        return []
    return [f"the published numbers add up to {sum(numbers)} instead of {claim.total or 'a stated total'}"]


def proof(claim: Claim, evidence: Sequence[Evidence]) -> Proof:
    """The proof that follows from the evidence and the numbers of a claim."""
    computed, verdicts = judged(claim)
    return Proof(claim, tuple(evidence), computed, verdicts, *derive(claim, evidence, verdicts))


def tasks(chosen: Sequence[Claim]) -> list[tuple[str, str]]:
    """Every piece of evidence to run, as (id, kind)."""
    against = ("counterexample",)
    return [
        (claim.id, kind)
        for claim in chosen
        for kind in (*claim.evidence(), *(() if claim.counterexample is None else against))
    ]


def _groups(todo: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Pieces of evidence that rest on the same work, in groups: one process runs a group, and does that work once."""
    groups: dict[object, list[tuple[str, str]]] = {}
    for one, kind in todo:
        groups.setdefault(_shared(claims()[one], kind) or (one, kind), []).append((one, kind))
    return list(groups.values())


def _shared(claim: Claim, kind: str) -> str:
    """The derivation that evidence follows, or the module outside of the claims whose runs it is about."""
    if kind == "symbolic" and claim.derivation:
        return claim.derivation
    module = getattr(claim.evidence().get(kind), "__module__", "")
    return "" if module.startswith("nceref.theory") else module


def _run_group(group: Sequence[tuple[str, str]]) -> list[Evidence]:
    return [run(claims()[one], kind) for one, kind in group]


def prove(chosen: Sequence[Claim]) -> Iterator[Evidence]:
    """Run all evidence, that of one derivation together; in several processes where there is much of it, if possible.

    Pieces come group by group, each once its group is done.
    """
    todo = tasks(chosen)
    # A spawned process imports everything anew, which a few pieces of evidence do not repay.
    processes = process_count() if len(todo) > 12 else 1
    yield from chain.from_iterable(in_processes(_run_group, _groups(todo), processes=processes, first=_one_thread))


def _one_thread() -> None:
    """Set BLAS to one thread: tiny linear algebra is ten times slower when several share it."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
