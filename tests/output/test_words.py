"""Sentences with counts, and suggestions for names that are not known."""

import re
from pathlib import Path

from sweep import sweep

import nceref
from nceref.output.words import alike, as_code, counted, did_you_mean, out_of


def test_one_is_singular():
    assert [counted(n, "case") for n in (0, 1, 2, 1000)] == ["0 cases", "1 case", "2 cases", "1,000 cases"]
    assert [counted(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]
    assert [out_of(*n, "case") for n in ((0, 1), (1, 1), (1, 2))] == ["0 of 1 case", "the only case", "1 of 2 cases"]


def test_no_sentence_counts_cases_by_itself():
    """A number before a plural, in a string of the package, comes from `counted` or `out_of`."""
    by_itself = re.compile(
        r"(?<!all )\{(?!counted|out_of)[^{}]*\} (of \{[^{}]*\} )?(cases|failures|programs|verdicts)\b"
    )
    lines = [line for path in Path(nceref.__file__).parent.rglob("*.py") for line in path.read_text().splitlines()]
    assert [line for line in lines if by_itself.search(line)] == []
    assert by_itself.search('f"on {len(a)} of {len(b)} cases"')
    assert by_itself.search('f"{count} failures"')


@sweep(
    ("name", "meant"),
    [
        ("NT-Xent", ["nt_xent"]),
        ("supcon", ["supcon_in", "supcon_out"]),
        ("supcon_ot", ["supcon_out", "supcon_in"]),
        ("nt_xnet", ["nt_xent"]),
        ("barlow", []),
        ("", []),
    ],
)
def test_what_was_meant(name, meant):
    assert alike(name, ("nt_xent", "supcon_in", "supcon_out", "simple")) == meant


def test_how_near_a_name_must_be_can_be_said():
    assert alike("simclr", ["simple"]) == ["simple"]
    assert alike("simclr", ["simple"], 0.75) == []
    assert did_you_mean([]) == ""
    assert did_you_mean(["a"]) == "did you mean 'a'?"
    assert did_you_mean(["a", "b"], as_code) == "did you mean `a` or `b`?"
