"""The catalogue of known bugs: well-formed, wrong, with the gradients of autodiff; and how it is scored and shown."""

import ast
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from nceref.cli import mutants_page
from nceref.cli.mutants import mutants as command
from nceref.errors import InputError
from nceref.losses import all_losses, get_loss
from nceref.verification.bugs import bug
from nceref.verification.bugs.bug import Mutant, mutants, slopes, target, variants
from nceref.verification.bugs.score import (
    CORRECT,
    DTYPES,
    Score,
    Trial,
    expected,
    group,
    intended,
    jobs,
    programs,
    trial,
)
from nceref.verification.conventions import CONVENTIONS
from nceref.verification.corpus.corpus import corpus
from nceref.verification.judge import judge
from nceref.verification.records import Observation, Outcome

FOLDER = Path(bug.__file__).parent
PAIRS = [(mutant, loss) for mutant in mutants().values() for loss in mutant.losses]
RIGHT = [(variant, loss) for variant in variants().values() for loss in variant.losses]


def inputs_of(mutant, probe):
    """The arguments of the program, arrays in the format of the probe."""
    given = {name: probe.inputs.get(name) for name in inspect.signature(mutant.program).parameters}
    return {
        name: np.asarray(x, dtype=probe.dtype) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
        for name, x in given.items()
    }


def fixed(mutant, loss):
    """Scalars that the program takes nowhere: they have their default, as a target's have."""
    taken = {*inspect.signature(mutant.program).parameters, *intended(mutant, loss)}
    declared = get_loss(loss).declaration.parameters
    return {
        p.name: p.default for p in declared if isinstance(getattr(p, "default", None), float) and p.name not in taken
    }


def failures(mutant, loss, dtype, enough=10**6):
    """Ids of the failed quantities on the quick corpus, until there are enough."""
    program, found, declaration = target(mutant, loss), [], get_loss(loss).declaration
    for probe in corpus(declaration, intended(mutant, loss), suite="quick", dtype=dtype, fixed=fixed(mutant, loss)):
        if not probe.skip:
            outcome = Outcome(*program(**inputs_of(mutant, probe)))
            found += [result.id for result in judge(Observation(probe, outcome)) if result.status == "fail"]
        if len(found) >= enough:
            break
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_mutant_departs_from_the_reference_beyond_the_bound(dtype):
    survivors = [m.id for m, loss in PAIRS if dtype in m.dtypes and not failures(m, loss, dtype, enough=1)]
    assert not survivors


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_correct_variant_departs_from_the_reference(dtype):
    blamed = {v.id: found for v, loss in RIGHT if (found := failures(v, loss, dtype))}
    assert not blamed


@pytest.mark.parametrize("mutant", programs().values(), ids=lambda m: m.id)
def test_a_record_is_well_formed(mutant):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", mutant.id)
    assert mutant.sentence.endswith(".")
    assert set(mutant.losses) <= set(all_losses())
    assert mutant.losses
    assert set(mutant.dtypes) <= set(DTYPES)
    assert mutant.dtypes
    for loss in mutant.losses:
        declared = {p.name for p in get_loss(loss).parameters}
        assert set(inspect.signature(mutant.program).parameters) | set(mutant.settings) <= declared


@pytest.mark.parametrize("mutant", mutants().values(), ids=lambda m: m.id)
def test_a_mutant_says_what_is_wrong_and_where_it_was_seen(mutant):
    assert mutant.named
    for name in (*expected(mutant), *(part for other in mutant.also for part in other.split("+"))):
        assert name in CONVENTIONS
        assert name != "unexplained"
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", mutant.thread) or (mutant.thread == "" and mutant.seen)


def test_the_catalogue_covers_every_loss_and_has_the_size_that_was_promised():
    assert {loss for _, loss in PAIRS} == set(all_losses())
    assert len(mutants()) >= 60
    assert len(variants()) >= 25
    held_out = sum(group(m) != "tuning" for m in mutants().values())
    assert held_out >= len(mutants()) / 3


@pytest.mark.parametrize("path", [*FOLDER.glob("mutants/*.py"), *FOLDER.glob("variants/*.py")], ids=lambda p: p.name)
def test_programs_import_nothing_from_the_checker(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    parts = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert whole | parts <= {"numpy", "typing", "nceref.verification.bugs.bug"}


def torch_self_kept(torch, z1, z2, temperature):
    z = torch.nn.functional.normalize(torch.cat([z1, z2]))
    return torch.nn.functional.cross_entropy(z @ z.T / temperature, torch.arange(2 * len(z1)).roll(len(z1)))


def torch_keys_detached(torch, queries, keys, temperature):
    unit = torch.nn.functional.normalize
    logits = unit(queries) @ unit(keys.detach()).T / temperature
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(logits)))


def torch_both_added(torch, image, text, logit_scale):
    unit, cross_entropy = torch.nn.functional.normalize, torch.nn.functional.cross_entropy
    logits, labels = logit_scale * unit(image) @ unit(text).T, torch.arange(len(image))
    return cross_entropy(logits, labels) + cross_entropy(logits.T, labels)


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("nt-xent-own-logit-kept", torch_self_kept),
        ("info-nce-keys-from-no-grad", torch_keys_detached),
        ("clip-both-ways-added", torch_both_added),
    ],
)
def test_the_complex_step_gives_the_gradient_of_autodiff(name, twin):
    torch = pytest.importorskip("torch", reason="compares with torch's autodiff")
    mutant = mutants()[name]
    rng = np.random.default_rng(7)
    inputs = {n: rng.standard_normal((4, 3)) for n in inspect.signature(mutant.program).parameters}
    inputs[list(inputs)[-1]] = 0.3
    leaves = {n: torch.tensor(x, dtype=torch.float64, requires_grad=True) for n, x in inputs.items()}
    loss = twin(torch, **leaves)
    loss.backward()
    value, grads = target(mutant, mutant.losses[0])(**inputs)
    assert value == pytest.approx(loss.item(), rel=1e-14)
    for n, leaf in leaves.items():
        want = np.zeros_like(inputs[n]) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(grads[n], want, rtol=1e-12, atol=1e-14)


def test_a_float32_program_stays_in_float32():
    seen = []

    def program(z1, z2, *, temperature):
        seen.append(np.result_type(z1, z2, temperature))
        return np.sum(z1 * z2) / temperature

    row = np.ones((2, 3), dtype=np.float32)
    mutant = Mutant("m", "A sentence.", "", ("nt_xent",), (), program)
    _, grads = target(mutant, "nt_xent")(row, row, temperature=0.1)
    assert set(seen) == {np.dtype(np.float32), np.dtype(np.complex64)}
    assert grads["z1"].dtype == np.float32


def test_tiny_gradients_are_not_lost_in_float32():
    x = np.full((1, 2), 1e-3, dtype=np.float32)
    found = slopes(lambda x: np.sum(x * np.float32(1e-28)), {"x": x}, ["x"])["x"]
    np.testing.assert_allclose(found, 1e-28, rtol=1e-6)


def test_words_of_the_framework_keep_derivatives():
    x = np.array([[1.0, 800.0, -3.0]])
    for word, slope in ((bug.softplus, [1 / (1 + np.exp(-1)), 1.0, 1 / (1 + np.exp(3))]),
                        (bug.logsumexp, [0.0, 1.0, 0.0])):  # fmt: skip
        found = slopes(lambda x, word=word: np.sum(word(x)), {"x": x}, ["x"])["x"]
        np.testing.assert_allclose(found, [slope], atol=1e-15)


def made(name="m", group="tuning", verdict="differs", right=True, errors=0):
    return Trial(name, "nt_xent", "float64", group, "x", verdict, ("x",), "", right, right, errors, 0.0)


def test_the_target_needs_every_mutant_killed_and_95_percent_named():
    good = [made() for _ in range(19)]
    assert Score((*good, made(right=False))).met
    assert not Score((*good, made(right=False), made(right=False))).met
    assert not Score((*good, made(verdict="conforms"))).met
    assert not Score((*good, made(errors=1))).met
    assert not Score((*good, made(verdict="error"))).met


@pytest.mark.parametrize("verdict", ["differs", "inconclusive", "error"])
def test_a_blamed_variant_is_a_false_alarm(verdict):
    assert Score((made(), made(group=CORRECT, verdict="conforms"))).met
    blamed = Score((made(), made(group=CORRECT, verdict=verdict)))
    assert not blamed.met
    assert len(blamed.false_alarms) == 1


def test_groups_are_counted_apart():
    score = Score((made(), made(group="held-out", right=False), made(group="pairs", verdict="conforms")))
    assert score.tally("float64", "tuning").named == 1
    assert score.tally("float64", "held-out").killed == 1
    assert score.tally("float64", "held-out").named == 0
    assert score.tally("float64", "pairs").killed == 0


def test_a_mutant_that_raises_is_missed(monkeypatch):
    def broken(z1, z2, *, temperature):
        raise RuntimeError

    mutant = Mutant("broken", "A sentence.", "", ("nt_xent",), ("outer-factor-2",), broken)
    monkeypatch.setattr("nceref.verification.bugs.score.programs", lambda: {"broken": mutant})
    found = trial(("broken", "nt_xent", "float64"), "quick")
    assert not found.killed
    assert found.errors


def test_an_optional_array_that_a_program_takes_is_asked_for():
    assert intended(mutants()["info-nce-batch-keys-beside-the-negatives"], "info_nce") == {"negatives": ...}


def test_an_unknown_id_is_answered_with_one_like_it():
    with pytest.raises(InputError, match="nt-xent-own-logit-kept"):
        jobs(["nt-xent-own-logit-kep"])


def test_a_format_in_which_nothing_is_wrong_is_refused():
    with pytest.raises(InputError, match="clip-cast-to-single"):
        jobs(["clip-cast-to-single"], ["float32"])


def test_the_code_that_is_shown_holds_what_the_program_calls():
    shown = mutants_page.source(mutants()["nt-xent-both-halves-added"])
    assert "def _both_halves_added(" in shown
    assert "def _other_views(" in shown
    assert "def _added_up(" not in shown


def test_pages_are_80_columns_wide_and_list_every_mutant():
    listed = mutants_page.overview(programs().values()).text()
    assert max(map(len, listed.splitlines())) <= 80
    assert all(name in listed for name in programs())
    misnamed = replace(made("nt-xent-own-logit-kept"), right=False, said=("outer-factor-2",) * 3)
    page = mutants_page.score_page(Score((made(), misnamed, made(group=CORRECT)))).text()
    assert max(map(len, page.splitlines())) <= 80
    assert "Not named (1)" in page
    assert "False alarms (1)" in page


def test_the_command_lists_shows_and_prints_json():
    run = CliRunner().invoke
    assert "nt-xent-own-logit-kept" in run(command, []).output
    one = run(command, ["nt-xent-own-logit-kept"]).output
    assert "vturrisi/solo-learn#206" in one
    assert "def _own_logit_kept(" in one
    record = json.loads(run(command, ["nt-xent-own-logit-kept", "--json"]).output)[0]
    assert record["named"] == ["self-contrast-kept"]


def test_the_command_scores_and_fails_on_a_missed_target(monkeypatch):
    run = CliRunner().invoke
    good = run(command, ["score", "nt-xent-own-logit-kept", "--dtype", "float64", "--json"])
    assert good.exit_code == 0, good.output
    found = json.loads(good.output)
    assert found["met"]
    assert found["by_dtype"]["float64"]["all"]["named"] == 1
    monkeypatch.setattr("nceref.verification.bugs.score.measure", lambda todo, suite: [made(verdict="conforms")])
    assert run(command, ["score", "nt-xent-own-logit-kept"]).exit_code == 1
