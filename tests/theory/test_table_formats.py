import csv
import io
import json
import re
import sys
from collections import Counter
from decimal import Decimal
from functools import cache
from math import inf, nan, pi

import pytest
from sweep import sweep
from theory import latex

from nceref.errors import InputError
from nceref.output import pages
from nceref.registry import discover
from nceref.theory import table_cells, table_formats
from nceref.theory.table import Cell, Table
from nceref.theory.verdicts import Verdict, verdict

pytestmark = pytest.mark.machine

TABLES = discover("nceref.theory.tables", "TABLE", Table)

every_table = sweep("table", TABLES.values(), ids=list(TABLES))


def table(rows, columns=None, **fields):
    columns = columns or tuple(rows[0])
    return Table(name="sample", title="A sample", source="Nowhere", columns=columns, rows=lambda: rows, **fields)


def cells(rows):
    return [value for row in rows for value in row.values() if isinstance(value, Cell)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@every_table
def test_text_fits_80_columns_without_color_or_trailing_space(table):
    lines = table_formats.text(table).splitlines()
    assert max(map(len, lines)) <= pages.WIDTH
    assert [line for line in lines if line != line.rstrip() or "\x1b" in line] == []


@every_table
def test_latex_has_a_field_for_every_column_and_no_letter_with_a_meaning(table, tmp_path):
    source = table_formats.render(table, "latex")
    assert source.isascii()
    # Without commands, escaped letters, mathematics, and the ends of fields and lines, no letter has a meaning.
    body = source[source.index("\\hline") : source.rindex("\\hline")]
    commands = r"\\shortstack\[r\]\{[^{}]*\}|\\end(first)?head|\\\w+\{\}|\\hline|\\\\\n"
    plain = re.sub(rf"{commands}|\\[#$%&_{{}}]|\$[<>|]\$|\$\^\\circ\$", "", body)
    assert not set(plain) & set("#$%_{}\\~^<>|")
    lines = [line for line in body.splitlines() if line.endswith("\\\\")]
    columns, _ = latex_columns(source)
    assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {len(columns)}
    # What is continued on a second page has its header twice.
    header = 2 if "longtable" in source else 1
    assert len(lines) == header + len(table_cells.compared(table.columns, table.rows(), table_cells.full)[1])
    if compiled := latex.tex(tmp_path):
        assert compiled(source) == ""


def latex_columns(source):
    """The columns of a table in LaTeX: l, r or the width of a paragraph; and how wide a line is, in points."""
    declared = re.search(r"\\begin\{(?:tabular|longtable)\}\{@\{\}(.*)@\{\}\}", source)[1]
    found = re.findall(r"[lr]|p\{([\d.]+)\\linewidth\}", declared.replace(r">{\raggedright\arraybackslash}", ""))
    return [float(one) if one else None for one in found], 550 if "{landscape}" in source else 345


# Letters of Computer Modern get wider, for their height, as they get smaller.
POINTS = {"small": 9 * 1.03, "footnotesize": 8 * 1.06, "scriptsize": 7 * 1.14}


@every_table
@pytest.mark.parametrize("digits", [None, 3])
def test_latex_fits_the_lines_and_the_height_of_its_page(table, digits):
    """Measured with the letters of TeX, which come with Matplotlib."""
    import matplotlib as mpl
    from matplotlib.ft2font import FT2Font

    font = FT2Font(f"{mpl.get_data_path()}/fonts/ttf/cmr10.ttf")
    source = table_formats.render(table, "latex", digits)
    font.set_size(POINTS[re.search(r"\\(small|footnotesize|scriptsize)", source)[1]], 72)
    columns, line = latex_columns(source)

    @cache
    def width(letter):
        return font.load_char(ord(letter)).linearHoriAdvance / 65536

    def points(text):
        return sum(map(width, text))

    shown = table_cells.as_printed if digits is None else table_cells.short(digits)
    header, body = table_cells.compared(table.columns, table.rows(), shown)
    total, height = 6 * (len(columns) - 1), [1] * len(body)
    for share, name, entries in zip(columns, header, zip(*body, strict=True), strict=True):
        if share is None:
            total += max(map(points, [*(name.split() if len(max(entries, key=len)) < len(name) else [name]), *entries]))
            continue
        total += share * line
        unbroken = re.split(r"[\s/_-]|(?<=[a-z])(?=[A-Z])", " ".join([name, *entries]))
        assert max(map(points, unbroken)) <= share * line
        height = [max(h, -(-points(entry) // (share * line))) for h, entry in zip(height, entries, strict=True)]
    assert total <= line
    assert "longtable" in source or sum(height) <= 45


def test_latex_escapes_what_has_a_meaning_there():
    written = table_formats.render(table([{"a_b": r"50 % of $x$ & {y} #1 ~ ^ < | \ °", "c": 0.5}]), "latex")
    escaped = r"50 \% of \$x\$ \& \{y\} \#1 \textasciitilde{} \textasciicircum{} $<$ $|$ \textbackslash{} $^\circ$"
    assert f"a\\_b & c \\\\\n\\hline\n{escaped} & 0.5 \\\\" in written


@sweep(
    ("format", "digits", "expected"),
    [
        ("text", 4, "0.1235"), ("text", None, "0.123456789012"), ("markdown", 3, "| 0.123 |"),
        ("markdown", None, "| 0.123456789012 |"), ("csv", 2, "\n0.12\n"), ("latex", 5, "\n0.12346 \\\\\n"),
    ],
)  # fmt: skip
def test_digits_are_as_many_as_asked_for(format, digits, expected):
    assert expected in table_formats.render(table([{"x": 0.1234567890123}]), format, digits)


@sweep(
    ("number", "digits", "expected"),
    [
        (0.05, 17, "0.05"), (1.0, 3, "1"), (0.8495225, 3, "0.850"), (23.0037, 3, "23.0"), (0.25, 1, "0.3"),
        (-45.0, 1, "-50"), (1008.63, 2, "1000"), (1e16 / 3, 2, "3300000000000000"), (2e16 / 3, 17, "6666666666670000"),
        (4.54009602e-5, 4, "4.540e-05"), (0.0, 1, "0"), (inf, 2, "inf"),
    ],
)  # fmt: skip
def test_a_number_is_rounded_to_the_digits_and_a_shorter_one_stays(number, digits, expected):
    assert table_cells.short(digits)(number) == expected


@every_table
@sweep("digits", [1, 3, 4, 17])
def test_digits_change_computed_numbers_only(table, digits):
    header, *whole = csv.reader(io.StringIO(table_formats.render(table, "csv")))
    _, *asked = csv.reader(io.StringIO(table_formats.render(table, "csv", digits)))
    for before, after in zip(whole, asked, strict=True):
        for column, full, short in zip(header, before, after, strict=True):
            if full == short or column.endswith((" published", " verdict")):
                assert full == short
                continue
            for number, shown in zip(full.split(", "), short.split(", "), strict=True):
                exact, rounded = Decimal(number), Decimal(shown)
                unit = Decimal(1).scaleb(rounded.adjusted() - min(digits, 12) + 1)
                assert abs(exact - rounded) <= unit / 2
                # A number before the point is filled up with zeros.
                assert exact == rounded or rounded.as_tuple().exponent == min(unit.adjusted(), 0)


@pytest.mark.parametrize(("format", "digits"), [("json", 4), ("text", 0), ("csv", 18), ("csv", 2.5), ("tex", None)])
def test_digits_out_of_range_and_unknown_formats_are_refused(format, digits):
    with pytest.raises(InputError):
        table_formats.render(table([{"x": 0.5}]), format, digits)


@every_table
def test_text_shows_every_published_number_and_verdict(table):
    words = " ".join(table_formats.text(table).split())
    for cell in cells(table.rows()):
        assert set(cell.published.strip("[]").split()) <= set(re.split(r"[\s\[\]]+", words))
        assert verdict(cell) in words


@every_table
@sweep("format", ["text", "markdown", "latex", "csv", "json"])
def test_a_table_is_written_the_same_twice_and_ends_in_a_newline(table, format):
    first = table_formats.render(table, format)
    assert first == table_formats.render(table, format)
    assert first.endswith("\n")
    assert not first.endswith("\n\n")


@every_table
def test_json_has_the_promised_form(table):
    def refuse(constant):
        pytest.fail(f"{constant} is no JSON")

    content = json.loads(table_formats.render(table, "json"), parse_constant=refuse)
    assert list(content) == ["name", "title", "source", "columns", "rows"]
    assert content["columns"] == list(table.columns)
    for row, declared in zip(content["rows"], table.rows(), strict=True):
        assert list(row) == list(declared)
        for column, value in declared.items():
            if isinstance(value, Cell):
                assert row[column].keys() == {"published", "computed", "verdict"}
                assert (row[column]["published"], row[column]["verdict"]) == (value.published, verdict(value))
                assert row[column]["computed"] == (value.computed and pytest.approx(value.computed, rel=1e-11))
            else:
                assert row[column] == (pytest.approx(value, rel=1e-11) if isinstance(value, float) else value)


def test_json_has_null_for_what_is_not_finite():
    content = json.loads(table_formats.to_json(table([{"a": nan, "b": (1.0, inf), "c": None}])))
    assert content["rows"] == [{"a": None, "b": [1.0, None], "c": None}]


@every_table
def test_csv_has_one_line_a_row_and_as_many_entries_as_names(table):
    header, *lines = csv.reader(io.StringIO(table_formats.render(table, "csv")))
    assert len(lines) == len(table.rows())
    assert {len(line) for line in lines} == {len(header)}


def test_csv_carries_the_digits_of_every_machine_and_three_columns_where_something_is_published():
    rows = [{"n": 1, "x": Cell("[3.1, 1]", (pi, 1.0)), "y": pi / 3}, {"n": 2, "x": None, "y": None}]
    header, first, second = csv.reader(io.StringIO(table_formats.to_csv(table(rows))))
    assert header == ["n", "x published", "x computed", "x verdict", "y"]
    assert first == ["1", "[3.1, 1]", "3.14159265359, 1.0", "agrees to printed digits", "1.0471975512"]
    assert second == ["2", "", "", "", ""]


@every_table
def test_markdown_has_the_same_number_of_entries_in_every_line(table):
    lines = [line for line in table_formats.render(table, "markdown").splitlines() if line.startswith("|")]
    assert len(lines) >= len(table.rows()) + 2
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_markdown_escapes_bars_and_carries_the_digits_of_every_machine():
    page = table_formats.markdown(table([{"|P|": 3, "x": Cell("3.1", pi)}]))
    assert "| \\|P\\| | quantity | published | computed | verdict |" in page
    assert "| 3 | x | 3.1 | 3.14159265359 | agrees to printed digits |" in page


def test_text_prints_brackets_and_colons_as_they_stand():
    page = table_formats.text(table([{"n": "[bold]", "x": Cell("[1, 2]", (1.0, 3.0)), "y": ":smile:"}]))
    assert all(entry in page for entry in ("[bold]", "[1, 2]", ":smile:"))


def test_text_shows_twelve_digits_where_they_fit_and_fewer_where_not():
    few = table_formats.text(table([{"x": pi, "y": pi}]))
    many = table_formats.text(table([{str(k): pi / 100 for k in range(7)}]))
    assert f"{pi:.12g}" in few
    assert f"{pi / 100:.6g}" in many
    assert f"{pi / 100:.9g}" not in many


def test_a_number_that_was_rounded_does_not_look_like_a_printed_integer():
    computed = 25 + 2.0**-40
    assert f"{computed:.12g}" == "25"
    assert "25.0000000000 " in table_formats.text(table([{"n": 1, "x": Cell("25", computed)}]))


def test_the_summary_has_the_digits_that_were_asked_for():
    page = table_formats.summary(TABLES.values(), 2).text()
    assert "6.6e-03    0.0067\n" in page
    assert "0.71       0.18\n" in page


def test_text_leaves_out_what_the_leading_columns_repeat():
    page = table_formats.text(table([{"set": "one", "n": 1, "m": 1}, {"set": "one", "n": 2, "m": 1}]))
    assert page.count("one") == 1
    assert page.splitlines()[-1].split() == ["2", "1"]


def test_text_breaks_a_row_into_paragraphs_where_a_line_is_too_short():
    words = "word " * 30
    page = table_formats.text(table([{"name": "first", "long": words.strip(), "short": 1}]))
    assert page.split().count("word") == 30
    assert max(map(len, page.splitlines())) <= pages.WIDTH


def joined(text):
    return "".join(text.split())


@every_table
@sweep("width", [40, 66])
def test_narrow_text_loses_nothing(table, width):
    page = table_formats.text(table, width=width)
    assert max(map(len, page.splitlines())) <= width
    assert "…" not in page
    assert all(joined(text) in joined(page) for text in (table.title, table.source, table.note))
    for row in table.rows():
        for value in row.values():
            if isinstance(value, Cell):
                assert all(word in joined(page) for word in value.published.split())
                assert joined(verdict(value)) in joined(page)
            elif isinstance(value, str):
                assert joined(value) in joined(page)


@pytest.mark.parametrize("width", [40, 66, 80])
def test_every_number_of_a_comparison_stands_whole_at_any_width(width):
    for name in ("temperature-easy", "temperature-hard", "temperature-cross-entropy"):
        words = table_formats.text(TABLES[name], width=width).replace(",", " ").split()
        for cell in cells(TABLES[name].rows()):
            assert set(cell.published.strip("[] ").replace(",", " ").split()) <= {word.strip("[]") for word in words}
            computed = cell.computed if isinstance(cell.computed, tuple) else (cell.computed,)
            assert all(table_cells.short(12)(number) in words for number in computed)


def test_text_has_a_block_for_each_quantity_where_a_line_is_too_short():
    page = table_formats.text(table([{"n": 1, "x": Cell("3.1", pi)}]), width=40)
    block = [line for line in page.splitlines() if line.startswith(("n 1", " "))]
    expected = [
        "n 1",
        "  x",
        "    published  3.1",
        f"    computed   {pi:.12g}",
        "    verdict    agrees to printed digits",
    ]
    assert block == expected


def test_the_summary_counts_all_numbers_and_lists_those_that_do_not_agree():
    page = table_formats.summary(TABLES.values()).text()
    shown = [cell for table in TABLES.values() for cell in cells(table.rows())]
    counts = Counter(map(verdict, shown))
    agree = counts[Verdict.AGREES] + counts[Verdict.PRINTED_DIGITS]
    apart = counts[Verdict.WRONG] + counts[Verdict.TRUNCATED] + counts[Verdict.FLOAT32_ARTIFACT]
    assert re.findall(r"\d+", page.splitlines()[1]) == [str(n) for n in (len(shown), agree, apart, 126)]
    lines = [line.split() for line in page.splitlines()]
    for name, table in TABLES.items():
        for row in table.rows():
            for column, cell in row.items():
                if isinstance(cell, Cell) and verdict(cell) in ("wrong", "truncated", "float32 artifact"):
                    heading = lines.index([*str(verdict(cell)).split(), "in", name])
                    below = lines[heading : lines.index([], heading) if [] in lines[heading:] else None]
                    assert [*column.split(), cell.published, table_cells.short(6)(cell.computed)] in [
                        line[-2 - len(column.split()) :] for line in below
                    ]
    assert max(map(len, page.splitlines())) <= 80


def test_color_adds_nothing_but_color():
    colored = table_formats.text(TABLES["temperature-easy"], color=True)
    assert "\x1b[" in colored
    bare = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert [line.rstrip() for line in bare.splitlines()] == table_formats.text(TABLES["temperature-easy"]).splitlines()


def test_text_has_the_width_and_the_colors_of_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert table_formats.render(TABLES["losses"]) == table_formats.text(TABLES["losses"], width=100)
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert table_formats.render(TABLES["losses"]) == table_formats.text(TABLES["losses"], width=120, color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert table_formats.render(TABLES["losses"]) == table_formats.text(TABLES["losses"], width=120)


def test_a_saved_text_is_plain_even_from_a_terminal(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "120")
    (path,) = table_formats.save([TABLES["losses"]], "text", tmp_path)
    assert path.read_text(encoding="utf-8") == table_formats.text(TABLES["losses"])


@pytest.mark.parametrize(("format", "suffix"), [("text", "txt"), ("markdown", "md"), ("csv", "csv"), ("json", "json")])
def test_save_writes_one_file_a_table_and_returns_the_paths(tmp_path, format, suffix):
    chosen = [TABLES["hardness"], TABLES["paco-optimum"]]
    paths = table_formats.save(chosen, format, tmp_path / "new" / "folder")
    assert paths == [tmp_path / "new" / "folder" / f"{each.name}.{suffix}" for each in chosen]
    assert [path.read_bytes().decode() for path in paths] == [table_formats.render(each, format) for each in chosen]
    assert sorted(paths[0].parent.iterdir()) == paths


def test_files_written_before_a_failure_are_reported_and_those_with_other_content_as_replaced(tmp_path):
    first, second = (tmp_path / name for name in ("hardness.csv", "losses.csv"))
    first.write_text("other")
    second.mkdir()
    written = []
    for _ in range(2):
        with pytest.raises(OSError, match="cannot write ") as caught:
            table_formats.save(
                [TABLES["hardness"], TABLES["losses"]], "csv", tmp_path, lambda *done: written.append(done)
            )
        assert str(caught.value).startswith(f"cannot write {second}: it is a folder; ")
    assert written == [("replaced", first), ("wrote", first)]


@pytest.mark.parametrize("call", [table_formats.render, lambda table, format: table_formats.save([table], format, ".")])
def test_an_unknown_format_is_refused_by_name(call):
    with pytest.raises(
        InputError, match="`format` must be one of 'text', 'markdown', 'html', 'latex', 'csv', 'json', got 'yaml'"
    ):
        call(TABLES["losses"], "yaml")


def test_a_sign_for_a_verdict_is_explained_below_the_table():
    page = table_formats.text(table([{"n": 1, "x": Cell("2", 2.0)}, {"n": 2, "x": Cell("3", None)}]))
    assert "2 =" in page
    assert "3 °" in page
    assert page.endswith("Verdicts on 2 published entries: 1 agrees (=), 1 not reproducible here (°).\n")


def test_note_is_printed_below_the_table():
    assert table_formats.text(table([{"n": 1}], note="A note.")).endswith("\n\nA note.\n")


def test_latex_has_the_digits_of_the_published_number_or_six():
    rows = [
        {"temperature": 0.05, "loss": Cell("0.4076", 0.40760596444438), "sum": 1 / 3},
        {"temperature": 0.5, "loss": Cell("[1.0, 4.5418e-05]", (0.9999, 4.540096037e-05)), "sum": 2.0},
        {"temperature": 1.0, "loss": Cell("0", 3.12345678e-9), "sum": 1234567.8},
    ]
    table = Table("own", "Own", "here", ("temperature", "loss", "sum"), lambda: rows)
    source = table_formats.render(table, "latex")
    for shown in ("& 0.4076 &", "& 1.0, 4.5401e-05 &", "& 3.12346e-09 &", "& 0.333333 &", "& 1234570 &"):
        assert shown in source
    assert "0.407605964444" in table_formats.render(table, "csv")
    assert "& 0.41 &" in table_formats.render(table, "latex", 2)
