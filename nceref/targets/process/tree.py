"""The processes that a target has started, however they have detached themselves: found in /proc, and ended.

Descendants of the guard are theirs, and so is every process that has inherited the mark in the environment: it stays
where the guard was killed. What takes both away from itself is not seen; see docs/security.md.
"""

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from typing import NamedTuple

MARK = "NCEREF_TARGET"
"""The environment variable that all processes of one child inherit."""
AVAILABLE = os.access("/proc/self/stat", os.R_OK)
_PASSES = 200
_SECONDS = 5.0
"""Seconds for which processes are searched for and killed, on a machine where one look takes long."""
_PAUSE = 0.005
"""Seconds between two looks at processes that have been killed."""


class _Entry(NamedTuple):
    """One line of the table of processes."""

    parent: int
    group: int
    state: bytes
    born: int
    cpu: int


def end_tree(root: int, mark: str, born: int = 0, looks: int = 1) -> tuple[int, ...]:
    """End all processes below a process, and all that have the mark; not the process itself.

    A process that goes on in a new one all the time is gone when it is looked up. Its group is not: a signal reaches
    all of a group at once, also what is forked meanwhile. What makes a new group each time may be missed.

    `root` is the guard, 0 where it is gone, since its number may be another's by now. `mark` is the value of the
    variable `MARK`. `born` is the start of the guard, as `birth` gives it: older processes are none of them. The search
    is over when `looks` looks have found no process; more than one is needed where nobody collects what a look has
    missed. Returns the processes that still live, as far as they are seen.
    """
    # Stopped first, all of them: one that is killed makes room for what the others fork.
    stopped: set[int] = set()
    end = time.monotonic() + _SECONDS
    for _ in range(_PASSES):
        new = _theirs(root, mark, born) - stopped
        if not new or time.monotonic() > end - _SECONDS / 2:
            break
        _signal(new, signal.SIGSTOP)
        stopped |= new
    # One whose parent has died first is below nobody, and on a busy machine it lives a little longer than the signal.
    killed: dict[int, int] = {}
    for _ in range(_PASSES):
        theirs = _theirs(root, mark, born) | _living(killed)
        _signal(theirs, signal.SIGKILL)
        killed |= {pid: began for pid in theirs if pid > 0 and pid not in killed and (began := birth(pid))}
        # Groups of the dead are there until somebody takes these away.
        looks = looks if any(pid > 0 for pid in theirs) else looks - 1
        if looks == 0:
            return ()
        if time.monotonic() > end:
            break
        time.sleep(_PAUSE)
    return tuple(sorted(pid for pid in _theirs(root, mark, born) | _living(killed) if pid > 0))


def processes(root: int, mark: str, born: int) -> tuple[int, ...]:
    """The living processes below a process and those that have the mark; the arguments are those of `end_tree`."""
    return tuple(sorted(pid for pid in _theirs(root, mark, born) if pid > 0))


def cpu_ticks(pid: int) -> int:
    """The CPU time that a process has taken, in ticks; 0 if there is no such process."""
    entry = _entry(pid)
    return entry.cpu if entry else 0


def resident(pid: int, field: str) -> int | None:
    """The bytes of a process in memory: now, ``VmRSS``, or at most so far, ``VmHWM``; None where nobody says."""
    lines = _read(f"/proc/{pid}/status").splitlines()
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:".encode())), None)


def birth(pid: int) -> int:
    """The time at which a process began, in ticks since the system did; 0 if there is no such process."""
    entry = _entry(pid)
    return 0 if entry is None else entry.born


def _living(births: Mapping[int, int]) -> set[int]:
    """The processes that still live, by number and birth: a number alone may be that of another process by now."""
    entries = {pid: _entry(pid) for pid in births}
    return {pid for pid, e in entries.items() if e and e.born == births[pid] and e.state not in b"ZX"}


def _signal(theirs: set[int], number: int) -> None:
    # A negative number is a group.
    for pid in theirs:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _theirs(root: int, mark: str, born: int) -> set[int]:
    """The living processes below `root`, and those with the mark and what is below them; negative, their groups."""
    with os.scandir("/proc") as listed:
        pids = [int(each.name) for each in listed if each.name.isdecimal()]
    table = {pid: entry for pid in pids if (entry := _entry(pid))}
    below: dict[int, list[int]] = {}
    for pid, entry in table.items():
        below.setdefault(entry.parent, []).append(pid)
    wanted = f"{MARK}={mark}".encode()
    own = {os.getpid(), root}
    waiting = [root] if root else []
    marked = [pid for pid, entry in table.items() if entry.born >= born and pid not in own and _marked(pid, wanted)]
    # At the first look, one that has begun since was still in the group of the process that started it.
    table |= (now := {pid: entry for pid in marked if (entry := _entry(pid))})
    waiting += now
    theirs: set[int] = set()
    while waiting:
        pid = waiting.pop()
        if pid not in theirs:
            theirs.add(pid)
            waiting += below.get(pid, [])
    theirs -= own
    # The target has begun a session, so that groups are theirs alone; but before that it is in the guard's.
    groups = {table[pid].group for pid in theirs} - {table[pid].group for pid in own if pid in table}
    # Of another namespace, and -1 would be everybody.
    groups -= {0, 1}
    # A zombie is dead, but others of its group may live.
    return {pid for pid in theirs if table[pid].state not in b"ZX"} | {-group for group in groups}


def _entry(pid: int) -> _Entry | None:
    # The name in parentheses may hold anything.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields:
        return None
    return _Entry(int(fields[1]), int(fields[2]), fields[0], int(fields[19]), int(fields[11]) + int(fields[12]))


def _marked(pid: int, wanted: bytes) -> bool:
    return wanted in _read(f"/proc/{pid}/environ").split(b"\0")


def _read(path: str) -> bytes:
    """A file of /proc; nothing where the process has ended meanwhile, or is another user's."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 1 << 22)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
