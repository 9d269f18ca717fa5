"""LaTeX: everything that is printed can be compiled, by a reader of our own and by an engine where there is one."""

import os
from functools import cache
from pathlib import Path

import pytest
from sweep import sweep
from theory import latex

from nceref import all_losses
from nceref.theory import derivation, prove

NODE_FOLDER = Path(__file__).parents[2] / ".venv"
"""Where `make latex` installs KaTeX."""
SINGLE = {**{one: claim.latex for one, claim in prove.claims().items()},
          **{one: loss.latex for one, loss in all_losses().items()}}  # fmt: skip
BROKEN = {
    r"\int\limits_{0}^{\beta} x\, \partialt": r"\partialt is no command",
    r"\frac{a}{b": "{ is not closed",
    r"\frac{a}b}": "the end of { is out of place",
    r"\left(x": r"\left is not closed",
    r"{\left(x}\right)": "the end of { is out of place",
    r"x & y": "'&' out of place",
    r"x # y": "'#' out of place",
    r"\begin{align*}x\end{aligned}": "the end of aligned is out of place",
}


@cache
def documents():
    """Of chains that are built and not checked, which takes long: `test_derivations` does that."""

    def unchecked(topic):
        chain = topic.steps()
        return chain, [step.check for step in chain.steps]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derivation, "follow", unchecked)
        return {name: derivation.render(one, "latex") for name, one in derivation.topics().items()}


@sweep("broken", BROKEN)
def test_a_broken_formula_is_refused(broken):
    assert latex.faults(broken, math=True)[0] == BROKEN[broken]
    assert latex.faults(f"Words. ${broken}$")


@sweep("broken", ["a_b", "50 & 60", "50 # 60", "naïve", r"\begin{itemize}", "$x", r"\item{", "$x\n\ny$"])
def test_a_broken_document_is_refused(broken):
    assert latex.faults(broken)


@sweep("one", SINGLE)
def test_the_latex_of_a_claim_and_of_a_loss_can_be_read(one):
    assert latex.faults(SINGLE[one], math=True) == []


@sweep("name", derivation.topics())
def test_the_latex_of_a_derivation_can_be_read(name):
    assert latex.faults(documents()[name]) == []
    assert len(latex.formulas(documents()[name])) > len(derivation.get(name).steps().steps)


def test_engines_compile_everything(tmp_path):
    """What cannot be read above is refused by them too: an engine that passes everything would prove nothing."""
    katex, tex = latex.katex(NODE_FOLDER), latex.tex(tmp_path)
    if not (katex or tex):
        missing = "no KaTeX and no pdflatex, xelatex or lualatex: `make latex` installs the former with npm"
        (pytest.fail if os.environ.get("REQUIRE_LATEX") else pytest.skip)(missing)
    if katex:
        every = [*SINGLE.values(), *(one for text in documents().values() for one in latex.formulas(text))]
        assert {one: said for one, said in zip(every, katex(every), strict=True) if said} == {}
        assert all(katex(list(BROKEN)))
        assert [one for one in katex([f"\\{name}{{x}}{{y}}" for name in latex.MATHEMATICS]) if "Undefined" in one] == []
    if tex:
        displayed = "".join(f"\\[{one}\\]\n" for one in SINGLE.values())
        assert tex(displayed + "\n".join(documents().values())) == ""
        assert [one for one in BROKEN if not tex(f"\\[{one}\\]")] == []
