"""The example notebook is what a run of it puts out, but for the digits of roundings."""

import json
import re
from copy import deepcopy

import pytest

import nceref
from nceref.theory.prove import claims
from tools import notebook


def without_numbers(outputs):
    """Outputs whose numbers are all alike, and whose columns have no width."""
    text = json.dumps(outputs, sort_keys=True, ensure_ascii=False)
    numbers = re.sub(r"\d[\d.,]*(e[+-]\d+)?(×10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?|10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", "#", text)
    return re.sub(r'(\s|\\n|", "|-)+', " ", numbers)


@pytest.fixture(scope="module")
def kept():
    return notebook.read()


def test_its_outputs_are_those_of_a_run(kept):
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    shown = [cell["outputs"] for cell in code]
    assert sum(map(bool, shown)) >= 4
    assert list(map(without_numbers, notebook.run(deepcopy(kept)))) == list(map(without_numbers, shown))
    assert "DIFFERS" in str(shown)
    assert "self-contrast" in str(shown)


def test_its_form_is_that_of_nbformat_4(kept):
    assert (kept["nbformat"], kept["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in kept["cells"]]
    assert len(set(ids)) == len(ids)
    for number, cell in enumerate((c for c in kept["cells"] if c["cell_type"] == "code"), 1):
        assert set(cell) == {"cell_type", "execution_count", "id", "metadata", "outputs", "source"}
        assert cell["execution_count"] == number


@pytest.mark.parametrize("thing", [nceref.losses.nt_xent, claims()["NC-5"]], ids=["loss", "claim"])
def test_losses_and_claims_show_their_formulas(thing):
    bundle = thing._repr_mimebundle_(include=None, exclude=None)
    assert bundle["text/latex"] == f"$$\n{thing.latex}\n$$"
    assert bundle["text/markdown"].endswith(bundle["text/latex"])
    assert getattr(thing, "name", getattr(thing, "id", None)) in bundle["text/plain"]
