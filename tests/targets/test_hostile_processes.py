"""Hostile targets that end, hang, fork or harm while they are imported: afterwards no process is left."""

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from slow import partly_slow
from targets.containment import (
    ANY,
    CASE,
    ENDED,
    FAILS,
    FOLDER,
    HANGS,
    IMPORTED,
    PATIENT,
    RIGHT,
    check,
    is_printable,
    kinds_in,
)

from nceref.losses import get_loss
from nceref.targets import runner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads in /proc what is left")
STARTS_OTHERS = (
    "program",
    "daemon",
    "fork",
    "goes_on",
    "stopped_program",
    "thread_that",
    "kills",
    "terminates_",
    "interrupts",
    "ends_",
)
"""These get a process of their own: what they leave behind is the question."""
OWN = [kind for kind in ENDED if kind.startswith(STARTS_OTHERS)]
SHARED = [kind for kind in ENDED if kind not in OWN]
QUICK = {
    "quietly",
    "segmentation_fault",
    "interrupted",
    "another_program_that_hangs",
    "out_of_memory",
    "waits",
    "at_exit",
    "threads_that_never_end",
    "program_that_holds_the_pipe",
    "daemon",
    "fork_bomb",
    "terminates_the_parent",
}
"""One of each way to end; the others end in the same way for another reason."""
OTHERS = "a process of its own for another cause of an end that `make test` has seen"

AGAIN = (
    "another_import",
    "another_module",
    "errors_raise",
    "exits_hard",
    "hides_writing",
    "patches",
    "refuses_usage",
    "replaces",
)
"""Imports that do what a quick one does as well, or what a call does, and after which a process is started again."""
LASTING = {
    "another_import",
    "another_module",
    "errors_raise",
    "hides_another_answer",
    "hides_writing",
    "leaves_a_program",
    "patches_numpy",
    "replaces_numpy",
}
"""What these imports change in their process is still so for the next target."""


def processes(token):
    """Processes whose environment has the token."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            there = token.encode() in (folder / "environ").read_bytes()
        except OSError:  # It has ended meanwhile, or belongs to another user.
            continue
        if there and int(folder.name) != os.getpid():
            yield int(folder.name)


def none_left(token):
    """Whether all of them end."""
    end = time.monotonic() + PATIENT
    while list(processes(token)) and time.monotonic() < end:
        time.sleep(0.05)
    return not list(processes(token))


@pytest.fixture(scope="module")
def child():
    token = f"hostile-{uuid.uuid4()}"
    os.environ["NCEREF_TEST_RUN"] = token
    try:
        with runner.in_child(RIGHT, get_loss("alignment").declaration) as run:
            yield run
    finally:
        del os.environ["NCEREF_TEST_RUN"]
    assert none_left(token)


@pytest.fixture
def token(monkeypatch):
    token = f"hostile-{uuid.uuid4()}"
    monkeypatch.setenv("NCEREF_TEST_RUN", token)
    return token


@pytest.fixture(autouse=True, scope="module")
def signals():
    """A run that outlives its terminal ignores this signal, and so would the targets that it starts."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("kind", partly_slow(SHARED, QUICK.__contains__, OTHERS))
def test_the_end_is_named_and_the_next_target_is_judged(child, kind):
    child._timeout = 0.3 if ENDED[kind] in (ANY, HANGS) else PATIENT
    check(f"{FOLDER / 'ended.py'}:{kind}", ENDED[kind], child=child)


@pytest.mark.parametrize("kind", partly_slow(OWN, QUICK.__contains__, OTHERS))
def test_no_process_is_left(token, kind):
    check(f"{FOLDER / 'ended.py'}:{kind}", ENDED[kind], timeout=1.0 if ENDED[kind] in (ANY, HANGS) else PATIENT)
    assert none_left(token)


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """One of the files deletes itself."""
    folder = tmp_path_factory.mktemp("hostile") / "at_import"
    shutil.copytree(FOLDER / "at_import", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(FOLDER / "answer.py", folder)
    return folder


@pytest.mark.parametrize("kind", partly_slow(IMPORTED, lambda kind: not kind.startswith(AGAIN), OTHERS))
def test_what_happens_at_import_is_named(child, copies, kind):
    child._timeout, child._loading_timeout = PATIENT, 0.3 if kind == "waits" else PATIENT
    try:
        check(f"{copies / kind}.py:f", IMPORTED[kind], child=child)
    finally:
        if kind in LASTING:
            child.stop()


def test_no_kind_is_left_out():
    assert sorted(f"ended.py:{kind}" for kind in ENDED) == sorted(
        set(kinds_in("ended.py")) - {"ended.py:kills_the_checker"}
    )
    assert sorted(IMPORTED) == sorted(path.stem for path in (FOLDER / "at_import").glob("*.py"))


ODD_FILES = {
    "folder": (lambda path: path.mkdir(), "no file"),
    "fifo": (os.mkfifo, "no file"),
    "circle": (lambda path: path.symlink_to(path), "no file"),
    "nowhere": (lambda path: path.symlink_to("/nowhere"), "no file"),
    "no_text": (lambda path: path.write_bytes(b"\xff\xfe\x00\x80"), "SyntaxError"),
    "no_code": (lambda path: path.write_text("def f(:\n"), "SyntaxError"),
    "empty": (lambda path: path.write_bytes(b""), "has no 'f'"),
    "long": (lambda path: path.write_text("# " + 10**7 * "x"), "has no 'f'"),
    "deep": (lambda path: path.write_text("f = " + 5000 * "(" + 5000 * ")"), "cannot be imported"),
    "\x1b[2J[red]\u202e": (lambda path: path.write_text("1 / 0"), "ZeroDivisionError"),
    "\udcff": (lambda path: path.write_text("1 / 0"), ""),
    "numpy": (lambda path: path.write_text("def f(x, y):\n    return None"), "returns a NoneType"),
}


@pytest.mark.parametrize("name", ODD_FILES, ids=ascii)
def test_what_is_no_file_of_python_is_named(child, tmp_path, name):
    make, words = ODD_FILES[name]
    make(tmp_path / f"{name}.py")
    child._timeout = child._loading_timeout = PATIENT
    check(f"{tmp_path / name}.py:f", (FAILS, words), child=child)


# By the command line.


COMMANDS = [
    ("raised.py:system_exit", 4, []),
    ("raised.py:lone_surrogate", 4, ["--json", "-"]),
    ("raised.py:unprintable", 4, ["--junit", "-"]),
    ("ended.py:segmentation_fault", 4, []),
    ("printed.py:escape_sequences", 0, []),
    ("forged.py:outcomes_are_refused", 4, []),
    ("forged.py:answers_are_errors", 1, ["--json", "-"]),
    ("at_import/refuses_usage.py:f", 4, []),
]
FORMS = ("raised.py:lone_surrogate", "forged.py:outcomes")
"""A report, and an error that would be one of usage if the target had its way; `check` looks at each form."""


@pytest.mark.parametrize(
    ("kind", "status", "form"), partly_slow(COMMANDS, lambda command: command[0].startswith(FORMS), OTHERS)
)
def test_the_command_line_has_its_status_and_prints_what_is_printable(run, kind, status, form):
    options = ["--loss", "alignment", "--set", "normalize=none", "--suite", "quick", "--case", "designed"]
    code, out, err = run("verify", str(FOLDER / kind), *options, *form)
    assert code == status
    assert out
    assert is_printable(out + err)


def test_a_target_may_kill_the_checker_and_nothing_goes_on(token):
    target = f"{FOLDER / 'ended.py'}:kills_the_checker"
    words = f"from nceref import verify; verify({target!r}, **{CASE!r})"
    ended = subprocess.run([sys.executable, "-c", words], capture_output=True, timeout=PATIENT, start_new_session=True)
    assert ended.returncode == -signal.SIGKILL
    assert none_left(token)
