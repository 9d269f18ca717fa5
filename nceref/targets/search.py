"""The search for what explains a verdict: counted in calls of the target, and no part of the verdict.

Whatever ends it, the verdict stands: its limit, Ctrl-C, a target that does not answer any more, an error of the search.
"""

import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from nceref.cases.records import Outcome, Probe
from nceref.errors import TargetError
from nceref.output.text import printable
from nceref.output.words import counted

MOST = 4000
"""Calls of the target, of all searches for one report: none of the catalogues' programs takes 800 in one format."""
RAISES = "NCEREF_RAISE_ERRORS_OF_SEARCHES"
"""The environment variable with which an error of a search is raised: in tests of this package it is a failure."""
EXPLANATION = "an explanation"
"""The first goal of a search."""
T = TypeVar("T")
_PACKAGE = Path(__file__).parents[1]


class NoCallsLeft(Exception):  # noqa: N818 - it is no error
    """The calls that a search may make are used up."""


@dataclass(eq=False)
class Search:
    """The state of a search: the calls it has made and may make, its goal, and what has ended it.

    Attributes
    ----------
    most : int
    made : int
    goal : str
        Present goal of the search.
    option : str
        The option of a command that says `most`; empty where there is none.
    ended : str
        ``calls``, ``limit`` (another count than calls), ``user``, ``target`` or ``error``; empty for a search that came
        to its end.
    sentence : str
        Sentence about the end; empty like `ended`.
    error : mapping
        Type, message and places of an error of the search itself.
    """

    most: int = MOST
    made: int = 0
    goal: str = EXPLANATION
    option: str = "--calls"
    ended: str = ""
    sentence: str = ""
    error: Mapping[str, Any] = field(default_factory=dict)

    def spend(self) -> None:
        """Count a call that is about to be made; raises `NoCallsLeft` if it is one too many."""
        if self.made >= self.most:
            option = f" ({self.option} {self.most})" * bool(self.option)
            self.end("calls", f"was cut after {counted(self.made, 'call')} of the target{option}")
            raise NoCallsLeft
        self.made += 1

    def end(self, how: str, words: str) -> None:
        """Note what ends the search for the present goal; the first that did is kept."""
        if not self.ended:
            self.ended, self.sentence = how, f"the search for {self.goal} {words}"

    def target(self, run: Any) -> "CountedTarget":
        """The target, whose calls are counted."""
        return CountedTarget(run, self)

    def last_of(self, steps: Callable[[], Iterator[T]], result: T, keep: bool = False) -> T:
        """The last result of a search, whatever ends it; `result` if there is none.

        `steps` returns an iterator over results, each with all that the one before has. With `keep`, Ctrl-C ends the
        search alone.
        """
        try:
            for each in steps():
                result = each
        except NoCallsLeft:
            pass
        except TargetError as error:
            self.end("target", f"has ended, as the target could not be called any more: {error}")
        except KeyboardInterrupt:
            if not keep:
                raise
            self.end("user", f"was stopped by the user after {counted(self.made, 'call')} of the target")
        except Exception as error:
            if os.environ.get(RAISES):
                raise
            self._fail(error)
        return result

    def _fail(self, error: Exception) -> None:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if _PACKAGE in Path(frame.filename).parents]
        places = [f"{Path(f.filename).relative_to(_PACKAGE.parent).as_posix()}:{f.lineno} in {f.name}" for f in own]
        kind = type(error).__name__
        self.error = {"type": kind, "message": printable(str(error)), "places": places[::-1]}
        self.ended = "error"
        where = f" at {places[-1]}" if places else ""
        self.sentence = f"internal error, please report: {kind}{where}, in the search for {self.goal}"

    def record(self, explained: bool) -> dict[str, Any]:
        """The state as plain data; empty where the target was not called, and nothing has ended the search.

        `explained` says whether there is an explanation, whatever has ended the search.
        """
        if not self.made and not self.ended:
            return {}
        words = f"no explanation: {self.sentence}" if self.ended and not explained else self.sentence
        record = {"calls": self.made, "limit": self.most, "ended": self.ended, "sentence": words}
        return record | ({"error": dict(self.error)} if self.error else {})


NONE: Mapping[str, Any] = MappingProxyType(
    {"calls": 0, "limit": 0, "ended": "calls", "sentence": "no explanation was looked for (--calls 0)"}
)
"""The record where no call may be made."""


@dataclass(frozen=True, eq=False)
class CountedTarget:
    """A target that is ready to run, for a search: every call of it is counted."""

    run: Any
    search: Search

    def __call__(self, probe: Probe, twice: bool = False) -> Outcome:
        """Call the target; raises `NoCallsLeft`."""
        self.search.spend()
        outcome: Outcome = self.run(probe, twice=twice)
        return outcome

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)
