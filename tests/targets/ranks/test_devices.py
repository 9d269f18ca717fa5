"""Targets of JAX on ranks, which are devices of one process: right ones, a wrong one, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nceref.cases.corpus.corpus import corpus
from nceref.cases.corpus.resizing import Resizing
from nceref.cases.judge import judge
from nceref.cases.records import Observation
from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.targets.process.child import ChildRunner
from nceref.targets.ranks import devices
from nceref.targets.ranks.contract import Contract
from nceref.targets.ranks.options import contracts
from nceref.targets.ranks.runner import on_ranks
from nceref.targets.target import LoadRequest

pytest.importorskip("jax", reason="jax is not installed")

HERE = Path(__file__).parent / "device_programs.py"


def case(loss, dtype="float64", rows=6):
    probes = corpus(get_loss(loss).declaration, {}, suite="quick", dtype=dtype, resizing=Resizing(1, rows, 3, 0))
    return next(probe for probe in probes if probe.id == "designed-0.3")


def failures(probe, outcome):
    return {r.quantity for r in judge(Observation(probe, outcome)) if r.status != "pass"}


@pytest.fixture(scope="module")
def child():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}
    one = ChildRunner(None, "cpu", 60, 120, environment=flags)
    yield one
    one.stop()


@pytest.mark.parametrize(
    ("name", "loss", "contract", "dtype"),
    [
        ("clip", "clip", Contract(2), "float64"),
        ("clip", "clip", Contract(3), "float32"),
        ("clip_on_each", "clip", Contract(3, value="each"), "float64"),
        ("clip_joined", "clip", Contract(2), "float64"),
        ("clip_of_another_axis", "clip", Contract(2, axis="devices"), "float64"),
        ("clip_at_a_place", "clip", Contract(2), "float64"),
        ("Clip", "clip", Contract(3), "float64"),
        ("nt_xent", "nt_xent", Contract(2), "float32"),
        ("nt_xent", "nt_xent", Contract(3), "float64"),
        ("clip_without_gradient", "clip", Contract(2), "float64"),
    ],
)
def test_what_devices_answer_is_judged_together(child, name, loss, contract, dtype):
    probe = case(loss, dtype)
    group = {"axis": devices.axis_of(contract), "world_size": contract.world_size}
    child.assign(LoadRequest(f"{HERE}:{name}", probe.loss, {}, group))
    child.reload()
    outcome = child.call(devices.joined_request(probe, contract))
    assert not outcome.trouble, outcome.sentence
    each = devices.outcomes_of(outcome)
    assert {np.shape(a.grads["image" if loss == "clip" else "z1"]) for a in each} == {(6 // len(each), 3)}
    wrong = {"grad.image", "grad.text"} if name == "clip_without_gradient" else set()
    assert failures(probe, contract.joined(each, probe)) == wrong


def test_a_run_on_devices():
    probe = case("clip", rows=4)
    with on_ranks(f"{HERE}:clip", probe.loss, 2, timeout=60) as run:
        run.use(Contract(2, duplicate=True))
        # Rows that are repeated are others' candidates too: the value is not that of the joined batch.
        assert failures(case("clip", rows=3), run(case("clip", rows=3))) >= {"value"}
        run.use(Contract(2, shards=(2, 2)))
        for mode in ("", "vmap"):
            outcome = run(replace(probe, mode=mode), twice=not mode)
            assert not failures(probe, outcome)
            assert not outcome.remarks
            assert len(outcome.ranks) == 2
        known = run.reply(probe, (probe.value, probe.grads))
        assert not failures(probe, known)
        doubled = {name: 2 * grad for name, grad in probe.grads.items()}
        assert failures(probe, run.reply(probe, (probe.value, doubled))) == {f"grad.{name}" for name in doubled}
        with pytest.raises(InputError, match="`shards` must be equal for a target of JAX"):
            run.use(Contract(2, shards=(3, 1)))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "raises ValueError: too few rows (device_programs.py, line"),
        ("rows", "returns shape (3,)"),
        ("clip_of_another_axis", "unbound axis name"),
    ],
)
def test_what_fails_is_said_once(child, name, words):
    probe, contract = case("clip"), Contract(2)
    child.assign(LoadRequest(f"{HERE}:{name}", probe.loss, {}, {"axis": "batch", "world_size": 2}))
    child.reload()
    assert words in child.call(devices.joined_request(probe, contract)).sentence


def test_more_ranks_than_devices_are_refused(child):
    probe = case("clip", rows=8)
    child.assign(LoadRequest(f"{HERE}:clip", probe.loss, {}, {"axis": "batch", "world_size": 4}))
    child.reload()
    outcome = child.call(devices.joined_request(probe, Contract(4)))
    assert outcome.sentence.startswith("leaves 3 devices for 4 ranks of JAX, which need one each: let it set")


def test_the_axis_is_a_name():
    assert [each.axis for each in contracts({"ranks": 2, "axis": "devices"})] == ["devices", "devices"]
    with pytest.raises(InputError, match="`axis` must be a name, such as batch, got 3"):
        contracts({"ranks": 2, "axis": 3})
