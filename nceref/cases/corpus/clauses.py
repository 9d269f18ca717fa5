"""Clauses that say what the cases of the corpus test, and under each the geometries that belong to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, eq=False)
class Clause:
    """A group of cases.

    Attributes
    ----------
    name : str
        Name in links.
    title, about : str
        Heading, and a sentence about what the cases test.
    geometries : mapping
        Geometries, each with a description of its rows.
    """

    name: str
    title: str
    about: str
    geometries: Mapping[str, str] = field(default_factory=dict)


CLAUSES = (
    Clause(
        "ordinary",
        "Ordinary batches",
        "Random rows of many lengths, as early in training; numbers of rows, features and classes differ.",
        {
            "designed": "positives somewhat alike",
            "seven": "7 rows",
            "classes": "3 classes of 3, 3 and 2 samples",
            "random": "independent rows",
            "wide": "8 features",
            "many": "12 rows",
            "tall": "6 rows, 2 features",
        },
    ),
    Clause(
        "positives",
        "Positives near and far",
        "Positives that almost agree, as in a trained model, where the loss is tiny; and positives that point away.",
        {
            "aligned": "positives almost agree",
            "separated": "positives almost agree, samples are almost orthogonal",
            "opposed": "positives point the opposite way",
            "antipodal": "positives point exactly the same or exactly the opposite way",
        },
    ),
    Clause(
        "collapse",
        "Collapse and copies",
        "All rows equal, as after a collapse, and a sample that occurs twice.",
        {"collapsed": "all rows alike", "duplicate": "the first sample and the last one are the same"},
    ),
    Clause(
        "labels",
        "Few positives, few samples",
        "Batches at the edge of what the loss is defined for.",
        {
            "one-class": "one class alone",
            "lonely": "an anchor without a positive",
            "single": "one sample alone",
        },
    ),
    Clause(
        "lengths",
        "Lengths of rows",
        "Short, long and zero rows: what happens in normalization.",
        {
            "lengths": "lengths between 1/16 and 8",
            "extreme": "lengths of 0.0001 and 10000 in one batch",
            "zero": "a row of zeros",
        },
    ),
    Clause(
        "sizes",
        "Large sizes",
        "Sizes at which programs split their work, and one more: what is left over must count too.",
        {
            "n17": "17 rows",
            "n33": "33 rows",
            "n127": "127 rows",
            "n128": "128 rows",
            "n129": "129 rows",
            "n1025": "1025 rows, or half as many of two views",
            "d65": "65 features",
            "d513": "513 features",
        },
    ),
    Clause("own", "Your own batch", "What --inputs names.", {"given": "your rows"}),
)
"""All clauses in the order of a report; every geometry of the corpus is in one of them."""
_HASH = "-[0-9a-f]{8}$"
"""The end of the id of a reference vector."""
_CASE = re.compile(rf"^(?:large-)?(.*?)(?:(?!{_HASH})-(\d+(?:\.\d+)?(?:e[+-]?\d+)?))?(?:$|{_HASH})", re.DOTALL)
_CLAUSE = {geometry: clause for clause in CLAUSES for geometry in clause.geometries}


def clause_of(case: str) -> tuple[Clause | None, str, float | None]:
    """The clause of a case, its geometry and its temperature; None where its id has none.

    `case` is an id, such as ``aligned-0.07``, or that of a reference vector, ``aligned-0.07-7f3ac1d2``.
    """
    match = _CASE.match(case)
    assert match is not None
    geometry, temperature = match[1], match[2]
    return _CLAUSE.get(geometry), geometry, float(temperature) if temperature else None
