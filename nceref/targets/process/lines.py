"""The parent's end of the pipes to a program that reads and writes lines, and that nobody may wait for too long.

One thread writes, another one reads: what the program prints without being called for is there as well.
"""

import os
import queue
import threading
from collections.abc import Callable
from typing import IO, Any

from nceref.targets.process.exchange import awaited, write_all
from nceref.targets.process.wire import WireError

_CHUNK = 1 << 16
_UNREAD = 100
"""Lines that a program may be ahead."""


class LineExchange:
    """Lines to a program and lines that it prints.

    The threads close the pipes `requests` and `replies` once both ends are done with them.
    """

    def __init__(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._jobs: queue.Queue[bytes | None] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()
        self._longest = 0
        for work, stream in ((self._write, requests), (self._read, replies)):
            threading.Thread(target=work, args=(stream,), daemon=True).start()

    def send(self, line: str, longest: int) -> None:
        """Send a line, whose answer may have that many bytes."""
        self._longest = longest
        self._jobs.put(line.encode() + b"\n")

    def receive(self, seconds: float, ended: Callable[[], bool]) -> str:
        """The next line; raises as `Exchange.receive` does, `WireError` for one that is too long."""
        return bytes(awaited(self._answers, seconds, ended)).decode(errors="replace").removesuffix("\r")

    def unread(self) -> str:
        """A line that nobody has called for, or nothing."""
        try:
            line = self._answers.get_nowait()
        except queue.Empty:
            return ""
        if isinstance(line, bytes):
            return line.decode(errors="replace") or "an empty line"
        # For who receives next.
        self._answers.put(line)
        return ""

    def close(self) -> None:
        """Have the pipes closed, at once or when the last process that holds them is gone."""
        self._jobs.put(None)

    def _write(self, requests: IO[bytes]) -> None:
        with requests:
            while (line := self._jobs.get()) is not None:
                try:
                    write_all(requests, line)
                # Some systems report so that the other end is gone.
                except OSError:
                    continue

    def _read(self, replies: IO[bytes]) -> None:
        with replies:
            self._answers.put(self._last(replies))

    def _last(self, replies: IO[bytes]) -> Exception:
        """The exception after the last line: the end of the stream, or too much output. Lines are queued as answers."""
        parts: list[bytes] = []
        size = 0
        while chunk := _chunk(replies):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                self._answers.put(b"".join([*parts, line]))
                parts, size = [], 0
            parts.append(rest)
            size += len(rest)
            if size > self._longest:
                return WireError(f"prints a line of more than {self._longest:,} bytes")
            if self._answers.qsize() > _UNREAD:
                return WireError(f"prints more than {_UNREAD} lines that nobody has called for")
        if size:
            self._answers.put(b"".join(parts))
        return EOFError()


def _chunk(replies: IO[bytes]) -> bytes:
    try:
        return os.read(replies.fileno(), _CHUNK)
    except OSError:
        return b""
