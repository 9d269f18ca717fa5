"""The engine: blocks change nothing, memory grows linearly, any array library, inputs stay as they are."""

import tracemalloc

import array_api_strict
import numpy as np
import pytest
from engine.small_cases import UNEVEN, assert_within_bounds, small_cases
from slow import partly_slow
from sweep import every_loss, sweep

from nceref import InputError, config, get_loss, losses
from nceref.checks.cases import cases
from nceref.engine import settings, threads
from nceref.engine.passes import Walk

pytestmark = pytest.mark.machine


@every_loss
def test_value_and_gradient_depend_neither_on_block_size_nor_on_what_is_kept(loss_name):
    """At the lower temperature exponentials leave the range, and the logits themselves are kept."""
    loss = get_loss(loss_name)
    for case, expected, allowed in small_cases(loss_name, (0.3, 0.001), UNEVEN):
        for setting in ({"block": 1}, {"block": 2, "keep": 0}, {"block": 3}):
            with config(**setting):
                assert_within_bounds(case, loss.value_and_grad(**case.inputs), expected, allowed)


@pytest.mark.parametrize("block", [0, -1, 1.5, True, "8"])
def test_a_block_size_that_is_no_positive_integer_is_refused(block):
    with pytest.raises(InputError, match="`block` must be an integer >= 1, got"):
        config(block=block)


def strict(case, device):
    """The arguments of a case as arrays of array-api-strict."""
    return {
        name: array_api_strict.asarray(x, device=device) if isinstance(x, np.ndarray) else x
        for name, x in case.inputs.items()
    }


@every_loss
def test_the_engine_works_on_arrays_of_the_standard_unchanged_and_they_stay_on_their_device(loss_name):
    device = array_api_strict.Device("device1")
    for case, expected, allowed in small_cases(loss_name, geometries=UNEVEN):
        value, grads = get_loss(loss_name).value_and_grad(**strict(case, device))
        assert value.shape == ()
        assert value.device == device
        arrays = {name: g for name, g in grads.items() if not isinstance(g, float)}
        assert arrays
        assert all(g.device == device for g in arrays.values())
        cpu = array_api_strict.Device("CPU_DEVICE")
        grads |= {name: g.to_device(cpu) for name, g in arrays.items()}
        assert_within_bounds(case, (value, grads), expected, allowed)


@every_loss
def test_inputs_are_never_modified(loss_name):
    loss = get_loss(loss_name)
    for case in cases(loss.declaration, UNEVEN, (0.3,)):
        copies = {name: np.array(x) for name, x in case.inputs.items() if isinstance(x, np.ndarray)}
        for x in case.inputs.values():
            if isinstance(x, np.ndarray):
                x.flags.writeable = False
        _, grads = loss.value_and_grad(**case.inputs)
        loss.anatomy(**case.inputs)
        assert all(np.array_equal(case.inputs[name], copy) for name, copy in copies.items())
        assert not any(
            np.shares_memory(g, x) for g in grads.values() for x in case.inputs.values() if isinstance(x, np.ndarray)
        )


@sweep("dtype", [np.float64, np.float32, np.float16])
@every_loss
def test_gradients_have_the_dtype_and_shape_of_their_inputs(loss_name, dtype):
    loss = get_loss(loss_name)
    for case in cases(loss.declaration, ("random",), (1.0,)):
        inputs = case.cast(dtype)
        value, grads = loss.value_and_grad(**inputs)
        assert isinstance(value, float)
        for name, grad in grads.items():
            if isinstance(inputs[name], np.ndarray):
                assert (grad.dtype, grad.shape) == (inputs[name].dtype, inputs[name].shape)
            else:
                assert isinstance(grad, float)


@every_loss
def test_reductions_agree_with_the_rows(loss_name):
    loss = get_loss(loss_name)
    for case, _, allowed in small_cases(loss_name, geometries=("odd",)):
        if not loss.declaration.has_rows:
            with pytest.raises(InputError, match="has no rows"):
                loss(**case.inputs, reduction="sum")
            continue
        rows = loss(**case.inputs, reduction="none")
        room = allowed.value * 4 * rows.size
        total = loss(**case.inputs, reduction="sum")
        assert abs(total - float(np.sum(rows))) <= room
        over = loss.declaration.mean_over
        weights = case.inputs.get("anchor_weights")
        parts = rows.size if weights is None else np.sum(weights) * rows.size / len(weights)
        assert abs(loss(**case.inputs) - total / (parts if over is None else len(case.inputs[over]))) <= room


@every_loss
def test_a_cotangent_weighs_the_rows(loss_name):
    loss = get_loss(loss_name)
    if not loss.declaration.has_rows:
        pytest.skip("the loss has no rows")
    for case, _, allowed in small_cases(loss_name, geometries=("odd",)):
        rows = loss(**case.inputs, reduction="none")
        cotangent = np.random.default_rng(0).uniform(-1, 1, rows.shape)
        _, summed = loss.value_and_grad(**case.inputs, reduction="sum")
        _, same = loss.value_and_grad(**case.inputs, reduction="none", cotangent=np.ones(rows.shape))
        _, one = loss.value_and_grad(**case.inputs, reduction="none", cotangent=cotangent)
        _, rest = loss.value_and_grad(**case.inputs, reduction="none", cotangent=1 - cotangent)
        for name, grad in summed.items():
            assert np.all(np.abs(same[name] - grad) <= 4 * rows.size * allowed.grads[name])
            assert np.all(np.abs(one[name] + rest[name] - grad) <= 12 * rows.size * allowed.grads[name])


def peak(call):
    """Largest number of bytes that NumPy held at a time during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def big(name, n, rng):
    """A call of n rows of width 8."""
    x, y = rng.standard_normal((2, n, 8)).astype(np.float32)
    labels = rng.integers(0, 10, n)
    arguments = {
        "nt_xent": {"z1": x[: n // 2], "z2": y[: n // 2], "temperature": 0.1},
        "info_nce": {"queries": x, "keys": y, "temperature": 0.1},
        "clip": {"image": x, "text": y, "logit_scale": 10.0},
        "siglip": {"image": x, "text": y, "logit_scale": 10.0},
        "supcon_out": {"embeddings": x, "labels": labels, "temperature": 0.1},
        "hard_contrastive": {"queries": x, "keys": y, "temperature": 0.1, "fraction": 0.25},
        "uniformity": {"x": x},
        "paco": {"embeddings": x, "labels": labels, "centers": y[:10], "alpha": 0.05, "temperature": 0.1},
    }[name]
    return lambda: getattr(losses, name).value_and_grad(**arguments)


BIG = ("nt_xent", "clip", "hard_contrastive", "uniformity", "siglip", "supcon_out", "info_nce", "paco")
OTHERS = "the same blocks of another loss"


@pytest.mark.parametrize("name", partly_slow(BIG, BIG[:4].__contains__, OTHERS))
def test_memory_grows_linearly(name, monkeypatch):
    """No n x n array: at four times the rows the peak grows at most fourfold, and stays far below n^2 numbers.

    On one thread: whether the largest moments of two fall together is up to the system.

    Of whole rows, a strip has 16 at least: at this size, they take 1.5 bytes a pair, where blocks take 0.6.
    """
    monkeypatch.setattr(settings, "LEAST_PAIRS", 0)
    threads.keep_freed_blocks()
    rng = np.random.default_rng(0)
    with config(block=64, keep=0, threads=1):
        big(name, 64, rng)()  # what is imported and cached once
        small, large = (peak(big(name, n, rng)) for n in (256, 1024))
    assert large <= 4.4 * small
    assert large < 1024**2 * (2 if name == "hard_contrastive" else 0.75)


@pytest.mark.parametrize("name", partly_slow((*BIG[:2], *BIG[4:6]), BIG[:2].__contains__, OTHERS))
def test_what_is_kept_between_the_passes_stays_below_its_limit(name):
    call = big(name, 1024, np.random.default_rng(0))
    with config(block=64, keep=0, threads=1):
        least = peak(call)
    pairs = 4 * 1024**2 if name in ("clip", "siglip") else 4 * (1024 * 1024 + 1024 * 64) // 2
    with config(block=64, keep=pairs - 1, threads=1):
        assert peak(call) <= 1.1 * least
    with config(block=64, keep=pairs, threads=1):
        # The kept blocks, and a Python object for each.
        assert pairs <= peak(call) <= 1.2 * pairs + 1.1 * least


def test_few_anchors_against_a_long_queue_are_shared_by_threads():
    rng = np.random.default_rng(0)
    q, k, queue = (rng.standard_normal((n, 8)) for n in (64, 64, 1 << 15))
    plan = get_loss("info_nce").declaration.plan(q, k, queue, temperature=0.3, normalize="l2")
    with config(threads=4):
        assert len(Walk(plan.comparisons[1], keep=False).rows) == 4


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: losses.info_nce(1e200 * np.eye(2), 1e200 * np.eye(2), temperature=0.3, normalize="none"), "a logit"),
        (lambda: losses.nt_xent(np.eye(2), np.eye(2), temperature=1e-320), "a logit"),
        (
            lambda: losses.info_nce(
                np.array([[1e200, 0], [0, 1]]), np.array([[1e-200, 0], [1e200, 1]]), temperature=0.1, normalize="none"
            ),
            "a logit",
        ),
        (lambda: losses.nt_xent.value_and_grad(5e-324 * np.eye(2), np.eye(2), temperature=0.3), "gradient of `z1`"),
        (
            lambda: losses.cross_entropy.value_and_grad(np.array([[1e-20, -1e-20]], "f4"), [1], temperature=1e-39),
            "gradient of",
        ),
    ],
)
def test_leaving_the_range_of_the_dtype_is_an_error_that_says_so(call, what):
    with pytest.raises(InputError, match=f"{what}.* leaves the range of float"):
        call()
