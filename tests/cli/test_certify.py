"""`nceref certify`: its page, and what is a finding."""

from dataclasses import replace

import pytest

from nceref.checks import certify
from nceref.checks.certify import Certified

pytestmark = pytest.mark.machine

pytest.importorskip("flint", reason="python-flint is not installed: pip install 'nceref[certify]'")

FINE = Certified("dcl", "float64", 2, 30, 0, 0, None, 0.25, "")


@pytest.mark.parametrize(
    ("change", "status"),
    [({}, 0), ({"of_bound": 1.5}, 1), ({"unsettled": 1}, 1), ({"apart": 2}, 1), ({"undecided": 3}, 0)],
)
def test_what_is_a_finding(run, monkeypatch, change, status):
    result = replace(FINE, **change)
    monkeypatch.setattr(certify, "certify", lambda *_: iter([result, replace(result, dtype="float32")]))
    assert run("certify", "dcl")[0] == status
    assert run("certify", "dcl", "--json")[0] == status


def test_a_loss_without_a_proof_is_refused(run, monkeypatch):
    monkeypatch.setattr(certify, "_proven", lambda *_: {})
    status, _, err = run("certify", "uniformity")
    assert status == 2
    assert "cases of uniformity has a proof" in err
