"""The numbers of checks of a target by kind, and those of its manifest that were not made."""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from nceref.cases.judge import REFUSAL
from nceref.cases.records import Result
from nceref.output.words import counted, out_of


class CheckKind(NamedTuple):
    """A kind of checks: one of them in words, and how their quantities begin."""

    noun: str
    start: str


KINDS: Mapping[str, CheckKind] = MappingProxyType(
    {
        "values": CheckKind("value", "value"),
        "gradients": CheckKind("gradient", "grad."),
        "identities": CheckKind("identity", "identity."),
        "modes": CheckKind("mode", "mode."),
        "refusals": CheckKind("refusal", REFUSAL),
    }
)
"""Kinds of checks, as a manifest has them: ways of calling are modes, and inputs that must be refused are refusals."""
Counts = Mapping[str, int]


def count_checks(results: Iterable[Result]) -> dict[str, int]:
    """The number of checks by kind; a number and whether it is finite are one check, and one that is skipped is none.

    Result: in the order of `KINDS`, without those of which there is none.
    """
    quantities = {(r.case, r.quantity.removesuffix(".finite")) for r in results if r.status not in _UNJUDGED}
    numbers = Counter(_kind(quantity) for _, quantity in quantities)
    return {kind: numbers[kind] for kind in KINDS if numbers[kind]}


_UNJUDGED = ("skip", "inconclusive")


def _kind(quantity: str) -> str:
    return next((name for name, kind in KINDS.items() if quantity.startswith(kind.start)), "")


def total(counts: Iterable[Counts]) -> dict[str, int]:
    """The numbers of several targets together."""
    every = [*counts]
    return {kind: number for kind in KINDS if (number := sum(each.get(kind, 0) for each in every))}


def in_words(counts: Counts) -> str:
    """The numbers with their nouns: ``28 values, 1 mode``."""
    return ", ".join(counted(number, KINDS[kind].noun, kind) for kind, number in counts.items())


def lost_checks(written: Counts, made: Counts) -> dict[str, str]:
    """The kinds of which fewer checks were made than are written, each as ``3 of 5 modes``."""
    return {
        kind: out_of(made.get(kind, 0), number, KINDS[kind].noun, kind)
        for kind, number in written.items()
        if made.get(kind, 0) < number
    }


def why_lost(kind: str, results: Iterable[Result], number: int) -> str:
    """The reason why checks of a kind were skipped, of which so many were lost; empty where fewer have one reason."""
    reasons = Counter(r.why for r in results if r.status in _UNJUDGED and _kind(r.quantity) == kind)
    return next((why for why, skipped in reasons.most_common(1) if skipped >= number), "")
