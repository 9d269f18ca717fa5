"""The pages and records of `nceref claims`, and of the proof of their verdicts."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nceref.errors import InputError
from nceref.output.formula_text import text_of
from nceref.output.pages import GAP, Page
from nceref.registry import discover
from nceref.theory import derivation, prove, statements, table_cells, table_formats
from nceref.theory.claim import Claim
from nceref.theory.prove import Proof
from nceref.theory.statements import DIGITS, scenario
from nceref.theory.table import Table
from nceref.theory.verdicts import Verdict

_MARKS = {"symbolic": "S", "numeric": "N", "property": "P"}
UNPROVED = "not proved"
LONG = 12
"""Digits of a computed number: what is beyond may differ from one machine to the next."""
_NARROWEST_NAME = 22
_COLORS: dict[str, str] = {
    Verdict.AGREES: "green",
    Verdict.PRINTED_DIGITS: "green",
    Verdict.NOT_REPRODUCIBLE: "dim",
    Verdict.WRONG: "red",
}
"""Other verdicts are yellow."""


def verdicts(shown: Sequence[Claim]) -> dict[str, str]:
    """The verdict of each claim by id: the one that it states, which `nceref claims --prove` and the tests derive."""
    return {claim.id: claim.expected.value for claim in shown}


def select(ids: Sequence[str], wanted: str | None, source: str | None) -> list[Claim]:
    """The claims of these ids, with this verdict, of a source with this in its name.

    Parameters
    ----------
    ids : sequence of str
        None of them: all claims. Words that are no id: the claims that have them in title, statement, repair or
        source.
    wanted : str or None
        A verdict; letter case does not matter.
    source : str or None
        Part of the name of a source; letter case does not matter.

    Returns
    -------
    list of Claim
        One or more.

    Raises
    ------
    InputError
        If there is no such id, verdict, or source, or no claim with all of it.
    """
    shown = _about(ids) or prove.chosen(ids)
    words = [one.value for one in Verdict]
    if wanted is not None and wanted.casefold() not in words:
        msg = f"no verdict is called {wanted!r}; there are {', '.join(repr(word) for word in words)}"
        raise InputError(msg)
    sources = _sources()
    if source is not None and not any(source.casefold() in text for text in sources.values()):
        known = sorted({name.strip() for claim in prove.claims().values() for name in claim.source.split(";")})
        msg = f"no source has {source!r} in its name; there are {', '.join(known)}"
        raise InputError(msg)
    shown = [claim for claim in shown if wanted is None or claim.expected == wanted.casefold()]
    shown = [claim for claim in shown if source is None or source.casefold() in sources[claim.id]]
    if not shown:
        msg = "no claim has all that was asked for; leave an id, --verdict or --source out"
        raise InputError(msg)
    return shown


def _about(ids: Sequence[str]) -> list[Claim]:
    """The claims with all of some words, such as ``hard negatives``; none where one of the words looks like an id."""
    if not ids or any(any(map(str.isdigit, word)) for word in ids):
        return []
    sources = _sources()
    texts = {
        id: f"{one.title} {one.published} {one.repaired} {sources[id]}".casefold() for id, one in prove.claims().items()
    }
    if not (found := [id for id, text in texts.items() if all(word.casefold() in text for word in ids)]):
        msg = f"no claim has {' and '.join(map(repr, ids))} in its words or its source; `nceref claims` lists them all"
        raise InputError(msg)
    return [prove.claims()[id] for id in found]


def _sources() -> dict[str, str]:
    """The source of each claim, and that of its chapter, in small letters."""
    return {
        claim.id: f"{claim.source} {chapter.title.partition(':')[0]}".casefold()
        for chapter in prove.chapters()
        for claim in chapter.claims
    }


def is_id(word: str) -> bool:
    """Whether a word is the id of a claim."""
    return word.casefold() in {id.casefold() for id in prove.claims()}


def record(claim: Claim) -> dict[str, Any]:
    """A claim for programs; its numbers and its counterexample are computed now, its evidence is that of `prove`."""
    computed, cells = prove.judged(claim)
    return {
        "id": claim.id,
        "title": claim.title,
        "source": claim.source,
        "place": claim.place,
        "statement": claim.published,
        "repaired": claim.repaired,
        "given": conditions(claim),
        "latex": claim.latex,
        "formula": claim.formula,
        "verdict": claim.expected.value,
        "evidence": dict.fromkeys(claim.evidence(), True),
        "carried out": {kind: carried_out(claim, kind) for kind in claim.evidence()},
        "published": [value.published for value in prove.cells(claim)],
        "computed": [_digits(x) for x in computed],
        "cells": [cell.value for cell in cells],
        "derivation": claim.derivation,
        "counterexample": _counterexample(claim),
        "missing": claim.no_evidence,
    }


def _digits(x: Any, count: int = LONG) -> str | None:
    if x is None:
        return None
    return ", ".join(f"{entry:.{count}g}" for entry in x) if isinstance(x, tuple) else f"{x:.{count}g}"


def _shortened(text: str, digits: int) -> str:
    """A text with at most so many digits of its long numbers."""
    return re.sub(r"\d+\.\d{6,}", lambda number: f"{float(number[0]):.{digits}g}" if digits < LONG else number[0], text)


def _counterexample(claim: Claim) -> str:
    counter = prove.counter(claim)
    return "" if counter is None else counter.shown


def _derivation(claim: Claim) -> str:
    """The derivation that proves the claim with symbols, and the command that prints it."""
    if not claim.derivation:
        return ""
    return f"{derivation.get(claim.derivation).title} (nceref derive {claim.derivation})"


def overview(shown: Sequence[Claim]) -> Page:
    """List claims by chapter: id, evidence, verdict, title; then what the marks mean and how many of each verdict."""
    page = Page()
    by_id = verdicts(shown)
    label, widest = max(map(len, by_id)), max(map(len, by_id.values()))
    for chapter in prove.chapters():
        own = [claim for claim in chapter.claims if claim.id in by_id]
        if own:
            page.heading(chapter.title)
        for claim in own:
            verdict = by_id[claim.id]
            line, styles = (
                (claim.id, marks(claim), verdict, claim.title),
                ("", "dim", _COLORS.get(verdict, "yellow"), ""),
            )
            page.grid([line], label, 3, widest, styles=styles, indent=GAP)
    page.print(f"\n{tally(by_id)}")
    page.print("Evidence: S symbolic, N numeric, P random instances. All about one: nceref claims WL-13")
    return page


def marks(claim: Claim) -> str:
    """One letter for each kind of evidence: ``S P``."""
    return "".join(mark if kind in claim.evidence() else " " for kind, mark in _MARKS.items())


def tally(by_id: Mapping[str, str]) -> str:
    """The number of claims of each verdict."""
    counts = Counter(by_id.values())
    listed = ", ".join(f"{counts[one]} {one}" for one in Verdict if counts[one])
    return f"{len(by_id)} claim{'s' * (len(by_id) != 1)}: {listed}"


def page_of(claim: Claim, latex: bool = False, digits: int = LONG) -> Page:
    """All about one claim: what was published, what holds, the evidence, the numbers, the counterexample.

    Its formula is a line of text, or with `latex` in LaTeX, each as it is, to be copied. `digits` are the most of a
    computed number.
    """
    page = Page()
    page.heading(f"{claim.id}  {claim.title}", 1)
    computed, cells = prove.judged(claim)
    lines = [
        ("source", f"{claim.source}, {claim.place}"),
        ("published", claim.published),
        ("verdict", claim.expected + (f" (it needs {claim.repair})" if claim.repaired else "")),
        ("holds", claim.repaired),
        ("given", conditions(claim)),
        (
            "evidence",
            f"{', '.join(kinds)} (nceref claims --prove {claim.id} runs it)" if (kinds := claim.evidence()) else "",
        ),
        *((kind, carried_out(claim, kind)) for kind in claim.evidence()),
        ("derived in", _derivation(claim)),
        ("against it", _shortened(_counterexample(claim), digits)),
        ("missing", claim.no_evidence),
    ]
    page.grid([line for line in lines if line[1]], 10, styles=("dim", ""), indent=GAP)
    _add_formulas(page, claim, latex)
    named = meanings(claim)
    page.grid(named, max(map(len, dict(named)), default=0), styles=("dim", "dim"), indent=2 * GAP)
    if cells:
        page.heading("\n  published and computed", style="dim")
    if claim.table:
        table = discover("nceref.theory.tables", "TABLE", Table)[claim.table]
        table_formats.add_table(page, table.columns, table.rows(), show=table_cells.short(digits))
    own = len(cells) - len(claim.values)
    rows = [
        (value.what, value.published, _digits(number, digits) or "-", cell)
        for value, number, cell in zip(claim.values, computed[own:], cells[own:], strict=True)
    ]
    if rows:
        page.table(rows, header=[("number", *table_cells.PARTS)], layout=lambda width: _numbers(rows, width))
    return page


def _add_formulas(page: Page, claim: Claim, latex: bool) -> None:
    if latex:
        for title, content in (("precisely", claim.latex), ("executable", claim.formula)):
            if content:
                page.print(f"  {title}", style="dim")
                page.print(f"    {content}", wrap=False)
        return
    styles = ("dim", "code")

    def precisely(_: int) -> Page:
        own = Page()
        own.grid([("precisely", text_of(claim.latex))], 10, styles=styles, indent=GAP)
        return own

    if claim.latex:
        page.formula(broken(claim.latex), lambda _: text_of(claim.latex), layout=precisely)
    if claim.formula:
        page.grid([("executable", claim.formula)], 10, styles=styles, indent=GAP)


def broken(latex: str) -> str:
    """A formula whose statements stand below one another where they are wider than a page."""
    lines = [""]
    for statement in re.split(r"(?<=[,;:.})])(?=\\q?quad)", latex):
        if lines[-1] and len(text_of(lines[-1] + statement)) > _COLUMNS:
            lines.append("")
            statement = re.sub(r"^\\q?quad", "", statement)
        lines[-1] += statement
    return lines[0] if len(lines) == 1 else "\\begin{gathered}\n" + " \\\\\n".join(lines) + "\n\\end{gathered}"


_COLUMNS = 100
"""Characters of a formula, as text, that fit in a line of a page."""


def conditions(claim: Claim) -> str:
    """The subject of the statement and its hypotheses: those of the scenario that its formula needs, and its own."""
    if not claim.formula:
        return claim.given
    prose = "" if statements.is_statement(claim.given) else claim.given
    return "; ".join(filter(None, [scenario(claim.scenario).setting, ", ".join(hypotheses(claim)), prose]))


def hypotheses(claim: Claim) -> list[str]:
    """The hypotheses of the scenario, less those of base values that the formula has not, and what is given besides."""
    here, unused = scenario(claim.scenario), scenario(claim.scenario).meaning.keys() - prove.used(claim)
    shared = [one for one in statements.conjuncts(here.given) if not statements.names(one) & unused & {*here.drawn}]
    return [*shared, *([claim.given] if statements.is_statement(claim.given) else [])]


def carried_out(claim: Claim, kind: str) -> str:
    """The way in which evidence is carried out: by a function, in its words, or by a formula, and on what."""
    how = claim.evidence()[kind]
    if callable(how):
        return " ".join((how.__doc__ or "").split())
    if kind == "symbolic" and not claim.symbolic:
        return "the steps of its derivation"
    formula, here = _evaluated(claim, how), scenario(claim.scenario)
    if kind == "symbolic":
        steps = ", and the steps of its derivation" if claim.derivation else ""
        return f"{formula}, of SymPy expressions{steps}. {here.symbols.__doc__}"
    if kind == "numeric":
        return f"{formula} with {DIGITS[kind]} digits, on {len(here.fixed)} instances"
    drawn = "; ".join(f"{name}: {values}" for name, values in here.drawn.items() if name in prove.used(claim))
    return f"{formula} with {DIGITS[kind]} digits, on {prove.DRAWS} instances. {drawn}"


def _evaluated(claim: Claim, how: bool | str) -> str:
    """A sentence on what is evaluated of the formula."""
    if not isinstance(how, str):
        return "the formula"
    part = statements.comparisons(how) <= statements.comparisons(claim.formula)
    return f"{'a part of the formula' if part else 'another formula'}, {how}"


def _numbers(rows: Sequence[tuple[str, str, str, str]], width: int) -> Page:
    """A line for each number; what it is about is wrapped where a line is too short."""
    page, (name, *rest) = Page(), table_cells.widths(rows)
    room = width - sum(rest) - 4 * GAP
    page.grid(rows, min(name, max(room, _NARROWEST_NAME)), *rest[:-1], indent=GAP)
    return page


def meanings(claim: Claim) -> list[tuple[str, str]]:
    """The names in all formulas that the page prints, and those of what is drawn."""
    if not claim.formula:
        return []
    here = scenario(claim.scenario)
    # A capital letter of the precise statement is the same name.
    letters = re.findall(r"[A-Z]", re.sub(r"\\text\{[^}]*\}|\\[A-Za-z]+", " ", claim.latex))
    evaluated = [how for how in claim.evidence().values() if isinstance(how, str)]
    named = {
        *re.findall(r"\w+", " ".join([claim.formula, claim.as_published, *hypotheses(claim), *evaluated])),
        *letters,
        *(prove.used(claim) & {*here.drawn}),
    }
    return [(name, words) for name, words in here.meaning.items() if name in named]


def proofs_page(shown: Sequence[Proof]) -> Page:
    """One line a claim with the seconds of each kind of evidence; under it, what did not hold; then the totals."""
    page = Page()
    label = max(len(proof.claim.id) for proof in shown)
    for proof in shown:
        derived = UNPROVED if proof.derived is None else proof.derived.value
        times = "  ".join(f"{_MARKS[e.kind]} {e.seconds:.2f} s" for e in proof.evidence if e.kind in _MARKS)
        style = "green" if proof.as_expected else "red"
        page.grid([(proof.claim.id, derived, times)], label, 24, styles=("", style, "dim"))
        for finding in _findings(proof):
            page.grid([("", finding)], label, styles=("", "red"))
    sums = {kind: sum(e.seconds for p in shown for e in p.evidence if e.kind == kind) for kind in _MARKS}
    page.print("\nTogether: " + ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in sums.items()))
    failed = sum(not proof.as_expected for proof in shown)
    page.print(f"verdicts as expected: {len(shown) - failed} of {len(shown)}")
    return page


def _findings(proof: Proof) -> list[str]:
    if proof.derived is None:
        return [proof.reason, *proof.surprises]
    wrong = proof.derived is not proof.claim.expected
    return [*([f"expected {proof.claim.expected.value}: {proof.reason}"] if wrong else []), *proof.surprises]


def proof_record(shown: Sequence[Proof]) -> dict[str, Any]:
    """Proofs for programs: per claim and kind what held and the seconds; the totals per kind."""
    kinds = (*_MARKS, "counterexample")
    return {
        "claims": [
            {
                "id": proof.claim.id,
                "verdict": None if proof.derived is None else proof.derived.value,
                "expected": proof.claim.expected.value,
                "held": proof.as_expected,
                "evidence": {e.kind: {"held": e.held, "seconds": round(e.seconds, 4)} for e in proof.evidence},
                "findings": _findings(proof),
            }
            for proof in shown
        ],
        "totals": {
            kind: {
                "held": sum(e.held for p in shown for e in p.evidence if e.kind == kind),
                "run": sum(e.kind == kind for p in shown for e in p.evidence),
                "seconds": round(sum(e.seconds for p in shown for e in p.evidence if e.kind == kind), 3),
            }
            for kind in kinds
        },
    }
