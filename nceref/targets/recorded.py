"""A target whose answers were recorded elsewhere: it answers the cases of the record, and can be called no more."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nceref.cases.records import Diagnosis, Observation, Outcome, Probe
from nceref.spec import Loss
from nceref.targets.target import ResolvedTarget

Answer = tuple[Any, Mapping[str, Any]]
"""Value and gradients by input."""


@dataclass(frozen=True, eq=False)
class RecordedTarget:
    """Cases, and what a program answered on each: called with one of them, it returns the outcome.

    Attributes
    ----------
    name : str
        Name in a report.
    loss : Loss
        The reference.
    probes : tuple of Probe
        All of one format.
    outcomes : mapping
        Outcome of each probe, by its id.
    handed_over : callable
        The outcome of a program that gives an answer to a probe, read back as those of this one were.
    suite : str
        Name of the collection of cases.
    facts : mapping
        Facts for the environment of a report: where the answers are from.
    least : int
        Cases that must be judged before a verdict means anything.
    explained : callable
        ``explained(observations)``: explanations that come before anything else is tried; empty for none.
    forms : dict
        Parametrizations, as of `runner.Runner`; empty.
    """

    name: str
    loss: Loss
    probes: tuple[Probe, ...]
    outcomes: Mapping[str, Outcome]
    handed_over: Callable[[Probe, Answer], Outcome]
    suite: str
    facts: Mapping[str, str] = field(default_factory=dict)
    least: int = 1
    explained: Callable[[Sequence[Observation]], tuple[Diagnosis, ...]] = lambda observations: ()
    forms: dict[str, str] = field(default_factory=dict)

    @property
    def target(self) -> ResolvedTarget:
        """The target as a report and the verifier need it; its arguments are not recorded."""
        return ResolvedTarget(self.name, "recorded", self.loss.name)

    @property
    def dtype(self) -> str:
        """The format of all probes."""
        return self.probes[0].dtype

    def __call__(self, probe: Probe, twice: bool = False) -> Outcome:
        """The outcome that was recorded; nothing is recorded twice."""
        return self.outcomes[probe.id]

    def reply(self, probe: Probe, answer: Answer) -> Outcome:
        """The outcome of a program that gives this answer, written and read back as what is recorded was."""
        return self.handed_over(probe, answer)
