"""Hostile targets in the process of the caller: what can be contained here is, and the process stays as it was."""

import gc
import importlib.util
import locale
import os
import random
import signal
import sys
import warnings

import numpy as np
import pytest
from sweep import sweep
from targets.containment import AGREES, CALLED, DISTRUST, FOLDER, RIGHT, check

import nceref
from nceref.registry import find_object
from nceref.verification import verifier

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="some targets need signals")
NOT_HERE = {
    # They end or interrupt the process, or never return.
    *(
        kind
        for kind, (_, words) in CALLED.items()
        if words.startswith(("ends", "does not return")) or "Interr" in words
    ),
    # Text names a target.
    "built.py:odd_text",
    # They take the pipe to the parent, the standard streams or the debugger from the test.
    *(kind for kind in CALLED if kind.startswith("printed.py") and kind.endswith(("pipe", "pipes", "descriptors"))),
    *(f"printed.py:{name}" for name in ("closes_everything", "reads_input", "steals_requests")),
    *(f"changed.py:{name}" for name in ("debugger", "question")),
    # They replace what judges in this process.
    *(kind for kind in CALLED if kind.startswith("forged.py")),
    # What they change cannot be put back, or another thread of the test would meet it.
    *(f"changed.py:{name}" for name in ("modules", "all_modules", "builtin_functions", "no_import", "open_files")),
    *(f"changed.py:{name}" for name in ("many_open_files", "permissions")),
}
HERE = [kind for kind in CALLED if kind not in NOT_HERE]


def surroundings():
    """Settings of this process that a target may change."""
    return {
        "NumPy": (np.geterr(), np.geterrcall(), np.getbufsize(), np.get_printoptions()),
        "functions": [id(x) for module in (np, np.linalg, os, sys) for x in vars(module).values() if callable(x)],
        "streams": [id(x) for x in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__)],
        "warnings": [*warnings.filters],
        "folder": os.getcwd(),  # noqa: PTH109 - as a target sees it
        "language": locale.setlocale(locale.LC_ALL),
        "environment": dict(os.environ),
        "imports": [x for x in (*sys.path, *sys.meta_path, *sys.path_hooks) if x != "/nowhere"],
        "limits": (sys.getrecursionlimit(), gc.isenabled(), sys.gettrace(), sys.getprofile()),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "timer": signal.getitimer(signal.ITIMER_REAL) if hasattr(signal, "getitimer") else 0,
        "random": (random.getstate(), str(np.random.get_state())),  # noqa: NPY002 - what others use
    }


@pytest.fixture(scope="module")
def answer():
    """The neighbor that the targets import."""
    spec = importlib.util.spec_from_file_location("answer", FOLDER / "answer.py")
    sys.modules["answer"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # What the verifier imports when it runs for the first time is not what a target changes.
    check(module.right, AGREES)
    yield module
    del sys.modules["answer"]


@pytest.mark.slow(reason="every kind once more, and `make test` calls all of them in a process of their own")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@sweep("kind", HERE)
def test_it_is_named_and_the_process_stays_as_it_was(answer, kind):
    target, before = find_object(str(FOLDER / kind)), surroundings()
    check(target, CALLED[kind])
    assert surroundings() == before


def test_the_next_target_is_judged_as_ever(answer):
    check(answer.right, AGREES)


def test_the_user_may_interrupt_a_run(answer):
    target = find_object(f"{FOLDER / 'raised.py'}:keyboard_interrupt")
    with pytest.raises(KeyboardInterrupt):
        check(target, AGREES)


@pytest.mark.parametrize("errors", ["raise", "ignore"])
def test_underflow_in_a_case_is_nobodys_fault_whatever_the_caller_has_set(errors):
    """Probabilities of cold cases underflow: in the reference, in the target and in what judges them."""

    def nt_xent(z1, z2, temperature):
        z = np.concatenate([z1, z2])
        z = z / np.linalg.norm(z, axis=1, keepdims=True)
        logits = z @ z.T / temperature
        np.fill_diagonal(logits, -np.inf)
        top = logits.max(axis=1)
        sums = np.exp(logits - top[:, None]).sum(axis=1)
        value = np.mean(np.log(sums) + top - logits[np.arange(len(z)), np.roll(np.arange(len(z)), len(z1))])
        np.seterr(all="raise")
        return value

    with np.errstate(all=errors):
        report = nceref.verify(nt_xent, "nt_xent", suite="quick")
        assert set(np.geterr().values()) == {errors}
    assert (report.verdict, report.exit_code) == ("value-only", 0), report.reason


def test_a_process_in_which_numpy_is_replaced_judges_nothing_and_says_why(answer, monkeypatch):
    monkeypatch.setattr(np, "any", lambda *args, **kwargs: False)
    monkeypatch.setattr(verifier, "held_runner", lambda *args: pytest.fail("the target is run"))
    words = "numpy.any is not NumPy's own any more: the target, or something else that was imported, has replaced it"
    check(answer.right, (DISTRUST, words))
    check(answer.right, (DISTRUST, "in a process of its own, by its text FILE:NAME"))
    check(RIGHT, (DISTRUST, "in a process where NumPy is as it was"))
