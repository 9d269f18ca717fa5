"""The programs of the catalogue: well-formed, and wrong where they should be.

`make score` judges all of them: each bug differs on the corpus, and each correct program conforms.
"""

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from catalogue import arguments, observed
from sweep import sweep

from mutants import bug
from mutants.bug import DTYPES, bugs, correct_programs, target
from mutants.score import expected, group, intended, programs
from nceref.cases.corpus.corpus import designed_inputs, evaluate
from nceref.cases.judge import judge
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.losses import all_losses, get_loss
from nceref.spec import Array, Labels

pytestmark = pytest.mark.machine

FOLDER = Path(bug.__file__).parent
HELD_OUT = [program for program in bugs().values() if program.held_out]
TUNED = [program for program in bugs().values() if not program.held_out]

MODERATE = ("designed", "designed-0.3", "designed-0.07")
"""Cases on which most bugs show; a loss without a temperature has the first of them."""

# What shows only where exponentials leave their range, where a row is right or far from right, where one has no
# positive, or where a guide finds a pair opposite or the same: the programs that are right on the designed case.
HIDDEN = {
    "arcface-cosines-kept-from-one", "clip-cast-to-single", "clip-scale-cut-inside", "dcl-additive-mask",
    "debiased-bare-exponentials", "guided-relative-to-a-negative-positive", "guided-with-the-row-itself",
    "hard-contrastive-probability-floor", "info-nce-small-constant-in-the-log", "nt-xent-bare-exponentials",
    "nt-xent-clamped-probability", "siglip-bare-sigmoids", "supcon-in-lonely-in-the-mean", "supcon-in-maximum-of-self",
    "supcon-lonely-rows-are-dropped", "supcon-lonely-rows-are-zero", "supcon-out-average-of-nonzero",
    "supcon-own-logit-sets-the-scale", "supcon-zero-over-zero",
}  # fmt: skip


def ids(program):
    return program.id


@cache
def designed(loss, settings):
    """N = 5 rows of many lengths in D = 3 dimensions, views unlike each other, at three temperatures, one low."""
    declaration = get_loss(loss).declaration
    made = designed_inputs(declaration, dict(settings), "quick", "float64", 0, {})
    probes = [evaluate(declaration, x, id=id) for id, x in made if id in (*MODERATE, "designed-0.001")]
    return tuple(probe for probe in probes if not probe.skip)


@cache
def outcomes(program, settings):
    """Values and gradients on the designed cases; none where the program takes other arrays than are given."""
    arrays = {p.name for p in get_loss(program.loss).parameters if isinstance(p, Array | Labels)}
    taken = arrays & set(inspect.signature(program.function).parameters)
    inputs = [probe.inputs for probe in designed(program.loss, settings)]
    if {name for name in arrays if inputs[0].get(name) is not None} != taken:
        return ()
    return tuple(target(program)(**arguments(program, given, np.float64)) for given in inputs)


def own_settings(program):
    return tuple(sorted(intended(program).items()))


def distance(one, other):
    """Largest difference of two outcomes relative to their size; infinite where only one is a number."""
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


@sweep("program", programs().values(), ids=ids)
def test_an_entry_is_well_formed(program):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", program.id)
    assert program.sentence.endswith(".")
    assert "\n" not in program.sentence
    assert program.loss in all_losses()
    assert program.dtypes
    assert set(program.dtypes) <= set(DTYPES)
    declared = {p.name for p in get_loss(program.loss).parameters}
    assert set(inspect.signature(program.function).parameters) | set(program.settings) <= declared


@sweep("program", bugs().values(), ids=ids)
def test_a_bug_has_a_diagnosis_and_a_source(program):
    assert program.named
    named = {*program.named, *(part for other in program.also for part in other.split("+"))}
    assert named <= set(CONVENTIONS) - {"unexplained"}
    assert bool(program.thread) != bool(program.seen)
    assert re.fullmatch(r"([\w.-]+/[\w.-]+#\d+)?", program.thread)
    if group(program) == "pairs":
        axes = [CONVENTIONS[name].axis for name in program.named]
        assert len(set(axes)) == len(axes) == 2


def test_the_catalogue_covers_every_loss_and_has_the_size_that_was_promised():
    assert {program.loss for program in bugs().values()} == set(all_losses())
    assert not any(expected(program) for program in correct_programs().values())
    groups = [group(program) for program in programs().values()]
    assert {name: groups.count(name) for name in groups} == {"tuning": 161, "held-out": 52, "pairs": 21, "correct": 57}
    assert len({program.loss for program in HELD_OUT}) >= 15


def test_programs_share_no_code_with_what_must_find_them():
    # Those of several ranks are PyTorch's; their own test is with the peers.
    paths = [p for p in FOLDER.glob("*/*.py") if p.name != "__init__.py" and p.parent.name != "distributed"]
    assert len(paths) > 10
    for path in paths:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        parts = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        assert whole | parts == {"numpy", "mutants.bug"}, path.name


@pytest.mark.slow(reason="all 234 entries, which change with the catalogue only; `make score` judges them too")
def test_a_bug_departs_from_the_reference_beyond_single_precision():
    alike = set()
    for program in bugs().values():
        settings = own_settings(program)
        probes = designed(program.loss, settings)
        pairs = [(p, o) for p, o in zip(probes, outcomes(program, settings), strict=True) if p.id in MODERATE]
        assert pairs
        # 1e-5 is some 80 times the unit roundoff of float32.
        if any(distance(outcome, (probe.value, probe.grads)) < 1e-5 for probe, outcome in pairs):
            alike.add(program.id)
    assert alike == HIDDEN


@pytest.mark.slow(reason="compares all pairs of entries, which change with the catalogue only")
def test_a_held_out_bug_is_none_of_those_that_the_search_was_tuned_on():
    for program in HELD_OUT:
        settings = own_settings(program)
        here = outcomes(program, settings)
        assert here
        for tuned in TUNED:
            there = outcomes(tuned, settings) if tuned.loss == program.loss else ()
            assert not there or max(map(distance, here, there)) > 1e-6, (program.id, tuned.id)


@pytest.mark.slow(reason="109 entries, which change with the catalogue only")
@sweep("program", [*HELD_OUT, *correct_programs().values()], ids=ids)
def test_a_program_keeps_the_format_that_it_gets(program):
    inputs = designed(program.loss, own_settings(program))[0].inputs
    value, grads = target(program)(**arguments(program, inputs, np.float32))
    assert all(np.asarray(grad).dtype == np.float32 for grad in grads.values() if np.all(np.isfinite(grad)))
    # Exponents of up to 1 / 0.3 and sums over ten rows lose a few hundred units of float32.
    double, _ = target(program)(**arguments(program, inputs, np.float64))
    assert abs(value - double) < 1e-3 * max(1.0, abs(double))


@pytest.mark.parametrize("name", sorted(HIDDEN)[::6])
def test_a_bug_that_hides_on_the_designed_case_shows_on_the_corpus(name):
    program = bugs()[name]
    assert any(r.status == "fail" for seen in observed(program, program.dtypes[-1]) for r in judge(seen))
