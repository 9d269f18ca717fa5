"""The means of this system: packages that are recent enough, and threads and processes, or this one alone."""

import errno
import re
import sys
from functools import cache
from types import ModuleType

from nceref.errors import UnavailableError

OLDEST = {"numpy": "2.1", "array_api_compat": "1.11", "click": "8.3"}
"""The oldest version of each package that every command or every loss imports, as pyproject.toml has it."""

_WITHOUT_PROCESSES = frozenset({"emscripten", "wasi"})
"""Platforms on which Python can start none: that of browsers, and of other hosts of WebAssembly."""
_FOR_NOW = frozenset({errno.EAGAIN, errno.ENOMEM})
"""Errors of a system that is full, and not of one without processes."""


def refuse_older(*packages: ModuleType) -> None:
    """Raise for a package that is older than what is needed: another one that was installed later may have brought it.

    `*packages`: as they were imported, of those in `OLDEST`. Raises `UnavailableError` with the version that is needed
    and the one that is there.
    """
    for package in packages:
        # click has had none of its own since 8.2, and would warn where it is asked for one.
        version, oldest = vars(package).get("__version__"), OLDEST[package.__name__]
        if version is not None and _release(version) < _release(oldest):
            name = package.__name__.replace("_", "-")
            command = f"pip install '{name}>={oldest}'"
            msg = f"nceref needs {name} {oldest} or later, and this Python has {name} {version}: {command}"
            raise UnavailableError(msg)


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, without what comes after a release."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


@cache
def threads_available() -> bool:
    """Whether a thread can be started; one is, to find out."""
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

    With `attempt`, a process is started to find out, once; without it, the name of the platform is all that counts.
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
