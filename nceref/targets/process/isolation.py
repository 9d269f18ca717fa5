"""A target's process without network, other processes and files that it can change: by bubblewrap, or namespaces.

Both show the same: the file system read-only, a `/tmp` of its own, few devices, no network, no process but its own. The
parent chooses what works on this system; what has to be done inside, `enter` and `furnish`, is called by the guard.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nceref.errors import UnavailableError
from nceref.output.text import printable
from nceref.targets.process import namespaces

_PRIVATE = ("/tmp", "/var/tmp", "/run")
"""Folders that the target sees empty: it may write there, and sockets of other programs are not there."""
_PROBE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from nceref.targets.process.guard import probe; probe()"
)
_PATIENCE = 60.0
"""Seconds for the probe, on a machine that does much else."""


@dataclass(frozen=True)
class Isolation:
    """A way to isolate a process: what its command line begins and ends with.

    Attributes
    ----------
    name : str
        Name in a report: ``bubblewrap`` or ``namespaces``.
    prefix : tuple of str
        First words of the command line.
    arguments : tuple of str
        Last words of the command line, for the guard.
    """

    name: str
    prefix: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def isolation(folder: Path) -> Isolation:
    """The way to isolate processes on this system; the target's `folder` is visible inside.

    Raises `UnavailableError` if no way works: the message says what is missing.
    """
    return _chosen(folder, Path.cwd(), tuple(sys.path))


@cache
def _chosen(folder: Path, current: Path, imports: tuple[str, ...]) -> Isolation:
    if sys.platform != "linux":
        msg = f"`isolate` needs namespaces of Linux, which {sys.platform} has not; leave it out, or use a container"
        raise UnavailableError(msg)
    kept, private = _seen([folder, current, *map(Path, imports)])
    reasons = []
    for candidate in (_bubblewrap(kept, private), _namespaces(kept, private)):
        if isinstance(candidate, Isolation) and not (why := _failure(candidate)):
            return candidate
        reasons.append(candidate if isinstance(candidate, str) else f"{candidate.name}: {why}")
    msg = f"`isolate` is not possible here ({'; '.join(reasons)}); install bubblewrap, or have unprivileged user "
    msg += "namespaces permitted; without it the target may do whatever you may"
    raise UnavailableError(msg)


def _bubblewrap(kept: Iterable[str], private: Iterable[str]) -> Isolation | str:
    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not installed"
    options = ["--unshare-user-try", *(f"--unshare-{kind}" for kind in ("pid", "net", "ipc", "uts"))]
    options += ["--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in namespaces.accelerators():
        options += ["--dev-bind-try", path, path]
    for path in private:
        options += ["--tmpfs", path]
    for path in kept:
        options += ["--ro-bind", path, path]
    return Isolation("bubblewrap", (program, *options, "--chdir", str(Path.cwd()), "--"))


def _namespaces(kept: Iterable[str], private: Iterable[str]) -> Isolation:
    plan = {"kept": list(kept), "private": list(private)}
    return Isolation("namespaces", arguments=(json.dumps(plan),))


def _failure(candidate: Isolation) -> str:
    """The reason why a way does not work, found out by trying it; empty if it does."""
    command = [*candidate.prefix, sys.executable, "-P", "-c", _PROBE, json.dumps(sys.path), *candidate.arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return printable(error)
    lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
    return printable(lines[-1]) if done.returncode else ""


def _seen(folders: Iterable[Path]) -> tuple[list[str], list[str]]:
    """The folders inside private ones that are shown all the same, and the private ones."""
    needed = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable), *folders]
    places = {path for given in needed for path in (given.absolute(), given.resolve()) if given.exists()}
    # Where such a folder itself is needed it stays as it is, read-only.
    private = [Path(p) for p in _PRIVATE if Path(p).is_dir() and not any(Path(p).is_relative_to(x) for x in places)]
    inside = {str(path) for path in places if any(path.is_relative_to(p) for p in private)}
    return sorted(inside), [str(path) for path in private]
