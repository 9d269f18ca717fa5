"""Threads that share the strips of rows: the one place that starts them.

Each thread takes its strips in a fixed order and accumulates on its own; results are joined in the order of the
threads, so that they are the same on every run for a given block size and thread count. BLAS is held to one thread
meanwhile, by threadpoolctl; without that package it has as many as it takes, and the threads wait for one another.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from threading import Event, Lock
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="nceref")


class _Blas:
    """Holds BLAS to one thread during a call: the limit is the process's, so the last of overlapping calls lifts it."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.limiter: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0 and (controller := _controller()):
                self.limiter = controller.limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.limiter is not None:
                self.limiter.restore_original_limits()


@cache
def _controller() -> Any:
    """The controller of threadpoolctl; None without the package."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


_blas = _Blas()


def one_blas_thread() -> _Blas:
    """Context in which products of matrices run on one thread of BLAS."""
    return _blas


def _start_over() -> None:
    """A forked child has the pool but none of its threads, and would wait for them for ever."""
    _pool.cache_clear()
    _blas.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of parameters in malloc.h."""


@cache
def keep_freed_blocks() -> None:
    """Let the C library keep freed blocks for the next ones.

    glibc hands memory back to the system above a threshold, and every new block would be mapped and zeroed page by
    page. The threshold follows the largest array that was freed, up to 32 MiB; this one is never touched. Where the
    environment sets one, as Dask does for its workers, nothing follows, and both are set by name.
    """
    if "MALLOC_TRIM_THRESHOLD_" in os.environ:
        with suppress(OSError, AttributeError):
            import ctypes

            options = ctypes.CDLL(None)
            options.mallopt(_TRIM_THRESHOLD, 64 << 20)
            options.mallopt(_MMAP_THRESHOLD, 32 << 20)
    with suppress(MemoryError):
        np.empty(31 << 20, dtype=np.uint8)


def share(work: Callable[[Iterable[Any]], T], strips: Sequence[slice], threads: int) -> list[T]:
    """Results of `work` on shares of the strips, in the order of the threads; one share for 0 threads, or 1.

    Where one of them raises, or the caller is interrupted, the others end with the strip at which they are, and none
    is running any more when the exception arrives.

    `work` goes once through an iterable of strips, and runs with the caller's context. Strips are dealt to and fro: of
    a triangle, whose strips get shorter, all threads get about the same area. 0 threads leave BLAS its own as well.
    """
    if threads == 0:
        return [work(strips)]
    keep_freed_blocks()
    turns = 2 * min(threads, len(strips))
    with _blas:
        # Within a turn, thread t gets strip t from the front and strip t from the back.
        shares = [[s for i, s in enumerate(strips) if i % turns in (t, turns - 1 - t)] for t in range(turns // 2)]
        if len(shares) == 1:
            return [work(strips)]
        return _together(work, shares)


def _together(work: Callable[[Iterable[Any]], T], shares: list[list[slice]]) -> list[T]:
    stop, started = Event(), []
    try:
        for own in shares:
            started.append(_started(len(shares), work, _until(stop, own)))
        running = set(started)
        while running:
            # Not for ever: the signal of Ctrl-C may wake another thread than this one, which then has to look for it.
            done, running = wait(started, timeout=0.2, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        return [future.result() for future in started]
    except BaseException:
        stop.set()
        wait(started)
        raise


def _until(stop: Event, strips: Iterable[slice]) -> Iterator[slice]:
    for strip in strips:
        if stop.is_set():
            return
        yield strip


def _started(threads: int, work: Callable[[Iterable[Any]], T], strips: Iterable[Any]) -> "Future[T]":
    """A share of the work in a thread, or done already where the interpreter is shutting down and starts none."""
    # The settings of `config` are context variables: work that reads them reads the caller's.
    context = copy_context()
    try:
        return _pool(threads).submit(context.run, _quietly, work, strips)
    except RuntimeError:
        done: Future[T] = Future()
        done.set_result(context.run(_quietly, work, strips))
        return done


def _quietly(work: Callable[[Iterable[Any]], T], strips: Iterable[Any]) -> T:
    """The result of `work` without NumPy's warnings: the caller checks whether numbers in it left the range."""
    with np.errstate(all="ignore"):
        return work(strips)
