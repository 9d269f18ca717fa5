"""The manifest of released packages: every target that is declared, and known differences that are well-formed."""

from nceref.targets.peers.peer import peers
from nceref.verification.audit.audit import is_on_ranks, known, released


def test_the_manifest_has_every_target_and_every_way_to_use_it_on_ranks():
    manifest = released()
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


def test_on_ranks_what_one_process_has_as_well_is_not_listed_again():
    reasons = {entry.name: [row["reason"] for row in rows] for entry, rows in known()}
    assert sum(map(len, reasons.values())) > 30
    assert [reason[:11] for reason in reasons["pml-ntxent-2-ranks-efficient"]] == ["Every rank "]
    assert all(is_on_ranks(entry) == entry.name.count("-2-ranks") for entry, _ in known())
