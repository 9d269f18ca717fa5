"""What is asked of every page of text."""

from nceref.output import pages


def plain_lines(text):
    lines = text.splitlines()
    assert text.endswith("\n")
    assert [line for line in lines if line != line.rstrip() or "\x1b" in line] == []
    assert max(map(len, lines)) <= pages.WIDTH
    return lines


def words(text):
    return " ".join(text.split())
