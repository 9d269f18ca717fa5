"""Nothing that a target has started is left, whatever it does to its parent; and nothing else is touched."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from targets.test_targets import NT_XENT, probe_of

from nceref.targets import runner
from nceref.targets.process import child, tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show whose process is whose")

MOVING, THIS, ANOTHER = (f"{mark} of {os.getpid()}" for mark in ("moving", "this", "another"))
"""Marks; those of tests that run beside these are others."""
SLEEP = "sleep 600"
WAITS = "echo $$; read line"
"""One process: one that becomes another program has no environment for a moment."""
DETACHED = f"( setsid {SLEEP} & echo $!; setsid {SLEEP} & echo $! )"
"""Started in sessions of their own by a shell that is gone at once."""


def test_what_a_process_takes_is_read_and_of_one_that_is_gone_nothing(start):
    own = os.getpid()
    assert tree.cpu_ticks(own) > 0
    assert 0 < tree.resident(own, "VmRSS") <= tree.resident(own, "VmHWM")
    gone = start("exit 0")
    gone.wait()
    assert (tree.cpu_ticks(gone.pid), tree.resident(gone.pid, "VmRSS")) == (0, None)


@pytest.fixture
def start():
    """Start shell commands with a mark; those that are left are killed at the end."""
    groups = []

    def started(command, mark="", **options):
        environment = {**os.environ, tree.MARK: mark}
        command = ["sh", "-c", command] if isinstance(command, str) else command
        process = subprocess.Popen(
            command, bufsize=0, stdout=subprocess.PIPE, env=environment, process_group=0, **options
        )
        groups.append(process)
        return process

    yield started
    for process in groups:
        with process, contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def numbers(process, count):
    return [int(process.stdout.readline()) for _ in range(count)]


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def is_there(pid):
    """Whether a process lives; one that has ended may still be waited for by its parent."""
    return state(pid) not in "ZX"


def test_all_below_a_process_are_ended_but_not_itself_nor_others(start):
    root = start(
        f"echo $$; {SLEEP} & echo $!; sh -c 'echo $$; {SLEEP} & echo $!; kill -STOP $!; wait' & wait; kill -STOP $$"
    )
    other = start(f"echo $$; exec {SLEEP}")
    own, *below = numbers(root, 4)
    (foreign,) = numbers(other, 1)
    assert [is_there(pid) for pid in (own, *below, foreign)] == [True] * 5
    assert tree.end_tree(own, "nobody has this mark") == ()
    assert [is_there(pid) for pid in (own, *below, foreign)] == [True, False, False, False, True]


def test_one_that_lives_on_below_nobody_is_waited_for(start, monkeypatch):
    """A process whose parent has died is not found again, and lives until the signal reaches it."""
    (pid,) = numbers(start(f"echo $$; exec {SLEEP}"), 1)
    looks = iter([{pid}] * 3)
    monkeypatch.setattr(tree, "_theirs", lambda *_: next(looks, set()))
    monkeypatch.setattr(tree, "_signal", lambda *_: None)
    monkeypatch.setattr(tree, "_PASSES", 3)
    assert tree.end_tree(0, "nobody has this mark") == (pid,)


def test_what_has_the_mark_is_ended_where_nobody_knows_its_parent(start):
    left, others = start(DETACHED, THIS), start(DETACHED, ANOTHER)
    left.wait()
    others.wait()
    ours, theirs = numbers(left, 2), numbers(others, 2)
    try:
        assert tree.end_tree(0, THIS, tree.birth(ours[1]) + 1) == (), "older ones are nobody's"
        assert is_there(ours[0])
        assert tree.end_tree(0, THIS, tree.birth(os.getpid())) == ()
        assert [is_there(pid) for pid in (*ours, *theirs)] == [False, False, True, True]
    finally:
        tree.end_tree(0, ANOTHER)


def test_a_group_of_another_namespace_gets_no_signal_and_never_everybody(start, monkeypatch):
    (pid,) = numbers(start(WAITS, THIS, stdin=subprocess.PIPE), 1)
    entry = tree._entry
    for group, wanted in ((0, {pid}), (1, {pid}), (os.getpgrp(), {pid}), (pid, {pid, -pid})):
        monkeypatch.setattr(
            tree, "_entry", lambda x, g=group: (e := entry(x)) and (e._replace(group=g) if x == pid else e)
        )
        assert tree._theirs(0, THIS, 0) == wanted


def test_one_that_has_just_begun_is_not_taken_for_its_parents_group(start, monkeypatch):
    (pid,), (foreign,) = (numbers(start(WAITS, mark, stdin=subprocess.PIPE), 1) for mark in (THIS, ANOTHER))
    read, looks = tree._entry, []

    def entry(x):
        looks.append(x)
        return read(x)._replace(group=foreign) if x == pid and looks.count(pid) == 1 else read(x)

    monkeypatch.setattr(tree, "_entry", entry)
    assert tree._theirs(0, THIS, 0) == {pid, -pid}


MOVES = """
import os, sys
while True:
    os.write(1, b"%d\\n" % os.getpid())
    if not os.read(0, 1) or os.fork():
        os._exit(0)
    getattr(os, sys.argv[1])()
"""
"""For each byte it goes on in a new process, and writes its number."""


@pytest.fixture
def moving(start, monkeypatch):
    """A process that goes on in a new one after each look at the processes, before anything is done about it."""
    look = tree._theirs

    def begun(each_time):
        process = start([sys.executable, "-ISc", MOVES, each_time], MOVING, stdin=subprocess.PIPE)
        pids = numbers(process, 1)

        def looked(*arguments):
            theirs = look(*arguments)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"1")
            # One that is stopped stays where it is; where all are gone, the pipe is at its end.
            while state(pids[-1]) != "T":
                if select.select([process.stdout], [], [], 0.01)[0]:
                    pids.extend(map(int, process.stdout.readline().split()))
                    break
            return theirs

        monkeypatch.setattr(tree, "_theirs", looked)
        return process, pids

    monkeypatch.setattr(tree, "_PASSES", 3)
    return begun


def test_what_goes_on_in_a_new_process_all_the_time_is_ended_with_its_group(moving):
    _, pids = moving("getpid")
    assert tree.end_tree(0, MOVING) == ()
    assert len(pids) > 1
    assert not any(map(is_there, pids))


@pytest.mark.parametrize("own", ["setsid", "setpgrp"])
def test_what_could_not_be_ended_is_named(moving, caplog, own):
    process, pids = moving(own)
    child._end(process, MOVING, 0)
    (message,) = caplog.messages
    assert message.startswith(f"processes of the target could not be ended ({pids[-2]}): ")
    assert is_there(pids[-1])


SOURCE = """
    import os, signal, subprocess, sys, time

    def leave(environment):
        # A daemon that holds every descriptor of this process, the pipe included.
        if (child := os.fork()) == 0:
            os.setsid()
            if (daemon := os.fork()) == 0:
                for descriptor in os.listdir("/proc/self/fd"):
                    try:
                        os.set_inheritable(int(descriptor), True)
                    except OSError:
                        pass
                os.execvpe("sleep", ["sleep", "600"], environment)
            with open(os.path.join(os.path.dirname(__file__), "daemon"), "w") as file:
                file.write(str(daemon))
            os._exit(0)
        os.waitpid(child, 0)

    def kills_the_guard(z1, z2, temperature):
        leave(os.environ)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)

    def stops_the_guard(z1, z2, temperature):
        # Without the mark: it is seen as a descendant of the guard only.
        leave({"PATH": os.environ["PATH"]})
        os.kill(os.getppid(), signal.SIGSTOP)
        os._exit(7)
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("kills_the_guard", "signal SIGKILL"), ("stops_the_guard", "exit code 7")],
)
def test_the_guard_can_be_killed_or_stopped_and_nothing_is_left(tmp_path, name, sentence):
    (tmp_path / "theirs.py").write_text(textwrap.dedent(SOURCE), encoding="utf-8")
    with runner.in_child(f"{tmp_path}/theirs.py:{name}", NT_XENT.declaration, timeout=600.0) as run:
        outcome = run(probe_of())
    assert (outcome.trouble, outcome.sentence) == ("dies", f"ends the process with {sentence}")
    assert not is_there(int((tmp_path / "daemon").read_text()))
