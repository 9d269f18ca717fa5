"""A convention and what it is set to: the unit of the search."""

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

from nceref.cases.records import Probe
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.spec import Scalar


class Option(NamedTuple):
    """One convention and what it is set to."""

    id: str
    value: Any = None

    @property
    def axis(self) -> str:
        """Two options of one axis exclude each other."""
        return CONVENTIONS[self.id].axis

    @property
    def rank(self) -> int:
        """Place in the closed list."""
        return _RANK[self.id]

    @property
    def setting(self) -> str:
        """The setting in words, or empty."""
        return "" if self.value is None else CONVENTIONS[self.id].describe(self.value)

    @property
    def remedy(self) -> str:
        """The change to make, of a setting that has its own, as a formula has; empty: what the convention says."""
        return getattr(self.value, "remedy", "")


_RANK = {id: place for place, id in enumerate(CONVENTIONS)}


LEFT_OUT: ContextVar[frozenset[str]] = ContextVar("LEFT_OUT", default=frozenset())
"""Conventions that the search does without, as if they were not on the closed list."""


def is_listed(ids: Iterable[str]) -> bool:
    """Whether none of these conventions is left out."""
    return LEFT_OUT.get().isdisjoint(ids)


def options(ids: tuple[str, ...], most: int = 1000) -> Iterator[Option]:
    """Every setting of the conventions, in the order of the closed list, at most so many of each.

    `ids`: of conventions. `most`: settings of each, the most usual first.
    """
    for id in sorted(set(ids) - LEFT_OUT.get(), key=_RANK.__getitem__):
        yield from (Option(id, value) for value in CONVENTIONS[id].settings[:most])


_USUAL_NUMBERS = (0.1, 0.5, 0.2, 0.3, 1.0, 2.0, -10.0, 0.0)
"""That programs put in the place of a scalar."""


def usual_numbers(probe: Probe) -> Iterator[Option]:
    """One value of a scalar whatever is passed, from those that are usual for it."""
    for p in probe.loss.parameters:
        if isinstance(p, Scalar) and p.name not in INVERSE_TEMPERATURES and isinstance(probe.inputs.get(p.name), float):
            low, high = p.typical
            numbers = (p.default, *(x for x in _USUAL_NUMBERS if low <= x <= high))
            yield from (Option("scalar-ignored", (p.name, x)) for x in dict.fromkeys(numbers) if isinstance(x, float))
