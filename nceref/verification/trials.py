"""Trials of a target: which loss it is, and how it is called, is found by calling it on a few cases."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nceref.cases.judge import judge
from nceref.cases.records import Observation, Probe
from nceref.errors import InputError, TargetError, UnavailableError
from nceref.output.words import out_of
from nceref.targets.global_state import ORDINARY
from nceref.targets.search import NoCallsLeft, Search

CASES = 3
"""Of a trial: a loss that is another one differs on the first that has several rows."""
REFUSED, CALLED, RUNS, RIGHT = range(4)
"""How far a trial came."""
WORDS = {RUNS: "this call runs, but gives other values than the reference"}
"""Words for how far a call came that is not right."""
WAYS: Mapping[str, str] = {"call": '--call "{}"', "framework": "--framework {}"}
"""Options that say how a target is called, as a command has them."""
_ENDS_ALL = frozenset({"hangs", "dies", "exits"})
"""Troubles of a call that the others most likely share, each for a timeout or for a process."""


def _is_right(observation: Observation) -> bool:
    return all(r.status == "pass" for r in judge(observation) if r.quantity.startswith("value"))


@dataclass(frozen=True, eq=False)
class Trial:
    """A loss and options of `nceref.verify` with which a target was called on a few cases.

    Attributes
    ----------
    loss : str
    options : mapping
        Settings of the loss, and what says how the target is called.
    observations : tuple of Observation
        Its answers, up to the first that is no number; empty where it cannot be called so.
    reason : str
        Why there was no number; empty where there were numbers alone.
    """

    loss: str
    options: Mapping[str, Any]
    observations: tuple[Observation, ...] = ()
    reason: str = ""

    @property
    def trouble(self) -> str:
        """The trouble that came in place of a number, as `Outcome.trouble` names it; empty for none."""
        return self.observations[-1].outcome.trouble if self.observations else ""

    @property
    def ran(self) -> bool:
        """Whether it gave a number."""
        return any(not o.outcome.trouble for o in self.observations)

    @property
    def reached(self) -> int:
        """The stage that it came to: refused, called, with numbers alone, or with those of the reference."""
        if not self.observations or self.trouble:
            return CALLED if self.observations else REFUSED
        return RUNS if self.wrong else RIGHT

    @cached_property
    def wrong(self) -> int:
        """The number of cases with another value than the reference."""
        return sum(not _is_right(observation) for observation in self.observations)

    @property
    def right(self) -> bool:
        """Whether each value is that of the reference."""
        return self.reached == RIGHT

    @property
    def agrees(self) -> bool:
        """Whether each number is that of the reference, where it has a finite one."""
        finite = [o for o in self.observations if o.outcome.value is not None and np.all(np.isfinite(o.outcome.value))]
        return not self.trouble and bool(finite) and all(map(_is_right, finite))

    @property
    def spread(self) -> float:
        """The spread of the finite ratios of a value to the reference, in units of them; infinite for less than two."""
        pairs = [(o.outcome.value, o.probe.value) for o in self.observations]
        with np.errstate(all="ignore"):
            ratios = np.array([np.sum(a) / np.sum(b) for a, b in pairs if a is not None])
            ratios = ratios[np.isfinite(ratios)]
            spread = float(np.std(ratios) / abs(np.mean(ratios))) if len(ratios) > 1 else np.inf
        return spread if np.isfinite(spread) else np.inf

    @property
    def words(self) -> str:
        """The measurement of a way of calling, as the rest of a sentence; empty for one that gave no number."""
        option, count = how_called(self.options), len(self.observations)
        constants = re.findall(r"(\w+)=(\d\.\d)\b", self.options.get("call") or "")
        beside = " with " * bool(constants) + " and ".join(map(" = ".join, constants))
        words = {**WORDS, RIGHT: f"this gives the reference's value on {out_of(count, count, 'case')}{beside}"}
        return f"; {words[self.reached]}: {option}" if self.reached in words else ""


def how_called(options: Mapping[str, Any]) -> str:
    """Options of a command that say how a target is called; empty where it is called as it is.

    >>> how_called({"call": "f(z1, z2)", "labels": ...})
    '--call "f(z1, z2)"'
    """
    return " ".join(words.format(options[name]) for name, words in WAYS.items() if options.get(name))


def trial_of(
    loss: str,
    options: Mapping[str, Any],
    run: Callable[[Probe], Any],
    probes: Iterable[Probe],
    goes_on: Callable[[Sequence[Observation]], bool],
) -> Trial:
    """The trial of a target that is ready to run, up to the first case without a number, or as long as it goes on."""
    observed: list[Observation] = []
    for probe in probes:
        observed.append(Observation(probe, run(probe)))
        if observed[-1].outcome.trouble or not goes_on(observed):
            break
    return Trial(loss, options, tuple(observed), observed[-1].outcome.sentence if observed else "")


@dataclass(frozen=True, eq=False)
class Trials:
    """A target that is tried in several ways, counted in calls.

    `begin` gives, for a loss and options, the target ready to run and its cases; it raises `InputError` or
    `TargetError` where there is no such loss, or the target cannot be called so.
    """

    begin: Callable[..., AbstractContextManager[tuple[Any, Sequence[Probe]]]]
    search: Search

    def of(self, loss: str, whole: bool = False, **options: Any) -> Trial:
        """Call it as a loss with options, up to the first wrong case or on the `whole` of them.

        Raises `NoCallsLeft`.
        """
        try:
            with np.errstate(**ORDINARY), self.begin(loss, **options) as (run, probes):
                cases = [p for p in probes if not p.skip][:CASES]
                return trial_of(
                    loss, options, self.search.target(run), cases, lambda observed: whole or _is_right(observed[-1])
                )
        # Also for a setting that the loss does not have.
        except (InputError, TargetError, UnavailableError) as error:
            # A package that a call names; another one is one that the user asked for.
            if isinstance(error, UnavailableError) and not options.get("call"):
                raise
            return Trial(loss, options, reason=str(error))

    def signature(self, loss: str, inputs: Iterable[str], **options: Any) -> Mapping[str, bool] | None:
        """The target's parameters, as `ResolvedTarget` has them; None where it cannot be loaded as this loss.

        `inputs` are all of the loss, so that the constructor is handed none of them. Raises `NoCallsLeft`.
        """
        try:
            with self.begin(loss, call=f"f({', '.join(inputs)})", **options) as (run, _):
                signature: Mapping[str, bool] = run.target.signature
                return signature
        except (InputError, TargetError, UnavailableError):
            return None


def until_ended(trials: Iterable[Trial]) -> Iterator[Trial]:
    """Trials up to the first that ends the target, or to the last call that may be made."""
    try:
        for trial in trials:
            yield trial
            if trial.trouble in _ENDS_ALL:
                return
    except NoCallsLeft:
        return


def until_right(trials: Iterable[Trial]) -> Iterator[Trial]:
    """Trials up to the first that is right."""
    for trial in trials:
        yield trial
        if trial.right:
            return
