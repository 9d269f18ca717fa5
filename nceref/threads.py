"""How large a block is and how many threads share the blocks: settings, and the one place that starts threads.

Each thread takes every T-th strip of rows and accumulates on its own; results are joined in the order of the threads,
so that they are the same on every run for a given block size and thread count. BLAS is held to one thread meanwhile.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from nceref.errors import InputError

Result = TypeVar("Result")
LEAST_PAIRS = 1 << 20
"""Below this many logits, starting threads costs more than it saves."""
_BLOCK: ContextVar[int] = ContextVar("block", default=512)
_THREADS: ContextVar[int | None] = ContextVar("threads", default=None)


class config:  # noqa: N801 - it reads as a function, and is used in a ``with`` statement as well
    """Set block size and thread count: from here on, or within a ``with`` statement.

    Results change by rounding only; for given settings they are the same on every run.

    Parameters
    ----------
    block : int, optional
        Side of the square blocks, at least 1; default 512. Memory beyond inputs and gradients is, for each thread, a
        few arrays of block x block numbers and one gradient of the candidates.
    threads : int, optional
        At least 1; default: the environment variable NCEREF_THREADS, else the processors this process may use.

    Raises
    ------
    InputError
        For anything that is not an integer >= 1.
    """

    def __init__(self, *, block: int | None = None, threads: int | None = None) -> None:
        given: list[tuple[ContextVar[Any], str, Any]] = [(_BLOCK, "`block`", block), (_THREADS, "`threads`", threads)]
        for _, name, value in given:
            if value is not None:
                _positive(name, value)
        self._tokens = [(variable, variable.set(value)) for variable, _, value in given if value is not None]

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        for variable, token in reversed(self._tokens):
            variable.reset(token)


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        msg = f"{name} must be an integer >= 1, got {value!r}"
        raise InputError(msg)
    return value


def block_size() -> int:
    """Side of a block."""
    return _BLOCK.get()


def thread_count() -> int:
    """Threads that share a large batch."""
    chosen = _THREADS.get()
    return _default_threads(os.environ.get("NCEREF_THREADS")) if chosen is None else chosen


@cache
def _default_threads(text: str | None) -> int:
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return _positive(
        "the environment variable NCEREF_THREADS",
        int(text) if text.isascii() and text.isdigit() and len(text) < 7 else text,
    )


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="nceref")


class _Blas:
    """Holds BLAS to one thread while anybody computes: the limit is the process's, so the last one out lifts it."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.limiter: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limiter = _controller().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.limiter is not None:
                self.limiter.restore_original_limits()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_blas = _Blas()


def _start_over() -> None:
    """A forked child has the pool but none of its threads, and would wait for them for ever."""
    _pool.cache_clear()
    _blas.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)


def share(work: Callable[[Sequence[Any]], Result], strips: Sequence[Any], pairs: int, host: bool) -> list[Result]:
    """Results of `work` on shares of the strips, in the order of the threads; one share where threads do not pay.

    Parameters
    ----------
    work : callable
        Takes a list of strips; runs with the caller's context.
    strips : sequence
        Strips of rows.
    pairs : int
        Number of logits in all.
    host : bool
        Whether the arrays are NumPy's; other libraries bring their own parallelism.
    """
    threads = min(thread_count(), len(strips)) if host and pairs >= LEAST_PAIRS else 1
    if threads == 1:
        return [work(strips)]
    with _blas:
        results = [_started(threads, work, strips[t::threads]) for t in range(threads)]
        return [result() for result in results]


def _started(threads: int, work: Callable[[Sequence[Any]], Result], strips: Sequence[Any]) -> Callable[[], Result]:
    """What waits for a share of the work, or does it where the interpreter is shutting down and starts no thread."""
    context = copy_context()
    try:
        return _pool(threads).submit(context.run, _quietly, work, strips).result
    except RuntimeError:
        return lambda: context.run(_quietly, work, strips)


def _quietly(work: Callable[[Sequence[Any]], Result], strips: Sequence[Any]) -> Result:
    """Numbers out of range are found by the caller, who checks what comes out."""
    with np.errstate(all="ignore"):
        return work(strips)
