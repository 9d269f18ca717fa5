"""The data file of known differences, and what an entry of it covers."""

import pytest

from nceref.errors import DeclarationError
from nceref.verification.conventions import CONVENTIONS
from nceref.verification.peers.audit import DTYPES
from nceref.verification.peers.known import Difference, difference, known
from nceref.verification.peers.peer import get

ENTRY = Difference(
    "optax-ntxent", ("0.2.8",), ("float64",), ("*-0.001/*",), "exp-underflows", "It underflows.", "https://x.example"
)


def test_every_entry_of_the_file_is_well_formed():
    assert len(known()) > 10
    for entry in known():
        _, target = get(entry.target)
        assert target.name == entry.target
        assert entry.diagnosis in {"", *CONVENTIONS}
        assert set(entry.dtypes) <= set(DTYPES)


def test_results_are_covered_by_their_patterns():
    assert ENTRY.covers("designed-0.001/value")
    assert not ENTRY.covers("designed-0.3/value")


def test_an_entry_is_outdated_where_nothing_fails_or_the_diagnosis_is_another():
    assert list(ENTRY.outdated(["a-0.001/value"], ["exp-underflows"])) == []
    assert list(ENTRY.outdated(["a-0.001/value"], ["outer-factor-2+exp-underflows"])) == []
    assert len(list(ENTRY.outdated([], ["exp-underflows"]))) == 1
    assert len(list(ENTRY.outdated([], []))) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "optax-ntxnt"}, "did you mean 'optax-ntxent'"),
        ({"link": "ask me"}, "link must begin"),
        ({"reason": ""}, "reason must not be empty"),
        ({"version": ["1"]}, "unexpected keyword argument 'version'"),
    ],
)
def test_an_incomplete_entry_is_refused(change, message):
    entry = {field: getattr(ENTRY, field) for field in ENTRY.__dataclass_fields__}
    with pytest.raises(DeclarationError, match=message):
        difference({**entry, **change})
