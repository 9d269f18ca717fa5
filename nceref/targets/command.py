"""A program of any language as a target: an executable that answers one JSON object a line, see `protocol`."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nceref.cases.records import Outcome, Probe
from nceref.errors import TargetError, UnavailableError
from nceref.output.system import processes_available
from nceref.output.text import printable, shown
from nceref.spec import Loss
from nceref.targets import protocol
from nceref.targets.arguments import expected_names
from nceref.targets.attempt import unlike
from nceref.targets.command_line import FRAMEWORK, words_of
from nceref.targets.frameworks.call import CallRequest, call_request
from nceref.targets.process.child import ENDED, ChildRunner
from nceref.targets.target import LoadRequest, ResolvedTarget

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from nceref.targets.process.guard import execute; execute()"
)
_FAULT = re.compile(r"error|exception|panic|fatal|abort", re.IGNORECASE)
_HINTS = {
    "hangs": "; does it flush its output after each line?",
    protocol.BROKEN: "; what is no answer belongs on standard error",
}
_FAREWELL = 1.0
"""Seconds for the program to end by itself."""


@contextlib.contextmanager
def in_command(
    text: str, loss: Loss, *, settings: Mapping[str, Any], dtypes: Sequence[str], timeout: float = 30.0
) -> Iterator["CommandRunner"]:
    """Run an executable, which is stopped when it hangs and started again when it dies.

    `text` is ``cmd:`` and a command line, `dtypes` are the formats of the run, and `timeout` is in seconds for one
    answer. Raises `TargetError` if the executable cannot be started, or does not have this loss or format; `InputError`
    if the text is no command line; `UnavailableError` where the system starts no processes.
    """
    if not processes_available():
        msg = (
            "a target cmd: is a process of its own, and this system starts none; `nceref vectors compare` judges a file"
        )
        raise UnavailableError(msg)
    child = CommandRunner(LoadRequest(text, loss, {"settings": settings, "dtypes": tuple(dtypes)}), timeout)
    try:
        child.start()
        yield child
    finally:
        child.stop()


class CommandRunner(ChildRunner):
    """An executable: called with a probe, it returns the outcome, whatever becomes of the process."""

    def __init__(self, request: LoadRequest, timeout: float) -> None:
        super().__init__(request, "cpu", timeout, timeout)
        self._words = words_of(request.text)
        self._case = ""
        self._number = 0
        self._in_order = False

    def __call__(self, probe: Probe, twice: bool = False) -> Outcome:
        """Call it; with `twice`, call it again and compare bit by bit."""
        self._case = probe.id
        return super().__call__(probe, twice)

    def reply(self, probe: Probe, answer: tuple[Any, Mapping[str, Any]]) -> Outcome:
        """The outcome of a program that gives this answer, written and read as its lines are."""
        request = call_request(probe)
        return protocol.outcome(protocol.result(probe.id, *answer), probe.id, "", request)

    def start(self) -> None:
        """Start the program and exchange ``hello``.

        Raises `TargetError` if there is no such program, or it does not answer, or does not have this loss or format.
        """
        words = [_program(self._words[0]), *self._words[1:]]
        guard = [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path)] if os.name == "posix" else []
        self._begin([*guard, *words])
        self._load()

    def stop(self) -> None:
        """Say ``bye``, and end the process and what it has started."""
        if self.running and self._in_order:
            self._exchange.send(_sent(protocol.line("bye", {})), protocol.HELLO_SIZE)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_FAREWELL)
        self._in_order = False
        super().stop()

    def _load(self) -> None:
        request = self._load_request
        assert request is not None
        try:
            self.target = self._greeted(request)
        except TargetError:
            self.stop()
            raise

    def _greeted(self, request: LoadRequest) -> ResolvedTarget:
        """The target, by what it answers to ``hello``."""
        dtypes = request.options["dtypes"]
        line = protocol.hello(request.loss.name, dtypes)
        about = self._said("", line, protocol.HELLO_SIZE, lambda text, _: protocol.record(text, ["hello"])[1])
        if isinstance(about, Outcome):
            msg = (
                f"{request.text} cannot be run: called with `hello`, it {about.sentence}{_HINTS.get(about.trouble, '')}"
            )
            raise TargetError(msg)
        self._in_order = True
        _must_have(request, about)
        implementation = about.get("implementation")
        by = f"; the program is {printable(implementation, 100)}" if isinstance(implementation, str) else ""
        names = expected_names(request.loss, request.options["settings"])
        return ResolvedTarget(
            request.text,
            FRAMEWORK,
            request.loss.name,
            binding=f"every input by its name{by}",
            names={name: name for name in names},
            text=request.text,
        )

    def _outcome(self, request: CallRequest, twice: bool, known: Any) -> Outcome:
        if request.before is not None:
            before = self._called(replace(request, inputs=request.before, shape=None, before=None))
            if before.trouble:
                return before
        outcome = self._called(request)
        if not twice or outcome.trouble:
            return outcome
        again = self._called(request)
        return again if again.trouble else replace(outcome, remarks=unlike(outcome, again, request.rooms))

    def _called(self, request: CallRequest) -> Outcome:
        assert self._load_request is not None
        self._number += 1
        id = f"{self._case}#{self._number}"
        numbers = sum(np.size(x) for x in request.inputs.values())
        longest = protocol.HELLO_SIZE + protocol.NUMBER_SIZE * numbers
        line = protocol.run(id, self._load_request.loss.name, request)
        outcome: Outcome = self._said(
            id, line, longest, lambda text, previous: protocol.outcome(text, id, previous, request)
        )
        self._in_order = outcome.trouble not in ENDED
        return outcome

    def _said(self, id: str, line: str, longest: int, read: Callable[[str, Any], Any]) -> Any:
        """The answer to a line, or the outcome without one."""
        self._in_order = False
        limit = f"within {self._timeout:g} s (--timeout)"
        return self._exchanged(id, _sent(line), longest, self._timeout, limit, read)

    def _place(self) -> str:
        """Nothing: a program of any language does not say where it is."""
        return ""

    def _reason_in(self, lines: Sequence[str]) -> str:
        # Node and Java end with other things.
        return next((line for line in reversed(lines) if _FAULT.search(line)), lines[-1])

    def _death(self) -> Outcome:
        if not self._collected():
            return Outcome(trouble="dies", sentence="closes its standard output")
        once = "; it has to answer one line after the other, until `bye`" if self._process.returncode == 0 else ""
        return Outcome(trouble="dies", sentence=self._how() + once)


def _sent(line: str) -> bytes:
    return line.encode() + b"\n"


def _program(name: str) -> str:
    """The path of a program, on PATH or from the current folder; raises `TargetError` if none can be executed."""
    if path := shutil.which(name):
        return path
    if Path(name).is_file() and os.access(name, os.X_OK):
        msg = f"no program {shown(name)} on PATH; the one of this folder is ./{printable(name)}"
    elif Path(name).is_file():
        msg = f"{printable(name)} is not executable: name what runs it before it, or chmod +x {printable(name)}"
    elif len(Path(name).parts) > 1 or name.startswith("."):
        msg = f"no file {shown(name)}: build it, or name it from the current folder"
    else:
        msg = f"no program {shown(name)} on PATH, and no file of this name in the current folder"
    raise TargetError(msg)


def _must_have(request: LoadRequest, about: Mapping[str, Any]) -> None:
    """Refuse another version of the protocol, and a program without the loss or a format."""
    if about.get("protocol", protocol.VERSION) != protocol.VERSION:
        msg = f"{request.text} speaks version {shown(about['protocol'])} of the protocol, nceref {protocol.VERSION}"
        raise TargetError(msg)
    for entry, wanted in (("losses", [request.loss.name]), ("dtypes", request.options["dtypes"])):
        listed = about.get(entry, wanted)
        if not isinstance(listed, list | tuple) or not all(isinstance(x, str) for x in listed):
            msg = f"{request.text} answers `hello` with {entry} {shown(listed)} instead of a list of names"
            raise TargetError(msg)
        if missing := [name for name in wanted if name not in listed]:
            has = printable(", ".join(listed), 200) or "none"
            msg = f"{request.text} does not have {missing[0]}: it answers `hello` with {entry} {has}"
            raise TargetError(msg)
