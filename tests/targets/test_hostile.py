"""Hostile targets in a process of their own: each is named in a report that can be shown."""

import functools
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from targets.containment import AGREES, ANY, CALLED, FOLDER, HANGS, PATIENT, RIGHT, check, kinds_in

from nceref.losses import get_loss
from nceref.targets import runner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="some targets need /proc and signals")
LASTING = {"changed.py:modules", "changed.py:all_modules", "changed.py:open_files", "printed.py:steals_requests"}
LASTING |= {kind for kind in CALLED if kind.startswith("forged.py")}
"""What these change in their process is still so for the next target."""

QUICK = {
    "raised.py": """lone_surrogate escape_sequences text_raises odd_class_name own_base_exception keyboard_interrupt
        system_exit recursion error_of_the_checker""",
    "returned.py": """none odd_keys huge_gradient object_array masked_array array_hangs bad_mapping lying_array
        without_repr half_the_time its_inputs""",
    "built.py": "ConstructionExits lying_signature attributes_raise odd_text",
    "changed.py": """inputs another_answer_behind_comparisons kept_answers errors_raise modules ignored_signals
        no_streams numpy_functions""",
    "printed.py": "surrogates last_words answer_to_another_request_into_the_pipe",
    "forged.py": "error_into_the_pipe half_a_line_and_an_end answer_ahead megabytes_on_a_line",
}
QUICK = tuple(f"{file}:{name}" for file, names in QUICK.items() for name in names.split())
"""One of each kind of trouble; most of the others end the process, and starting it again is what takes the time."""

AT_ONCE = 2
"""Processes that wait for their targets side by side."""


@functools.cache
def ends_of(kinds):
    """For each kind the assertion that failed, or None; each process judges the right target at last."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = pool.map(judged, [kinds[start::AT_ONCE] for start in range(AT_ONCE)])
    return {kind: end for part in parts for kind, end in part.items()}


def judged(kinds):
    with runner.in_child(RIGHT, get_loss("alignment").declaration) as child:
        out = {kind: end_of(child, kind) for kind in kinds}
        child._timeout = PATIENT
        check(RIGHT, AGREES, child=child)
        return out


def end_of(child, kind):
    child._timeout = 0.3 if CALLED[kind] in (ANY, HANGS) else PATIENT
    try:
        check(str(FOLDER / kind), CALLED[kind], child=child)
    except Exception as error:
        return error
    finally:
        if kind in LASTING:
            child.stop()


@pytest.mark.parametrize("kind", QUICK)
def test_it_is_named_and_harms_nobody(kind):
    assert_named(QUICK, kind)


@pytest.mark.slow(reason="the same kinds of trouble in other words")
@pytest.mark.parametrize("kind", CALLED)
def test_every_kind_is_named_and_harms_nobody(kind):
    assert_named(tuple(CALLED), kind)


def assert_named(kinds, kind):
    if (error := ends_of(kinds)[kind]) is not None:
        raise error


def test_no_code_of_a_target_ran_here():
    ends_of(QUICK)
    assert not (FOLDER / "code-of-the-target-ran-here").exists()


def test_no_kind_is_left_out():
    files = {kind.split(":")[0] for kind in CALLED}
    assert sorted(CALLED) == sorted(kind for file in files for kind in kinds_in(file))
