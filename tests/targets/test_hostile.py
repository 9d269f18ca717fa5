"""Hostile targets in a process of their own: each is named in a report that can be shown."""

import sys

import pytest
from targets.containment import AGREES, ANY, CALLED, FOLDER, HANGS, PATIENT, RIGHT, check, kinds_in

from nceref.losses import get_loss
from nceref.targets import runner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="some targets need /proc and signals")
LASTING = {"changed.py:modules", "changed.py:all_modules", "changed.py:open_files", "printed.py:steals_requests"}
LASTING |= {kind for kind in CALLED if kind.startswith("forged.py")}
"""What these change in their process is still so for the next target."""


@pytest.fixture(scope="module")
def child():
    with runner.in_child(RIGHT, get_loss("alignment").declaration) as run:
        yield run


@pytest.mark.parametrize("kind", CALLED)
def test_it_is_named_and_harms_nobody(child, kind):
    child._timeout = 0.3 if CALLED[kind] in (ANY, HANGS) else PATIENT
    check(str(FOLDER / kind), CALLED[kind], child=child)
    if kind in LASTING:
        child.stop()


def test_the_next_target_is_judged_as_ever(child):
    child._timeout = PATIENT
    check(RIGHT, AGREES, child=child)
    assert not (FOLDER / "code-of-the-target-ran-here").exists()


def test_no_kind_is_left_out():
    files = {kind.split(":")[0] for kind in CALLED}
    assert sorted(CALLED) == sorted(kind for file in files for kind in kinds_in(file))
