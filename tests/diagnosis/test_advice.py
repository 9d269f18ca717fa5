"""What to change is said in the words of the target's framework."""

import re
from dataclasses import replace

import numpy as np
import pytest

from nceref import losses, verify
from nceref.diagnosis.advice import advised, fix_of
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.gaps import diagnosis
from nceref.targets.frameworks.frameworks import FRAMEWORKS

OF_OTHERS = {
    "numpy": r"detach|graph|\.item|torch|\bF\.|stop_gradient|jax|module|eval mode|backprop",
    "jax": r"detach|graph|\.item|torch|\bF\.|module\.|masked_fill|with a gradient",
}
"""Words of other frameworks, by that of the target."""


@pytest.mark.parametrize("framework", OF_OTHERS)
def test_no_advice_is_in_the_words_of_another_framework(framework):
    assert FRAMEWORKS[framework].advice.keys() <= CONVENTIONS.keys()
    one_process = [c.id for c in CONVENTIONS.values() if c.axis not in ("calling", "ranks", "gather", "ranks-scalar")]
    foreign = re.compile(OF_OTHERS[framework], re.IGNORECASE)
    assert {id: fix for id in one_process if foreign.search(fix := fix_of(id, framework))} == {}


def test_advice_of_its_own_is_kept():
    one = diagnosis("self-contrast-kept+gradient-zero")
    assert fix_of("gradient-zero", "numpy") in advised(one, "numpy").fix
    assert advised(one, "torch") == one
    other = replace(one, fix="Compare what the ranks compute.")
    assert advised(other, "numpy") == other


def test_a_report_has_it():
    def without(queries, keys, temperature):
        return losses.info_nce(queries, keys, temperature=temperature), {"queries": np.zeros_like(queries)}

    report = verify(without, "info_nce", suite="quick")
    assert report.diagnosis[0].fix == fix_of(report.diagnosis[0].id, "numpy")
    assert "the first input: what is returned for it is 0." in report.diagnosis[0].fix
