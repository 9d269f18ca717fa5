"""Columns where they fit, lines where not; nothing is cut off."""

import pytest

from nceref.output import layout, pages


def laid_out(lines, *widths, width):
    page = pages.Page()
    page.grid(lines, *widths)
    return page.text(width=width)


def test_the_last_column_is_wrapped_beside_the_others():
    assert laid_out([("name", "word " * 10)], 4, width=42) == f"name  {'word ' * 6}word\n      word word word\n"


def test_entries_stand_one_below_the_other_where_the_last_would_be_too_narrow():
    long = "a sentence of many words"
    assert laid_out([("name", "", long), ("", "", "more")], 12, 12, width=40) == f"name\n    {long}\n    more\n"
    assert laid_out([("name", "", "text")], 12, 12, width=40) == f"name{' ' * 24}text\n"


@pytest.mark.parametrize("widths", [(4,), (20,)])
def test_a_long_word_is_folded_and_not_cut(widths):
    word = "0123456789" * 10
    assert "".join(laid_out([("name", word)], *widths, width=40).split()) == f"name{word}"


def test_the_width_has_a_floor_and_a_ceiling():
    lines = [("name", "word " * 300)]
    assert laid_out(lines, 4, width=1) == laid_out(lines, 4, width=layout.NARROWEST)
    assert laid_out(lines, 4, width=10**11) == laid_out(lines, 4, width=layout.WIDEST)


@pytest.mark.parametrize("name", ["COLUMNS", "LINES", "FORCE_COLOR", "TTY_COMPATIBLE", "JUPYTER_COLUMNS"])
def test_the_environment_does_not_reach_the_layout(monkeypatch, name):
    before = laid_out([("name", "word " * 30)], 4, width=60)
    monkeypatch.setenv(name, "²")
    assert laid_out([("name", "word " * 30)], 4, width=60) == before


def test_text_of_others_is_escaped_wherever_it_stands_on_a_page():
    evil, shown = "\x1b[31mx\u202e\udcff", r"\x1b[31mx\u202e\udcff"
    page = pages.Page()
    page.print(evil, (evil, "bold"))
    page.verbatim(evil)
    page.grid([(evil, evil)], 25)
    page.stack([(evil,)])
    page.table([(evil, evil)], header=[(evil, evil)], right=[True, False])
    assert page.text(width=90).count(shown) == 10
    for text in (page.text(width=90), page.text(width=40)):
        assert text.replace("\n", "").isprintable()


def test_no_line_of_others_is_a_command_of_what_collects_the_log():
    page = pages.Page()
    page.print("x" * 39, " ::error::a" * 9)
    page.print("#", "#[error]", "#", ("#vso[b]", "bold"))
    page.verbatim("a\n::b::\n")
    page.grid([("", "::c::" * 40), ("d", "::e")], 4)
    page.stack([("f", "::g")])
    page.table([("", "::h")], header=[("", "::i")])
    for text in (page.text(width=width, color=color) for width in range(40, 60) for color in (False, True)):
        assert "##" not in text
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
        assert text.count("\\x3a:") > 6


def test_a_table_is_as_wide_as_its_entries_and_no_entry_is_cut():
    page = pages.Page()
    page.table([("dcl", "1"), ("info_nce", "12")], header=[("loss", "cases")], right=(False, True), indent=2)
    assert str(page) == "  loss      cases\n  dcl           1\n  info_nce     12\n"
    page = pages.Page()
    page.table([("0123456789",)], widths=[4])
    assert str(page) == "0123\n4567\n89\n"


def test_pages_are_put_together_and_fit_their_width():
    first, second = pages.Page(), pages.Page()
    first.print(("dcl", "bold"), ", decoupled")
    second.table([], layout=lambda width: first if width > 50 else pages.Page())
    second.print("x" * 60, wrap=False)
    both = pages.joined([first, second])
    assert both.text() == f"dcl, decoupled\n\ndcl, decoupled\n{'x' * 60}\n"
    assert both.text(width=40) == f"dcl, decoupled\n\n{'x' * 60}\n"
    assert "\x1b[1mdcl\x1b[0m, decoupled" in first.text(color=True)


def test_words_of_a_table_without_numbers_are_whole_wherever_a_line_has_room_for_them():
    page = pages.Page()
    page.table([("grad.temperature", "4 failed, 9e+14")], header=[("quantity", "float64")])
    assert page.text(width=40).splitlines()[1] == "grad.temperature  4 failed, 9e+14"
    page.table([("grad.temperature", *("4 failed, 9e+14",) * 2)], header=[("quantity", "float64", "float32")])
    lines = [line.split() for line in page.text(width=40).splitlines()[2:]]
    assert lines == [["grad.temperature"], *([name, "4", "failed,", "9e+14"] for name in ("float64", "float32"))]


def test_numbers_of_a_table_are_never_folded_or_lost():
    page = pages.Page()
    page.table(
        [("grad.temperature", "12345", "7")], header=[("quantity", "passed", "failed")], right=[False, True, True]
    )
    assert page.text(width=80).splitlines()[1].split() == ["grad.temperature", "12345", "7"]
    wide = pages.Page()
    lines = [("name", *("1234567890123",) * 4)]
    wide.table(lines, header=[("quantity", "a", "b", "c", "d")], right=[False, *[True] * 4])
    # There is no gap behind the last column.
    exactly = 8 + 4 * (2 + 13)
    records = [["name"], *([name, "1234567890123"] for name in "abcd")]
    assert [line.split() for line in wide.text(width=40).splitlines()] == records
    assert [line.split() for line in wide.text(width=exactly - 1).splitlines()][-1] == records[-1]
    assert [line.split() for line in wide.text(width=exactly).splitlines()][1:] == [[*lines[0]]]
