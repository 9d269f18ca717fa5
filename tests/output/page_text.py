"""What is asked of every page."""

import html
import re

from output.html_document import Page as Document
from theory import latex

from nceref.output import layout, pages
from nceref.output.blocks import Formula, Paragraph, Verbatim


def plain_lines(text, width=pages.WIDTH):
    lines = text.splitlines()
    assert text.endswith("\n")
    assert [line for line in lines if line != line.rstrip() or "\x1b" in line] == []
    assert [line for line in lines if layout.cells(line) > width] == []
    return lines


def words(text):
    return " ".join(text.split())


def check(page):
    """No line is wider than its terminal, and what text says the other formats say too."""
    # What is to be copied stays in one line.
    broken = but(page, lambda block: isinstance(block, Verbatim) or (isinstance(block, Paragraph) and not block.wrap))
    for width in (40, 60, 80) if broken.blocks else ():
        plain_lines(broken.text(width=width), width)
    # A formula has other words in LaTeX.
    said = long_words(but(page, lambda block: isinstance(block, Formula)).text(width=400))
    markdown, document, tex = map(page.written, ("markdown", "html", "latex"))
    assert said - long_words(markdown) == set()
    assert "\n\n\n" not in markdown
    assert markdown.count("```") % 2 == 0
    assert Document(document).loads == []
    # A browser sets letters of a formula one by one.
    labels = " ".join(re.findall('aria-label="([^"]*)"', document))
    assert said - long_words(html.unescape(f"{re.sub('<[^>]*>', ' ', document)} {labels}")) == set()
    assert latex.faults(tex) == []
    assert said - long_words(tex.replace("\\allowbreak{}", "")) == set()


def but(page, is_left_out):
    shown = pages.Page()
    shown.blocks = [block for block in page.blocks if not is_left_out(block)]
    return shown


def long_words(text):
    return set(re.findall(r"[A-Za-z]{4,}", text))
