"""Targets that end or stop their process, do not come back, or leave processes behind."""

import atexit
import ctypes
import faulthandler
import os
import resource
import signal
import subprocess
import sys
import threading
import time

from answer import right

LONG = "600"
"""Seconds that no test waits."""


def quietly(x, y):
    os._exit(0)


def with_a_status(x, y):
    os._exit(7)


def segmentation_fault(x, y):
    ctypes.string_at(0)


def abort(x, y):
    faulthandler.disable()
    os.abort()


def killed(x, y):
    os.kill(os.getpid(), signal.SIGKILL)


def terminated(x, y):
    os.kill(os.getpid(), signal.SIGTERM)


def hung_up(x, y):
    os.kill(os.getpid(), signal.SIGHUP)


def interrupted(x, y):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
    return right(x, y)


def alarmed(x, y):
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    threading.Event().wait()


def illegal_instruction(x, y):
    os.kill(os.getpid(), signal.SIGILL)


def floating_point_signal(x, y):
    os.kill(os.getpid(), signal.SIGFPE)


def real_time_signal(x, y):
    os.kill(os.getpid(), signal.SIGRTMIN + 3)


def own_group(x, y):
    os.killpg(0, signal.SIGKILL)


def another_program(x, y):
    os.execv(sys.executable, [sys.executable, "-S", "-c", "print('\\x1b[2J')"])


def another_program_that_hangs(x, y):
    os.execv("/bin/sleep", ["sleep", LONG])


def out_of_time(x, y):
    resource.setrlimit(resource.RLIMIT_CPU, (0, 1))
    while True:
        pass


def stack_overflow(x, y):
    sys.setrecursionlimit(10**9)

    def deeper(depth):
        return [deeper(depth + 1), repr(depth)]

    return deeper(0)


def out_of_memory(x, y):
    # A quarter of a gigabyte more than there is now: the machine is not harmed.
    resource.setrlimit(resource.RLIMIT_AS, (2**28 + _size(), 2**28 + _size()))
    return [bytearray(2**24) for _ in range(10**6)]


def _size():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()


def waits(x, y):
    threading.Event().wait()


def sleeps(x, y):
    time.sleep(int(LONG))


def loops(x, y):
    while True:
        pass


def stops(x, y):
    os.kill(os.getpid(), signal.SIGSTOP)


def waits_and_ignores_signals(x, y):
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    threading.Event().wait()


def waits_in_a_chain_of_handlers(x, y):
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        threading.Event().wait()


def at_exit(x, y):
    atexit.register(threading.Event().wait)
    return right(x, y)


def exits_with_a_hook_that_waits(x, y):
    atexit.register(threading.Event().wait)
    sys.exit(0)


def threads_that_never_end(x, y):
    for _ in range(20):
        threading.Thread(target=threading.Event().wait).start()
    return right(x, y)


def thread_that_ends_it_later(x, y):
    def end():
        time.sleep(0.1)
        os._exit(7)

    threading.Thread(target=end).start()
    return right(x, y)


# What starts other processes. Each is a sleep that a test can recognize by its length.


def program(x, y):
    subprocess.Popen(["/bin/sleep", LONG])
    return right(x, y)


def program_in_a_session_of_its_own(x, y):
    subprocess.Popen(["/bin/sleep", LONG], start_new_session=True)
    return right(x, y)


def program_in_a_session_of_its_own_and_hangs(x, y):
    subprocess.Popen(["/bin/sleep", LONG], start_new_session=True)
    threading.Event().wait()


def program_that_holds_the_pipe(x, y):
    subprocess.Popen(["/bin/sleep", LONG], start_new_session=True, close_fds=False)
    os._exit(7)


def _inheritable():
    for number in range(256):
        try:
            os.set_inheritable(number, True)
        except OSError:
            continue


def program_that_inherits_the_pipe(x, y):
    _inheritable()
    subprocess.Popen(["/bin/sleep", LONG], start_new_session=True, close_fds=False)
    os._exit(7)


def daemon(x, y):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _inheritable()
            os.execv("/bin/sleep", ["sleep", LONG])
        os._exit(0)
    return right(x, y)


def daemon_that_ends_its_parent(x, y):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _inheritable()
            os.execv("/bin/sleep", ["sleep", LONG])
        os._exit(0)
    os.wait()
    os._exit(7)


def fork_bomb(x, y):
    for generation in range(4):
        os.fork()
        os.setsid() if generation and os.getpid() != os.getsid(0) else None
    time.sleep(int(LONG))


def fork_that_answers_twice(x, y):
    os.fork()
    return right(x, y)


def fork_that_goes_on_alone(x, y):
    if os.fork():
        os._exit(7)
    return right(x, y)


def _goes_on():
    """In a new process all the time: who looks it up comes too late."""
    while os.fork() == 0:
        pass
    os._exit(0)


def goes_on_in_new_processes(x, y):
    _goes_on()


def goes_on_in_new_processes_of_another_session(x, y):
    if os.fork() == 0:
        os.setsid()
        _goes_on()
    return right(x, y)


def stopped_program(x, y):
    process = subprocess.Popen(["/bin/sleep", LONG], start_new_session=True)
    os.kill(process.pid, signal.SIGSTOP)
    return right(x, y)


# What ends the parent of this process: that is a guard on Linux, and the checker is the parent of the guard.


def kills_the_parent(x, y):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(int(LONG))


def terminates_the_parent(x, y):
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(int(LONG))


def interrupts_the_parent(x, y):
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(int(LONG))


def ends_the_group_of_the_parent(x, y):
    os.killpg(os.getpgid(os.getppid()), signal.SIGTERM)
    time.sleep(int(LONG))


def _parent(process):
    with open(f"/proc/{process}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def kills_the_checker(x, y):
    os.kill(_parent(os.getppid()), signal.SIGKILL)
    time.sleep(int(LONG))
