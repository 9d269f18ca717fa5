"""One verification of a target, which all of its checks read; targets of one file share a process."""

import atexit
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from nceref.cases.records import Result
from nceref.errors import NcerefError, OneValueWarning, SignatureError, TargetError
from nceref.targets.command_line import is_command
from nceref.targets.runner import child_runner
from nceref.verification.conformance.target import Target
from nceref.verification.report import BROKEN_CHECKER, Report, as_of_manifest, explanation_of
from nceref.verification.request import Request, request_of
from nceref.verification.verifier import PlannedRun, planned, verify_with, written_call


@dataclass(eq=False)
class SharedProcess:
    """A process for the targets of one file, and how many of them are still to be verified."""

    child: Any
    users: int = 0


_PROCESSES: dict[tuple[Any, ...], SharedProcess] = {}


@atexit.register
def stop_processes() -> None:
    """End the processes of targets whose checks were collected, and not run."""
    while _PROCESSES:
        _PROCESSES.popitem()[1].child.stop()


@dataclass(eq=False)
class TargetVerification:
    """A target and its report, which is made when it is read first.

    Attributes
    ----------
    target : Target
    options : mapping
        Of `nceref.verify`, those of the target and those of its checks.
    explained : str
        The check whose failure has shown the explanation; empty before that.
    """

    target: Target
    options: Mapping[str, Any]
    explained: str = ""
    _has_warned: bool = field(default=False, init=False)
    _key: tuple[Any, ...] | None = field(default=None, init=False)
    _trouble: TargetError | None = field(default=None, init=False)

    @cached_property
    def planned(self) -> PlannedRun:
        """The plan of what is going to be judged; the target is loaded, but not called.

        Raises as `nceref.verify` does, and `TargetError`.
        """
        try:
            return planned(self.target.function, self.target.loss or None, self._child(), **self.options)
        except SignatureError:
            # The report says how it could be called.
            raise
        except TargetError as error:
            self._trouble = error
            self._leave()
            raise

    @cached_property
    def report(self) -> Report:
        """The report that `nceref.verify` returns; raises as it does."""
        function, loss = self.target.function, self.target.loss or None
        if self._trouble is not None:
            # What takes minutes to load takes them once.
            raise self._trouble
        try:
            report = verify_with(function, loss, child=self._child(), **self.options)
        finally:
            self._leave()
        return replace(report, command=written_call(function, loss, self.options))

    @property
    def is_judged(self) -> bool:
        """Whether there are results: what cannot be run, or a checker that is broken, is no failure to expect."""
        try:
            report = self.report
        except NcerefError:
            return False
        return bool(report.results) and report.exit_code != BROKEN_CHECKER

    def results_of(self, case: str) -> Sequence[Result]:
        """The results of a case in all formats; of an empty one, all."""
        return self._by_case.get(case, ()) if case else self.report.results

    @cached_property
    def _by_case(self) -> dict[str, list[Result]]:
        by_case: dict[str, list[Result]] = {}
        for result in self.report.results:
            by_case.setdefault(result.case.rpartition("/")[2], []).append(result)
        return by_case

    def explanation(self, check: str, command: str = "", *, whole: bool = False) -> Iterator[str]:
        """The lines below those of a failure: why, with the first one alone.

        `check`: whose failure it is. `command`: what prints the whole report of a target of a manifest; empty: the call
        in Python. `whole`: whether it is about everything, so that the page belongs to it.
        """
        try:
            report = as_of_manifest(self.report) if command else self.report
        except NcerefError:
            return
        if self.explained:
            yield f"the explanation is shown with the failure of {self.explained}"
            return
        self.explained = check
        yield f"\n{report}" if whole else explanation_of(report, command)

    def warn_of_one_value(self) -> None:
        """Warn once of scalars that could not vary, as the target is an object."""
        try:
            words = self.report.scope.one_value_words
        except NcerefError:
            return
        if words and not self._has_warned:
            self._has_warned = True
            warnings.warn(f"{self.target}: {words}", OneValueWarning, stacklevel=3)

    def join(self) -> None:
        """Share the process of the file with those that join before it ends; raises `InputError` as `report` does."""
        self._child()

    def _child(self) -> Any:
        """The process of a target that is named by text; None for another, and for one that needs several."""
        request = request_of(self.target.function, self.target.loss or None, self.options)
        if not isinstance(request.thing, str) or is_command(request.thing) or request.contracts:
            return None
        if self._key is None:
            self._key = _place(request)
            if self._key not in _PROCESSES:
                child = child_runner(None, request.device, request.timeout, 120.0, request.isolate)
                _PROCESSES[self._key] = SharedProcess(child)
            _PROCESSES[self._key].users += 1
        return _PROCESSES[self._key].child

    def _leave(self) -> None:
        """End the process after the last target of its file."""
        if self._key is not None and self._key in _PROCESSES:
            shared = _PROCESSES[self._key]
            shared.users -= 1
            if not shared.users:
                _PROCESSES.pop(self._key).child.stop()
        self._key = None


def _place(request: Request) -> tuple[Any, ...]:
    """The key that targets share which are loaded in one process."""
    file = request.thing.rpartition(":")[0] or request.thing
    return file, os.getcwd(), request.device, request.timeout, request.isolate  # noqa: PTH109 - of the process


def verification_of(target: Target, suite: str, ranks: int = 0) -> TargetVerification:
    """The verification of a target in this session.

    `suite`: the target's own comes first. `ranks`: on how many it is run; 0 for one process. Result: the same object
    for the same arguments.
    """
    options = {"suite": suite, **target.options, **({"ranks": ranks} if ranks else {})}
    # Beside the fields, which are all that equality is about.
    made = vars(target).setdefault("_verifications", {})
    key = (options["suite"], ranks)
    if key not in made:
        made[key] = TargetVerification(target, options)
    verification: TargetVerification = made[key]
    return verification
