"""The parent's end of the pipes to a process that reads and writes lines, and that nobody may wait for too long.

One thread writes, another one reads, on every system alike: a process that is stopped reads nothing, one that has left
another behind does not close its end, and what it prints without being called for is there as well.
"""

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from nceref.targets import protocol
from nceref.targets.frameworks.call import Trouble

_PAUSE = 0.1
"""Seconds between two looks at whether the process is still there."""
_GRACE = 1.0
"""Seconds in which what a process has written before its end is read."""
_CHUNK = 1 << 16
_UNREAD = 100
"""Lines that a process may be ahead."""


class Exchange:
    """Lines to a process and lines that it writes.

    `threads` close the pipes `requests` and `replies` once both ends are done with them.
    """

    def __init__(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._jobs: queue.Queue[bytes | None] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()
        self._longest = 0
        self._begun: list[bytes] = []
        ends = ((self._write, requests), (self._read, replies))
        self.threads = [threading.Thread(target=work, args=(stream,), daemon=True) for work, stream in ends]
        for thread in self.threads:
            thread.start()

    def send(self, line: bytes, longest: int) -> None:
        """Send a line, whose answer may have that many bytes."""
        self._longest = longest
        self._jobs.put(line)

    def receive(self, seconds: float, ended: Callable[[], bool]) -> bytes:
        """The next line, with its end; the last one before the process ended may have none.

        It is awaited for `seconds`. `ended` says whether the process is gone: other processes that it has started may
        hold the pipe open. Raises `TimeoutError` if there is no line in time, `EOFError` if the pipe is closed or the
        process gone, and `Trouble` for a line that is too long.
        """
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            gone = ended()
            try:
                answer = self._answers.get(timeout=_GRACE if gone else min(left, _PAUSE))
            except queue.Empty:
                if gone:
                    raise EOFError from None
                continue
            if isinstance(answer, Exception):
                raise answer
            return bytes(answer)
        raise TimeoutError

    def unread(self) -> bytes:
        """A line that nobody has called for, or nothing."""
        try:
            line = self._answers.get_nowait()
        except queue.Empty:
            return b""
        if isinstance(line, bytes):
            return line
        # For who receives next.
        self._answers.put(line)
        return b""

    def unfinished(self) -> bytes:
        """The beginning of a line whose end has not come."""
        return b"".join(self._begun)

    def close(self) -> None:
        """Have the pipes closed, at once or when the last process that holds them is gone."""
        self._jobs.put(None)

    def _write(self, requests: IO[bytes]) -> None:
        with requests:
            while (line := self._jobs.get()) is not None:
                try:
                    rest = memoryview(line)
                    while rest:
                        rest = rest[os.write(requests.fileno(), rest) :]
                # A process that is gone, which systems report in several ways: what it has written may still be read.
                except OSError:
                    continue

    def _read(self, replies: IO[bytes]) -> None:
        with replies:
            self._answers.put(self._last(replies))

    def _last(self, replies: IO[bytes]) -> Exception:
        """The exception after the last line: the end of the stream, or too much output. Lines are queued as answers."""
        size = 0
        while chunk := _chunk(replies):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                self._answers.put(b"".join([*self._begun, line, b"\n"]))
                self._begun, size = [], 0
            self._begun.append(rest)
            size += len(rest)
            if size > self._longest:
                return Trouble(f"prints a line of more than {self._longest:,} bytes", protocol.BROKEN)
            if self._answers.qsize() > _UNREAD:
                return Trouble(f"prints more than {_UNREAD} lines that nobody has called for", protocol.BROKEN)
        if size:
            self._answers.put(self.unfinished())
        return EOFError()


def _chunk(replies: IO[bytes]) -> bytes:
    try:
        return os.read(replies.fileno(), _CHUNK)
    except OSError:
        return b""
