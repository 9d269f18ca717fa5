"""Formulas of the terminal as MathML: indices, exponents, words, marks, and text that is no formula."""

import re
from xml.etree import ElementTree as ET

import pytest

from nceref.losses import all_losses
from nceref.output.mathml import formula

WRITTEN = {
    "s_ij": "<msub><mi>s</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub>",
    "p_noise": "<msub><mi>p</mi><mi>noise</mi></msub>",
    "x_i^2": "<msubsup><mi>x</mi><mrow><mi>i</mi></mrow><mn>2</mn></msubsup>",
    "e^(2 s)": '<msup><mi>e</mi><mrow><mn>2</mn><mspace width="0.25em"></mspace><mi>s</mi></mrow></msup>',
    "q_i.k": "<msub><mi>q</mi><mrow><mi>i</mi></mrow></msub><mo>·</mo><mi>k</mi>",
    "1/sigma": '<mn>1</mn><mo stretchy="false">/</mo><mi>σ</mi>',
}


@pytest.mark.parametrize("text", WRITTEN)
def test_indices_and_exponents(text):
    assert formula(text) == (
        f'<span role="math" aria-label="{text}" class="formula"><math>{WRITTEN[text]}</math></span>'
    )


WHOLE = {
    "sum_{j not in {i,p}} w": "∑j∉{i,p} w",
    "L = rows of class 0 left out, over those": "L = rows of class 0 left out, over those",
    "w <= 1; form='sum': without": "w ≤ 1; form='sum': without",
    "log( <<3 e^(2 s)>> + 1 )": "log( 3 e2s + 1 )",
    "<b>&": "<b>&",
    "a_": "a",
    "e^(a (b)": "ea(b)",
    "<<a": "a",
}


@pytest.mark.parametrize("text", WHOLE)
def test_nothing_of_a_line_is_lost(text):
    assert "".join(ET.fromstring(formula(text)).itertext()) == WHOLE[text]


def test_what_differs_is_marked_within_an_index_and_around_terms():
    text = "sum_{<<i in keys>>} <<3 e^(2 s)>>"
    tree = ET.fromstring(formula(text))
    assert [one.tag for one in tree.iter() if one.tag == "mark" or one.get("class") == "mark"] == ["mrow", "mark"]
    assert tree.get("aria-label") == "sum_{i in keys} 3 e^(2 s)"


@pytest.mark.parametrize("name", all_losses())
def test_formulas_of_losses_have_no_sign_of_a_terminal_left(name):
    declared = all_losses()[name].declaration.text
    left = "".join(ET.fromstring(formula(declared)).itertext())
    assert not re.search(r"[_^]|sum\b(?!')|!=|\btheta\b", left)
