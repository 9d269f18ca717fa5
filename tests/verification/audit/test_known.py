"""The manifest of released packages, and what an entry of it covers."""

from importlib.resources import as_file, files

from nceref.verification.audit.known import FILE, PACKAGE, Difference, known

from nceref.diagnosis.conventions import CONVENTIONS
from nceref.targets.peers.peer import get, peers
from nceref.verification.audit.audit import DTYPES
from nceref.verification.manifest.read import read_manifest

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


def test_the_manifest_has_every_target_and_every_way_to_use_it_on_ranks():
    with as_file(files(PACKAGE) / FILE) as path:
        manifest = read_manifest(path)
    assert manifest.problems == ()
    assert [problem for entry in manifest.targets for problem in entry.problems] == []
    tables = [entry.table for entry in manifest.targets]
    targets = {target.name: (held.name, target) for held in peers().values() for target in held.targets}
    assert [t["target"] for t in tables if "ranks" not in t] == list(targets)
    ways = [(t["target"], t.get("init", {})) for t in tables if "ranks" in t]
    assert ways == [(name, way) for name, (_, target) in targets.items() for way in target.ranks]
    for table in tables:
        assert table["needs"] == targets[table["target"]][0]
        for row in table.get("expected_failures", ()):
            assert list(row["versions"]) == [table["needs"]]
            # On one of several formats, or on each of them: an id without a format would match nothing.
            assert ("dtypes" in row) == ("ranks" not in table)
            assert row["link"].startswith("https://")
