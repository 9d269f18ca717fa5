"""A small failing input is small for every loss, and the script that holds it runs without nceref."""

import ast
import subprocess
import sys
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from slow import partly_slow

from nceref.cases.corpus.corpus import designed_inputs, evaluate
from nceref.cases.records import Observation, Outcome
from nceref.diagnosis.gaps import gaps
from nceref.losses import LossFunction, all_losses, get_loss
from nceref.targets import runner
from nceref.verification.repro.minimize import smallest
from nceref.verification.repro.script import script

LOSSES = tuple(all_losses())[::2]
"""Inputs of every kind: two views, towers, labels, a queue, logits."""


def right(probe):
    return LossFunction(probe.loss).value_and_grad(**probe.inputs)


def doubled(probe):
    value, grads = right(probe)
    return Outcome(2 * value, {name: 2 * grad for name, grad in grads.items()})


def halved_gradient(probe):
    value, grads = right(probe)
    return Outcome(value, {name: 0.5 * grad for name, grad in grads.items()})


def failing(loss, run, most=None, **settings):
    """The failing cases of the quick suite, or the first of them; the others are not evaluated then."""
    cases = designed_inputs(loss, settings, "quick", "float64", 0, {})
    probes = (evaluate(loss, inputs, id=id) for id, inputs in cases)
    seen = (Observation(p, run(p)) for p in probes if not p.skip)
    return list(islice((o for o in seen if not all(gap.right for gap in gaps(o).values())), most))


def rows(probe):
    return max(len(x) for x in probe.inputs.values() if isinstance(x, np.ndarray))


@pytest.mark.parametrize("name", LOSSES)
def test_three_rows_are_enough_to_see_a_wrong_value(name):
    loss = get_loss(name).declaration
    probe, outcome = smallest(loss, {}, doubled, first=failing(loss, doubled, 1))
    assert rows(probe) <= 3
    assert not gaps(Observation(probe, outcome))["value"].right


@pytest.mark.parametrize(
    "name",
    partly_slow(
        ["nt_xent", "supcon_in", "arcface", "uniformity", "paco"],
        {"nt_xent", "uniformity"}.__contains__,
        "the search of another loss, by the same steps",
    ),
)
def test_four_rows_are_enough_to_see_a_wrong_gradient(name):
    loss = get_loss(name).declaration
    probe, outcome = smallest(loss, {}, halved_gradient, first=failing(loss, halved_gradient, 1))
    by_quantity = gaps(Observation(probe, outcome))
    assert rows(probe) <= 4
    assert by_quantity.pop("value").right
    assert not all(gap.right for gap in by_quantity.values())


def test_the_smallest_input_is_the_simplest_one():
    loss = get_loss("nt_xent").declaration

    def kept(probe):
        return Outcome(np.logaddexp(probe.value, 0.0))

    probe, _ = smallest(loss, {}, kept)
    assert probe.inputs["z1"].tolist() == [[1.0]]
    assert probe.inputs["temperature"] == 1.0
    assert probe.value == 0


def test_a_failure_at_low_temperatures_only_is_looked_for_there():
    loss = get_loss("nt_xent").declaration

    def overflows(probe):
        return Outcome(np.nan if probe.inputs["temperature"] < 0.0014 else right(probe)[0])

    probe, outcome = smallest(loss, {}, overflows, first=failing(loss, overflows))
    assert rows(probe) <= 2
    assert probe.inputs["temperature"] <= 0.001
    assert np.isnan(outcome.value)


def test_a_fixed_temperature_stays():
    loss = get_loss("nt_xent").declaration
    probe, _ = smallest(loss, {"temperature": 0.25}, doubled)
    assert probe.inputs["temperature"] == 0.25


def test_a_fixed_bias_stays():
    loss = get_loss("siglip").declaration
    probe, _ = smallest(loss, {"logit_bias": -5.0, "logit_scale": 10.0}, doubled)
    assert (probe.inputs["logit_bias"], probe.inputs["logit_scale"]) == (-5.0, 10.0)


def test_where_nothing_small_fails_the_smallest_known_failure_is_returned():
    loss = get_loss("nt_xent").declaration

    def at_size(probe):
        return Outcome(probe.value + (rows(probe) == 5))

    known = failing(loss, at_size)
    probe, _ = smallest(loss, {}, at_size, first=known, most=20)
    assert probe in [o.probe for o in known]
    assert smallest(loss, {}, lambda probe: Outcome(probe.value), most=20) is None


NUMPY = """
import numpy as np

def nt_xent(z_i, z_j, tau):
    z = np.concatenate([z_i, z_j])
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    n = len(z_i)
    mass = np.exp(z @ z.T / tau)
    positive = mass[np.arange(2 * n), np.roll(np.arange(2 * n), n)]
    return -np.log(positive / (mass.sum(axis=1) - 0 * np.diag(mass))).mean()

class NTXent:
    def __init__(self, tau, scale=1.0):
        self.tau, self.scale = tau, scale

    def __call__(self, z1, z2):
        return self.scale * nt_xent(z1, z2, self.tau)

def with_gradient(q, k, temperature):
    q_, k_ = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k))
    s = q_ @ k_.T / temperature
    top = s.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(s - top).sum(axis=1)) + top[:, 0]
    return (log_sum - np.diag(s)).mean(), {"q": 0 * q, "k": 0 * k, "temperature": 0.0}
"""

TORCH = """
import torch

def nt_xent(z1, z2, temperature):
    z = torch.nn.functional.normalize(torch.cat([z1, z2.detach()]), dim=1)
    n = len(z1)
    s = (z @ z.T / temperature).masked_fill(torch.eye(2 * n, dtype=torch.bool), -torch.inf)
    return torch.nn.functional.cross_entropy(s, torch.arange(2 * n).roll(n))

class Both(torch.nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, z):
        return nt_xent(*z.chunk(2), self.temperature) + 1
"""


def write_script(folder, text, name, **options):
    """The script of a target's smallest failure, as a file beside the target."""
    loss = get_loss(name).declaration
    with runner.in_process(text, loss, **options) as run:
        known = failing(loss, run, 1, **run.target.fixed)
        source = script(run.target, *smallest(loss, run.target.fixed, run, first=known))
    (folder / "repro.py").write_text(source)
    return source


def execute(folder):
    return subprocess.run([sys.executable, "repro.py"], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("name", "loss", "options", "yours"),
    partly_slow(
        [
            ("NTXent", "nt_xent", {}, "yours 0.693147"),
            ("NTXent", "nt_xent", {"init": {"tau": 0.5, "scale": 3.0}}, "yours 2.0794415"),
            ("nt_xent", "nt_xent", {"call": "f(z1, z2, temperature) + 1"}, "yours 1.693147"),
            ("with_gradient", "info_nce", {}, "gradient of temperature, yours 0.0"),
        ],
        lambda case: case[2] or case[0] == "with_gradient",
        "a script more",
    ),
)
def test_a_script_prints_both_numbers_and_fails_until_they_agree(tmp_path, monkeypatch, name, loss, options, yours):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours.py").write_text(NUMPY)
    source = write_script(tmp_path, f"ours.py:{name}", loss, **options)
    assert "import nceref" not in source
    assert "from nceref" not in source
    # No path of this machine, so that it can be handed on.
    assert str(tmp_path) not in source
    shown = execute(tmp_path)
    assert shown.returncode == 1, shown.stderr
    assert yours in shown.stdout
    assert f"loss {loss}]" in shown.stdout


def test_a_script_passes_once_the_target_is_mended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours.py").write_text(NUMPY)
    write_script(tmp_path, "ours.py:nt_xent", "nt_xent")
    shown = execute(tmp_path)
    assert shown.returncode == 1, shown.stderr
    assert "yours 0.693147" in shown.stdout
    (tmp_path / "ours.py").write_text(NUMPY.replace("0 * np.diag", "np.diag"))
    assert execute(tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("name", "options", "yours"),
    [("nt_xent", {}, "gradient of z2, yours"), ("Both", {"call": "f(torch.cat([z1, z2]))"}, "yours 1.0")],
)
def test_a_script_of_a_torch_target_runs_the_backward_pass(tmp_path, monkeypatch, name, options, yours):
    torch = pytest.importorskip("torch", reason="the target is a PyTorch function")
    threads = torch.get_num_threads()
    # Threads that wait for one another on a busy machine take a hundred times as long as these tiny arrays.
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours_in_torch.py").write_text(TORCH)
    try:
        write_script(tmp_path, f"ours_in_torch.py:{name}", "nt_xent", **options)
    finally:
        torch.set_num_threads(threads)
    shown = execute(tmp_path)
    assert shown.returncode == 1, shown.stderr
    assert yours in shown.stdout


def test_an_object_that_no_import_leads_to_leaves_a_line_to_fill_in():
    loss = get_loss("nt_xent").declaration

    def local(z1, z2, temperature):
        return 1.0

    probe = evaluate(loss, {"z1": np.ones((1, 1)), "z2": np.ones((1, 1)), "temperature": 1.0})
    with runner.in_process(local, loss) as run:
        source = script(run.target, probe, run(probe))
        assert "==> PASTE OR IMPORT IT HERE" in source
        compile(source, "repro.py", "exec")


def test_a_name_of_others_stays_a_name_in_the_script():
    loss = get_loss("nt_xent").declaration
    observation = failing(loss, doubled, 1)[0]
    with runner.in_process(lambda z1, z2, temperature: 1.0, loss) as run:
        target = replace(run.target, name='"""; raise SystemExit(7)\n\\u\x1b[31m\udcff')
    source = script(target, observation.probe, observation.outcome)
    assert source.replace("\n", "").isprintable()
    tree = ast.parse(source)
    assert ast.get_docstring(tree).startswith(r"A case on which '''; raise SystemExit(7) \u\x1b[31m\udcff differs")
    assert not any(isinstance(node, ast.Raise) for node in ast.walk(tree))
