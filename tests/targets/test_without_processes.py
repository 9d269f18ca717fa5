"""Where a system starts neither processes nor threads, as in a browser: the same verdicts, and what that means."""

import errno
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from targets.test_targets import probe_of

import nceref
from nceref.engine import settings
from nceref.losses import get_loss
from nceref.output import system
from nceref.targets import runner

LOSSES = """
    import numpy as np
    import neighbor

    def right(z1, z2, exponent):
        d = z1 / np.linalg.norm(z1, axis=1)[:, None] - z2 / np.linalg.norm(z2, axis=1)[:, None]
        return np.mean(np.sum(d * d, axis=1) ** (exponent / 2))

    def twice(z1, z2, exponent):
        return 2 * right(z1, z2, exponent)

    def odd(z1, z2, exponent):
        print("hello", input())
"""
BROWSER = """
    import sys, sysconfig

    # What was configured is read by the real name.
    sysconfig.get_config_vars()
    # Before anything is imported that looks at it: `subprocess` refuses there by itself.
    sys.platform = "emscripten"
    for name in ("_multiprocessing", "fcntl", "resource", "_posixsubprocess"):
        sys.modules[name] = None
    import os, signal, threading

    # Nor is there PyTorch, which crashes when it leaves a system that it was not built for.
    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("torch", "jax"):
                raise ModuleNotFoundError(name)

    sys.meta_path.insert(0, Missing())
    for module, names in (
        (os, ("fork", "forkpty", "posix_spawn", "killpg", "register_at_fork", "sched_getaffinity")),
        (signal, ("setitimer", "getitimer", "alarm")),
    ):
        for name in names:
            delattr(module, name)

    def start(self):
        raise RuntimeError("can't start new thread")

    threading.Thread.start = start
"""
JOBS = """
    import contextlib, io, json, sys

    def output(*words):
        from nceref.cli import main

        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = main(list(words))
            except SystemExit as error:
                code = error.code
        return code, out.getvalue()

    file = sys.argv[1]
    quick = ("--loss", "alignment", "--suite", "quick")
    done = {name: output("verify", f"{file}:{name}", *quick, "--json") for name in NAMES}
    done["page"] = output("verify", f"{file}:right", *quick)
    done["missing"] = output("verify", f"{file}:nothing", *quick)
    done["isolated"] = output("verify", f"{file}:right", *quick, "--isolate")
    done["ranks"] = output("verify", f"{file}:right", *quick, "--ranks", "2")
    done["check"] = output("check", "nce")
    done["prove"] = output("prove", *IDS)

    import losses
    import nceref
    from nceref.engine import settings

    with settings.config(threads=4):
        done["counts"] = settings.thread_count(), settings.process_count()
        import numpy as np

        z1, z2 = np.random.default_rng(0).standard_normal((2, 1100, 4))
        done["large"] = float(nceref.losses.nt_xent(z1, z2, temperature=0.5))
    report = nceref.verify(losses.right, "alignment", suite="quick")
    done["object"] = report.verdict, str(report)
    sys.__stdout__.write(json.dumps(done))
"""
TWO_FILES = """
import sys, second_file
print("hello", sys.argv[1:])
assert sys.argv[1:] == []
def f(z1, z2, temperature):
    return second_file.ONE
"""
IDS = ("NC-6", "IS-3", "WL-3", "WL-18", "WL-20", "WL-4")
"""More pieces of evidence than are run in one process where there are several."""
CODES = {"right": 0, "twice": 1, "odd": 4}
"""Of the targets."""
NOT_CONTAINED = "this system starts no processes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    (folder / "neighbor.py").write_text("ONE = 1.0\n", encoding="utf-8")
    (folder / "losses.py").write_text(textwrap.dedent(LOSSES), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(folder):
    """What the commands say in an interpreter that has what one in a browser has."""
    program = textwrap.dedent(BROWSER) + f"\nIDS, NAMES = {IDS!r}, {list(CODES)!r}\n" + textwrap.dedent(JOBS)
    path = [str(folder), *sys.path]
    start = f"import sys; sys.path[:] = {path!r}\n"
    ended = subprocess.run(
        [sys.executable, "-c", start + program, str(folder / "losses.py")],
        capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("name", CODES)
def test_a_verdict_is_that_of_a_process_of_its_own(done, folder, name):
    report = nceref.verify(f"{folder}/losses.py:{name}", "alignment", suite="quick")
    code, text = done[name]
    got, expected = json.loads(text), json.loads(report.to_json())
    assert code == expected["exit_code"] == CODES[name]
    assert got["environment"].pop("containment").startswith(NOT_CONTAINED)
    assert got.pop("environment") | {"platform": ""} == expected.pop("environment") | {"platform": ""}
    # Words of the terminal there, a call of Python here.
    del got["command"], expected["command"]
    assert got == expected


def test_it_is_said_what_that_means_and_what_cannot_be_done(done):
    for code, page in (done["page"], done["object"]):
        assert code in (0, "value-only")
        assert f"{NOT_CONTAINED}: the target ran in the one of the checker" in " ".join(page.split())
    assert done["missing"][0] == 4
    assert "losses.py has no 'nothing'" in " ".join(done["missing"][1].split())
    assert done["isolated"][0] == done["ranks"][0] == 2
    assert "`isolate` needs namespaces of Linux, which emscripten has not" in done["isolated"][1]
    assert "`ranks` are processes, and this system starts none" in done["ranks"][1]


def test_evidence_and_the_engine_take_one_thread(done):
    assert done["check"][0] == done["prove"][0] == 0
    assert all(one in done["prove"][1] for one in IDS)
    assert done["counts"] == [1, 1]
    z1, z2 = np.random.default_rng(0).standard_normal((2, 1100, 4))
    with settings.config(threads=1):
        assert done["large"] == float(nceref.losses.nt_xent(z1, z2, temperature=0.5))


def test_a_target_leaves_nothing_to_the_next_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "processes_available", lambda: False)
    before = sys.path.copy(), sys.argv.copy(), sys.stdin
    for number in (1.0, 2.0):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "second_file.py").write_text(f"ONE = {number}\n", encoding="utf-8")
        (folder / "f.py").write_text(TWO_FILES, encoding="utf-8")
        with runner.in_child(f"{folder}/f.py:f", get_loss("nt_xent").declaration) as run:
            assert run(probe_of()).value == number
            assert run.reply(probe_of(), (3.0, {})).value == 3.0
        assert (sys.path, sys.argv, sys.stdin) == before
        assert "second_file" not in sys.modules
    assert capsys.readouterr() == ("", "")


def test_a_system_that_is_full_is_not_one_without_processes(monkeypatch):
    def refusing(number):
        def run(*words, **options):
            raise OSError(number, "no")

        return run

    for number, available in ((errno.EPERM, False), (errno.ENOSYS, False), (errno.ENOENT, False), (errno.EAGAIN, True)):
        system._starts_processes.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(subprocess, "run", refusing(number))
            assert system.processes_available() is available
            assert system.processes_available(attempt=False)
    system._starts_processes.cache_clear()
    assert system.processes_available()
