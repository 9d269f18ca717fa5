"""The bounds of a right program: never below what correct programs do, and never far above it.

The programs here are those of the catalogue; `test_torch_programs` has more, which need PyTorch.
"""

from functools import cache

import numpy as np
import pytest
from catalogue import observed
from slow import partly_slow
from sweep import every_loss, sweep

from mutants.bug import correct_programs, independent_programs, target
from nceref import get_loss, registry
from nceref.cases.corpus.corpus import corpus, evaluate
from nceref.engine.bound_loss import bound_loss
from nceref.errors import InputError
from nceref.tolerance.implementation import FORMATS, implementation_bounds

pytestmark = pytest.mark.machine

LOSSES = registry.names("nceref.family")
CORRECT = [p for p in (*correct_programs().values(), *independent_programs().values()) if not p.named]
MOST = 2
"""Programs of a loss; the score has the others."""


def shares(probe, value, grads):
    """Error over bound of every quantity of an answer; infinite where it is not finite."""
    pairs = {"value": (value, probe.value, probe.bounds.value)}
    pairs |= {k: (grads[k], probe.grads[k], probe.bounds.grads[k]) for k in probe.grads if k in grads}
    return {k: float(np.max(np.nan_to_num(np.abs(a - b) / c, nan=np.inf))) for k, (a, b, c) in pairs.items()}


@cache
def on_every_case(name, dtype):
    """Shares of correct programs of a loss on the quick corpus."""
    seen = [(p.id, o) for p in [p for p in CORRECT if p.loss == name][:MOST] for o in observed(p, dtype)]
    return [(id, o.probe.id, shares(o.probe, o.outcome.value, o.outcome.grads)) for id, o in seen]


@pytest.mark.parametrize(
    ("name", "dtype"),
    partly_slow(
        [(name, dtype) for name in LOSSES for dtype in ("float64", "float32")],
        lambda case: case[1] == "float32" or case[0] in ("clip", "nce", "supcon_out"),
        "the same bounds with another unit of rounding",
    ),
)
def test_correct_programs_stay_within_the_bound_and_not_far_below(name, dtype):
    outcomes = on_every_case(name, dtype)
    worst = max((max(share.values()), *ids, share) for *ids, share in outcomes)
    assert worst[0] <= 1, worst
    assert worst[0] > 1e-3, worst
    # Where a program meets the exact number, the share is 0; a bound that is 10^4 times too large has a smaller median.
    assert np.median([s for *_, share in outcomes for s in share.values() if s > 0]) > 1e-4


# The largest errors of the programs of `uniformity` are .3 % of what all roundings together might do.
@sweep("name", sorted({*LOSSES} - {"uniformity"}))
def test_a_hundredth_of_the_bounds_refuses_right_programs(name):
    assert max(100 * max(share.values()) for *_, share in on_every_case(name, "float32")) > 1


FEW = 3
"""Probes on which it shows what a reduction or a variant is in the bounds; the mean meets every geometry."""


def in_single(loss, settings=None, reduction="mean"):
    """A few probes in float32, and the shares of the package's own program there."""
    options = {"suite": "quick", "dtype": "float32", "reduction": reduction, "most": FEW}
    for probe in corpus(loss.declaration, settings or {}, **options):
        if not probe.skip:
            rounded = {n: x.astype("f4") if getattr(x, "dtype", "i") == "f8" else x for n, x in probe.inputs.items()}
            of_rows = {"cotangent": np.ones(np.shape(probe.value), "f4")} if reduction == "none" else {}
            yield probe, shares(probe, *loss.value_and_grad(**rounded, reduction=reduction, **of_rows))


@sweep("reduction", ["sum", "none"])
@every_loss
def test_sums_and_single_rows_have_bounds_of_their_own(loss_name, reduction):
    loss = get_loss(loss_name)
    for probe, share in in_single(loss, reduction=reduction) if loss.declaration.has_rows else ():
        assert max(share.values()) <= 1, (probe.id, share)
        assert np.shape(probe.bounds.value) == np.shape(probe.value)


@every_loss
def test_every_variant_of_a_loss_is_admitted(loss_name):
    loss = get_loss(loss_name)
    for variant in loss.declaration.variants[1:]:
        for probe, share in in_single(loss, dict(variant)):
            assert max(share.values()) <= 1, (variant, probe.id, share)


@pytest.mark.parametrize("seed", [40, 61, 167])
def test_a_column_has_room_for_the_rounding_of_its_own_probabilities(seed):
    """These batches have a positive that is the largest of its column, and far from the largest of its row."""
    rng = np.random.default_rng(seed)
    image, text = 10 ** rng.uniform(-1.5, 1.5, (2, 5, 1)) * rng.standard_normal((2, 5, 3))
    s = image / np.linalg.norm(image, axis=1, keepdims=True) @ (text / np.linalg.norm(text, axis=1, keepdims=True)).T
    assert np.any((s.argmax(0) == np.arange(5)) & (s.argmax(1) != np.arange(5)))
    given = {"image": image, "text": text, "logit_scale": 1000.0}
    probe = evaluate(get_loss("clip").declaration, given)
    for program in [p for p in CORRECT if p.loss == "clip"]:
        assert max(shares(probe, *target(program)(**given)).values()) <= 1, program.id


def probe_of(name, id, dtype="float64", **more):
    (probe,) = corpus(get_loss(name).declaration, {}, suite="quick", dtype=dtype, only=(id,), **more)
    return probe


@sweep("smoothing", [1 - 2.0**-k for k in (7, 10, 13, 15)])
def test_a_head_that_subtracts_has_room_for_what_it_subtracts(smoothing):
    """The slope of a target without a share is that of 1 - e, the small difference of numbers near 1.

    A bound of 12 u of the difference is exceeded.
    """
    loss, worst = get_loss("cross_entropy"), 0.0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = (10.0 ** rng.integers(-1, 2) * rng.standard_normal((1, 50))).astype(np.float32)
        x[0, 0] = 20
        exact = {"logits": x.astype(float), "target": np.array([7]), "label_smoothing": smoothing}
        allowed = implementation_bounds(bound_loss(loss.declaration, (), exact), "float32", algorithm="log1p")
        value, grads = loss.value_and_grad(**{**exact, "logits": x})
        right, slopes = loss.value_and_grad(**exact)
        worst = max(worst, abs(value - right) / allowed.value)
        worst = max(worst, np.max(np.abs(grads["logits"] - slopes["logits"]) / allowed.grads["logits"]))
    assert 0.01 < worst <= 1, worst


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_terms_add_up_to_the_bound_and_can_be_printed(reduction):
    bounds = probe_of("nt_xent", "designed-0.07", reduction=reduction).bounds
    np.testing.assert_allclose(sum(bounds.terms.values()), bounds.value, rtol=4e-16)
    assert len(bounds.terms) == 7
    assert all(np.all(size > 0) for size in bounds.terms.values())
    assert [line.split()[0] for line in bounds.explain().splitlines()] == [
        "dot", "statistics", "shift", "head", "reduction", "underflow", "reference", "value",
    ]  # fmt: skip


def test_the_cancellation_free_class_is_tighter_where_the_loss_is_tiny():
    """Aligned pairs: the textbook difference of logarithms has an absolute error of u * max |logit|."""
    loss = get_loss("info_nce").declaration
    rows = np.eye(3) + 0.125 * np.arange(9).reshape(3, 3) / 8
    inputs = {"queries": rows, "keys": rows, "temperature": 2.0**-6}
    probe = evaluate(loss, inputs)
    tight = evaluate(loss, inputs, algorithm="log1p")
    assert probe.value == tight.value < 1e-8
    assert probe.bounds.value > 2.0**-53 / inputs["temperature"] > 1e4 * tight.bounds.value


@every_loss
def test_textbook_bounds_are_a_few_hundred_roundings_where_nothing_is_ill_conditioned(loss_name):
    probe = corpus(get_loss(loss_name).declaration, {}, suite="quick", most=1)[0]
    size = max(1.0, abs(probe.value))
    assert 0 < probe.bounds.value < 4096 * 2.0**-53 * size


def test_a_format_of_fewer_bits_gets_a_bound_that_is_wider_by_that_much():
    at = {d: probe_of("clip", "designed-0.3", d).bounds.value for d in FORMATS}
    # In float64 the reference's own bound is part of it.
    assert 2**26 < at["float32"] / at["float64"] < 2**30
    # Sums are in float32: it takes less than the ratio of the formats.
    assert 2**9 < at["float16"] / at["float32"] < 2**13
    assert 2 < at["bfloat16"] / at["float16"] < 2**4


def test_float16_admits_results_below_its_smallest_normal_number():
    probe = probe_of("info_nce", "aligned-0.07", "float16")
    assert probe.bounds.value > FORMATS["float16"].storage.tiny
    assert np.min(probe.bounds.grads["queries"]) > FORMATS["float16"].storage.tiny


def test_what_leaves_the_range_of_float16_is_not_judged():
    loss = get_loss("info_nce").declaration
    rows = 16.0 * (1 + np.arange(6).reshape(2, 3))
    inputs = {"queries": rows, "keys": rows[::-1], "temperature": 0.0625, "normalize": "none"}
    assert "leave the range of float16" in evaluate(loss, inputs, "float16").skip
    assert not evaluate(loss, inputs, "bfloat16").skip
    # The logits fit, but the gradient by a temperature passes through s / T^2.
    steep = evaluate(loss, {**inputs, "normalize": "l2", "temperature": 2.0**-9}, "float16")
    assert set(steep.grads) == {"queries", "keys"}
    assert np.isinf(steep.bounds.grads["temperature"])


@pytest.mark.parametrize("factor", [1 + 1e-11, 1 - 1e-11])
def test_a_value_that_is_wrong_in_the_eleventh_digit_is_outside(factor):
    probe = probe_of("nt_xent", "designed-0.3")
    assert abs(factor * probe.value - probe.value) > probe.bounds.value


@pytest.mark.parametrize(("name", "word"), [("dtype", "float8"), ("algorithm", "naive"), ("reduction", "median")])
def test_a_word_that_is_not_known_is_refused(name, word):
    rows = np.eye(3)
    bound = bound_loss(get_loss("nt_xent").declaration, (rows, rows), {"temperature": 1.0})
    with pytest.raises(InputError, match=f"`{name}` must be"):
        implementation_bounds(bound, **{"dtype": "float64", name: word})
