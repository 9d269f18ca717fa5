"""Claims: evidence holds, verdicts follow by rule, and a changed digit or sign is seen."""

import ast
import contextlib
import re
from dataclasses import replace
from decimal import Decimal
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from slow import partly_slow
from sweep import sweep

from nceref import InputError
from nceref.theory import derivation, prove, statements
from nceref.theory.chain import equal
from nceref.theory.claim import Counter, Repair, Value
from nceref.theory.verdicts import Verdict, printed_numbers

pytestmark = pytest.mark.machine

ROOT = Path(__file__).parents[2]
CLAIMS = prove.claims()
NUMBERED = [one for one, claim in CLAIMS.items() if claim.values]
STATED = [one for one, claim in CLAIMS.items() if claim.formula and not claim.values and not claim.table]


def proved(claim):
    """The proof of a claim that is not in the registry."""
    return prove.proof(claim, [prove.run(claim, kind) for kind in (*claim.evidence(), "counterexample")])


RUN_HERE = ("BS-1", "IS-1", "MOCO-1", "PC-6", "PC-10", "PC-11", "PC-14", "QT-7", "SC-8", "SIG-1")
"""Claims with evidence of every kind; `make prove` runs that of all claims."""


@sweep("one", CLAIMS)
def test_a_claim_gets_the_verdict_that_it_states(one, monkeypatch):
    monkeypatch.setattr(prove, "DRAWS", 4)
    monkeypatch.setattr(derivation, "follow", lambda topic: topic)
    evidence = [
        prove.run(CLAIMS[one], kind) if one in RUN_HERE else prove.Evidence(one, kind, held=True, seconds=0.0)
        for _, kind in prove.tasks([CLAIMS[one]])
    ]
    proof = prove.proof(CLAIMS[one], evidence)
    assert proof.as_expected, (proof.reason, proof.surprises)


def test_evidence_of_every_kind_is_run_here():
    kinds = {kind for one in CLAIMS for _, kind in prove.tasks([CLAIMS[one]])}
    assert kinds == {kind for one in RUN_HERE for _, kind in prove.tasks([CLAIMS[one]])}


def altered(text):
    """The printed numbers with one digit of the first changed."""
    last = max(i for i, c in enumerate(re.split("[,eE]", text)[0]) if c.isdigit())
    return text[:last] + str((int(text[last]) + 1) % 10) + text[last + 1 :]


@sweep("one", NUMBERED)
def test_a_changed_digit_is_seen(one):
    claim = CLAIMS[one]
    assert not prove.proof(claim, []).surprises
    seen = []
    for i, value in enumerate(claim.values):
        if value.expected is Verdict.WRONG:
            continue  # another wrong number is as wrong
        values = list(claim.values)
        values[i] = value._replace(published=altered(value.published))
        seen.append(bool(prove.proof(replace(claim, values=tuple(values)), []).surprises))
    assert all(seen)


@pytest.mark.parametrize("one", [one for one, claim in CLAIMS.items() if claim.table])
def test_a_changed_digit_in_a_table_is_seen(one, monkeypatch):
    claim, cells = CLAIMS[one], prove.cells(CLAIMS[one])
    verdicts = prove.proof(claim, []).cells
    assert not prove.proof(claim, []).surprises
    for i, (cell, verdict) in enumerate(zip(cells, verdicts, strict=True)):
        if verdict in (Verdict.WRONG, Verdict.NOT_REPRODUCIBLE):
            continue  # another wrong number is as wrong
        changed = [*cells[:i], cell._replace(published=altered(cell.published)), *cells[i + 1 :]]
        monkeypatch.setattr(prove, "cells", lambda claim, changed=changed: changed)
        assert prove.proof(claim, []).surprises, (cell.what, cell.published)


def flipped(text):
    """The statement with one sign changed, for every sum, difference and negative term in it."""
    count = sum(isinstance(node, ast.Add | ast.Sub | ast.USub) for node in ast.walk(ast.parse(text, mode="eval")))
    for chosen in range(count):
        tree, seen = ast.parse(text, mode="eval"), -1
        for node in ast.walk(tree):
            sign = getattr(node, "op", None)
            if isinstance(sign, ast.Add | ast.Sub | ast.USub):
                seen += 1
                if seen == chosen:
                    node.op = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.USub: ast.UAdd}[type(sign)]()
        yield ast.unparse(tree)


@pytest.mark.parametrize("most", partly_slow([1, None], bool, "every sign of every formula"))
@sweep("one", STATED)
def test_a_changed_sign_in_a_statement_is_seen(one, most):
    """Of the first sign of a formula, or of all; only evidence that reads the formula is run."""
    claim = CLAIMS[one]
    kinds = [kind for kind, how in claim.evidence().items() if how is True and kind != "symbolic"]
    if not kinds or not list(flipped(claim.formula)):
        pytest.skip("no evidence reads the formula, or it has no sign")
    for text in islice(flipped(claim.formula), most):
        mutant = replace(claim, formula=text)
        assert not all(prove.run(mutant, kind).held for kind in kinds), text


def test_at_least_twenty_statements_are_tried_with_another_sign():
    tried = [one for one in STATED if any(True for _ in flipped(CLAIMS[one].formula))]
    assert len(tried) >= 20


@sweep("one", CLAIMS)
def test_a_claim_is_written_as_claims_are(one):
    claim = CLAIMS[one]
    assert re.fullmatch(r"[A-Z]{2,4}-\d+", one)
    assert len(claim.title) <= 72
    assert claim.latex
    assert claim.published
    assert (claim.repair is Repair.NONE) == (claim.counterexample is None)
    assert (claim.repair is Repair.NONE) == (not claim.repaired)
    assert len(claim.evidence()) == 3 or claim.no_evidence
    for base in [claim.counterexample] if isinstance(claim.counterexample, dict) else []:
        assert claim.as_published
        assert set(base) == set(statements.scenario(claim.scenario).fixed[0])


RULES = [
    (Repair.NONE, True, {}, (), Verdict.AGREES),
    (Repair.CONDITION, True, {}, (), Verdict.CONDITIONAL),
    (Repair.WORDING, True, {}, (), Verdict.IMPRECISE),
    (Repair.REPLACED, True, {}, (), Verdict.WRONG),
    (Repair.NONE, True, {}, (Verdict.TRUNCATED, Verdict.AGREES), Verdict.TRUNCATED),
    (Repair.CONDITION, True, {}, (Verdict.TRUNCATED,), Verdict.CONDITIONAL),
    (Repair.NONE, True, {}, (Verdict.WRONG,), Verdict.WRONG),
    (Repair.NONE, False, {}, (), Verdict.NOT_REPRODUCIBLE),
    (Repair.NONE, False, {}, (Verdict.PRINTED_DIGITS,), Verdict.PRINTED_DIGITS),
    (Repair.NONE, True, {"numeric": False}, (), None),
    (Repair.WORDING, True, {"counterexample": False}, (), None),
]


@sweep(("repair", "has_evidence", "broken", "cells", "want"), RULES)
def test_the_table_of_rules(repair, has_evidence, broken, cells, want):
    claim = replace(CLAIMS["IS-1"], repair=repair, counterexample={} if repair is not Repair.NONE else None)
    kinds = ("numeric", "property", "counterexample") if has_evidence else ("counterexample",)
    evidence = [prove.Evidence("IS-1", kind, broken.get(kind, True), 0.0) for kind in kinds]
    assert prove.derive(claim, evidence, cells)[0] is want


@pytest.mark.parametrize("kind", ["symbolic", "numeric", "property", "counterexample"])
def test_evidence_is_a_python_bool_also_where_arrays_are_compared(kind):
    truth = np.bool_(True)
    claim = replace(CLAIMS["IS-1"], symbolic=lambda: truth, numeric=lambda: truth, random=lambda rng: truth,
                    counterexample=lambda: Counter("shown", truth))  # fmt: skip
    assert prove.run(claim, kind).held is True


def test_every_derivation_proves_a_claim_and_claims_name_no_other():
    named = {claim.derivation for claim in CLAIMS.values() if claim.derivation}
    assert named == set(derivation.topics())


def test_a_derivation_with_a_step_that_does_not_follow_proves_nothing(monkeypatch):
    sound = derivation.get("paco-extra")

    def steps():
        chain = sound.steps()
        first = chain.steps[0]
        return replace(chain, steps=(replace(first, relation=equal(first.relation.lhs, -first.relation.rhs)),))

    monkeypatch.setattr(derivation, "get", lambda topic: replace(sound, steps=steps))
    evidence = prove.run(CLAIMS["PC-9"], "symbolic")
    assert not evidence.held
    assert "step 1" in evidence.shown
    assert prove.derive(CLAIMS["PC-9"], [evidence], ())[0] is None


def test_a_claim_with_a_derivation_may_have_symbolic_evidence_of_its_own(monkeypatch):
    monkeypatch.setattr(derivation, "follow", lambda topic: topic)
    assert prove.run(CLAIMS["BS-1"], "symbolic").held
    assert not prove.run(replace(CLAIMS["BS-1"], symbolic="sum(P_counts) == 2"), "symbolic").held


def test_evidence_from_one_derivation_is_run_together():
    named = [one for one, claim in CLAIMS.items() if claim.derivation == "supcon-in-out"]
    assert len(named) > 1
    groups = prove._groups(prove.tasks(list(CLAIMS.values())))
    assert [(one, "symbolic") for one in named] in groups
    # Runs of the toy are trained once for all that is said of them.
    of_runs = "nceref.training.quadrants.findings"
    trained = [one for one, claim in CLAIMS.items() if getattr(claim.numeric, "__module__", "") == of_runs]
    assert len(trained) > 4
    assert [(one, "numeric") for one in trained] in groups
    assert sum(map(len, groups)) == len(prove.tasks(list(CLAIMS.values())))


def test_a_repair_without_a_counterexample_proves_nothing():
    claim = replace(CLAIMS["IS-1"], repair=Repair.REPLACED, derivation="")
    assert proved(claim).derived is None


def test_a_counterexample_that_breaks_nothing_proves_nothing():
    claim = replace(
        CLAIMS["IS-5"], derivation="", counterexample={"s": (0.5, 0.25), "t": 1.0}, as_published="d(L, t) > 0"
    )
    with pytest.raises(InputError):
        proved(claim)
    assert proved(replace(claim, as_published="0 < d(L, t)")).derived is None


def test_a_slip_in_numbers_that_nobody_can_compute_is_seen():
    value = Value("a", "79.75", None, expected=Verdict.NOT_REPRODUCIBLE)
    sound = replace(CLAIMS["IS-8"], values=(value,), total="79.75")
    assert proved(sound).as_expected
    assert not proved(replace(sound, values=(value._replace(published="79.57"),))).as_expected
    assert not proved(replace(sound, total="")).as_expected


@sweep(
    ("text", "holds"),
    [
        ("d(L, t) == (s[0] - expected) / t**2", True),
        ("d(L, s[1]) == P[1] / t", True),
        ("[d(L, s[j]) for j in range(N)] == [(P[j] - int(j == 0)) / t for j in range(N)]", True),
        ("[d(L, s[j]) for j in range(N)] == [P[j] / t for j in range(N)]", False),
        ("0 <= P and sum(P) == 1", True),
        ("L < L", False),
        ("L <= L", True),
        ("L == L * (1 + 1e-40)", False),
        ("0.1 == 1 / 10 and 1 / 3 + 1 / 3 + 1 / 3 == 1", True),
        ("0.1 + 1e-30 == 1 / 10", False),
    ],
)
def test_statements_mean_what_they_say(text, holds):
    system = statements.DecimalSystem(50)
    for base in statements.scenario("anchor").fixed:
        assert statements.evaluate(text, "anchor", base, system).holds is holds


@pytest.mark.parametrize("text", ["L", "L + 1", "L == 1 or L == 2", "d(L, 3) == 1"])
def test_what_is_no_statement_is_refused(text):
    with pytest.raises(InputError):
        statements.evaluate(text, "anchor", statements.scenario("anchor").fixed[0], statements.DecimalSystem(50))


def test_every_scenario_computes_what_it_names():
    from nceref.registry import discover
    from nceref.theory.claim import Scenario

    for name, scenario in discover("nceref.theory.scenarios", "SCENARIO", Scenario).items():
        for base in (*scenario.fixed, scenario.draw(np.random.default_rng(0))):
            system = statements.DecimalSystem(30)
            found = scenario.terms(system, {k: system.number(v) for k, v in base.items()})
            assert set(found) == set(scenario.meaning), name


def test_control_totals_are_decimals():
    for claim in CLAIMS.values():
        if claim.total:
            uncomputed = [v.published for v in claim.values if v.computed is None]
            assert sum(n for text in uncomputed for n in printed_numbers(text)) == Decimal(claim.total)


def test_ids_in_what_losses_expect_are_those_of_claims():
    from nceref import all_losses

    said = " ".join(e.because for loss in all_losses().values() for e in loss.declaration.expectations)
    assert set(re.findall(r"\b[A-Z]{2,4}-\d+", said)) <= set(CLAIMS)


# The border of each scenario: nobody else to compare with, all alike, weights and temperatures at their ends.
EDGES = {
    "anchor": [
        {"s": (0.3, -0.2), "t": 0.5}, {"s": (0.5, 0.5, 0.5), "t": 0.1}, {"s": (0.5, 0.5, 0.1, -0.4), "t": 0.07},
        {"s": (-1.0, 1.0, 1.0), "t": 0.05}, {"s": (0.0, 0.9, -0.5, -0.8), "t": 0.3}, {"s": (3.0, -2.0, 5.0), "t": 1.0},
    ],
    "split": [
        {"s": (1.0, 1.0), "t": 0.5, "w": 0.0}, {"s": (-1.0, 0.5, 0.25), "t": 0.1, "w": 1.0},
        {"s": (0.0, 0.0, 0.0), "t": 1.0, "w": 0.5}, {"s": (0.3, -0.4), "t": 0.1, "w": 0.0},
        {"s": (0.2, 0.9, -0.5), "t": 0.01, "w": 0.1},
    ],
    "limits": [
        {"s": (0.1, 0.1, 0.1), "t": 0.3}, {"s": (0.5, 0.1, 0.1), "t": 0.01}, {"s": (0.0, 0.9, -0.5, -0.8), "t": 0.5},
    ],
    "paco": [
        {"alpha": 0.0, "center": (1.0, 0.5), "positives": (0.5,), "negatives": (0.2,)},
        {"alpha": 0.5, "center": (1.0,), "positives": (0.5,), "negatives": (0.3,)},
        {"alpha": 1.0, "center": (0.0,), "positives": (0.0, 0.0), "negatives": (0.0,)},
        {"alpha": 0.5, "center": (1.0, 0.5), "positives": (0.5, 0.5), "negatives": ()},
        {"alpha": 1.0, "center": (0.0,), "positives": (0.0, 0.0), "negatives": ()},
    ],
    "positives": [
        {"w": (1.0,), "positives": ((1.0,),), "negatives": ((-1.0,),), "t": 0.5},
        {"w": (1.0, 0.0), "positives": ((0.0, 1.0),), "negatives": ((1.0, 0.0),), "t": 0.05},
    ],
    "probabilities": [
        {"p": 0.999, "alpha": 3.0, "K": 0.01}, {"p": 0.01, "alpha": 1e-3, "K": 1e-3},
        {"p": 0.5, "alpha": 5.0, "K": 1000.0},
    ],
    "encoder": [
        {"x": (0.0, 0.0), "y": ((0.5, -0.5),), "V": ((0.3, 0.2), (0.1, 0.7)), "W": ((0.1, 0.2), (-0.4, 0.3)),
         "a": (1.0, 2.0), "t": 0.1},
        {"x": (1.0, 0.0), "y": ((-1.0, 0.0),), "V": ((1.0, 0.0), (0.0, 1.0)), "W": ((1.0, 0.0), (0.0, 1.0)),
         "a": (1e-3, 1e3), "t": 1.0},
    ],
    "classes": [
        {"cosines": (0.999, -0.999), "counts": (1.0, 1e6), "scale": 64.0, "margin": 0.0},
        {"cosines": (-0.999, 0.999), "counts": (1.0, 1.0), "scale": 0.1, "margin": 3.14},
    ],
    "sphere": [{"a": (0.1, 0.1), "b": (0.1, 0.1)}, {"a": (0.0, 3.0), "b": (3.0, 0.0)}],
    "smoothing": [{"s": (0.1, 0.1), "t": 0.5, "e": 0.5}, {"s": (0.9, -0.4), "t": 0.1, "e": 0.999}],
    "false_negatives": [{"q": 0.5, "N": 2}, {"q": 0.999, "N": 3}, {"q": 1e-9, "N": 2}],
}  # fmt: skip
SYSTEM = statements.DecimalSystem(50)


def allowed(claim, base):
    """Whether the hypotheses hold there: those of the scenario, and those of the claim that are a statement."""
    given = [statements.scenario(claim.scenario).given, *filter(statements.is_statement, [claim.given])]
    return all(statements.evaluate(text, claim.scenario, base, SYSTEM).holds for text in given)


@sweep("one", [one for one, claim in CLAIMS.items() if claim.formula and claim.scenario in EDGES])
def test_a_statement_holds_at_the_border_of_its_hypotheses(one):
    claim = CLAIMS[one]
    for base in EDGES[claim.scenario]:
        if allowed(claim, base):
            held = statements.evaluate(claim.formula, claim.scenario, base, SYSTEM)
            assert held.holds, (base, held.shown)


# What was missing once: a hypothesis, and where the statement is false without it.
WITHOUT = [
    ("PC-3", {"alpha": 0.5, "center": (0.0,), "positives": (0.0, 0.0), "negatives": ()}),
    ("PC-4", {"alpha": 0.5, "center": (0.0,), "positives": (0.0, 0.0), "negatives": ()}),
    ("PC-5", {"alpha": 0.0, "center": (1.0, 0.5), "positives": (0.5,), "negatives": (0.2,)}),
    ("PC-6", {"alpha": 0.0, "center": (1.0, 0.5), "positives": (0.5,), "negatives": (0.2,)}),
    (
        "QT-12",
        {"x": (0.0, 0.0), "y": ((0.5, -0.5),), "V": ((0.3, 0.2),), "W": ((0.1,), (-0.4,)), "a": (1.0, 2.0), "t": 0.1},
    ),
    ("WL-9", {"s": (0.5, 1.0), "t": 0.5, "w": 0.0}),
]


@sweep(("one", "base"), WITHOUT)
def test_a_hypothesis_excludes_where_the_statement_has_no_value_or_is_false(one, base):
    claim = CLAIMS[one]
    assert not allowed(claim, base)
    with contextlib.suppress(ZeroDivisionError, NameError):
        assert not statements.evaluate(claim.formula, claim.scenario, base, SYSTEM).holds


# Statements that stood here once, each with an instance against it.
ONCE = [
    ("WL-12", "[d(r[j], t) for j in range(K) if r[j] < max(*r)] <= 0", {"s": (0.0, 0.9, -0.5, -0.8), "t": 0.05}),
    ("IS-6", "d(P[1] - P[2], t) <= 0", {"s": (3.0, 2.0, 1.0), "t": 0.5}),
    ("IS-7", "[d(P[j] / t, t) for j in range(1, N) if s[j] == max(*s[1:])] < 0", {"s": (0.9, 0.1), "t": 0.3}),
    ("NC-3", "1 / 2 <= P[0]", {"s": (0.25, 0.9, -0.45), "t": 0.05, "w": 1.0}),
]


@sweep(("one", "text", "base"), ONCE)
def test_a_statement_that_stood_here_is_false_where_the_present_one_holds(one, text, base):
    claim = CLAIMS[one]
    assert not statements.evaluate(text, claim.scenario, base, SYSTEM).holds
    assert statements.evaluate(claim.formula, claim.scenario, base, SYSTEM).holds


def test_shares_at_or_below_the_mean_of_the_negatives_only_rise_with_the_temperature():
    s = np.array([0.9, -0.5, -0.8])
    shares = np.exp(s / np.geomspace(0.02, 50, 400)[:, None])
    shares /= shares.sum(axis=1, keepdims=True)
    assert np.all(np.diff(shares[:, 1:], axis=0) >= 0)
    assert np.all(np.diff(shares[:, 0]) <= 0)
    above = np.exp(np.array([0.9, 0.5, -0.8]) / np.geomspace(0.02, 50, 400)[:, None])
    middle = (above / above.sum(axis=1, keepdims=True))[:, 1]
    assert 0 < np.argmax(middle) < 399


@pytest.mark.parametrize("page", ["docs/claims.md", "docs/tutorials/mathematics.md"])
def test_the_pages_count_the_statements_that_have_no_evidence_and_name_them(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    without = [one for one, claim in CLAIMS.items() if not claim.evidence()]
    assert f"{len(CLAIMS)} statements. {len(CLAIMS) - len(without)} have evidence" in text
    assert re.search(rf"\b{len(without)} (have none|are about)", text)
    named = re.search(r"have none \(([^)]*)\)", text)
    kinds = [kind for claim in CLAIMS.values() for kind in claim.evidence()]
    evaluated = sum(not callable(claim.numeric) and bool(claim.numeric) for claim in CLAIMS.values())
    rows = dict(re.findall(r"^\| ([^|]*) \| (\d+) \|$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))
    shown = {
        "symbolic": kinds.count("symbolic"),
        f"numeric: {evaluated} evaluate a formula": kinds.count("numeric"),
        "on random instances": kinds.count("property"),
    }
    counts = [int(rows[row]) for start in shown for row in rows if row.startswith(start)]
    assert page != "docs/claims.md" or counts == list(shown.values())
    assert named is None or named[1].split(", ") == without
    for one in without:
        assert CLAIMS[one].expected is Verdict.NOT_REPRODUCIBLE
        assert re.search("trained|images|networks|[Ss]cripts", CLAIMS[one].no_evidence), one
