"""A target in a child process: it may hang, exit, die, print and scribble; the rest of the corpus still runs."""

import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from verification.targets.test_targets import NT_XENT, Z1, Z2, agrees, probe_of

from nceref.errors import InputError, TargetError
from nceref.losses import get_loss
from nceref.verification.targets import child as watch
from nceref.verification.targets import runner

SOURCE = """
    import ctypes, os, sys, time
    import nceref

    def right(z1, z2, temperature):
        return nceref.losses.nt_xent.value_and_grad(z1, z2, temperature=float(temperature))

    def hangs_when_cold(z1, z2, temperature):
        if temperature < 0.2:
            while True:
                pass
        return right(z1, z2, temperature)

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

    def asks(z1, z2, temperature):
        return float(input("temperature? "))

    def lazy(z1, z2, temperature):
        import neighbor
        return neighbor.ONE
"""
COLD = {"z1": Z1, "z2": Z2, "temperature": 0.1}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets")
    (folder / "neighbor.py").write_text("ONE = 1.0\n", encoding="utf-8")
    file = folder / "theirs.py"
    file.write_text(textwrap.dedent(SOURCE), encoding="utf-8")
    return file


def child_of(path, name, **options):
    return runner.in_child(f"{path}:{name}", get_loss("nt_xent").declaration, **options)


def test_a_child_answers_like_this_process(path):
    with child_of(path, "right") as run:
        assert run.target.framework == "numpy"
        assert run.target.binding == "z1 -> z1, z2 -> z2, temperature -> temperature"
        assert run.target.program is None
        assert agrees(run(probe_of(), twice=True)) == ["temperature", "z1", "z2"]
        probe = probe_of()
        doubled = run.reply(probe, (2 * probe.value, probe.grads))
        assert np.isclose(doubled.value, 2 * probe.value, rtol=1e-15)
        with pytest.raises(InputError, match="NumPy does not have"):
            run(probe_of(dtype="bfloat16"))
        assert agrees(run(probe_of())), "it goes on after that"


def test_a_hang_is_one_case_and_the_others_still_run(path):
    # Seconds in which a busy machine answers for sure.
    with child_of(path, "hangs_when_cold", timeout=3) as run:
        assert agrees(run(probe_of()))
        outcome = run(probe_of(**COLD))
        assert outcome.trouble == "hangs"
        assert outcome.sentence == "does not return within 3 s (--timeout)"
        assert agrees(run(probe_of()))


def test_after_some_hangs_in_a_row_the_rest_is_not_waited_for(path, monkeypatch):
    monkeypatch.setattr(watch, "GIVE_UP", 2)
    with child_of(path, "hangs_when_cold", timeout=1) as run:
        assert {run(probe_of(**COLD)).trouble for _ in range(2)} == {"hangs"}
        start = time.perf_counter()
        outcome = run(probe_of(**COLD))
        assert time.perf_counter() - start < 1
        assert outcome.trouble == "hangs"
        assert outcome.sentence == "is not tried: 2 cases in a row: does not return within 1 s (--timeout)"


def test_a_death_tells_how_and_the_others_still_run(path):
    with child_of(path, "ends") as run:
        outcome = run(probe_of(**COLD))
        assert (outcome.trouble, outcome.sentence) == ("dies", "ends the process with exit code 7")
        assert agrees(run(probe_of()))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of that kind")
def test_a_crash_names_the_signal_and_the_last_words(path):
    with child_of(path, "crashes") as run:
        assert run(probe_of()).sentence == "ends the process with signal SIGSEGV: about to fall over"


def test_an_exit_is_an_outcome(path):
    with child_of(path, "leaves") as run:
        assert run(probe_of()).sentence == "exits (SystemExit: no)"


def test_what_the_target_prints_does_not_disturb_the_pipe(path, capfd):
    with child_of(path, "scribbles") as run:
        outcome = run(probe_of())
    assert agrees(outcome)
    assert outcome.remarks == {"prints": "prints 'more garbage'"}
    assert capfd.readouterr() == ("", "")


def test_a_target_that_asks_the_user_gets_no_answer(path):
    with child_of(path, "asks") as run:
        assert run(probe_of()).sentence.startswith("raises EOFError")


def test_a_neighbor_may_be_imported_when_it_is_called(path):
    with child_of(path, "lazy") as run:
        assert run(probe_of()).value == 1.0


def test_errors_of_loading_arrive_as_they_are(path, tmp_path):
    with pytest.raises(TargetError, match="has no 'wrong'"), child_of(path, "wrong"):
        pass
    with pytest.raises(InputError, match="`call` names 'z3'"), child_of(path, "right", call="f(z3)"):
        pass
    unsendable = pytest.raises(InputError, match="must be plain values")
    with unsendable, child_of(path, "right", init={"temperature": lambda: 0}):
        pass
    sleepy, dead = tmp_path / "sleepy.py", tmp_path / "dead.py"
    sleepy.write_text("import time\ntime.sleep(60)\n", encoding="utf-8")
    dead.write_text("import os\nos._exit(3)\n", encoding="utf-8")
    late = pytest.raises(TargetError, match="cannot be loaded: importing it does not return within 1 s")
    with late, child_of(sleepy, "f", loading_timeout=1.0):
        pass
    with pytest.raises(TargetError, match="importing it ends the process with exit code 3"), child_of(dead, "f"):
        pass


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes in /proc")  # noqa: PTH112
@pytest.mark.parametrize("way", ["interrupted", "killed"])
def test_no_child_is_left_behind(path, tmp_path, way):
    script = f"""
        from nceref.losses import nt_xent
        from nceref.verification.targets import runner
        from nceref.verification.records import Probe
        with runner.in_child("{path}:hangs_when_cold", nt_xent.declaration) as run:
            print(run._process.pid, flush=True)
            run(Probe("cold", nt_xent.declaration, dict(z1=[[1.0]], z2=[[1.0]], temperature=0.1), "float64"))
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    child = int(parent.stdout.readline())
    time.sleep(0.2)
    parent.send_signal({"interrupted": 2, "killed": 9}[way])
    parent.wait(timeout=10)
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:  # noqa: PTH123
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_numpy_target_answers_after_half_a_second_of_computing(path):
    resource = pytest.importorskip("resource", reason="Windows does not tell what a child has used")

    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    times = []
    for _ in range(2):
        start = used()
        with child_of(path, "right") as run:
            assert run(probe_of()).value == NT_XENT(Z1, Z2, temperature=0.5)
        times.append(used() - start)
    # Measured 0.35 s; the time on the clock depends on what else the machine does.
    assert min(times) < 0.8
