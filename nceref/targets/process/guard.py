"""Start of a child: on Linux it splits into the target's process and a guard that collects what the target starts.

The guard is the reaper of the whole tree: a process that detaches itself becomes the guard's child, so that it is seen
and ended. Nothing that takes long is imported before the split.
"""

import contextlib
import os
import signal
import sys

from nceref.targets.process import tree

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""


def main() -> None:
    """Run the target's process until its parent is gone; on Linux beside a guard, which ends as that process does.

    The second argument of the program, if there is one, is the plan of an isolation by namespaces.
    """
    if _split():
        _isolate(sys.argv[2:])
    from nceref.targets.process import child_main

    child_main.main()


def execute() -> None:
    """Become the program that the further arguments name, on Linux beside a guard, which ends as that does."""
    _split()
    # Python ignores it, and so would the program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        os.write(2, f"it cannot be executed: {error.strerror}\n".encode())
        os._exit(126)


def _split() -> bool:
    """Go on in the target's process beside a guard; False where the system has no guard."""
    if sys.platform != "linux" or not tree.AVAILABLE:
        return False
    # Where the caller ignores it, there would be nothing to wait for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _adopt()
    target = os.fork()
    if target:
        _guard(target)
    # Signals to its group do not reach the guard.
    os.setsid()
    return True


def probe() -> None:
    """Isolate this process, and end: whether the system permits it."""
    _isolate(sys.argv[2:])


def _isolate(plan: list[str]) -> None:
    """Go on in new namespaces, as the second process there: the first one takes away what has ended."""
    if not plan:
        return
    import json

    from nceref.targets.process import namespaces

    namespaces.enter()
    first = os.fork()
    if first:
        _end_as(_status(first))
    namespaces.furnish(**json.loads(plan[0]))
    second = os.fork()
    if second:
        _end_as(_status(second))


def _status(process: int) -> int:
    """The exit status of a process; other children are collected meanwhile, and its group is killed with it."""
    while (dead := _dead()) != process:
        os.waitpid(dead, 0)
    # Until it is taken away, its number is that of its group and nobody else's.
    with contextlib.suppress(OSError):
        os.killpg(process, signal.SIGKILL)
    return os.waitpid(process, 0)[1]


def _dead() -> int:
    """A child that has ended, and is not taken away yet."""
    child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert child is not None
    return child.si_pid


def _adopt() -> None:
    """Become the parent of orphans below this process."""
    import ctypes

    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _guard(target: int) -> None:
    """Wait for the target's process, end what it leaves behind, and end in the same way."""
    import _thread

    for number in signal.valid_signals() - {signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    # Who holds the pipe of the replies keeps the parent waiting for its end.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    _thread.start_new_thread(_watch, ())
    status = _status(target)
    _end()
    _end_as(status)


def _watch() -> None:
    """End everything when nobody holds the other end of standard input any more: the parent is gone."""
    import select

    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    # The target's process among it, which the main thread waits for.
    _end_tree()


def _end() -> None:
    """End and collect what is left, if there is anything: who has no child here has no process below."""
    with contextlib.suppress(ChildProcessError):
        # Nothing is taken away yet: the dead show which groups there are.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        while True:
            _end_tree()
            # What a look has missed was forked by one that has ended since, and is looked for again.
            _dead()
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _end_tree() -> None:
    tree.end_tree(os.getpid(), os.environ.get(tree.MARK, ""), tree.birth(os.getpid()))


def _end_as(status: int) -> None:
    """Exit with a code, or by the signal that has ended the target."""
    import resource

    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        # One core file is enough.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    # The first process of a namespace cannot end itself by a signal; this is how shells write one.
    os._exit(code if code >= 0 else 128 - code)
