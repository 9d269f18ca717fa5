"""Settings of a user: the side of a block, the number of threads, and the memory kept between the two passes."""

import math
import os
from contextvars import ContextVar
from functools import cache
from typing import Any

from nceref.engine.arguments import integer
from nceref.engine.namespaces import array_namespace, free_bytes, number_format, on_host
from nceref.output.system import processes_available, threads_available

LEAST_PAIRS = 1 << 20
"""The number of logits below which starting threads costs more than it saves."""
MOST_THREADS = 1024
"""The most threads: each holds a gradient of the candidates, and no host has more processors that share a memory."""
_SETTINGS: dict[str, tuple[ContextVar[Any], int, int | None]] = {
    "block": (ContextVar("block", default=None), 1, None),
    "threads": (ContextVar("threads", default=None), 1, MOST_THREADS),
    "keep": (ContextVar("keep", default=None), 0, None),
}
"""The settings with their least and their largest value."""


class config:  # noqa: N801 - it reads as a function, and is used in a ``with`` statement as well
    """Set block size, thread count and kept memory: from here on, or within a ``with`` statement.

    Results change by rounding only; for given settings they are the same on every run.

    Parameters
    ----------
    block : int, optional
        Side of the square blocks, at least 1; default 512, on a device as large as a share of its free memory. Memory
        beyond inputs, gradients and what is kept: for each thread, a few blocks and one gradient of the candidates.
    threads : int, optional
        From 1 to 1024; default: the environment variable NCEREF_THREADS, else the processors this process may use.
    keep : int, optional
        Bytes of logits that may be kept between the passes for value and gradient, at least 0; a larger batch computes
        them twice. Default 64 MiB, on a device a quarter of its free memory.

    Raises
    ------
    InputError
        For anything that is not such an integer.
    """

    def __init__(self, *, block: int | None = None, threads: int | None = None, keep: int | None = None) -> None:
        given = {"block": block, "threads": threads, "keep": keep}
        chosen = {name: integer(f"`{name}`", x, *_SETTINGS[name][1:]) for name, x in given.items() if x is not None}
        self._tokens = [(_SETTINGS[name][0], _SETTINGS[name][0].set(value)) for name, value in chosen.items()]

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        for variable, token in reversed(self._tokens):
            variable.reset(token)


def chosen(name: str) -> int | None:
    """The value of a setting in `config`; None for the default."""
    value: int | None = _SETTINGS[name][0].get()
    return value


def block_shape(n: int, m: int, like: Any, whole_rows: bool, square: bool = False) -> tuple[int, int]:
    """Height and width of a block; whole rows, and few rows, come in strips of about the same area.

    Parameters
    ----------
    n, m : int
        Anchors and candidates.
    like : array
        Of the library, dtype and device of the logits.
    whole_rows : bool
        Whether a block must span all candidates.
    square : bool
        Whether blocks are mirrored, which only square ones are.
    """
    block = chosen("block") or _fitting(free_bytes(like), number_format(array_namespace(like), like.dtype).bits // 8)
    # Every thread gets a strip, however few the anchors are.
    height = min(block, -(-n // max(threads_for(n * m, like), 1)))
    if whole_rows:
        return min(max(16, block * block // m), height), m
    return height, height if square else block * block // height


def _fitting(free: int | None, itemsize: int) -> int:
    """Side of a block by default: 512 on a host, whose caches it suits; a 16th of the free memory of a device."""
    return 512 if free is None else min(max(math.isqrt(free // (16 * itemsize)), 256), 8192)


def threads_for(pairs: int, like: Any) -> int:
    """Threads for so many logits.

    Parameters
    ----------
    pairs : int
        Anchors times candidates.
    like : array
        Of the library of the logits.

    Returns
    -------
    int
        0 where threads do not pay, or where a library brings its own parallelism.
    """
    return thread_count() if pairs >= LEAST_PAIRS and on_host(like) else 0


def cache_limit(like: Any) -> int:
    """Bytes of tiles that may be kept between the passes."""
    limit = chosen("keep")
    if limit is not None:
        return limit
    free = free_bytes(like)
    return 64 << 20 if free is None else free // 4


def thread_count() -> int:
    """Threads that share a large batch."""
    threads = chosen("threads")
    wanted = _default_threads(os.environ.get("NCEREF_THREADS")) if threads is None else threads
    return wanted if wanted == 1 or threads_available() else 1


def process_count() -> int:
    """Processes that share independent work: as many as threads, and 1 where none can be started."""
    wanted = thread_count()
    return wanted if wanted == 1 or processes_available() else 1


@cache
def _default_threads(text: str | None) -> int:
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else text
    return integer("the environment variable NCEREF_THREADS", number, 1, MOST_THREADS)
