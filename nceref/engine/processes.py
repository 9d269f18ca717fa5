"""Processes that share independent work: the one place that starts several of them for it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def in_processes(
    function: Callable[..., T], *items: Iterable[Any], processes: int, first: Callable[[], object] | None = None
) -> Iterator[T]:
    """Results of a function, in the order of its arguments; with one process they are computed here, one by one.

    `function` and `items`: as of `map`; other processes must be able to import the function. `first`: what each of
    several processes calls before it begins. An interrupt, or an error of one of them, ends all at once.
    """
    if processes == 1:
        yield from map(function, *items)
        return
    # Missing where no process can be started.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    others = active_children()
    # A fresh interpreter for each worker: a fork of a process with threads, such as a progress bar's, may hang.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=first) as pool:
        futures = deque(pool.submit(function, *one) for one in zip(*items, strict=False))
        try:
            while futures:
                yield futures.popleft().result()
        except BaseException:
            # Nobody waits for the rest. It is not canceled: the pool would stumble over that as its workers end.
            for worker in set(active_children()) - set(others):
                worker.terminate()
            raise
