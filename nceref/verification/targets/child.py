"""The parent's side of a target in a process of its own: it may hang, exit or die, and the run goes on.

Messages are pickled over the child's own standard streams, which it takes away from the target before it loads it:
what the target prints cannot corrupt them. Requests for a call carry arrays only; the declaration of the loss comes
once, with the request to load.
"""

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import IO, Any

from nceref.errors import InputError, TargetError
from nceref.verification.records import Outcome, Probe
from nceref.verification.targets import frameworks
from nceref.verification.targets.target import LoadRequest, ResolvedTarget

BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from nceref.verification.targets.child_main import main; main()"
)
"""The child imports what its parent could import; its own folder is not on the path."""
GIVE_UP = 3
"""Cases in a row that may hang or die before the others are not tried any more."""


class ChildRunner:
    """A target in another process: called with a probe, it returns the outcome, whatever becomes of the process."""

    target: ResolvedTarget

    def __init__(self, request: LoadRequest | None, device: str, timeout: float, loading_timeout: float) -> None:
        self._load_request, self._device, self._timeout, self._loading_timeout = (
            request,
            device,
            timeout,
            loading_timeout,
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._inbox: queue.Queue[Any] = queue.Queue()
        self._in_a_row: list[Outcome] = []

    def __call__(self, probe: Probe, twice: bool = False) -> Outcome:
        """Call the target; with `twice`, call it again and compare bit by bit."""
        return self._call((frameworks.call_request(probe, self._device), twice, None), 2 if twice else 1)

    def reply(self, probe: Probe, answer: tuple[Any, Mapping[str, Any]]) -> Outcome:
        """The outcome of a program that gives this answer, through arrays and gradients of the same framework."""
        return self._call((frameworks.call_request(probe, self._device), False, answer), 1)

    def start(self) -> None:
        """Start the process and wait until the target is loaded.

        Raises
        ------
        NcerefError
            Whatever loading raised there, or a `TargetError` if it took too long or died.
        """
        # A file and no pipe: nobody reads it while the target runs, and a full pipe would block the target.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", BOOT, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # A process group of its own: `stop` ends also what the target has started.
            start_new_session=True,
        )
        self._inbox = queue.Queue()
        # A queue for each process: the listener of the one before still puts its end into the old queue.
        threading.Thread(target=_listen, args=(self._process.stdout, self._inbox), daemon=True).start()
        self._load()

    def load(self, request: LoadRequest) -> None:
        """Have the process load a target, in place of the one before; raises as `start` does."""
        self._load_request = request
        self._in_a_row.clear()
        if self._process is None:
            self.start()
        else:
            self._load()

    def _load(self) -> None:
        self._send(self._load_request)
        answer = self._received(self._loading_timeout, f"within {self._loading_timeout:g} s, which no option changes")
        # An outcome in place of a target: loading has hung or ended the process.
        if isinstance(answer, Outcome):
            self.stop()
            assert self._load_request is not None
            msg = f"{self._load_request.text} cannot be loaded: importing it {answer.sentence}"
            raise TargetError(msg)
        if isinstance(answer, Exception):
            raise answer
        self.target = answer

    def stop(self) -> None:
        """End the process and what it has started; to be called on every way out, Ctrl-C included."""
        if self._process is None:
            return
        process, self._process = self._process, None
        _kill(process)
        for stream in (process.stdin, process.stdout, self._errors):
            # What could not be sent any more has no reader.
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def _call(self, message: Any, calls: int) -> Outcome:
        if len(self._in_a_row) >= GIVE_UP:
            last = self._in_a_row[-1]
            return Outcome(trouble=last.trouble, sentence=f"is not tried: {GIVE_UP} cases in a row: {last.sentence}")
        answer = self._answer(message, self._timeout * calls)
        if isinstance(answer, Exception):
            raise answer
        # The next call starts a fresh process.
        if answer.trouble in ("hangs", "dies"):
            self.stop()
            self._in_a_row.append(answer)
        else:
            self._in_a_row.clear()
        outcome: Outcome = answer
        return outcome

    def _answer(self, message: Any, seconds: float) -> Any:
        try:
            if self._process is None:
                self.start()
        except TargetError as error:
            return Outcome(trouble="dies", sentence=f"does not load again: {error}")
        self._send(message)
        return self._received(seconds, f"within {self._timeout:g} s (--timeout)")

    def _send(self, message: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            packed = pickle.dumps(message)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            msg = f"`init` of a target that is named by text must be plain values: {frameworks.short(error)}"
            raise InputError(msg) from error
        # A child that is dead already is noticed where its answer is waited for.
        with contextlib.suppress(OSError):
            self._process.stdin.write(packed)
            self._process.stdin.flush()

    def _received(self, seconds: float, limit: str) -> Any:
        """The next message, or the outcome that stands for none."""
        try:
            message = self._inbox.get(timeout=seconds)
        except queue.Empty:
            return Outcome(trouble="hangs", sentence=f"does not return {limit}")
        return self._death() if message is None else message

    def _death(self) -> Outcome:
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            # The pipe may close before the exit code is there.
            self._process.wait(timeout=1.0)
        if self._process.poll() is None:
            return Outcome(trouble="dies", sentence="closes or garbles the pipe to its parent")
        code = self._process.returncode
        self._errors.seek(0)
        last_words = self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        why = f": {frameworks.short(last_words[-1])}" if last_words else ""
        return Outcome(trouble="dies", sentence=f"ends the process with {how}{why}")


def _listen(stream: IO[bytes], inbox: "queue.Queue[Any]") -> None:
    """Hand on what comes; None at the end, or where what comes cannot be read."""
    try:
        while True:
            inbox.put(pickle.load(stream))
    except Exception:
        inbox.put(None)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
