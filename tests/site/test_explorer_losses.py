"""The explorer's own losses, run by node: values and gradients within the derived bounds of the package, and limits."""

import json
import math
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from slow import partly_slow

from nceref.cases.corpus.corpus import evaluate
from nceref.cases.judge import judge
from nceref.cases.records import Observation, Outcome
from nceref.losses import get_loss
from nceref.theory.tables import temperature_easy, temperature_hard

EXPLORER = Path(__file__).parents[2] / "docs" / "explorer"
TEMPERATURES = (1e-3, 0.01, 0.05, 0.3, 1.0, 10.0)
LOSSES = """
import { losses } from "./losses.js";
import { limits } from "./limits.js";
import { readFileSync } from "node:fs";
const answers = JSON.parse(readFileSync(0, "utf8")).map(([name, inputs]) => {
  const result = losses[name](inputs);
  return { ...result, limits: limits(name, result, inputs) };
});
console.log(JSON.stringify(answers));
"""
LINKS = """
import { catalogue } from "./catalogue.js";
import { evaluate } from "./model.js";
import { presets } from "./presets.js";
import { decode, encode } from "./link.js";
import { opened, suited, suits } from "./state.js";
const answers = Object.keys(presets).flatMap((name) => Object.keys(catalogue).map((loss) => {
  const start = { ...opened(name), loss };
  const state = { ...start, ...suited(start, loss), temperature: 0.1 + 0.2, alpha: 1 / 3, at: 1 };
  const { state: again, unread } = decode(encode(state));
  const fits = suits(state.points, loss) && Number.isFinite(evaluate(state).value);
  return { name, loss, fits, unread, kept: JSON.stringify(again) === JSON.stringify({ ...opened(name), ...state }) };
}));
console.log(JSON.stringify(answers));
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Answers of the explorer's losses, after a replacement in their text if one is given."""
    if not (program := shutil.which("node")):
        pytest.skip("node is not installed; it runs the losses of the explorer")

    def node(calls, old="", new="", text=LOSSES):
        folder = tmp_path_factory.mktemp("explorer")
        for module in EXPLORER.glob("*.js"):
            shutil.copy(module, folder)
        if old:
            given = (folder / "losses.js").read_text()
            assert given.count(old) == 1
            (folder / "losses.js").write_text(given.replace(old, new))
        # Without it, node takes these files for modules of the old kind.
        (folder / "package.json").write_text('{"type": "module"}')
        (folder / "run.js").write_text(text)
        given = json.dumps([(name, _plain(inputs)) for name, inputs in calls])
        done = subprocess.run([program, "run.js"], cwd=folder, input=given, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return node


def _plain(inputs):
    return {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in inputs.items()}


def _circle(*angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _inputs(name, first, second, temperature, rng):
    """Arguments of a loss for two sets of N rows each; labels 0, 1, 0, 1, ..."""
    n = len(first)
    labels, centers = np.arange(2 * n) % 2, rng.standard_normal((2, 2))
    rows = np.concatenate([first, second])
    return {
        "info_nce": {"queries": first, "keys": second, "temperature": temperature},
        "hard_contrastive": {"queries": first, "keys": second, "temperature": temperature, "fraction": 0.5},
        "simple": {"queries": first, "keys": second},
        "nt_xent": {"z1": first, "z2": second, "temperature": temperature},
        "dcl": {"z1": first, "z2": second, "temperature": temperature},
        "supcon_out": {"embeddings": rows, "labels": labels, "temperature": temperature},
        "paco": {"embeddings": rows, "labels": labels, "centers": 3 * centers, "alpha": 0.05,
                 "temperature": temperature},
        "arcface": {"embeddings": rows, "class_weights": centers, "target": labels, "margin": 0.5,
                    "scale": 1 / temperature},
        "siglip": {"image": first, "text": second, "logit_scale": 1 / temperature, "logit_bias": -3.0},
    }[name]  # fmt: skip


NAMES = ("info_nce", "nt_xent", "supcon_out", "simple", "dcl", "hard_contrastive", "arcface", "paco", "siglip")


@cache
def _calls(presets=3):
    """Random presets, solved ones and opposite ones, at every temperature; then the anchors of source 003."""
    calls = []
    for name in NAMES:
        rng = np.random.default_rng(len(name))
        for temperature in TEMPERATURES:
            for preset in range(presets):
                n = int(rng.integers(2, 6))
                first = rng.uniform(-math.pi, math.pi, n)
                # Aligned, opposite, or anywhere.
                second = (first + 1e-6, first + math.pi - 0.01, rng.uniform(-3, 3, n))[preset]
                rows = _circle(*first), _circle(*second) * rng.uniform(0.5, 2, (n, 1))
                calls.append((name, _inputs(name, *rows, temperature, rng)))
    for s in (temperature_easy.SIMILARITIES, temperature_hard.SIMILARITIES):
        one, *others = _circle(*np.arccos(s))
        anchor = {"queries": _circle(0.0), "keys": one[None], "negatives": np.array(others)}
        calls += [("info_nce", {**anchor, "temperature": t}) for t in TEMPERATURES]
    return calls


@cache
def _probes():
    """With the bounds of programs that lose no digits where the loss is tiny."""
    return [evaluate(get_loss(name).declaration, inputs, algorithm="log1p") for name, inputs in _calls()]


def _failures(answers, probes):
    """What is not within its bound, and what was judged."""
    failures, judged = [], 0
    for probe, answer in zip(probes, answers, strict=True):
        outcome = Outcome(answer["value"], {k: np.array(g, dtype=float) for k, g in answer["grads"].items()})
        results = judge(Observation(probe, outcome))
        judged += sum(result.error is not None for result in results)
        failures += [(probe.loss.name, result.why) for result in results if result.status not in ("pass", "skip")]
    return failures, judged


def test_values_and_gradients_are_within_the_bounds(node):
    failures, judged = _failures(node(_calls()), _probes())
    assert failures == []
    # A gradient on a kink is not compared: all others are.
    assert judged > 2.7 * len(_calls())


WRONG = [
    ("info_nce", "slopes[positive] = -missed;", "slopes[positive] = 1.0000001 * -missed;"),
    ("nt_xent", "slopes[positive] = -missed;", "slopes[positive] = sigmoid(-gap) - 1;"),
    ("info_nce", "Math.log1p(Math.exp(-Math.abs(x)))", "Math.log(1 + Math.exp(-Math.abs(x)))"),
    ("hard_contrastive", "row[k] - row[j]", "row[j] - row[k]"),
    ("simple", "Math.max(keys.length - 1, 1)", "keys.length"),
    ("nt_xent", "total(parts.map((part) => part.row)) / parts.length", "total(parts.map((part) => part.row))"),
    ("dcl", "slopes[positive] = -1;", "slopes[positive] = -0.99;"),
    ("supcon_out", "=> 1 / positives.length)", "=> 1)"),
    ("paco", "combined(byScore, centers)", "combined(byScore, centers.map((c) => c.map(() => 0)))"),
    ("arcface", "* Math.sin(margin) : 0)", "* Math.sin(2 * margin) : 0)"),
    ("siglip", "averaged(parts, logit_scale)", "averaged(parts, 1)"),
]
FEW = ("info_nce", "hard_contrastive", "supcon_out", "arcface")


@pytest.mark.parametrize(
    ("name", "old", "new"), partly_slow(WRONG, lambda case: case[0] in FEW, "another part of the same page")
)
def test_a_wrong_factor_is_seen(node, name, old, new):
    own = [(call, probe) for call, probe in zip(_calls(), _probes(), strict=True) if call[0] == name]
    calls, probes = zip(*own, strict=True)
    assert _failures(node(calls, old, new), probes)[0] != []


def test_the_quadrants_are_those_of_the_package():
    from tools import explorer

    assert explorer.TARGET.read_text(encoding="utf-8") == explorer.content()


def test_limits(node):
    """Temperature times loss at the lowest temperature, the loss at the highest, and the bands between."""
    calls = [call for call in _calls() if call[0] != "simple"]
    for (name, inputs), answer in zip(calls, node(calls), strict=True):
        limit = answer["limits"]
        scaled = "temperature" in inputs
        temperature = inputs["temperature"] if scaled else 1 / inputs.get("scale", inputs.get("logit_scale"))

        def value(t, name=name, inputs=inputs):
            keys = {"temperature": t, "scale": 1 / t, "logit_scale": 1 / t}
            return get_loss(name)(**inputs | {k: v for k, v in keys.items() if k in inputs})

        rounding = 1e-9
        assert value(1e7) == pytest.approx(limit["high"], abs=1e-5)
        assert 1e-7 * value(1e-7) == pytest.approx(limit["low"], abs=1e-5)
        if "room" in limit:
            low, line = limit["low"], limit["high"] + limit["slope"] / temperature
            assert -rounding <= temperature * answer["value"] - low <= temperature * limit["room"] + rounding
            assert -rounding <= (answer["value"] - line) * temperature**2 <= limit["square"] + rounding


def test_every_loss_has_points_in_every_preset_and_a_link_keeps_them(node):
    answers = node([], text=LINKS)
    assert len(answers) == 7 * len(NAMES)
    assert [one for one in answers if not (one["fits"] and one["kept"] and one["unread"] == [])] == []
