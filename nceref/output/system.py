"""What this system can start: the one place that decides whether work has threads and processes, or this one alone."""

import errno
import sys
from functools import cache

_WITHOUT_PROCESSES = frozenset({"emscripten", "wasi"})
"""Platforms on which Python can start none: that of browsers, and of other hosts of WebAssembly."""
_FOR_NOW = frozenset({errno.EAGAIN, errno.ENOMEM})
"""Errors of a system that is full, and not of one without processes."""


@cache
def threads_available() -> bool:
    """Whether a thread can be started; one is, to find out.

    Returns
    -------
    bool
    """
    from threading import Thread

    thread = Thread(target=int)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


def processes_available(*, attempt: bool = True) -> bool:
    """Whether processes can be started, and threads that talk to them.

    Parameters
    ----------
    attempt : bool
        Whether a process is started to find out, once; without it, the name of the platform is all that counts.

    Returns
    -------
    bool
    """
    return sys.platform not in _WITHOUT_PROCESSES and (not attempt or (_starts_processes() and threads_available()))


@cache
def _starts_processes() -> bool:
    import subprocess

    nowhere = subprocess.DEVNULL
    try:
        # Python says its version before it starts anything of its own.
        subprocess.run([sys.executable, "-V"], stdin=nowhere, stdout=nowhere, stderr=nowhere, check=False)
    except OSError as error:
        return error.errno in _FOR_NOW
    return True
