"""Tables in GitHub Markdown."""

from nceref.output.markdown_parts import markdown_table


def test_a_table_has_a_line_of_sides_and_escapes_bars():
    assert markdown_table(("a", "b"), [("x|y", "1")]) == "| a | b |\n| --- | --- |\n| x\\|y | 1 |"
    assert markdown_table(("a",), [("x\r\n\ny\x1b\u2028z",)]).splitlines()[2:] == [r"| x  y\x1b z |"]
    assert markdown_table(("a", "b"), [], right=(False, True)).endswith("| --- | ---: |")
