"""A target that is named by text where the system starts no processes: it is loaded and called in this one."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nceref.targets import protocol
from nceref.targets.frameworks.call import Trouble
from nceref.targets.global_state import kept_surroundings
from nceref.targets.process import messages
from nceref.targets.process.child import ChildRunner
from nceref.targets.process.child_main import Answers
from nceref.targets.process.isolation import isolation


class LocalRunner(ChildRunner):
    """A `ChildRunner` without a child: the same messages, answered in this process.

    What hangs or crashes is not contained, and no time limit holds; what it raises is as in a child. Ctrl-C passes
    through.
    """

    def _launch(self, folder: Path) -> None:
        if self._isolate:
            # It says what is missing.
            isolation(folder)
        self._exchange = _LocalExchange()
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(kept_surroundings())
        self._stack.enter_context(_kept_imports(folder))
        self.running = True

    def processes(self) -> tuple[int, ...]:
        """The process of the checker, in which the target runs."""
        return (os.getpid(),)

    def stop(self) -> None:
        """Put back what the target has changed in this process."""
        if self.running:
            self.running = False
            self._stack.close()


class _LocalExchange:
    """Requests and answers as between two processes: the target gets copies, and hands out copies."""

    def __init__(self) -> None:
        self._answers = Answers()

    def send(self, line: bytes, longest: int) -> None:
        self._line, self._longest = line, longest

    def unread(self) -> bytes:
        return b""

    def receive(self, seconds: float, ended: Any) -> bytes:
        kind, content = protocol.record(protocol.received(self._line), messages.REQUESTS)
        with _no_terminal():
            answer = messages.packed(content["id"], self._answers(kind, content))
        if len(answer) > self._longest:
            msg = f"answers with more than {self._longest:,} bytes"
            raise Trouble(msg, protocol.BROKEN)
        return answer


@contextlib.contextmanager
def _no_terminal() -> Iterator[None]:
    """A context like a child's: nothing to read, no arguments, and what is printed while a target loads is dropped."""
    stdin, argv = sys.stdin, sys.argv[1:]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        sys.stdin, sys.argv[1:] = io.StringIO(), []
        try:
            yield
        finally:
            sys.stdin, sys.argv[1:] = stdin, argv


@contextlib.contextmanager
def _kept_imports(folder: Path) -> Iterator[None]:
    """Afterwards modules of the target's folder are forgotten: those of another may have the same names."""
    path, modules = sys.path.copy(), set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if isinstance(file, str) and Path(file).is_relative_to(folder):
                del sys.modules[name]
