"""Lines: nothing is lost at any width, words stay whole where they fit, and wide characters count twice."""

import re

from sweep import sweep

from nceref.output import layout

TEXT = "a sentence of 日本語 and supercalifragilisticexpialidocious words, e\u0301tude and x->y"


def plain(lines):
    return [layout.painted(line, color=False) for line in lines]


@sweep("width", [1, 2, 5, 8, 20, 41, 200])
def test_every_character_stands_on_a_line_that_fits(width):
    lines = plain(layout.wrapped([(TEXT[:20], "bold"), (TEXT[20:], "")], width))
    assert "".join("".join(lines).split()) == "".join(TEXT.split())
    assert max(map(layout.cells, lines)) <= max(width, 2)


def test_a_word_is_broken_only_if_it_is_longer_than_a_line():
    assert plain(layout.wrapped([("one two three", "")], 7)) == ["one two", "three"]
    assert plain(layout.wrapped([("one abcdefgh two", "")], 5)) == ["one", "abcde", "fgh", "two"]
    assert plain(layout.wrapped([("  in\n\nx\ty", "")], 9)) == ["  in", "", "x       y"]
    assert plain(layout.unwrapped([("one\ntwo three", "")])) == ["one", "two three"]


def test_cells_of_a_terminal():
    assert [layout.cells(text) for text in ("abc", "日本", "e\u0301", "\u2192", "")] == [3, 4, 1, 1, 0]


def test_styles_are_escape_sequences_around_the_text_alone():
    (line,) = layout.columns([[("dcl", "bold red"), ("x ", "")]], [6, 4], 80)
    assert layout.painted(line, color=True) == "\x1b[1;31mdcl\x1b[0m     x"
    assert layout.painted(line, color=False) == "dcl     x"
    first, second = layout.wrapped([("one ", "dim"), ("two", "green")], 3)
    assert layout.painted(first, color=True) == "\x1b[2mone\x1b[0m"
    assert layout.painted(second, color=True) == "\x1b[32mtwo\x1b[0m"


@sweep("page", [40, 50, 60])
def test_text_gets_narrower_beside_numbers_and_no_number_is_folded_or_lost(page):
    entries = ["word " * 12, "9272465", "supercalifragilisticexpialidocious", "12345678"]
    spans, widths = [(entry, "") for entry in entries], [len(entry) for entry in entries]
    lines = plain(layout.columns([spans], widths, page, numbers=[False, True, False, True], indent=2))
    assert re.fullmatch(r"  word.*  9272465  superca.*  12345678", lines[0])
    assert max(map(len, lines)) <= page
    assert "".join(sorted("".join("".join(lines).split()))) == "".join(sorted("".join("".join(entries).split())))


def test_the_widest_column_of_text_gets_narrower_first_and_numbers_after_all_text():
    assert layout.narrowed([30, 10, 8], [False, False, True], 40) == [22, 10, 8]
    assert layout.narrowed([30, 10, 8], [False, False, True], 20) == [6, 6, 8]
    assert layout.narrowed([3, 8], [False, True], 5) == [1, 4]
    assert layout.narrowed([3, 8], [False, True], 50) == [3, 8]
