"""Claims: a published statement, its precise form, the numbers, and the evidence. Frozen data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from nceref.output.markdown_parts import typeset
from nceref.theory.verdicts import Verdict

LOGARITHMIC, NORMAL = "logarithmically", "normal"
"""Scales other than the uniform one; see `Drawn`."""


class Repair(StrEnum):
    """The change that a published statement needs in order to hold."""

    NONE = "none"
    CONDITION = "a condition"
    WORDING = "a correction that keeps its idea"
    REPLACED = "another statement in its place"


class Value(NamedTuple):
    """A published number and how it is computed; `computed` is None where it cannot be computed offline.

    `single()` is the float32 evaluation, where the source may have printed that. `expected` is the verdict that the
    number must get; None: it agrees, to its printed digits at least.
    """

    what: str
    published: str
    computed: Callable[[], Any] | None
    single: Callable[[], Any] | None = None
    expected: Verdict | None = None


class Drawn(NamedTuple):
    """The law of a base value that is drawn: its ends, how many numbers, and the scale.

    `numbers` is None for one number. On the normal scale, `low` is the mean and `high` the standard deviation.
    `tied`: some of the numbers are equal.
    """

    low: float
    high: float
    numbers: tuple[int, int] | None = None
    scale: str = ""
    tied: bool = False

    def __str__(self) -> str:
        several = "" if self.numbers is None else f"{' to '.join(map(str, dict.fromkeys(self.numbers)))} numbers "
        if self.scale == NORMAL:
            return f"{several}of standard deviation {self.high:g}"
        between = f"from {self.low:g} to {self.high:g}"
        return f"{several}{between}" + (f", {self.scale}" if self.scale else "") + ", some tied" * self.tied


class Counter(NamedTuple):
    """An instance against the published statement: what it shows, and whether it breaks the statement."""

    shown: str
    breaks: bool


@dataclass(frozen=True, eq=False)
class Claim:
    """One statement of a source.

    Attributes
    ----------
    id : str
        As in ``WL-13``.
    title : str
        The statement in at most about sixty characters.
    source, place : str
        Where it stands.
    published : str
        What is published, in our words.
    latex : str
        The precise statement.
    given : str
        Hypotheses beside those of the scenario, and what the statement is about: an anchor, a batch, a law.
    expected : Verdict
        What `prove` must derive.
    formula : str
        The precise statement as an expression over the names of a scenario (see `statements`).
    scenario : str
        What the names in the formulas mean; a file in `nceref.theory.scenarios`.
    as_published : str
        The published statement as a formula, where it is not the precise one.
    repair : Repair
        What the published statement needs in order to hold.
    repaired : str
        The repaired statement in words; empty where nothing needs repair.
    counterexample : mapping or callable or None
        Base values of the scenario for which `as_published` is false and `formula` true, or a function that returns a
        `Counter`.
    values : tuple of Value
        Published numbers.
    table : str
        A table of `nceref.theory.tables`, whose cells are published numbers of this claim as well.
    cells : mapping
        How many cells of the table get which verdict.
    total : str
        What the published numbers that nobody can compute here add up to: a slip in one of them is seen.
    derivation : str
        A derivation of `nceref.theory.derivations` whose steps prove the statement with symbols. It is the symbolic
        evidence, or, beside `symbolic`, a part of it.
    symbolic, numeric, random : bool or str or callable
        Evidence: True evaluates the formula with symbols, with 50 digits on the fixed instances of the scenario, or on
        random instances; a text does so with a part of the formula, or with another one, and is printed. A callable
        does it its own way: `symbolic()`, `numeric()`, `random(rng)` return whether the precise statement held.
    no_evidence : str
        Why a kind of evidence is missing, where one may be expected.
    """

    id: str
    title: str
    source: str
    place: str
    published: str
    latex: str
    expected: Verdict
    given: str = ""
    formula: str = ""
    scenario: str = "anchor"
    as_published: str = ""
    repair: Repair = Repair.NONE
    repaired: str = ""
    counterexample: Mapping[str, Any] | Callable[[], Counter] | None = None
    values: tuple[Value, ...] = ()
    table: str = ""
    cells: Mapping[Verdict, int] = field(default_factory=dict)
    total: str = ""
    derivation: str = ""
    symbolic: bool | str | Callable[[], bool] = False
    numeric: bool | str | Callable[[], bool] = False
    random: bool | str | Callable[[Any], bool] = False
    no_evidence: str = ""

    def _repr_mimebundle_(self, **types: Any) -> dict[str, str]:
        """The precise statement, for a notebook."""
        about = f"{self.title} ({self.source}, {self.place}). As published: {self.expected}. Precisely:"
        return typeset(f"{self.id}: {about} {self.latex}", f"**{self.id}** {about}", self.latex)

    def evidence(self) -> dict[str, Any]:
        """The kinds of evidence that there are, in order."""
        kinds = {"symbolic": self.symbolic or bool(self.derivation), "numeric": self.numeric, "property": self.random}
        return {kind: how for kind, how in kinds.items() if how is not False}


@dataclass(frozen=True, eq=False)
class Chapter:
    """The claims of one source, or of a part of one; named like its file in `nceref.theory.claims`."""

    name: str
    title: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, eq=False)
class Scenario:
    """The meaning of the names of a formula; named like its file in `nceref.theory.scenarios`.

    Attributes
    ----------
    setting : str
        What one instance is.
    given : str
        The hypotheses, a statement that every instance fulfills.
    meaning : mapping
        Each name in words.
    symbols : callable
        `symbols()` returns the base values as SymPy symbols.
    fixed : tuple of mapping
        Base values, Python floats, for the evaluation with 50 digits.
    draw : callable
        `draw(rng)` returns random base values.
    drawn : mapping
        From where to where each base value is drawn; in words where it depends on another.
    terms : callable
        `terms(m, base)` returns all names, the base values included, computed in the number system `m`.
    """

    name: str
    setting: str
    given: str
    meaning: Mapping[str, str]
    symbols: Callable[[], Mapping[str, Any]]
    fixed: tuple[Mapping[str, Any], ...]
    draw: Callable[[Any], Mapping[str, Any]]
    drawn: Mapping[str, Drawn | str]
    terms: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]
