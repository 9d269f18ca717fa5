"""`nceref tables`: one table or all, each format, and files."""

import csv
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


def test_tables_prints_the_chosen_ones_in_order(run):
    chosen = list(TABLES)[:2][::-1]
    status, out, _ = run("tables", *chosen)
    assert status == 0
    first, second = (out.index(TABLES[name].title) for name in chosen)
    assert first < second
    assert max(map(len, out.splitlines())) <= 80


def test_tables_as_json_is_one_list_and_nothing_else(run):
    status, out, _ = run("tables", "--format", "json")
    assert status == 0
    assert [table["name"] for table in json.loads(out)] == list(TABLES)


def test_tables_as_csv_and_markdown_carry_the_columns(run):
    name = next(iter(TABLES))
    header = next(csv.reader(run("tables", name, "--format", "csv")[1].splitlines()))
    assert all(any(entry.startswith(column) for entry in header) for column in TABLES[name].columns)
    assert run("tables", name, "--format", "markdown")[1].startswith(f"## {TABLES[name].title}\n")


def test_tables_are_written_one_a_file_and_named(run, tmp_path):
    chosen = list(TABLES)[:2]
    status, out, err = run("tables", *chosen, "--format", "csv", "--out", str(tmp_path / "new"))
    paths = [tmp_path / "new" / f"{name}.csv" for name in chosen]
    assert (status, out, err) == (0, "", "".join(f"wrote {path}\n" for path in paths))
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    paths[0].write_text("other")
    err = run("tables", *chosen, "--format", "csv", "--out", str(tmp_path / "new"))[2]
    assert err == f"replaced {paths[0]}\nwrote {paths[1]}\n"


def test_tables_can_be_listed_by_name(run):
    lines = run("tables", "--list")[1].splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(TABLES)
    assert max(map(len, lines)) <= 80
    words = " ".join(" ".join(lines).split())
    assert all(f"{name} {table.title}" in words for name, table in TABLES.items())


def test_list_of_tables_as_json_has_names_and_titles(run):
    listed = json.loads(run("tables", "--list", "--format", "json")[1])
    assert listed == [{"name": name, "title": table.title} for name, table in TABLES.items()]


def test_all_tables_begin_with_the_counts_and_those_of_the_sources(run):
    lines = run("tables")[1].splitlines()
    assert any("published numbers:" in line for line in lines[:5])
    titles = [
        next(i for i, line in enumerate(lines) if line.startswith(t)) for t in ("Minimum of the PaCo", "The losses")
    ]
    assert titles == sorted(titles)
