"""Targets that flood or garble what the checker reads and shows."""

import os
import pickle
import sys
import threading
import time

from answer import right

from nceref.cases.records import Outcome
from nceref.targets.process import child_main
from nceref.targets.process.messages import outcome_message, packed


def escape_sequences(x, y):
    print("\x1b[2J\x1b]0;title\x07[red]\u202e\x00")
    return right(x, y)


def surrogates(x, y):
    print("\udcff")
    return right(x, y)


def flood(x, y):
    for _ in range(2000):
        print(100_000 * "x")
        print(100_000 * "y", file=sys.stderr)
    return right(x, y)


def flood_of_descriptors(x, y):
    for _ in range(200):
        os.write(1, 100_000 * b"x")
        os.write(2, 100_000 * b"y")
    return right(x, y)


def last_words(x, y):
    os.write(2, b"\n\x1b[2J\xff\xfe\x00[red] last words")
    os._exit(7)


def flood_and_last_words(x, y):
    for _ in range(200):
        os.write(2, 100_000 * b"y")
    # While the checker looks at the file, before and after.
    time.sleep(0.3)
    os.write(2, b"\n\x1b[2J last words")
    time.sleep(0.3)
    os._exit(7)


def reads_input(x, y):
    return len(sys.stdin.read()) + len(os.read(0, 100))


def _pipes():
    """Descriptors of this process that are pipes or sockets to its parent."""
    for name in os.listdir("/proc/self/fd"):
        try:
            kind = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if kind.startswith(("pipe:", "socket:")):
            yield int(name)


def _write(content):
    for number in _pipes():
        try:
            os.write(number, content)
        except OSError:
            continue


def garbage_into_the_pipe(x, y):
    _write(1000 * b"garbage")
    return right(x, y)


def zeros_into_the_pipe(x, y):
    _write(1000 * b"\x00")
    return right(x, y)


def huge_length_into_the_pipe(x, y):
    _write(64 * b"\xff")
    return right(x, y)


def json_into_the_pipe(x, y):
    _write(b'{"value": 7.0, "trouble": "", "sentence": ""}\n')
    return right(x, y)


def lines_into_the_pipe(x, y):
    _write(10_000 * b"\n")
    return right(x, y)


class _Code:
    def __reduce__(self):
        return os.mkdir, (os.path.join(os.path.dirname(__file__), "code-of-the-target-ran-here"),)


def pickle_into_the_pipe(x, y):
    _write(pickle.dumps(_Code()))
    return right(x, y)


def repeated_into_the_pipe(x, y):
    # The answer of this very process, a second time, where the checker waits for another.
    send = child_main._write

    def twice(*args):
        send(*args)
        send(*args)

    child_main._write = twice
    return right(x, y)


def closes_everything(x, y):
    os.closerange(0, 256)
    return right(x, y)


def closes_the_pipes(x, y):
    for number in list(_pipes()):
        os.close(number)
    while True:
        os.read(os.pipe()[0], 1)


def steals_requests(x, y):
    def steal(number):
        while True:
            try:
                os.read(number, 1)
            except OSError:
                return

    for number in list(_pipes()):
        threading.Thread(target=steal, args=(number,), daemon=True).start()
    return right(x, y)


def answer_to_another_request_into_the_pipe(x, y):
    # Well-formed, and to another request than this one.
    _write(packed(10**6, outcome_message(Outcome(value=7.0))))
    return right(x, y)
