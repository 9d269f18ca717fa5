"""What the ledger said and had to take back: neither the sentences nor the verdicts return."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from nceref.theory import prove, statements
from nceref.theory.tables import conventions

ROOT = Path(__file__).parents[2]
# The changelog may quote them.
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "figures" / "README.md"]
SOURCES = [*PAGES, *(ROOT / "nceref").rglob("*.py")]
PROSE = " ".join(re.sub(r'"\s+(?:r|f)?"|\s+', " ", path.read_text(encoding="utf-8")) for path in SOURCES)

# The claim whose evidence is against the sentence, the verdict that it had to get, and the sentence as a pattern.
TAKEN_BACK = [
    ("WI-4", "true under conditions", r"(?i)free points (?:on the sphere )?end (?:up )?(?:is )?the same"),
    ("QT-11", "true under conditions", r"(?i)more strongly \| wrong|the pictures mix both"),
    ("QT-12", "true under conditions", r"(?i)must be moderate \| wrong"),
    ("WL-9", "imprecise", r"(?i)tangential: it peaks at s\* and vanishes"),
    ("WL-20", "imprecise", r"(?i)defaults of the methods behind these sources are 0\.07 to 0\.2"),
    ("WL-12", "imprecise", r"(?i)the share of one between them has a peak"),
    ("NC-3", "true under conditions", r"(?i)at low temperature nearly as much as alignment\."),
    ("PC-11", "wrong", r"(?i)0\.71 for balanced classes and a queue of 8192,"),
    ("WL-13", "wrong", r"(?i)published limit at temperature 0 diverges\."),
]


JUDGED = {
    "NC-5": "imprecise", "IS-6": "imprecise", "IS-9": "imprecise", "WL-21": "agrees", "WL-22": "imprecise",
    "PC-21": "imprecise", "NC-7": "wrong", "NC-8": "imprecise", "NC-9": "agrees", "QT-14": "wrong", "QT-15": "wrong",
    "QT-16": "imprecise", "PC-20": "true under conditions", "GR-2": "true under conditions",
}  # fmt: skip


def test_verdicts_that_were_reached_late_stay():
    assert {one: prove.claims()[one].expected.value for one in JUDGED} == JUDGED


@pytest.mark.parametrize(("one", "verdict", "sentence"), TAKEN_BACK, ids=[one for one, *_ in TAKEN_BACK])
def test_a_statement_that_was_taken_back_does_not_return(one, verdict, sentence):
    assert prove.claims()[one].expected.value == verdict
    assert re.findall(sentence, PROSE) == []


def test_verdicts_in_tables_of_the_docs_are_those_of_the_ledger():
    by_title = {claim.title: claim.expected.value for claim in prove.claims().values()}
    rows = [row for page in PAGES for row in re.findall(r"^\| ([^|]+) \| ([^|]+) \|", page.read_text("utf-8"), re.M)]
    stated = {title: verdict for title, verdict in rows if title in by_title}
    assert len(stated) >= 3
    assert stated == {title: by_title[title] for title in stated}


def test_the_default_temperatures_are_those_of_the_table():
    found = conventions.default_temperatures()
    for row in conventions.rows():
        words, numbers = row["temperature default"], found.get(row["peer"], ())
        assert bool(numbers) != words.startswith(("none", "a learned factor and bias")), row["peer"]
        read = set(re.findall(r"scale \d+|[\d.]*\d", words))
        assert all({f"{t:g}", f"{t:.1f}", f"scale {1 / t:g}"} & read for t in numbers)
    shown = prove.counter(prove.claims()["WL-20"]).shown
    assert all(f"{t:g} (" in shown for numbers in found.values() for t in numbers)


def test_the_number_of_claims_in_the_docs():
    assert f"{len(prove.claims())} statements" in (ROOT / "docs" / "claims.md").read_text("utf-8")


@pytest.mark.parametrize("wrong", ["smoothed == L", "smoothed == L + (s[0] - s_mean) / (10 * t)"])
def test_what_smoothing_adds_is_shown_for_every_epsilon(wrong):
    assert not prove.run(replace(prove.claims()["NC-9"], symbolic=wrong), "symbolic").held


@pytest.mark.parametrize(("e", "holds"), [(0.1, True), (-0.1, False), (0.0, False), (1.0, False), (1.1, False)])
def test_a_smoothed_target_is_one_for_epsilon_between_0_and_1(e, holds):
    claim, system = prove.claims()["NC-9"], statements.DecimalSystem(50)
    base = {"s": (0.9, 0.2, -0.3), "t": 0.5, "e": e}
    assert statements.evaluate(claim.formula, claim.scenario, base, system).holds is holds


def test_gradients_by_class_turn_round_in_training_as_well():
    """What PC-20 says of the recorded runs, seed by seed."""
    values = json.loads((ROOT / "docs" / "experiments" / "long-tail.json").read_text("utf-8"))["values"]
    total, mean = (values[f"SupCon {form}"]["pull slope"] for form in ("sum", "mean"))
    assert min(total) > 0 > max(mean)
