"""`nceref tables`: one table or all, each format, and files."""

import json

from nceref import registry
from nceref.theory.table import Table

TABLES = registry.discover("nceref.theory.tables", "TABLE", Table)


def test_file_in_the_way_of_a_folder_is_status_2(run, tmp_path):
    (tmp_path / "file").write_text("")
    for out in ("file", "file/below"):
        status, _, err = run("tables", "losses", "--out", str(tmp_path / out))
        assert status == 2
        assert str(tmp_path / out) in err
    assert err == f"Error: cannot write --out {tmp_path / 'file/below'}: not a directory; choose another place\n"


def test_tables_as_json_is_one_list_and_nothing_else(run):
    status, out, _ = run("tables", "--format", "json")
    assert status == 0
    assert [table["name"] for table in json.loads(out)] == list(TABLES)


def test_tables_are_written_one_a_file_and_named(run, tmp_path):
    chosen = list(TABLES)[:2]
    status, out, err = run("tables", *chosen, "--format", "csv", "--out", str(tmp_path / "new"))
    paths = [tmp_path / "new" / f"{name}.csv" for name in chosen]
    assert (status, out, err) == (0, "", "".join(f"wrote {path}\n" for path in paths))
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    paths[0].write_text("other")
    err = run("tables", *chosen, "--format", "csv", "--out", str(tmp_path / "new"))[2]
    assert err == f"replaced {paths[0]}\nwrote {paths[1]}\n"


def test_all_tables_begin_with_the_counts_and_those_of_the_sources(run):
    lines = run("tables")[1].splitlines()
    assert any("published numbers:" in line for line in lines[:5])
    titles = [
        next(i for i, line in enumerate(lines) if line.startswith(t)) for t in ("Minimum of the PaCo", "The losses")
    ]
    assert titles == sorted(titles)
