"""The engine: blocks change nothing, memory grows linearly, any array library, inputs stay as they are."""

import tracemalloc
from functools import cache

import array_api_strict
import numpy as np
import pytest

from nceref import InputError, config, get_loss, losses
from nceref.checks.cases import cases
from nceref.engine import settings, threads
from nceref.engine.arguments import bind
from nceref.engine.passes import Walk
from nceref.engine.statistics import LogSumExp, PositiveSet
from nceref.tolerance import bounds, close

GEOMETRIES = ("random", "lonely", "odd", "aligned")
UNEVEN = ("lonely", "odd")


@cache
def small_cases(name, temperatures=(0.3,), geometries=GEOMETRIES):
    """Cases of a loss, each with what the loss gives and the bound on its rounding."""
    loss = get_loss(name)
    found = list(cases(loss.declaration, geometries, temperatures))
    return [(case, loss.value_and_grad(**case.inputs), bounds(loss, **case.inputs)) for case in found]


def assert_within_bounds(case, got, want, allowed):
    """Two evaluations of one case may differ by the rounding of both."""
    assert abs(float(got[0]) - want[0]) <= 2 * allowed.value, case.name
    assert set(got[1]) == set(want[1])
    for name, grad in want[1].items():
        assert np.all(np.abs(np.asarray(got[1][name]) - grad) <= 2 * allowed.grads[name]), (case.name, name)


@pytest.mark.parametrize("block", [1, 3])
def test_value_and_gradient_do_not_depend_on_block_size(loss_name, block):
    for case, want, allowed in small_cases(loss_name):
        with config(block=block):
            assert_within_bounds(case, get_loss(loss_name).value_and_grad(**case.inputs), want, allowed)


@pytest.mark.parametrize("block", [0, -1, 1.5, True, "8"])
def test_a_block_size_that_is_no_positive_integer_is_refused(block):
    with pytest.raises(InputError, match="`block` must be an integer >= 1, got"):
        config(block=block)


def strict(case, device=None):
    """The arguments of a case as array-api-strict arrays."""
    return {
        name: array_api_strict.asarray(x, device=device) if isinstance(x, np.ndarray) else x
        for name, x in case.inputs.items()
    }


def test_the_engine_works_on_arrays_of_the_standard_unchanged(loss_name):
    for case, want, allowed in small_cases(loss_name, geometries=UNEVEN):
        value, grads = get_loss(loss_name).value_and_grad(**strict(case))
        assert value.shape == ()
        assert array_api_strict.__name__ in type(value).__module__
        assert_within_bounds(case, (value, grads), want, allowed)


def test_arrays_stay_on_their_device(loss_name):
    device = array_api_strict.Device("device1")
    loss = get_loss(loss_name)
    for case in cases(loss.declaration, ("random",), (0.3,)):
        value, grads = loss.value_and_grad(**strict(case, device))
        assert value.device == device
        arrays = [g for g in grads.values() if not isinstance(g, float)]
        assert arrays
        assert all(g.device == device for g in arrays)


def test_inputs_are_never_modified(loss_name):
    loss = get_loss(loss_name)
    for case in cases(loss.declaration, GEOMETRIES, (0.3,)):
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


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
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


def test_reductions_agree_with_the_rows(loss_name):
    loss = get_loss(loss_name)
    for case, _, allowed in small_cases(loss_name, geometries=("random", "odd")):
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


def test_a_cotangent_weighs_the_rows(loss_name):
    loss = get_loss(loss_name)
    if not loss.declaration.has_rows:
        pytest.skip("the loss has no rows")
    for case, _, allowed in small_cases(loss_name, geometries=("random", "odd")):
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


@pytest.mark.parametrize(
    "name", ["nt_xent", "info_nce", "clip", "siglip", "supcon_out", "hard_contrastive", "uniformity", "paco"]
)
def test_memory_grows_linearly(name, monkeypatch):
    """No n x n array: at four times the rows the peak grows at most fourfold, and stays far below n^2 numbers.

    Of whole rows, a strip has 16 at least: at this size, they take a byte a pair, where blocks take half of one.
    """
    monkeypatch.setattr(settings, "LEAST_PAIRS", 0)
    threads._keep_freed_blocks()
    rng = np.random.default_rng(0)
    with config(block=64, keep=0, threads=2):
        big(name, 64, rng)()  # what is imported and cached once
        small, large = (peak(big(name, n, rng)) for n in (512, 2048))
    assert large <= 4.4 * small
    assert large < 2048**2 * (1 if name == "hard_contrastive" else 0.5)


@pytest.mark.parametrize("name", ["nt_xent", "clip", "siglip", "supcon_out"])
def test_what_is_kept_between_the_passes_stays_below_its_limit(name):
    call = big(name, 1024, np.random.default_rng(0))
    with config(block=64, keep=0):
        least = peak(call)
    pairs = 4 * 1024**2 if name in ("clip", "siglip") else 4 * (1024 * 1024 + 1024 * 64) // 2
    with config(block=64, keep=pairs - 1):
        assert peak(call) <= 1.1 * least
    with config(block=64, keep=pairs):
        # The kept blocks, and a Python object for each.
        assert pairs <= peak(call) <= 1.2 * pairs + 1.1 * least


@pytest.mark.parametrize("block", [2, 64])
def test_kept_blocks_and_recomputed_ones_give_the_same(loss_name, block):
    """At the lower temperature exponentials leave the range, and the logits themselves are kept."""
    loss = get_loss(loss_name)
    for case, _, allowed in small_cases(loss_name, (0.3, 0.001), UNEVEN):
        with config(block=block, keep=0):
            want = loss.value_and_grad(**case.inputs)
        with config(block=block):
            assert_within_bounds(case, loss.value_and_grad(**case.inputs), want, allowed)


def test_statistics_with_and_without_running_maxima_agree(loss_name, monkeypatch):
    """At this temperature every exponential is in range, so that both kinds can do the work."""
    loss = get_loss(loss_name)
    for case, want, allowed in small_cases(loss_name):
        with monkeypatch.context() as patch:
            for statistic in (LogSumExp, PositiveSet):
                patch.setattr(statistic, "within", lambda self, bound, most: self)
            assert_within_bounds(case, loss.value_and_grad(**case.inputs), want, allowed)


@pytest.mark.parametrize("temperature", [0.05, 0.01, 0.001])
@pytest.mark.parametrize("name", ["nt_xent", "info_nce", "clip", "supcon_out"])
def test_float32_is_right_on_both_sides_of_the_range_of_its_exponentials(name, temperature):
    """exp(1 / temperature) leaves the range of float32 below 0.011; half of it is used without maxima."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 40, 6))
    labels = rng.integers(0, 4, 40)
    arguments = {
        "nt_xent": {"z1": x, "z2": y, "temperature": temperature},
        "info_nce": {"queries": x, "keys": y, "temperature": temperature},
        "clip": {"image": x, "text": y, "logit_scale": 1 / temperature},
        "supcon_out": {"embeddings": x, "labels": labels, "temperature": temperature},
    }[name]
    single = {k: v.astype(np.float32) if getattr(v, "dtype", None) == np.float64 else v for k, v in arguments.items()}
    wide = {k: v.astype(np.float64) if getattr(v, "dtype", None) == np.float32 else v for k, v in single.items()}
    loss, allowed = get_loss(name), bounds(get_loss(name), **single)
    with config(block=16):
        value, grads = loss.value_and_grad(**single)
    exact, truth = loss.value_and_grad(**wide)
    assert abs(value - exact) <= allowed.value
    for entry, grad in grads.items():
        assert np.all(np.abs(grad - truth[entry]) <= allowed.grads[entry])


@pytest.mark.parametrize("queue", [0, 500])
def test_sorted_by_label_most_blocks_hold_no_pair_of_a_kind(queue):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((400, 3)), rng.integers(0, 20, 400)
    queued = {"queue": rng.standard_normal((queue, 3)), "queue_labels": rng.integers(0, 20, queue)} if queue else {}
    loss = get_loss("supcon_out")
    comparison = loss.declaration.plan(**bind(loss.declaration, (x, y), {"temperature": 0.3, **queued})).comparisons[0]
    by_label, order = comparison.sorted_by_label()
    assert np.all(np.diff(y[order]) >= 0)
    assert by_label.logits.symmetric is not bool(queue)
    same = by_label.terms["positives"].pattern
    blocks = [(slice(i, i + 40), slice(j, j + 40)) for i in range(0, 400, 40) for j in range(0, 400 + queue - 39, 40)]
    held = [np.any(y[order][r][:, None] == same.candidates[c][None, :]) for r, c in blocks]
    assert [same.touches(r, c) for r, c in blocks] == held
    assert sum(held) < len(blocks) / 2
    assert not comparison.terms["positives"].pattern.is_sorted


def test_few_anchors_against_a_long_queue_are_shared_by_threads():
    rng = np.random.default_rng(0)
    q, k, queue = (rng.standard_normal((n, 8)) for n in (64, 64, 1 << 15))
    plan = get_loss("info_nce").declaration.plan(q, k, queue, temperature=0.3, normalize="l2")
    with config(threads=4):
        assert len(Walk(plan.comparisons[1], keep=False).rows) == 4


def test_anatomy_shows_what_adds_up():
    rng = np.random.default_rng(0)
    z1, z2 = rng.standard_normal((2, 4, 3))
    view = losses.nt_xent.anatomy(z1, z2, temperature=0.5)
    assert view.logits.shape == view.probabilities.shape == view.slopes.shape == (8, 8)
    assert not np.any(np.diag(view.taking_part))
    eps = np.finfo(np.float64).eps
    assert np.all(np.abs(view.probabilities.sum(axis=1) - 1) <= 8 * eps)
    assert np.all(np.abs(view.relative_penalties.sum(axis=1) - 1) <= 8 * eps)
    positive = np.roll(np.eye(8, dtype=bool), 4, axis=1)
    # dL/ds of the mean over 8 rows: probability minus 1 at the positive, divided by 8.
    want = (view.probabilities - positive) / 8
    assert np.all(np.abs(view.slopes - want) <= 8 * eps)


def test_anatomy_of_a_large_batch_is_refused():
    x = np.ones((2001, 2))
    with pytest.raises(InputError, match="would hold"):
        losses.info_nce.anatomy(x, x, temperature=0.1)


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
        (lambda: losses.cross_entropy.value_and_grad(np.array([[1, -1]], "f4"), [1], temperature=1e-30), "gradient of"),
    ],
)
def test_leaving_the_range_of_the_dtype_is_an_error_that_says_so(call, what):
    with pytest.raises(InputError, match=f"{what}.* leaves the range of float"):
        call()


def test_rows_at_the_ends_of_the_range_are_normalized_without_loss():
    x = np.array([[1.0, 2.0], [3.0, -1.0]])
    want = losses.nt_xent(x, x[::-1], temperature=0.3)
    for scale in (2.0**1000, 2.0**-1000):
        assert close(losses.nt_xent(scale * x, x[::-1], temperature=0.3), want)
