"""Steps of gradient accumulation: what is lost is named, what loses nothing conforms, and wrong factors are found."""

from pathlib import Path

import numpy as np
import pytest

import nceref
from nceref.errors import InputError
from nceref.targets.frameworks.steps import rows_by_share
from nceref.targets.ranks.contract import Contract
from nceref.targets.ranks.steps import in_turn
from nceref.targets.runner import in_process
from nceref.transforms import accumulated
from nceref.verification.verifier import observe

PROGRAMS = Path(__file__).with_name("step_programs.py")


def info_nce(queries, keys, temperature):
    return nceref.losses.info_nce.value_and_grad(queries, keys, temperature=temperature)


def cross_entropy(logits, target, temperature):
    return nceref.losses.cross_entropy.value_and_grad(logits, target, temperature=temperature)


class Divided:
    """Divides by the number of steps itself."""

    def __init__(self, accumulation_steps):
        self.steps = accumulation_steps

    def __call__(self, logits, target, temperature):
        value, grads = cross_entropy(logits, target, temperature)
        return value / self.steps, {name: grad / self.steps for name, grad in grads.items()}


class FailsLater:
    """Fails from the second step on."""

    def __init__(self):
        self.calls = 0

    def __call__(self, logits, target, temperature):
        self.calls += 1
        if self.calls == 2 and len(logits) == 2:
            msg = "the second step"
            raise ValueError(msg)
        return cross_entropy(logits, target, temperature)


def verified(target, loss, **options):
    return nceref.verify(target, loss, suite="quick", training=False, **{"accumulate": 2, **options})


def named(report):
    return report.diagnosis[0].id if report.diagnosis else report.verdict


def test_rows_are_shared_in_their_order():
    assert [list(own) for own in rows_by_share(6, (1, 1, 1))] == [[0, 1], [2, 3], [4, 5]]
    assert [len(own) for own in rows_by_share(8, (3, 1))] == [6, 2]


def test_negatives_of_other_steps_are_lost():
    report = verified(info_nce, "info_nce")
    (found,) = report.diagnosis
    assert (report.exit_code, found.id, found.where) == (1, "step-candidates-only", "in K steps,")
    assert (found.formula, found.reference) == ("1/K sum_k L(rows of step k)", "L(all N rows)")
    assert "each sample is compared with N/K - 1 in place of N - 1 others" in found.sentence
    assert "in 1 step nothing fails" in report.reason
    assert report.scope.steps == (1, 2)
    assert report.shared_by == "steps"


def test_steps_have_value_and_gradient_of_the_accumulated_loss():
    (one,) = observe(info_nce, "info_nce", suite="quick", multiple_of=4, case="designed-0.3")
    q, k, temperature = (one.probe.inputs[name] for name in ("queries", "keys", "temperature"))
    with in_turn(in_process(info_nce, nceref.get_loss("info_nce").declaration), "cpu") as run:
        run.use(Contract(2, in_turn=True))
        outcome = run(one.probe)
    value, grads = accumulated("info_nce", 2).value_and_grad(q, k, temperature=temperature)
    assert outcome.value == pytest.approx(value, rel=1e-14)
    for name, grad in grads.items():
        np.testing.assert_allclose(outcome.grads[name], grad, rtol=1e-12, atol=1e-15)


def test_rows_that_do_not_interact_lose_nothing():
    report = verified(cross_entropy, "cross_entropy", accumulate=4)
    assert report.verdict == "conforms"
    assert "in 4 steps" in report.reason


def test_a_division_too_many_and_one_that_is_missing_are_named():
    twice = verified(Divided, "cross_entropy")
    assert named(twice) == "value-divided-by-steps+gradient-divided-by-steps"
    assert twice.diagnosis[0].intend == "--value sum --sync sum"
    assert verified(Divided, "cross_entropy", value="sum", sync="sum").verdict == "conforms"
    missing = verified(cross_entropy, "cross_entropy", value="sum", sync="sum")
    assert named(missing) == "value-times-steps+gradient-times-steps"
    assert missing.diagnosis[0].intend == "--value mean --sync mean"


def test_means_of_unequal_steps_are_named():
    assert named(verified(cross_entropy, "cross_entropy", shards=(3, 1))) == "mean-of-step-means"


def test_the_step_that_fails_is_named():
    report = verified(FailsLater, "cross_entropy", shape=(4, 5))
    assert report.exit_code in (1, 4)
    assert "in step 1 of 2" in report.reason


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"accumulate": 1}, "`accumulate` must be integers from 2 to 64, such as 2,4, got 1"),
        ({"accumulate": 65}, "from 2 to 64"),
        ({"accumulate": "a"}, "from 2 to 64"),
        ({"ranks": 2}, "`ranks` and `accumulate` exclude each other"),
        ({"duplicate": True}, "`duplicate` and `accumulate` exclude each other"),
        ({"axis": "batch"}, "`axis` and `accumulate` exclude each other"),
        ({"added": "a.py:f:1"}, "`added` .--with. and `accumulate` exclude each other"),
        ({"value": "rank0"}, "`value` must be one of 'mean', 'sum'"),
        ({"shards": (1, 1, 1)}, "`shards` must have a share for each step of `accumulate`"),
        ({"repro": True}, "`repro` writes a script of one call, and steps are several"),
        ({"reduction": "none"}, "`reduction` must be mean or sum in steps"),
        ({"isolate": True}, "`isolate` is for a target that is named by text"),
    ],
)
def test_what_steps_exclude_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        verified(cross_entropy, "cross_entropy", **options)


def test_an_executable_is_refused():
    with pytest.raises(InputError, match=r"`accumulate` is not for a target cmd:.*let the program take the steps"):
        verified("cmd:./impl", "cross_entropy")


@pytest.mark.parametrize(("rows", "steps", "remedy"), [(5, 2, "or --shards 3,2"), (3, 4, "or take fewer steps")])
def test_a_batch_that_steps_cannot_share_is_refused(tmp_path, rows, steps, remedy):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "own.npz", queries=rng.standard_normal((rows, 4)), keys=rng.standard_normal((rows, 4)))
    with pytest.raises(InputError, match=f"`inputs` has {rows} rows.*{remedy}"):
        verified(info_nce, "info_nce", accumulate=steps, inputs=str(tmp_path / "own.npz"))


@pytest.mark.parametrize(
    ("name", "loss", "options", "expected"),
    [
        ("nt_xent", "nt_xent", {}, "step-candidates-only"),
        ("Divided", "nt_xent", {}, "step-candidates-only+value-divided-by-steps+gradient-divided-by-steps"),
        (
            "nt_xent",
            "nt_xent",
            {"value": "sum", "sync": "sum"},
            "step-candidates-only+value-times-steps+gradient-times-steps",
        ),
        ("Cached", "nt_xent", {"value": "sum", "sync": "sum"}, "conforms"),
        ("Cached", "nt_xent", {}, "value-divided-by-steps+gradient-divided-by-steps"),
        ("Detached", "nt_xent", {"value": "sum", "sync": "sum"}, "gradient-missing-rows"),
        ("FirstTwice", "cross_entropy", {}, "one-step-apart"),
    ],
)
def test_programs_of_pytorch(name, loss, options, expected):
    pytest.importorskip("torch", reason="PyTorch is not installed; `make test-peers` runs this")
    assert named(verified(f"{PROGRAMS}:{name}", loss, **options)) == expected
