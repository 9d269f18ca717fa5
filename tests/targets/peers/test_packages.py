"""Released packages on the standard suite: every difference is known, and the page of the audit is up to date."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from sweep import sweep

from nceref.targets.peers import peer
from nceref.verification.audit import audit
from nceref.verification.audit import page as audit_page

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"
TARGETS = {target.name: held for held in peer.peers().values() for target in held.targets}


ENTRIES = {entry.name: entry for entry in audit.released().targets}
ON_RANKS = [name for name, entry in ENTRIES.items() if audit.is_on_ranks(entry)]
DTYPES = ("float64", "float32")


@cache
def on_ranks(name):
    (row,) = audit.audit_on_ranks([name])
    return row


@pytest.mark.parametrize("name", ON_RANKS)
def test_every_difference_on_ranks_is_known(name):
    held = TARGETS[ENTRIES[name].table["target"]]
    if held.version is None:
        pytest.skip(f"{held.name} is not here: {held.command}")
    row = on_ranks(name)
    assert row.status in (audit.AGREES, audit.KNOWN), audit_page.page_of([row]).text()


@cache
def judged(name, dtype):
    (row,) = audit.audit([name], dtypes=[dtype])
    return row


@sweep("dtype", DTYPES)
@sweep("name", TARGETS)
def test_every_difference_is_known(name, dtype):
    held = TARGETS[name]
    if held.version is None:
        pytest.skip(f"{held.name} is not here: {held.command}")
    row = judged(name, dtype)
    assert row.status in (audit.AGREES, audit.KNOWN), audit_page.page_of([row]).text()


def test_the_page_says_what_was_found(monkeypatch):
    for held in TARGETS.values():
        if held.checkout:
            monkeypatch.delenv(held.checkout.variable, raising=False)
    absent = [held.name for held in TARGETS.values() if held.version is None and held.checkout is None]
    if absent:
        pytest.skip(f"{absent[0]} is not here: make test-peers installs all")
    rows = []
    for name, held in TARGETS.items():
        rows += audit.audit([name]) if held.checkout else [judged(name, dtype) for dtype in DTYPES]
    page = audit_page.whole_page(rows, map(on_ranks, ON_RANKS))
    assert PAGE.read_text(encoding="utf-8") == page, "make audit writes it anew"


@pytest.mark.parametrize(
    ("package", "name", "printed"),
    [
        ("sentence_transformers", "gist_same_pair.py", "1.098658, and 0.000136 without itself\n"),
        ("keras_rs", "keras_rs_hits.py", "tensor([[0.5000, 0.5000],\n        [0.5000, 0.5000]])\n"),
    ],
)
def test_a_script_shows_without_nceref_what_the_page_says(package, name, printed):
    pytest.importorskip(package)
    script = PAGE.parent / "scripts" / name
    assert "import nceref" not in script.read_text(encoding="utf-8")
    out = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True).stdout
    assert out == printed
