"""Frozen references: a sample is what the formulas give, and a changed formula or case is refused."""

from dataclasses import replace
from types import FunctionType

import numpy as np
import pytest
from checks import frozen_references
from checks.frozen_references import FILE, all_cases, checksum, entries, frozen, packed, sampled
from sweep import sweep

from nceref import registry

pytestmark = pytest.mark.machine

KEY = "nt_xent/random-0-0.3"


@sweep("key", sampled())
def test_sampled_reference_is_what_the_formula_gives(key):
    loss, case = all_cases()[key]
    frozen(loss, case)
    assert frozen_references.agrees(key, frozen_references.computed(key)), key


def test_every_loss_is_sampled():
    assert {key.split("/")[0] for key in sampled()} == set(registry.names("nceref.family"))


def test_every_case_has_an_entry_and_every_entry_a_case():
    assert entries().keys() == all_cases().keys()
    assert [key for key, case in all_cases().items() if entries()[key][0] != checksum(*case)] == []


def test_equal_entries_give_equal_bytes():
    assert packed(entries()) == FILE.read_bytes()


def edited(function, edit):
    """The function with another source text."""
    other = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    other.__module__, other.__qualname__ = function.__module__, function.__qualname__
    original = frozen_references.inspect.getsource
    return other, lambda x: edit(original(function)) if x is other else original(x)


@pytest.mark.parametrize(
    ("old", "new"),
    [("-m.log", "m.log"), ("/ temperature", "/ temperature * (1 + 1e-9)"), (" + p[i + 1 :]", "")],
    ids=["sign", "factor", "term"],
)
def test_a_changed_formula_makes_its_entries_stale(monkeypatch, old, new):
    loss, case = all_cases()[KEY]

    def edit(source):
        assert old in source
        return source.replace(old, new)

    formula, source = edited(loss.formula, edit)
    monkeypatch.setattr(frozen_references.inspect, "getsource", source)
    with pytest.raises(frozen_references.StaleReferenceError, match=f"{KEY} is stale.*`make references`"):
        frozen(replace(loss, formula=formula), case)


def test_a_comment_or_a_docstring_makes_nothing_stale(monkeypatch):
    loss, case = all_cases()[KEY]
    formula, source = edited(
        loss.formula, lambda text: text.replace('"""-log', '"""Minus log').replace("out = []", "out = []  # rows")
    )
    monkeypatch.setattr(frozen_references.inspect, "getsource", source)
    assert checksum(replace(loss, formula=formula), case) == checksum(loss, case)


def test_a_function_that_a_formula_calls_is_part_of_it():
    loss, _ = all_cases()[KEY]
    assert {"nceref.engine.formulas.unit", "nceref.exact.reference.reduce_rows"} <= (
        frozen_references.sources(loss.formula) | frozen_references.sources(frozen_references.exact.reduce_rows)
    ).keys()


def test_indentation_is_part_of_a_formula():
    text = frozen_references.text_without_comments
    assert text("for x in y:\n    a\n    b\n") != text("for x in y:\n    a\nb\n")


@pytest.mark.parametrize("change", [{"temperature": 0.31}, {"z1": np.ones((4, 3))}, {"normalize": "none"}])
def test_changed_inputs_make_an_entry_stale(change):
    loss, case = all_cases()[KEY]
    with pytest.raises(frozen_references.StaleReferenceError, match="the inputs of the case"):
        frozen(loss, replace(case, inputs={**case.inputs, **change}))


def test_an_entry_that_is_off_by_1e_minus_9_is_seen():
    numbers = entries()[KEY][1]
    assert frozen_references.agrees(KEY, numbers)
    assert not frozen_references.agrees(KEY, numbers * (1 + 1e-9))
    assert not frozen_references.agrees(KEY, numbers[:-1])
