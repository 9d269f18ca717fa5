"""Released packages on the standard suite: every difference is known, and the page of the audit is up to date."""

from functools import cache
from pathlib import Path

import pytest

from nceref.verification.peers import audit, audit_page, peer

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"
TARGETS = {target.name: held for held in peer.peers().values() for target in held.targets}


@cache
def judged(name, dtype):
    (row,) = audit.audit([name], dtypes=[dtype])
    return row


@pytest.mark.parametrize("dtype", audit.DTYPES)
@pytest.mark.parametrize("name", TARGETS)
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
    assert PAGE.read_text(encoding="utf-8") == audit_page.markdown(rows), "make audit writes it anew"
