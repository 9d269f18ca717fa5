"""A target in a child process: it may hang, exit, die, print and scribble; the rest of the corpus still runs."""

import os
import select
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from slow import partly_slow
from targets.test_targets import NT_XENT, Z1, Z2, agrees, probe_of

from nceref.cases.records import Outcome
from nceref.errors import InputError, TargetError
from nceref.targets import runner
from nceref.targets.process import child

SOURCE = """
    import ctypes, os, signal, sys

    VALUE, Z1_GRAD, Z2_GRAD, TEMPERATURE_GRAD = ANSWER

    def right(z1, z2, temperature):
        return VALUE, {"z1": Z1_GRAD, "z2": Z2_GRAD, "temperature": TEMPERATURE_GRAD}

    def hangs_when_cold(z1, z2, temperature):
        while temperature < 0.2:
            pass
        return right(z1, z2, temperature)

    def hangs_at_a_gate(z1, z2, temperature):
        if (other := os.fork()) == 0:
            os.setsid()
            return hangs_when_cold(z1, z2, temperature)
        # Opening a FIFO for writing waits for its reader: who reads to the end has seen this target run.
        with open(os.path.join(os.path.dirname(__file__), "gate"), "w") as gate:
            gate.write(str(other))
        # It cannot notice by itself that its parent is gone.
        os.kill(os.getpid(), signal.SIGSTOP)

    def ends(z1, z2, temperature):
        os._exit(7) if temperature < 0.2 else None
        return right(z1, z2, temperature)

    def crashes(z1, z2, temperature):
        sys.stderr = sys.__stderr__
        os.write(2, b"about to fall over\\n")
        ctypes.string_at(0)

    def leaves(z1, z2, temperature):
        sys.exit("no")

    def scribbles(z1, z2, temperature):
        os.write(1, b"garbage" * 100)
        print("more garbage")
        return right(z1, z2, temperature)

    def reads(z1, z2, temperature):
        return float(input("temperature? "))

    def lazy(z1, z2, temperature):
        import neighbor
        return neighbor.ONE

    def imported(z1, z2, temperature):
        rooms = ("engine", "family", "exact", "tolerance", "losses", "cases.corpus", "diagnosis")
        return float(any(m.startswith(tuple(f"nceref.{room}" for room in rooms)) for m in sys.modules))
"""
COLD = {"z1": Z1, "z2": Z2, "temperature": 0.1}
LOSS = NT_XENT.declaration
PATIENT = 600.0
"""Seconds in which a busy machine answers for sure; nothing waits that long."""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets")
    (folder / "neighbor.py").write_text("ONE = 1.0\n", encoding="utf-8")
    file = folder / "theirs.py"
    probe = probe_of()
    answer = [probe.value, *(probe.grads[n] for n in ("z1", "z2", "temperature"))]
    known = f"import numpy\nANSWER = {[np.asarray(x).tolist() for x in answer]}\n"
    known += "ANSWER = [numpy.array(x) for x in ANSWER]\n"
    file.write_text(known + textwrap.dedent(SOURCE), encoding="utf-8")
    return file


def child_of(path, name, timeout=PATIENT, **options):
    return runner.in_child(f"{path}:{name}", LOSS, timeout=timeout, **options)


@pytest.fixture(scope="module")
def shared(path):
    """One child for the targets that leave it alive."""
    with child_of(path, "right") as run:
        yield run


def open_descriptors():
    """How many there are, where the system shows them."""
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.exists() else None


@pytest.fixture
def same_child(path, shared):
    def load(name, **options):
        return runner.in_same_child(shared, f"{path}:{name}", LOSS, **options)

    return load


def test_a_child_answers_like_this_process(same_child):
    with same_child("right") as run:
        assert run.target.framework == "numpy"
        assert run.target.binding == "z1, z2, temperature"
        assert run.target.program is None
        assert agrees(run(probe_of(), twice=True)) == ["temperature", "z1", "z2"]
        probe = probe_of()
        doubled = run.reply(probe, (2 * probe.value, probe.grads))
        assert np.isclose(doubled.value, 2 * probe.value, rtol=1e-15)
        with pytest.raises(InputError, match="bfloat16"):
            run(probe_of(dtype="bfloat16"))
        assert agrees(run(probe_of())), "it goes on after that"


def test_a_hang_is_one_case_and_the_others_still_run(path):
    with child_of(path, "hangs_when_cold") as run:
        assert agrees(run(probe_of()))
        first, threads, descriptors = run._process.pid, run._exchange.threads, open_descriptors()
        run._timeout = 0.05
        outcome = run(probe_of(**COLD))
        assert outcome.trouble == "hangs"
        assert "0.05 s (--timeout)" in outcome.sentence
        run._timeout = PATIENT
        assert agrees(run(probe_of()))
        assert run._process.pid != first
        for thread in threads:
            thread.join(PATIENT)
        assert not any(thread.is_alive() for thread in threads)
        assert open_descriptors() == descriptors, "nothing accumulates"


def test_after_some_hangs_in_a_row_the_rest_is_not_waited_for(path, monkeypatch):
    monkeypatch.setattr(child, "GIVE_UP", 1)
    with child_of(path, "hangs_when_cold", timeout=0.05) as run:
        assert run(probe_of(**COLD)).trouble == "hangs"
        sent = []
        monkeypatch.setattr(run, "_answer", lambda *message: sent.append(message))
        outcome = run(probe_of(**COLD))
        assert outcome.trouble == "not-tried"
        assert "is not tried: 1 case in a row" in outcome.sentence
        assert sent == []


def test_a_death_has_its_cause_and_the_others_still_run(path):
    with child_of(path, "ends") as run:
        outcome = run(probe_of(**COLD))
        assert (outcome.trouble, outcome.sentence) == ("dies", "ends the process with exit code 7")
        assert agrees(run(probe_of()))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of that kind")
def test_a_crash_names_the_signal_and_the_last_words(path):
    with child_of(path, "crashes") as run:
        sentence = run(probe_of()).sentence
    assert "SIGSEGV" in sentence
    assert "about to fall over" in sentence


def test_an_exit_is_an_outcome(same_child):
    with same_child("leaves") as run:
        assert run(probe_of()).trouble == "exits"
        assert run(probe_of()).trouble == "exits", "and the process goes on"


def test_what_the_target_prints_does_not_disturb_the_pipe(same_child, capfd):
    with same_child("scribbles") as run:
        outcome = run(probe_of())
    assert agrees(outcome)
    assert outcome.remarks == {"prints": "prints 'more garbage'"}
    assert capfd.readouterr() == ("", "")


def test_a_target_that_reads_from_the_user_gets_no_answer(same_child):
    with same_child("reads") as run:
        assert "EOFError" in run(probe_of()).sentence


def test_a_neighbor_may_be_imported_when_it_is_called(same_child):
    with same_child("lazy") as run:
        assert run(probe_of()).value == 1.0


def test_a_child_imports_nothing_that_computes_losses(same_child):
    """It starts in .2 s instead of .5 s."""
    with same_child("imported") as run:
        assert run(probe_of()).value == 0.0


def test_errors_of_loading_arrive_as_they_are(path, same_child, tmp_path):
    with pytest.raises(TargetError, match="'wrong'"), same_child("wrong"):
        pass
    with pytest.raises(InputError, match="`call` names 'z3'"), same_child("right", call="f(z3)"):
        pass
    unsendable = pytest.raises(InputError, match="must be plain values")
    with unsendable, same_child("right", init={"temperature": lambda: 0}):
        pass
    sleepy, dead = tmp_path / "sleepy.py", tmp_path / "dead.py"
    sleepy.write_text("import threading\nthreading.Event().wait()\n", encoding="utf-8")
    dead.write_text("import os\nos._exit(3)\n", encoding="utf-8")
    late = pytest.raises(TargetError, match=r"cannot be loaded: importing it does not return within 0.05 s")
    with late, child_of(sleepy, "f", loading_timeout=0.05):
        pass
    with pytest.raises(TargetError, match="exit code 3"), child_of(dead, "f"):
        pass


def test_a_target_that_refuses_its_options_when_it_is_loaded_again_is_to_blame(tmp_path):
    path, second = tmp_path / "changing.py", tmp_path / "second"
    path.write_text(
        f"""
import os, pathlib
if pathlib.Path({str(second)!r}).exists():
    def loss(z1, z2, temperature): return 1.0
else:
    def loss(z1, z2, temperature, scale): os._exit(3)
pathlib.Path({str(second)!r}).touch()
""",
        encoding="utf-8",
    )
    with child_of(path, "loss", init={"scale": 2.0}) as run:
        assert run(probe_of()).sentence == "ends the process with exit code 3"
        again = run(probe_of())
    assert again.trouble == "dies"
    assert again.sentence.startswith("does not load again: `init` gives `scale`, but ")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show whose process is whose")
@pytest.mark.parametrize(
    "way", partly_slow(["interrupted", "terminated", "killed"], "terminated".__ne__, "ends as an interrupted one")
)
def test_no_child_is_left_behind_nor_what_it_has_started(path, way):
    script = f"""
        from nceref.losses import nt_xent
        from nceref.targets import runner
        from nceref.cases.records import Probe
        with runner.in_child("{path}:hangs_at_a_gate", nt_xent.declaration, timeout={PATIENT}) as run:
            print(run._process.pid, flush=True)
            run(Probe("cold", nt_xent.declaration, dict(z1=[[1.0]], z2=[[1.0]], temperature=0.1), "float64"))
    """
    gate = path.parent / "gate"
    gate.unlink(missing_ok=True)
    os.mkfifo(gate)
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    pids = [int(parent.stdout.readline()), int(gate.read_text())]
    for pid, ended in [(pid, os.pidfd_open(pid)) for pid in pids]:
        if pid == pids[0]:
            parent.send_signal({"interrupted": 2, "terminated": 15, "killed": 9}[way])
            parent.communicate()
        waiting = select.poll()
        waiting.register(ended, select.POLLIN)
        assert waiting.poll(1000 * PATIENT), "a process is still there"
        os.close(ended)


@pytest.mark.parametrize(("mode", "seconds"), [("", 5.0), ("strided", 5.0), ("compile", 305.0), ("jit", 305.0)])
def test_a_call_that_is_compiled_has_time_for_that(mode, seconds, monkeypatch):
    allowed = []

    def answer(self, request, message, seconds, limit):
        allowed.append((seconds, limit))
        return Outcome(trouble="hangs", sentence=f"does not return {limit}")

    monkeypatch.setattr(child.ChildRunner, "_answer", answer)
    monkeypatch.setattr(child.ChildRunner, "start", lambda self: None)
    outcome = child.ChildRunner(None, "cpu", 5.0, 120.0)(replace(probe_of(), mode=mode))
    words = "within 5 s (--timeout)" + " and 300 s to compile" * (seconds > 5)
    assert allowed == [(seconds, words)]
    assert words in outcome.sentence
