"""The held-out bugs: real ones, none of which the checker's search was written with, and none of them tuned on."""

import ast
import inspect
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import nceref.verification.bugs.wrong as wrong
from nceref.losses import get_loss
from nceref.registry import names
from nceref.spec import Array, Labels
from nceref.verification.bugs.bug import mutants, target
from nceref.verification.conventions import CONVENTIONS
from nceref.verification.corpus.corpus import corpus

HELD_OUT = {name: mutant for name, mutant in mutants().items() if mutant.held_out}
TUNED = {name: mutant for name, mutant in mutants().items() if not mutant.held_out}
SINGLES = [name for name, mutant in HELD_OUT.items() if len(mutant.named) == 1]
PAIRS = [name for name, mutant in HELD_OUT.items() if len(mutant.named) > 1]
FOLDER = Path(wrong.__path__[0])

# What shows where exponentials leave their range, where a row is right or far from right, or where it has no positive.
HIDDEN = {
    "debiased-bare-exponentials", "supcon-in-maximum-of-self", "supcon-out-average-of-nonzero",
    "hard-contrastive-probability-floor", "supcon-in-lonely-in-the-mean",
}  # fmt: skip


@cache
def designed(loss, settings):
    """N = 5 rows of many lengths in D = 3 dimensions, views unlike each other, at every temperature of the suite."""
    probes = corpus(get_loss(loss).declaration, dict(settings), suite="quick")
    return tuple(probe for probe in probes if probe.id.startswith("designed"))


@cache
def answers(mutant, loss, settings):
    """Values and gradients, or nothing where the program takes other arrays than those that are given."""
    shown = set(inspect.signature(mutant.program).parameters)
    arrays = {p.name for p in get_loss(loss).parameters if isinstance(p, Array | Labels)}
    inputs = [probe.inputs for probe in designed(loss, settings)]
    if {name for name in arrays & set(inputs[0]) if inputs[0][name] is not None} != arrays & shown:
        return ()
    return tuple(target(mutant, loss)(**{name: given[name] for name in shown & set(given)}) for given in inputs)


def asked(mutant):
    return tuple(sorted(mutant.settings.items()))


def apart(one, other):
    """Largest difference of two answers relative to their size; infinite where only one is a number."""
    (value, grads), (again, others) = one, other
    pairs = [(value, again)]
    for name in {*grads, *others}:
        zero = np.zeros_like(grads.get(name, others.get(name)))
        pairs.append((grads.get(name, zero), others.get(name, zero)))
    return max(relative(np.asarray(a, dtype=float), np.asarray(b, dtype=float)) for a, b in pairs)


def relative(a, b):
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    a, b = (np.where(np.isfinite(x), x, 0) for x in (a, b))
    size = max(np.max(np.abs(a)), np.max(np.abs(b)))
    return float(np.max(np.abs(a - b)) / size) if size else 0.0


def test_there_are_enough_bugs_for_a_score():
    assert len(SINGLES) >= 25
    assert len(PAIRS) >= 15
    assert len({loss for mutant in HELD_OUT.values() for loss in mutant.losses}) >= 15


def test_a_file_is_held_out_as_a_whole():
    for name in names("nceref.verification.bugs.wrong"):
        module = import_module(f"nceref.verification.bugs.wrong.{name}")
        assert {mutant.held_out for mutant in module.MUTANTS} == {name.startswith("held_out_")}, name


def test_a_bug_shares_no_code_with_what_must_find_it():
    for path in FOLDER.glob("held_out_*.py"):
        tree = ast.parse(path.read_text())
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert imported == {"numpy", "nceref.verification.bugs.bug"}, path.name


@pytest.mark.parametrize("name", HELD_OUT)
def test_a_bug_says_what_it_is_and_where_it_was_seen(name):
    mutant = HELD_OUT[name]
    assert bool(mutant.thread) != bool(mutant.seen)
    assert not mutant.thread or mutant.thread.replace("#", "/").count("/") == 2
    assert mutant.sentence[0].isupper()
    assert mutant.sentence.endswith(".")
    assert set(mutant.named) <= set(CONVENTIONS)


@pytest.mark.parametrize("name", PAIRS)
def test_two_bugs_at_once_are_of_two_kinds(name):
    axes = [CONVENTIONS[word].axis for word in HELD_OUT[name].named]
    assert len(set(axes)) == len(axes) == 2


@pytest.mark.parametrize("name", [name for name in HELD_OUT if name not in HIDDEN])
def test_a_bug_departs_from_the_reference_beyond_single_precision(name):
    mutant = HELD_OUT[name]
    for loss in mutant.losses:
        probes = designed(loss, asked(mutant))
        for probe, answer in zip(probes, answers(mutant, loss, asked(mutant)), strict=True):
            # 1e-5 is some 80 times the unit roundoff of float32.
            if probe.id in ("designed", "designed-0.3", "designed-0.07"):
                assert apart(answer, (probe.value, probe.grads)) > 1e-5, probe.id


@pytest.mark.parametrize("name", HELD_OUT)
def test_a_bug_is_none_of_those_that_the_search_was_tuned_on(name):
    mutant = HELD_OUT[name]
    for loss in mutant.losses:
        here = answers(mutant, loss, asked(mutant))
        assert here
        for tuned in (tuned for tuned in TUNED.values() if loss in tuned.losses):
            there = answers(tuned, loss, asked(mutant))
            assert not there or max(map(apart, here, there)) > 1e-6, tuned.id


@pytest.mark.parametrize("name", HELD_OUT)
def test_a_program_keeps_the_format_that_it_gets(name):
    mutant = HELD_OUT[name]
    for loss in mutant.losses:
        inputs, shown = designed(loss, asked(mutant))[0].inputs, inspect.signature(mutant.program).parameters
        single = {name: x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
                  for name, x in inputs.items() if name in shown}  # fmt: skip
        value, grads = target(mutant, loss)(**single)
        assert all(np.asarray(grad).dtype == np.float32 for grad in grads.values() if np.all(np.isfinite(grad)))
        # Exponents of up to 1 / 0.3 and sums over ten rows lose a few hundred units of float32.
        double = answers(mutant, loss, asked(mutant))[0][0]
        assert abs(value - double) < 1e-3 * max(1.0, abs(double))
