"""Hostile targets in a process of their own: each is named in a report that can be shown."""

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


AT_ONCE = 4
"""Processes that wait for their targets side by side."""


@pytest.fixture(scope="module")
def ends():
    """For each kind the assertion that failed, or None; each process judges the right target at last."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = pool.map(judged, [list(CALLED)[start::AT_ONCE] for start in range(AT_ONCE)])
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


@pytest.mark.parametrize("kind", CALLED)
def test_it_is_named_and_harms_nobody(ends, kind):
    if ends[kind] is not None:
        raise ends[kind]


@pytest.mark.usefixtures("ends")
def test_no_code_of_a_target_ran_here():
    assert not (FOLDER / "code-of-the-target-ran-here").exists()


def test_no_kind_is_left_out():
    files = {kind.split(":")[0] for kind in CALLED}
    assert sorted(CALLED) == sorted(kind for file in files for kind in kinds_in(file))
