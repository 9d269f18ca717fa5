"""Equal candidates have equal logits, whatever a product of matrices makes of them, and the lower index is kept."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from equal_keys import by_ranks, equal_keys, exact_ranks, ranks_of_equal, rounded_by_place, worst
from slow import partly_slow
from sweep import sweep

from nceref import get_loss
from nceref.engine import similarity, ties
from nceref.engine.arguments import bind
from nceref.exact.reference import SYSTEMS, as_floats, with_gradients
from nceref.losses import hard_contrastive


@pytest.fixture
def other_blas(monkeypatch):
    """A product of matrices that rounds by place."""
    monkeypatch.setattr(similarity, "settled", lambda s, *args: ties.settled(rounded_by_place(s), *args))


def test_equal_keys_are_ranked_by_index(other_blas):
    for seed in range(15):
        inputs, same = equal_keys(seed, (np.float64, np.float32)[seed % 5 == 0])
        assert worst(inputs, ranks_of_equal(inputs, same)) < 1, seed


def test_logits_as_a_product_gives_them_rank_equal_keys_wrongly(monkeypatch):
    monkeypatch.setattr(similarity, "settled", lambda s, *args: rounded_by_place(s))
    broken = 0
    for seed in range(0, 120, 4):
        inputs, same = equal_keys(seed)
        broken += worst(inputs, ranks_of_equal(inputs, same)) > 1e3
    assert broken > 10


@sweep("normalize", ["l2", "none"])
def test_of_a_collapsed_batch_the_keys_of_lowest_index_are_kept(other_blas, normalize):
    rng = np.random.default_rng(0)
    for n, d in ((2, 1), (7, 3), (33, 17), (130, 5)):
        inputs = {"queries": rng.standard_normal((n, d)), "keys": np.tile(rng.standard_normal(d), (n, 1)),
                  "temperature": 0.3, "fraction": 0.4, "normalize": normalize}  # fmt: skip
        assert worst(inputs, [list(range(n))] * n) < 1


def test_the_formula_ranks_equal_keys_by_index():
    loss = get_loss("hard_contrastive").declaration
    seeds = [seed for seed in range(200) if len(equal_keys(seed)[1]) < 7][:4]
    assert len(seeds) == 4
    for seed in seeds:
        inputs, same = equal_keys(seed)
        value, _, slopes = with_gradients(loss, bind(loss, (), inputs), SYSTEMS["mpmath"](50))
        right, truth = by_ranks(inputs, ranks_of_equal(inputs, same))
        assert abs(float(value) - right) < 1e-13
        for name, x in truth.items():
            assert np.allclose(as_floats(slopes[name]), x.astype(float), rtol=1e-11, atol=1e-13)
        assert exact_ranks(inputs) == ranks_of_equal(inputs, same)


def logits(inputs):
    loss = get_loss("hard_contrastive").declaration
    return loss.plan(**bind(loss, (), inputs)).comparisons[0].logits


@sweep("dtype", [np.float64, np.float32])
def test_bits_do_not_depend_on_the_block(dtype):
    for seed in range(40):
        inputs, same = equal_keys(seed, dtype)
        several = np.nonzero(np.bincount(same)[same] > 1)[0]
        s, n = logits(inputs), len(same)
        whole = s.block(slice(0, n), slice(0, n))
        _, first, which = np.unique(same, return_index=True, return_inverse=True)
        assert np.array_equal(whole[:, several], whole[:, first[which]][:, several])
        rows, columns = slice(n // 3, n), slice(1, n - 1)
        inner = several[(several > 0) & (several < n - 1)]
        assert np.array_equal(s.block(rows, columns)[:, inner - 1], whole[rows][:, inner])


KERNELS = """
from test_ties import *
test_bits_do_not_depend_on_the_block()
for seed in range(20):
    inputs, same = equal_keys(seed)
    assert worst(inputs, ranks_of_equal(inputs, same)) < 1, seed
"""


@pytest.mark.parametrize(
    "kernel", partly_slow(["Prescott", "Nehalem", "Haswell"], "Prescott".__eq__, "kernels of other vector extensions")
)
def test_other_kernels_rank_by_index_as_well(kernel):
    # OpenBLAS takes the name at its start; another BLAS does not read it.
    path = os.pathsep.join(map(str, Path(__file__).parents[:2]))
    environment = {**os.environ, "OPENBLAS_CORETYPE": kernel, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", KERNELS], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_where_all_candidates_differ_nothing_is_looked_up():
    rng = np.random.default_rng(1)
    inputs = {"queries": rng.standard_normal((50, 3)), "keys": rng.standard_normal((50, 3)), "temperature": 0.3,
              "fraction": 0.5}  # fmt: skip
    assert logits(inputs).copies is None


def test_rows_that_share_a_fingerprint_by_chance_keep_their_own_logits(monkeypatch):
    inputs, same = equal_keys(4)
    expected = logits(inputs).block(slice(0, len(same)), slice(0, len(same)))
    monkeypatch.setattr(ties, "fingerprints", lambda rows: np.zeros(len(rows)))
    assert logits(inputs).copies.repeated.all()
    assert worst(inputs, ranks_of_equal(inputs, same)) < 1
    assert np.allclose(logits(inputs).block(slice(0, len(same)), slice(0, len(same))), expected)


@sweep("largest", [1e300, 1e-300, 1e-320])
def test_fingerprints_at_the_ends_of_the_range_are_numbers(largest):
    rows = largest * np.sign(np.random.default_rng(2).standard_normal((6, 400)))
    assert np.all(np.isfinite(ties.fingerprints(rows)))
    assert np.array_equal(ties.fingerprints(rows[::-1]), ties.fingerprints(rows)[::-1])


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_libraries_rank_by_index_as_well(library):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    for seed in range(15):
        inputs, same = equal_keys(seed, (np.float64, np.float32)[seed % 5 == 0])
        there = {name: xp.asarray(x) if isinstance(x, np.ndarray) else x for name, x in inputs.items()}
        value, grads = hard_contrastive.value_and_grad(**there)
        assert worst(inputs, ranks_of_equal(inputs, same), (value, grads)) < 2
