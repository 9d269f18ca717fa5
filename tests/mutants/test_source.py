"""The code of a program, for a page."""

from mutants.bug import bugs
from mutants.source import source as source_of


def test_the_code_holds_what_the_program_calls_and_begins_with_a_function():
    source = source_of(bugs()["nt-xent-both-halves-added"])
    assert "def nt_xent_both_halves_added(" in source
    assert "def _other_views(" in source
    assert source.count("def nt_xent") == 1
    assert source.startswith("def ")
    assert "@bug" not in source
