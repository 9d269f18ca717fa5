"""Released packages on the standard suite: every difference is known, and the page of the audit is up to date."""

from functools import cache
from pathlib import Path

import pytest
from sweep import sweep

from nceref.targets.peers import peer
from nceref.verification.audit import audit
from nceref.verification.audit import page as audit_page
from nceref.verification.audit import ranks as audit_ranks

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"
TARGETS = {target.name: held for held in peer.peers().values() for target in held.targets}


WAYS = audit_ranks.ways()


@cache
def on_ranks(number):
    return audit_ranks.judged_on_ranks(*WAYS[number])


@pytest.mark.parametrize("number", range(len(WAYS)), ids=[f"{name}-{dict(way)}" for name, way in WAYS])
def test_every_difference_on_ranks_is_known(number):
    name, _ = WAYS[number]
    if TARGETS[name].version is None:
        pytest.skip(f"{TARGETS[name].name} is not here: {TARGETS[name].command}")
    row = on_ranks(number).judged
    assert row.status in (audit.AGREES, audit.KNOWN), audit_page.page_of([row]).text()


@cache
def judged(name, dtype):
    (row,) = audit.audit([name], dtypes=[dtype])
    return row


@sweep("dtype", audit.DTYPES)
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
        rows += audit.audit([name]) if held.checkout else [judged(name, dtype) for dtype in audit.DTYPES]
    page = audit_ranks.whole_page(rows, map(on_ranks, range(len(WAYS))))
    assert PAGE.read_text(encoding="utf-8") == page, "make audit writes it anew"
