"""Formulas of LaTeX as lines of text."""

import doctest

import pytest

from nceref.output import formula_text
from nceref.output.formula_text import text_of
from nceref.theory.prove import claims


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\frac1{2\tau^2}", "1/(2τ^2)"),
        (r"\frac{a+b}\tau", "(a+b)/τ"),
        (r"e^{s_j/\tau}L", "e^(s_j/τ)L"),
        (r"e^\varepsilon q", "e^ε q"),
        (r"q^\top k", "qᵀ k"),
        (r"\sqrt{1-s^2}", "√(1-s^2)"),
        (r"\sqrt2", "√2"),
        (r"\bar s\le s_{max}", "s̄ ≤ s_max"),
        (r"a,\qquad b", "a,   b"),
        (r"\text{for every }\pi", "for every π"),
        (r"\operatorname{artanh} f", "artanh f"),
        (r"\lim_{\tau\to0}\tau L=\max_{j\ge1}s_j-\max_js_j", "lim_(τ → 0) τ L = max_(j ≥ 1) s_j - max_j s_j"),
    ],
)
def test_a_formula_reads_as_it_is_meant(latex, text):
    assert text_of(latex) == text


def test_every_claim_has_a_line_without_commands_and_with_all_its_parentheses():
    for claim in claims().values():
        line = text_of(claim.latex)
        assert line, claim.id
        assert "\\" not in line
        assert "\0" not in line
        assert line.count("(") == line.count(")"), line


def test_its_example_is_true():
    assert doctest.testmod(formula_text) == (0, 1)
