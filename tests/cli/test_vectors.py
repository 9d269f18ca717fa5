"""`nceref vectors`: what its pages say, and exit statuses; the records are tested in tests/verification/vectors."""

import json

import pytest
from commands.examples import read_once
from sweep import sweep

from nceref.verification.vectors import store
from nceref.verification.vectors.store import MANIFEST


@pytest.fixture(autouse=True)
def of_the_package(monkeypatch):
    monkeypatch.setattr(store, "read_vectors", read_once)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from click.testing import CliRunner

    from nceref import cli

    folder = tmp_path_factory.mktemp("exported")
    assert (
        CliRunner().invoke(cli.nceref, ["vectors", "export", "--loss", "simple", "--out", str(folder)]).exit_code == 0
    )
    return folder


def test_a_changed_file_and_a_changed_number_have_a_status_of_their_own(run, folder, tmp_path):
    for name in folder.iterdir():
        (tmp_path / name.name).write_bytes(name.read_bytes())
    path = tmp_path / "simple.json"
    path.write_text(path.read_text().replace('"exact": false', '"exact": true', 1))
    status, out, err = run("vectors", "check", str(tmp_path))
    assert (status, out) == (7, "")
    assert "simple.json was changed: its sha256 is" in err


def test_the_list_counts_what_the_manifest_counts(run, folder):
    status, out, _ = run("vectors", "list", "--json")
    listed = json.loads(out)
    assert status == 0
    assert listed["counts"]["simple"] == json.loads((folder / MANIFEST).read_text())["counts"]["simple"]
    assert len(listed["sha256"]) == 64
    _, cases, _ = run("vectors", "list", "simple", "--json")
    assert len(json.loads(cases)) == listed["counts"]["simple"]


def test_a_case_on_several_ranks_is_listed_and_shown(run):
    _, out, _ = run("vectors", "list", "siglip", "--json")
    (id,) = (case["id"] for case in json.loads(out) if case["id"].startswith("share-2-ranks-3+1-"))
    status, page, _ = run("vectors", "info", id)
    assert status == 0
    assert "2 ranks: share loss; values joined by" in page
    assert "rank 1" in page
    _, out, _ = run("vectors", "info", id, "--json")
    assert json.loads(out)["ranks"]["shards"] == [[0, 1, 2], [3]]


@sweep(
    ("words", "message"),
    [
        ("list nt_xnet", "nt_xent"),
        ("info designed-0.3-00000000", "no case named"),
        ("check nowhere", "cannot read nowhere"),
        ("export --loss nce", "--out"),
    ],
)
def test_what_does_not_exist_is_named(run, words, message):
    status, out, err = run("vectors", *words.split())
    assert (status, out) == (2, "")
    assert message in err
