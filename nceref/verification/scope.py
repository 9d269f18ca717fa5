"""The scope of a run: the ends of sizes and scalars, formats, ways of calling, and what was not judged."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nceref.cases.judge import REFUSAL
from nceref.cases.records import Observation, Result
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.output.words import as_code, counted
from nceref.spec import Array, Labels

Range = tuple[float, float]


@dataclass(frozen=True)
class Scope:
    """The scope of a verdict.

    Attributes
    ----------
    cases : int
        Number of judged cases.
    ranges : mapping
        Smallest and largest number in the cases, by name: ``rows``, ``features``, ``classes``, the temperature.
    dtypes, modes : tuple of str
        Formats, and ways of calling other than plainly, see `nceref.verification.modes`.
    not_judged : tuple of str
        Inputs whose gradient was judged on no case.
    ranks, steps : tuple of int
        Numbers of ranks, and of steps of gradient accumulation; empty for one process and one call.
    recorded : bool
        Whether answers were recorded elsewhere, so that nothing was called here.
    one_value : mapping
        Scalars that could not vary, as the target is an object that was constructed with them.
    """

    cases: int = 0
    ranges: Mapping[str, Range] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    recorded: bool = False
    one_value: Mapping[str, float] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """The scope in words, a line or two."""
        ends = (f"{_span(*ends)} {name}" for name, ends in self.ranges.items() if name in _COUNTED)
        scalars = (f"{name} {_span(*ends)}" for name, ends in self.ranges.items() if name not in _COUNTED)
        shared = (("ranks", self.ranks), ("steps", self.steps))
        ranks = [f"{parts} {', '.join(map(str, counts))}" for parts, counts in shared if counts]
        yield f"tested: {', '.join([counted(self.cases, 'case'), *ends, *scalars, *self.dtypes, *ranks])}"
        ways = "recorded outputs, so nothing was called here" if self.recorded else self._ways
        rest = f"; gradients not judged: {', '.join(self.not_judged)}" if self.not_judged else ""
        yield f"{ways}{rest}; nothing else was tested"
        if self.one_value:
            yield self.one_value_words

    @property
    def _ways(self) -> str:
        return f"ways of calling: {', '.join(('plain', *self.modes))}"

    @property
    def one_value_words(self) -> str:
        """The sentence about scalars that could not vary, and about what to give instead; empty where all could."""
        if not self.one_value:
            return ""
        values = " and ".join(f"{name} at its one value {x:g}" for name, x in self.one_value.items())
        names = " and ".join(map(as_code, self.one_value))
        return (
            f"tested {values}, as the target is an object: a wrong power or factor of it would pass; give its class,"
            f" or a function with the argument{'s' * (len(self.one_value) > 1)} {names}"
        )

    def record(self) -> dict[str, Any]:
        """The scope as plain data."""
        ranges = {name: list(ends) for name, ends in self.ranges.items()}
        return {
            "cases": self.cases,
            "ranges": ranges,
            "dtypes": list(self.dtypes),
            "modes": list(self.modes),
            "not_judged": list(self.not_judged),
            **({"ranks": list(self.ranks)} if self.ranks else {}),
            **({"steps": list(self.steps)} if self.steps else {}),
            **({"recorded": True} if self.recorded else {}),
            **({"one_value": dict(self.one_value)} if self.one_value else {}),
        }


_COUNTED = ("rows", "features", "classes")


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def scope_of(
    observations: Iterable[Observation], results: Sequence[Result], dtypes: tuple[str, ...], not_judged: Iterable[str]
) -> Scope:
    """The scope of a run, from its observations in all formats and its results.

    `results` show which ways of calling were judged; `not_judged` are inputs without a judged gradient.
    """
    judged = [o for o in observations if not o.probe.skip and not o.outcome.trouble]
    seen: dict[str, list[float]] = {}
    for observation in judged:
        for name, x in _sizes(observation):
            seen.setdefault(name, []).append(x)
    passed = (r.quantity for r in results if r.status == "pass" and r.quantity.startswith("mode."))
    modes = dict.fromkeys(quantity.removeprefix("mode.") for quantity in passed)
    ranges = {name: (min(each), max(each)) for name, each in seen.items()}
    refused = sum(r.quantity == REFUSAL and r.status != "error" for r in results)
    return Scope(len(judged) + refused, ranges, dtypes, tuple(modes), tuple(not_judged))


def _sizes(observation: Observation) -> Iterator[tuple[str, float]]:
    inputs = observation.probe.inputs
    for p in observation.probe.loss.parameters:
        x = inputs.get(p.name)
        if isinstance(p, Array) and x is not None:
            yield from (
                (_LETTERS[letter], n) for letter, n in zip(p.shape, np.shape(x), strict=False) if letter in _LETTERS
            )
        elif isinstance(p, Labels) and x is not None and p.classes is None:
            yield "classes", len(np.unique(x))
        elif p.name in INVERSE_TEMPERATURES and isinstance(x, float):
            yield p.name.replace("_", " "), x


_LETTERS = {"N": "rows", "D": "features", "C": "classes"}
