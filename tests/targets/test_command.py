"""Executables as targets: one JSON object a line, whatever the program does instead, and the same explanations."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest
from targets.test_targets import NT_XENT, agrees, probe_of

from nceref import verify
from nceref.errors import InputError, TargetError
from nceref.targets.command import in_command
from nceref.verification import identify

PATIENT, BRIEF = 600.0, 0.7
"""Seconds in which a busy machine answers for sure, and those of a program that never does."""
LOSS = NT_XENT.declaration
FAKE = """
    import json, os, signal, subprocess, sys, time

    mode, folder = sys.argv[1:]
    known = json.load(open(os.path.join(folder, "answer.json")))
    calls = 0

    def say(kind, **content):
        print(json.dumps({kind: content}), flush=True)

    def result(id, **changed):
        say("result", id=id, **{**known, **changed})

    def leave(code, words):
        sys.stderr.write(words)
        sys.stderr.flush()
        os._exit(code)

    def answer(id, warm):
        if mode == "dies":
            leave(7, "first\\nMemoryError: no more\\n  at main\\n")
        elif mode == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif mode == "dies-when-cold" and not warm:
            leave(7, "too cold")
        elif mode == "hangs":
            other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            with open(os.path.join(folder, "new"), "w") as file:
                file.write(f"{os.getpid()} {other.pid}")
            os.replace(os.path.join(folder, "new"), os.path.join(folder, "pids"))
            print("step", end="", flush=True)
            time.sleep(1000)
        elif mode == "text":
            print("step 1", flush=True)
        elif mode == "nothing":
            print(flush=True)
        elif mode == "two kinds":
            print(json.dumps({"result": {}, "error": {}}), flush=True)
        elif mode == "list":
            print('{"result": [1]}', flush=True)
        elif mode == "other id":
            result("another")
        elif mode == "twice":
            result(id), result(id)
        elif mode == "late":
            result(id), time.sleep(0.3), print("done", flush=True)
        elif mode == "once":
            result(id), sys.exit(0)
        elif mode == "closes":
            os.close(1), time.sleep(1000)
        elif mode == "long line":
            print("x" * 200000, flush=True)
        elif mode == "shape":
            result(id, value=[1.0, 2.0])
        elif mode == "gradient":
            result(id, grad={**known["grad"], "z1": known["grad"]["z1"][:-1]})
        elif mode == "nan":
            result(id, value=float("nan"))
        elif mode == "error":
            say("error", id=id, message="rows must be even")
        elif mode == "unsupported":
            say("unsupported", id=id, reason="no such reduction")
        elif mode == "unsteady":
            result(id, value=known["value"] + calls)
        elif mode == "value":
            print(json.dumps({"result": {"id": id, "value": known["value"]}}), flush=True)
        else:
            result(id)

    HELLO = {
        "another loss": {"losses": ["clip", "moco"]}, "another format": {"dtypes": ["float32"]},
        "newer": {"protocol": 2}, "odd": {"losses": 3}, "plain": {},
    }
    for line in sys.stdin:
        (kind, content), = json.loads(line).items()
        calls += 1
        if kind == "bye":
            open(os.path.join(folder, "bye"), "w").close()
            break
        if kind == "run":
            answer(content["id"], content["inputs"]["temperature"]["hex"] == ["3fe0000000000000"])
        elif mode == "prints first":
            print("loading the model ...", flush=True)
        elif mode == "silent":
            time.sleep(1000)
        elif mode == "dead":
            leave(3, "no such device")
        elif mode == "refuses":
            say("error", message="no")
        elif mode == "greets":
            print('{"hello": {}}\\nready', flush=True)
        else:
            say("hello", **HELLO.get(mode, {"implementation": "fake 1", "dtypes": ["float64"], "losses": ["nt_xent"]}))
"""


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake")
    (folder / "fake.py").write_text(textwrap.dedent(FAKE), encoding="utf-8")
    probe = probe_of()
    known = {"value": probe.value, "grad": {name: np.ravel(g).tolist() for name, g in probe.grads.items()}}
    (folder / "answer.json").write_text(json.dumps(known), encoding="utf-8")
    return folder


def started(folder, mode, timeout=PATIENT, dtypes=("float64",)):
    text = f"cmd:'{sys.executable}' -S '{folder}/fake.py' '{mode}' '{folder}'"
    return in_command(text, LOSS, settings={}, dtypes=dtypes, timeout=timeout)


def test_a_program_answers_and_is_told_that_it_is_over(fake):
    with started(fake, "right") as run:
        assert agrees(run(probe_of(), twice=True)) == ["temperature", "z1", "z2"]
        assert run.target.framework == "command"
        assert run.target.binding == "every input by its name; the program is fake 1"
        probe = probe_of()
        reply = run.reply(probe, (probe.value, {n: -g for n, g in probe.grads.items()}))
        assert agrees(replace(reply, grads={n: -g for n, g in reply.grads.items()})) == ["temperature", "z1", "z2"]
    assert (fake / "bye").exists()
    with started(fake, "plain") as run:
        assert run(probe_of()).value == probe_of().value


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("prints first", "it prints 'loading the model ...' instead of one line {\"hello\": {...}}; what is no answer"),
        ("silent", f"called with `hello`, it does not return within {BRIEF:g} s (--timeout); does it flush"),
        ("dead", "called with `hello`, it ends the process with exit code 3: no such device"),
        ("refuses", "instead of one line"),
        ("another loss", "does not have nt_xent: it answers `hello` with losses clip, moco"),
        ("another format", "does not have float64: it answers `hello` with dtypes float32"),
        ("newer", "speaks version 2 of the protocol, nceref 1"),
        ("odd", "losses 3 instead of a list of names"),
    ],
)
def test_a_program_that_cannot_be_run_has_its_sentence(fake, mode, words):
    with pytest.raises(TargetError) as error, started(fake, mode, BRIEF if mode == "silent" else PATIENT):
        raise AssertionError
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("mode", "trouble", "words"),
    [
        ("dies", "dies", "ends the process with exit code 7: MemoryError: no more"),
        ("crashes", "dies", "ends the process with signal SIGSEGV"),
        ("once", "dies", "ends the process with exit code 0; it has to answer one line after the other"),
        ("closes", "dies", "closes its standard output"),
        ("text", "breaks-protocol", 'prints \'step 1\' instead of one line {"result": {...}} or {"error": {...}} or'),
        ("nothing", "breaks-protocol", "prints '' instead of one line"),
        ("two kinds", "breaks-protocol", "instead of one line"),
        ("list", "breaks-protocol", "instead of one line"),
        ("other id", "breaks-protocol", "answers 'another' where the answer to 'case#1' is due"),
        ("long line", "breaks-protocol", "prints a line of more than"),
        ("twice", "breaks-protocol", "case#1"),
        ("greets", "breaks-protocol", "'ready'"),
        ("late", "breaks-protocol", "prints 'done' after its answer to 'case#1': one line answers a call"),
        ("shape", "wrong-shape", "returns 2 numbers, but the reduction 'mean' asks for one number"),
        ("gradient", "wrong-shape", "returns 11 numbers as the gradient of `z1`, whose shape is (4, 3)"),
        ("nan", "breaks-protocol", 'it is not JSON: NaN is no number of JSON; write the string "NaN"'),
        ("error", "raises", "answers with an error: rows must be even"),
        ("unsupported", "unsupported", "does not support this: no such reduction"),
    ],
)
def test_whatever_is_no_answer_has_its_sentence(fake, mode, trouble, words):
    with started(fake, mode) as run:
        outcome = run(probe_of(), twice=mode in ("twice", "once"))
        if mode == "late":
            # Nobody can see this before it is there.
            run._exchange._answers.put(run._exchange.receive(PATIENT, run._ended))
            outcome = run(probe_of())
    assert (outcome.trouble, words in outcome.sentence) == (trouble, True), outcome.sentence


def test_what_differs_from_call_to_call_and_what_has_no_gradient_is_seen(fake):
    with started(fake, "unsteady") as run:
        assert run(probe_of(), twice=True).remarks == {
            "not-deterministic": "gives another value when it is called again with the same inputs"
        }
    with started(fake, "value") as run:
        assert run(probe_of()).unjudged["z1"] == "the target returns no gradients"


def test_it_is_started_again_and_given_up_after_three(fake):
    words = "ends the process with exit code 7: too cold"
    cold = probe_of(z1=probe_of().inputs["z1"], z2=probe_of().inputs["z2"], temperature=0.1)
    with started(fake, "dies-when-cold") as run:
        for _ in range(2):
            assert run(cold).sentence.startswith(words)
        assert agrees(run(probe_of()))
        sentences = [run(cold).sentence for _ in range(4)]
    assert sentences[-1].startswith(f"is not tried: 3 cases in a row: {words}")


def test_no_process_is_left_behind(fake, monkeypatch):
    def patience_is_over(seconds, ended):
        while not run._exchange.unfinished():
            time.sleep(0.01)
        raise TimeoutError

    with started(fake, "hangs") as run:
        monkeypatch.setattr(run._exchange, "receive", patience_is_over)
        words = f"does not return within {PATIENT:g} s (--timeout); the line that it prints has no end: 'step'"
        assert run(probe_of()).sentence == words
    for pid in map(int, (fake / "pids").read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    ("command", "error", "words"),
    [
        ("", InputError, 'such as cmd:"./impl --serve"'),
        ("'a", InputError, "No closing quotation"),
        ("a\0b", InputError, "null character"),
        ("./missing --serve", TargetError, "no file './missing': build it"),
        ("missing-program-xyz", TargetError, "on PATH, and no file of this name"),
        ("ready", TargetError, "on PATH; the one of this folder is ./ready"),
        ("./plain.txt", TargetError, "not executable"),
        ("./garbage", TargetError, "exit code 126: it cannot be executed: Exec format error"),
    ],
)
def test_a_command_line_that_leads_nowhere_has_its_sentence(tmp_path, monkeypatch, command, error, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.txt").write_text("x", encoding="utf-8")
    (tmp_path / "garbage").write_bytes(b"\x00\x01")
    (tmp_path / "garbage").chmod(0o755)
    (tmp_path / "ready").touch(0o755)
    with pytest.raises(error) as raised, in_command(f"cmd:{command}", LOSS, settings={}, dtypes=["float64"]):
        raise AssertionError
    assert words in str(raised.value)


@pytest.mark.parametrize(
    "option",
    [
        {"call": "f(z1)"}, {"init": {"a": 1}}, {"framework": "numpy"}, {"param": {"temperature": "t"}},
        {"modes": "compile"}, {"isolate": True}, {"device": "cuda"}, {"ranks": 2},
    ],
    ids=lambda option: next(iter(option)),
)  # fmt: skip
def test_options_that_say_nothing_of_a_program_are_refused(option):
    with pytest.raises(InputError, match=f"`{next(iter(option))}` is not for a target cmd:"):
        verify("cmd:./impl", "nt_xent", **option)


def test_identify_is_for_functions():
    with pytest.raises(InputError, match="a program, which is called for one loss"):
        identify.candidates("cmd:./impl")


SERVED = '''
    """InfoNCE, right and wrong, as functions of Python and as a program that serves them."""

    import json
    import os
    import struct
    import sys

    import numpy as np


    def graded(queries, keys, temperature, power=1.0, factor=1.0):
        lengths = [np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys)]
        q, k = queries / lengths[0], keys / lengths[1]
        s = q @ k.T / temperature
        top = s.max(axis=1, keepdims=True)
        mass = np.exp(s - top)
        share = mass / mass.sum(axis=1, keepdims=True)
        value = np.mean(np.log(mass.sum(axis=1)) + top[:, 0] - np.diag(s))
        slope = (share - np.eye(len(s))) / len(s)
        grads = [slope @ k / temperature, slope.T @ q / temperature]
        grads = [(g - x * (g * x).sum(1, keepdims=True)) / n for g, x, n in zip(grads, (q, k), lengths)]
        scalar = -np.sum(slope * s) / temperature
        grads = {"queries": grads[0], "keys": power * grads[1], "temperature": scalar}
        return factor * value, {name: factor * g for name, g in grads.items()}


    def wrong(queries, keys, temperature):
        return graded(queries, keys, temperature, power=len(queries), factor=2.0)


    def crashing(queries, keys, temperature):
        if len(queries) == 17:
            os.abort()
        return graded(queries, keys, temperature)


    def numbers(content):
        return np.frombuffer(bytes.fromhex("".join(content["hex"])), dtype=">f8").reshape(content["shape"])


    def main():
        for line in sys.stdin:
            ((kind, content),) = json.loads(line).items()
            if kind == "hello":
                print('{"hello": {}}', flush=True)
            elif kind == "run":
                inputs = {name: numbers(x).astype(float) for name, x in content["inputs"].items()}
                value, grads = globals()[sys.argv[1]](**inputs)
                listed = {name: [struct.pack(">d", x).hex() for x in np.ravel(g)] for name, g in grads.items()}
                result = {"id": content["id"], "value": float(value) if value == value else "NaN", "grad": listed}
                print(json.dumps({"result": result}), flush=True)
            else:
                return


    if __name__ == "__main__":
        main()
'''


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "served.py"
    path.write_text(textwrap.dedent(SERVED), encoding="utf-8")
    return path


def program(path, name):
    return f"cmd:'{sys.executable}' '{path}' {name}"


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_program_and_a_function_have_the_same_explanation(served, tmp_path):
    by_program = verify(program(served, "wrong"), "info_nce", suite="quick", repro=True)
    by_function = verify(module_of(served).wrong, "info_nce", suite="quick")
    assert by_program.diagnosis[0] == by_function.diagnosis[0]
    assert (by_program.diagnosis[0].id, by_program.exit_code) == ("outer-factor-2+gradient-constant-factor", 1)
    assert by_program.reason == by_function.reason
    assert by_program.training == by_function.training
    # The script of the smallest failure sends the program its lines.
    (tmp_path / "repro.py").write_text(by_program.repro, encoding="utf-8")
    again = subprocess.run([sys.executable, tmp_path / "repro.py"], capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout.count("reference"), again.stderr) == (1, 1, "")


def test_formats_and_sizes_reach_a_program(served):
    report = verify(program(served, "graded"), "info_nce", suite="quick", dtype=["bfloat16", "float32"], shape=(4, 3))
    assert (report.verdict, report.environment["framework"]) == ("conforms", "command")
    assert report.environment["arguments"].startswith("every input by its name")
    assert {r.quantity for r in report.results if r.quantity.startswith("mode.")} >= {"mode.again"}


def test_a_crash_is_exit_4_with_the_case_named(served):
    report = verify(program(served, "crashing"), "info_nce", suite="quick")
    crashed = [r.case for r in report.results if r.quantity == "behavior.dies"]
    assert (report.exit_code, report.verdict) == (4, "error")
    assert report.reason.startswith(f"the program gives no answer on {crashed[0]}, it ends the process with signal")
    assert sum(r.status == "pass" for r in report.results) > 20
