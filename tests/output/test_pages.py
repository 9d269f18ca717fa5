"""Columns where they fit, lines where not; nothing is cut off."""

import pytest

from nceref.output import pages


def laid_out(lines, *widths, width):
    page, paper = pages.page(width, color=False)
    pages.grid(page, lines, *widths)
    return pages.clean(paper)


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


def test_a_narrower_page_is_laid_out_at_the_least_width():
    lines = [("name", "word " * 30)]
    assert laid_out(lines, 4, width=1) == laid_out(lines, 4, width=pages.NARROWEST)
