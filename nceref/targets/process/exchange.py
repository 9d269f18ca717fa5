"""The parent's end of the two pipes: a request out, its answer back, and nobody waits longer than the limit.

A thread of its own writes and reads, on every system alike: a child that is stopped reads nothing, one that has left a
process behind does not close its end, and neither blocks the caller.
"""

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from nceref.targets.process.wire import Frame, Limits, WireError, packed, read_frame

_PAUSE = 0.1
"""Seconds between two looks at whether the process is still there."""
_GRACE = 1.0
"""Seconds in which what a process has written before its end is read."""


def awaited(answers: "queue.Queue[Any]", seconds: float, ended: Callable[[], bool]) -> Any:
    """The next answer in a queue; raises as `Exchange.receive` does, and what stands in the queue in its place."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        gone = ended()
        try:
            answer = answers.get(timeout=_GRACE if gone else min(left, _PAUSE))
        except queue.Empty:
            if gone:
                break
            continue
        if isinstance(answer, Exception):
            raise answer
        return answer
    else:
        raise TimeoutError
    raise EOFError


class Exchange:
    """Requests and answers, one after the other.

    `thread` closes the pipes `requests` and `replies` once both ends are done with them.
    """

    def __init__(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._jobs: queue.Queue[tuple[bytes, int, Limits] | None] = queue.Queue()
        self._answers: queue.Queue[Frame | Exception] = queue.Queue()
        self._number = 0
        self._requests = requests
        self.thread = threading.Thread(target=self._serve, args=(requests, replies), daemon=True)
        self.thread.start()

    def send(self, content: Any, limits: Limits) -> None:
        """Send a request, whose answer may be that large; raises `WireError` for what is no plain data."""
        self._number += 1
        self._jobs.put((packed(self._number, content), self._number, limits))

    def receive(self, seconds: float, ended: Any) -> Any:
        """The next answer.

        It is awaited for `seconds`. `ended` says whether the process is gone: other processes that it has started may
        hold the pipe open. Raises `TimeoutError` if there is no answer in time, `EOFError` if the pipe is closed or the
        process gone, and `WireError` for anything that is no answer.
        """
        return awaited(self._answers, seconds, ended).content

    def interject(self, content: Any, seconds: float) -> Any:
        """The answer to a question in between, from a child that owes another one; None if there is none in time."""
        try:
            # The thread that waits for the answer reads this one in its place.
            write_all(self._requests, packed(self._number, content))
            answer = self._answers.get(timeout=seconds)
        except (queue.Empty, OSError, ValueError):
            return None
        return None if isinstance(answer, Exception) else answer.content

    def close(self) -> None:
        """Have the thread close the pipes, at once or when the last process that holds them is gone."""
        self._jobs.put(None)

    def _serve(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        with requests, replies:
            while (job := self._jobs.get()) is not None:
                self._answers.put(_exchanged(requests, replies, *job))


def _exchanged(requests: IO[bytes], replies: IO[bytes], content: bytes, number: int, limits: Limits) -> Any:
    """The answer, or the exception that stands for none."""
    try:
        write_all(requests, content)
        frame = read_frame(lambda count: os.read(replies.fileno(), count), limits)
    except (EOFError, WireError) as error:
        return error
    # Some systems report so that the other end is gone.
    except OSError:
        return EOFError()
    return frame if frame.number == number else WireError("an answer to another request")


def write_all(stream: IO[bytes], content: bytes) -> None:
    """Write all of it, or as much as the other end takes before it is gone."""
    rest = memoryview(content)
    try:
        while rest:
            rest = rest[os.write(stream.fileno(), rest) :]
    except BrokenPipeError:
        # A child that is gone: what it has said before may still be read.
        pass
