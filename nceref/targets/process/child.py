"""The parent's side of a target in a process of its own: it may hang, exit or die, and the run goes on.

Both speak in lines (`process.messages`) over the child's own standard streams, which it takes away from the target
before it loads it: what the target prints cannot corrupt them, and what it writes into them on purpose is refused.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from nceref.cases.records import Outcome, Probe
from nceref.errors import NcerefError, TargetError
from nceref.output.text import shown
from nceref.output.words import counted
from nceref.registry import folder_of
from nceref.targets import protocol
from nceref.targets.frameworks.call import CallRequest, Trouble, call_request, short
from nceref.targets.process import messages, tree
from nceref.targets.process.exchange import Exchange
from nceref.targets.process.isolation import Isolation, isolation
from nceref.targets.process.module_contents import ModuleContents, ModuleRequest
from nceref.targets.reparametrized import by_inputs, reparametrized
from nceref.targets.target import LoadRequest, ResolvedTarget

_NOTHING = ModuleRequest("errno", "errno")
BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from nceref.targets.process.guard import main; main()"
"""The child imports what its parent could import; its own folder is not on the path."""
GIVE_UP = 3
"""Cases in a row that may hang or die before the others are not tried any more."""
ENDED = ("hangs", "dies", protocol.BROKEN)
"""Troubles after which there is no process that could be called."""
NOT_TRIED = "not-tried"
"""Trouble of a case that was not called, after `GIVE_UP` others."""
COMPILING = 300.0
"""Seconds that a call has beside its own where it is compiled: the first one imports and starts a compiler."""
_COMPILED = ("compile", "jit")
_GARBLED = "closes or garbles the pipe to its parent"
_PRINTED = 1 << 24
"""Bytes on standard error that are kept."""
_FAREWELL = 10.0
"""Seconds for the guard to end and collect what the target has started."""
_LOOK = 2.0
"""Seconds for a process that hangs to say what it is in."""
_LOOKS = 10
"""Looks for what is left where the guard was killed."""
_NAMED = 10
"""Processes that are named where they could not be ended."""
_LAST_WORDS = 2000
"""Bytes of what a process has printed that are read after its end."""


class ChildRunner:
    """A target in another process: called with a probe, it returns the outcome, whatever becomes of the process.

    `forms` are the parametrizations of what the target holds itself. A child that is one of several ranks is not waited
    for any more once it is `cut_short`, and says what it was in.
    """

    target: ResolvedTarget

    def __init__(
        self,
        request: LoadRequest | None,
        device: str,
        timeout: float,
        loading_timeout: float,
        isolate: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = dict(environment or {})
        self._load_request, self._device, self._timeout, self._loading_timeout = (
            request,
            device,
            timeout,
            loading_timeout,
        )
        self._isolate = isolate
        self.forms: dict[str, str] = {}
        self.running = False
        self._process: subprocess.Popen[bytes]
        self._exchange: Any
        self._in_a_row: list[Outcome] = []
        self.cut_short = False
        # Of the request that was sent last; none in a fresh process.
        self._id: Any = None

    def __call__(self, probe: Probe, twice: bool = False) -> Outcome:
        """Call the target; with `twice`, call it again and compare bit by bit."""
        request = reparametrized(call_request(probe, self._device), self.forms)
        return by_inputs(self.call(request, twice), request, self.forms)

    def reply(self, probe: Probe, answer: tuple[Any, Mapping[str, Any]]) -> Outcome:
        """The outcome of a program that gives this answer, through arrays and gradients of the same framework."""
        return self.call(call_request(probe, self._device), answer=answer)

    def processes(self) -> tuple[int, ...]:
        """The processes in which the target runs; empty where the system does not tell them."""
        return tree.processes(self._process.pid, self._mark, self._born) if tree.AVAILABLE else ()

    def start(self) -> None:
        """Start the process and wait until the target is loaded.

        Raises the `NcerefError` that loading raised there, `TargetError` if it took too long or died, and
        `UnavailableError` where the process cannot be isolated.
        """
        assert self._load_request is not None
        self._launch(folder_of(self._load_request.text))
        self._load()

    def contents(self, request: ModuleRequest) -> ModuleContents:
        """The contents of a module, imported in the process, which is started where there is none.

        Raises the `NcerefError` that importing raised there, and `TargetError` if it took too long or ended the
        process.
        """
        if not self.running:
            self._launch(folder_of(request.text))
            # Starting takes a time of its own.
            self._answer(_NOTHING, messages.list_message(_NOTHING), self._loading_timeout, "")
        limit = f"within {self._timeout:g} s (--timeout)"
        answer = self._answer(request, messages.list_message(request), self._timeout, limit)
        if isinstance(answer, Outcome):
            self.stop()
            msg = f"{request.place} cannot be imported: importing it {answer.sentence}"
            raise TargetError(msg)
        contents: ModuleContents = answer
        return contents

    def _launch(self, folder: Path) -> None:
        """Start the process, which may read what is in a folder."""
        around = isolation(folder) if self._isolate else Isolation("")
        self._begin([*around.prefix, sys.executable, "-P", "-c", BOOT, json.dumps(sys.path), *around.arguments])

    def _begin(self, words: Sequence[str]) -> None:
        """Start a program that is ended, with all that it starts, by `stop`."""
        # A file and no pipe: nobody reads it while the target runs, and a full pipe would block the target.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        self._mark = os.urandom(8).hex()
        self._process = subprocess.Popen(
            words,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **self._environment, tree.MARK: self._mark},
            # A process group of its own: Ctrl-C is for the parent, which ends the child.
            start_new_session=True,
        )
        self.running = True
        self._id = None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._born = tree.birth(self._process.pid)
        self._exchange = Exchange(self._process.stdin, self._process.stdout)

    def load(self, request: LoadRequest) -> None:
        """Have the process load a target, in place of the one before; raises as `start` does."""
        self.assign(request)
        self.forms.clear()
        self.reload()

    def assign(self, request: LoadRequest) -> None:
        """Say what is loaded when the process starts, or loads again."""
        self._load_request = request

    def reload(self) -> None:
        """Have the process load its target again, or start it; raises as `start` does."""
        self._in_a_row.clear()
        if self.running:
            self._load()
        else:
            self.start()

    def _load(self) -> None:
        request = self._load_request
        assert request is not None
        limit = f"within {self._loading_timeout:g} s, which no option changes"
        answer = self._answer(request, messages.load_message(request), self._loading_timeout, limit)
        # An outcome in place of a target: loading has hung or ended the process.
        if isinstance(answer, Outcome):
            self.stop()
            msg = f"{request.text} cannot be loaded: importing it {answer.sentence}"
            raise TargetError(msg)
        self.target = answer

    def stop(self) -> None:
        """End the process and what it has started; to be called on every way out, Ctrl-C included."""
        if not self.running:
            return
        self.running = False
        _end(self._process, self._mark, self._born)
        self._exchange.close()
        self._errors.close()

    def call(self, request: CallRequest, twice: bool = False, answer: Any = None) -> Outcome:
        """The outcome of a request to the target, or of an answer that is known."""
        if len(self._in_a_row) >= GIVE_UP:
            last = self._in_a_row[-1]
            row = counted(GIVE_UP, "case")
            return Outcome(trouble=NOT_TRIED, sentence=f"is not tried: {row} in a row: {last.sentence}")
        try:
            if not self.running:
                self.start()
        # It was loaded before with the same options: they are right.
        except NcerefError as error:
            outcome = Outcome(trouble="dies", sentence=f"does not load again: {error}")
        else:
            outcome = self._outcome(request, twice, answer)
        # The next call starts a fresh process.
        if outcome.trouble in ENDED:
            self.stop()
            self._in_a_row.append(outcome)
        else:
            self._in_a_row.clear()
        return outcome

    def _outcome(self, request: CallRequest, twice: bool, known: Any) -> Outcome:
        """The outcome of a request to the target, which runs, or of a known answer."""
        compiling = COMPILING * (request.mode in _COMPILED)
        seconds = self._timeout * (2 if twice else 1) + compiling
        limit = f"within {self._timeout:g} s (--timeout)" + f" and {compiling:g} s to compile" * bool(compiling)
        outcome: Outcome = self._answer(request, messages.run_message(request, twice, known), seconds, limit)
        return outcome

    def _answer(self, request: messages.Request, message: messages.Message, seconds: float, limit: str) -> Any:
        """The answer to a request, or the outcome that replaces it.

        Raises an error of the child if it is due.
        """
        # No target can know it ahead, and answer the next call in advance.
        number = secrets.randbits(32)

        def read(text: str, previous: Any) -> Any:
            answer = messages.answer(text, number, previous, request)
            if isinstance(answer, NcerefError) and not messages.is_due(answer, request, getattr(self, "target", None)):
                raise Trouble(str(answer), protocol.BROKEN)
            return answer

        line = messages.packed(number, message)
        answer = self._exchanged(number, line, messages.longest(request), seconds, limit, read)
        if isinstance(answer, Outcome) and answer.trouble == protocol.BROKEN:
            return replace(answer, sentence=f"{_GARBLED}: {answer.sentence}")
        if isinstance(answer, NcerefError):
            raise answer
        return answer

    def _exchanged(
        self, id: Any, line: bytes, longest: int, seconds: float, limit: str, read: Callable[[str, Any], Any]
    ) -> Any:
        """The answer that `read` makes of the line that comes back for one that is sent, or the outcome without one.

        `read` is handed the line's text and the id of the request before, and raises `Trouble` for no answer.
        """
        previous = self._id
        try:
            if previous is not None and (ahead := self._exchange.unread()):
                raise protocol.ahead(ahead, previous)
            self._id = id
            self._exchange.send(line, longest)
            return read(protocol.received(self._exchange.receive(seconds, self._ended)), previous)
        except TimeoutError:
            return self._stuck(limit)
        except EOFError:
            return self._death()
        except Trouble as error:
            return Outcome(trouble=error.name, sentence=short(error))

    def _stuck(self, limit: str) -> Outcome:
        """The outcome of a target that does not return, with what it is in, where that can be known."""
        # The answer to where it is would end that line.
        begun, place = self._exchange.unfinished(), self._place()
        if self.cut_short:
            return Outcome(trouble="waits", sentence=f"is in {place or 'its call'}")
        sentence = f"does not return {limit}" + (f"; it is in {place}" if place else "")
        if begun:
            sentence += f"; the line that it prints has no end: {shown(protocol.received(begun))}"
        return Outcome(trouble="hangs", sentence=sentence)

    def _place(self) -> str:
        """The place in the code that the target is in, which its process says in place of the answer; empty if not."""
        self._exchange.send(messages.packed(self._id, messages.WHERE), messages.HEADER)
        try:
            return messages.where(protocol.received(self._exchange.receive(_LOOK, lambda: False)), self._id)
        except (TimeoutError, EOFError, Trouble):
            return ""

    def _ended(self) -> bool:
        """Whether the process is gone; if not, its guard goes on, and what it prints does not fill the disk."""
        if self.cut_short:
            raise TimeoutError
        _resume(self._process)
        gone = self._process.returncode is not None
        # The process goes on writing at the beginning: both share the place in the file. Its last words stay.
        if not gone and os.fstat(self._errors.fileno()).st_size > _PRINTED:
            self._errors.truncate(0)
            os.lseek(self._errors.fileno(), 0, os.SEEK_SET)
        return gone

    def _death(self) -> Outcome:
        if not self._collected() or self._process.returncode == messages.WITHOUT_PIPE:
            return Outcome(trouble="dies", sentence=_GARBLED)
        return Outcome(trouble="dies", sentence=self._how())

    def _collected(self) -> bool:
        """Whether the process has ended; the pipe may close before the exit code is there."""
        _resume(self._process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)
        return self._process.poll() is not None

    def _how(self) -> str:
        """The sentence about how the process has ended: its exit code or signal, and the reason in its last lines."""
        code = self._process.returncode
        # Who isolates it ends as a shell does.
        code = 128 - code if self._isolate and code > 128 else code
        how = f"signal {_signal(-code)}" if code < 0 else f"exit code {code}"
        why = f": {short(self._reason_in(lines))}" if (lines := self._last_lines()) else ""
        return f"ends the process with {how}{why}"

    def _reason_in(self, lines: Sequence[str]) -> str:
        """The one of the last lines that says why the process has ended."""
        return lines[-1]

    def _last_lines(self) -> list[str]:
        # The end only: the file may be larger than the memory.
        self._errors.seek(max(self._errors.seek(0, os.SEEK_END) - _LAST_WORDS, 0))
        return self._errors.read(_LAST_WORDS).decode(errors="replace").replace("\0", "").strip().splitlines()


def _signal(number: int) -> str:
    # Some real-time signals have no name.
    return signal.Signals(number).name if number in set(signal.Signals) else str(number)


def _resume(process: "subprocess.Popen[bytes]") -> None:
    """Have the guard go on: a target may have stopped it."""
    # Only as long as it is not waited for: its number may be another's then.
    if hasattr(signal, "SIGCONT") and process.poll() is None:
        process.send_signal(signal.SIGCONT)


def _end(process: "subprocess.Popen[bytes]", mark: str, born: int) -> None:
    """End a process and all that it has started, as far as the system shows them; what is left is named."""
    _resume(process)
    if tree.AVAILABLE:
        _end_tree(process, mark, born)
    elif hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _end_tree(process: "subprocess.Popen[bytes]", mark: str, born: int) -> None:
    def end() -> tuple[int, ...]:
        guard = process.pid if process.poll() is None else 0
        # Only then is the guard gone before everything else.
        return tree.end_tree(guard, mark, born, _LOOKS if process.returncode == -signal.SIGKILL else 1)

    left = end()
    # The guard ends by itself when nothing is left.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_FAREWELL)
    if (left or process.returncode is None) and ((left := end()) or process.poll() is None):
        _report(left)


def _report(left: tuple[int, ...]) -> None:
    """Name processes on standard error, or wherever the caller has warnings of `logging`."""
    import logging

    names = ", ".join(map(str, left[:_NAMED])) + ", ..." * (len(left) > _NAMED)
    logging.getLogger("nceref").warning(
        "processes of the target could not be ended%s: look for them, and verify such a target with --isolate",
        f" ({names})" if left else "",
    )
