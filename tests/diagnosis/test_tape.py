"""The tape differentiates dense NumPy code as the complex step does; test_dense.py holds every loss to it."""

from pathlib import Path

import numpy as np
import pytest

import nceref
from nceref.diagnosis.dense.batch import log_sum_exp
from nceref.diagnosis.tape import TO_THE_FIRST, Graph, Variable, detached, edge, recorded, stage

STEP = 1e-30
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(3, 4)), RNG.normal(size=(4,))
FUNCTIONS = {
    "arithmetic": lambda x, y: (x + y) * x - x / (2 + y * y) - (-x),
    "powers": lambda x, y: np.sqrt(x * x + 1) ** (1 + y * y) + np.log(x * x + 2) + np.log1p(x * x) + np.exp(x),
    "products": lambda x, y: x @ (x.T @ x) + y[None, :],
    "sums": lambda x, y: np.sum(x, axis=0) * np.mean(x * y, axis=-1, keepdims=True) + np.sum(x),
    "squeezed": lambda x, y: np.squeeze(x[:1], axis=0) * y,
    "shapes": lambda x, y: np.concatenate([np.swapaxes(x, 0, 1), np.reshape(x, (4, 3))]) * x[:1, :3],
    "parts": lambda x, y: np.where(np.real(x) > 0, x, y) + np.broadcast_to(y, (3, 4)) * x[..., :2][:, 1:],
    "log-sum-exp": lambda x, y: log_sum_exp(np.where(np.eye(3, 4) > 0, -np.inf, x * y)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_complex_step(name):
    function = FUNCTIONS[name]
    leaves = Variable(X), Variable(Y)
    found = Graph(np.sum(function(*leaves)), leaves).gradients()
    # The maximum of complex numbers goes by the real part first, as that of the numbers does.
    for k, x in enumerate((X, Y)):
        for index in np.ndindex(x.shape):
            moved = [X.astype(complex), Y.astype(complex)]
            moved[k][index] += 1j * STEP
            want = np.imag(np.sum(function(*moved))) / STEP
            assert found[k][index] == pytest.approx(want, rel=1e-12, abs=1e-12), (k, index)


BENT = {
    "ends": lambda x, y: np.maximum(x, y) * np.minimum(x, 0.3) + np.clip(x, -0.5, 0.5) + np.abs(y) * np.min(x),
    "curves": lambda x, y: np.cos(x) * np.sin(y) + np.tanh(x) + np.arccos(np.tanh(x)) + np.logaddexp(x, y),
    "orders": lambda x, y: np.sort(x, axis=1) * y + np.roll(x, 1, axis=0) * np.tile(y[:2], 2),
    "spreads": lambda x, y: np.var(x, axis=0, ddof=1) * y + np.std(x) + np.var(x, axis=1, keepdims=True),
    "vectors": lambda x, y: (x @ y) @ x + y @ y,
}  # fmt: skip


@pytest.mark.parametrize("name", BENT)
def test_gradients_of_what_is_not_analytic_are_those_of_differences(name):
    leaves = Variable(X), Variable(Y)
    found = Graph(np.sum(BENT[name](*leaves)), leaves).gradients()
    for k, x in enumerate((X, Y)):
        for index in np.ndindex(x.shape):
            ends = []
            for sign in (1, -1):
                moved = [X.copy(), Y.copy()]
                moved[k][index] += sign * 1e-6
                ends.append(np.sum(BENT[name](*moved)))
            assert found[k][index] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-8), (k, index)


def test_a_maximum_that_is_shared_shares_its_gradient_or_leaves_it_to_the_first():
    x = Variable(np.array([1.0, 3.0, 3.0]))
    graph = Graph(np.max(x), (x,))
    assert graph.tied
    assert graph.gradients()[0].tolist() == [0.0, 0.5, 0.5]
    before = TO_THE_FIRST.set(True)
    assert graph.gradients()[0].tolist() == [0.0, 1.0, 0.0]
    TO_THE_FIRST.reset(before)
    assert not Graph(np.max(x[:2]), (x,)).tied


def test_what_has_no_rule_is_an_error_and_no_constant():
    x = Variable(X)
    for function in (np.cosh, np.cumsum, np.asarray, np.linalg.norm, lambda v: np.add.reduce(v)):
        with pytest.raises(TypeError):
            function(x)


def test_where_nothing_arrives_nothing_goes_on_even_if_the_derivative_is_infinite():
    x = Variable(np.array([0.0, 4.0]))
    with np.errstate(all="ignore"):
        rows = np.where(detached(x) > 0, np.log(x), 0.0)
    assert Graph(np.sum(rows), (x,)).gradients()[0].tolist() == [0.0, 0.25]


def test_a_factor_on_an_edge_multiplies_what_passes_it_and_nothing_else():
    x = Variable(X)
    graph = Graph(np.sum(edge(x, "first") * edge(2 * x, "second")), (x,))
    assert graph.edges == {"first": 1.0, "second": 1.0}
    changes = ({}, {"second": 0.0}, {"first": 2.0})
    both, first, doubled = (graph.gradients(f)[0] for f in changes)
    assert both == pytest.approx(4 * X)
    assert first == pytest.approx(2 * X)
    assert doubled == pytest.approx(6 * X)
    usual = {"first": 2.0, "second": 3.0}
    varied = graph.varied(usual)
    for factors in changes:
        assert np.array_equal(varied(factors)[0], graph.gradients({**usual, **factors})[0])


def test_a_factor_may_be_for_some_entries_or_one_of_each_row():
    x = Variable(X)
    graph = Graph(np.sum(edge(edge(x, "all"), "some", where=X > 0)), (x,))
    assert graph.gradients({"some": 0.0})[0] == pytest.approx(np.where(X > 0, 0.0, 1.0))
    assert graph.gradients({"all": np.arange(3.0)})[0] == pytest.approx(np.arange(3.0)[:, None] * np.ones(4))


def test_a_stage_of_the_factor_0_passes_straight_through():
    x = Variable(X)
    graph = Graph(np.sum(stage(3 * x, x, "tripled")), (x,))
    assert graph.edges == {"past tripled": 0.0, "tripled": 1.0}
    assert graph.gradients()[0] == pytest.approx(np.full(X.shape, 3.0))
    assert graph.gradients({"tripled": 0.0, "past tripled": 1.0})[0] == pytest.approx(np.ones(X.shape))


def test_what_passes_nothing_passes_no_nan():
    x = Variable(np.zeros(2))
    with np.errstate(all="ignore"):
        graph = Graph(np.sum(edge(np.log(x * 0 - 1), "nothing", passes=0.0)), (x,))
    assert graph.gradients()[0].tolist() == [0.0, 0.0]


def test_a_result_that_numpy_did_not_compute_brings_its_own_way_back():
    x = Variable(X)
    cubes = recorded(X**3, [(x, lambda g: g * 3 * X**2), (2.0, lambda g: g)])
    assert Graph(np.sum(cubes), (x,)).gradients()[0] == pytest.approx(3 * X**2)
    assert recorded(1.0, [(2.0, lambda g: g)]) == 1.0


def test_a_leaf_that_is_not_reached_has_the_gradient_0():
    x = Variable(X)
    assert not np.any(Graph(np.sum(X), (x,)).gradients()[0])
    assert not np.any(Graph(np.sum(Variable(Y)), (x,)).gradients()[0])


def test_nothing_outside_of_the_diagnosis_differentiates_by_the_tape():
    package = Path(nceref.__file__).parent
    importing = [
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        if "from nceref.diagnosis.tape import" in path.read_text()
    ]
    assert importing
    assert set(importing) == {"diagnosis"}
