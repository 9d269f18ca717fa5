"""What a loss is expected to read, against the loss itself and against published numbers."""

import re
from dataclasses import replace
from functools import cache
from math import inf, log, sqrt

import numpy as np
import pytest
from slow import partly_slow
from sweep import sweep

from nceref import losses
from nceref.checks import one_batch
from nceref.checks.expect import expected_readings
from nceref.checks.locate import ADVICE
from nceref.checks.one_batch import with_spread
from nceref.checks.situations import log_0f1, mean_log_sum
from nceref.errors import InputError
from nceref.spec import Array, Choice, Labels, Scalar
from nceref.tolerance import close

N, D, CLASSES, ROWS = 6, 8, 3, 5
EPS = np.finfo(np.float64).eps

ALL = losses.all_losses()


def scalars(name):
    """Every scalar that must be given, in the middle of its typical range."""
    required = [p for p in ALL[name].parameters if isinstance(p, Scalar) and p.default is ...]
    return {p.name: sqrt(p.typical[0] * p.typical[1]) for p in required}


@cache
def sizes_and_readings(name):
    """Those of the sizes below that the readings of the loss depend on, since all others are refused; the readings."""
    given = {"n": N, "dim": D, "classes": CLASSES, **scalars(name)}
    if any(p.name == "queue" and p.required for p in ALL[name].parameters if isinstance(p, Array)):
        given["queue"] = ROWS
    while given:
        try:
            return given, expected_readings(name, given).readings
        except InputError as error:
            del given[re.search(r"; leave `(\w+)` out$", str(error))[1]]
    return given, expected_readings(name, given).readings


def sizes(name):
    return sizes_and_readings(name)[0]


def values(name):
    return {r.situation: r.value for r in sizes_and_readings(name)[1] if r.value is not None}


def inputs(name, embedding):
    """Arguments of a loss; `embedding(rows)` makes each embedding, balanced labels go round, counts are equal."""
    letters = {"N": N, "D": D, "E": D, "C": CLASSES, "M": ROWS, "K": ROWS}
    out = scalars(name)
    for p in ALL[name].parameters:
        if isinstance(p, Array) and p.required:
            shape = tuple(letters[letter] for letter in p.shape)
            out[p.name] = embedding(shape[0]) if len(shape) == 2 and p.shape[1] != "C" else np.ones(shape)
        elif isinstance(p, Labels) and (p.required or p.name == "labels"):
            out[p.name] = np.arange(letters[p.shape[0]]) % CLASSES
    return out


@sweep("name", ALL)
def test_every_expectation_of_every_loss_is_a_number_or_does_not_arise(name):
    for reading in sizes_and_readings(name)[1]:
        assert reading.value is None or abs(reading.value) < inf
        assert reading.situation in ADVICE


@sweep("name", ALL)
def test_readings_rise_and_lie_within_the_bounds(name):
    rising = [r.value for r in sizes_and_readings(name)[1] if r.value is not None]
    assert rising == sorted(rising)
    known = values(name)
    assert known.get("lower bound", rising[0]) == rising[0]
    assert known.get("upper bound", rising[-1]) == rising[-1]


@pytest.mark.parametrize(("temperature", "printed"), [(0.07, "3.0128e-04"), (0.5, "4.24106e+00")])
def test_floor_of_nt_xent_with_256_images_is_the_published_one(temperature, printed):
    # SC-8.
    known = {
        r.situation: r.value for r in expected_readings("nt_xent", {"n": 256, "temperature": temperature}).readings
    }
    digits = len(printed.split("e")[0]) - 2
    assert f"{known['optimum']:.{digits}e}" == printed


@pytest.mark.parametrize(("situation", "printed"), [("lower bound", "9.957e-11"), ("upper bound", "3.41127e+01")])
def test_bounds_with_255_negatives_are_the_published_ones(situation, printed):
    # WL-1: K = 255, temperature 0.07.
    known = {r.situation: r.value for r in expected_readings("info_nce", {"n": 256, "temperature": 0.07}).readings}
    digits = len(printed.split("e")[0]) - 2
    assert f"{known[situation]:.{digits}e}" == printed


@pytest.mark.parametrize(
    ("classes", "samples", "temperature", "printed"), [(4, 3, 0.5, 0.96521462), (10, 5, 0.2, 1.42886676)]
)
def test_balanced_supcon_has_the_published_floor(classes, samples, temperature, printed):
    # GR-1, eight decimals.
    given = {"n": classes * samples, "classes": classes, "temperature": temperature}
    known = {r.situation: r.value for r in expected_readings("supcon_out", given).readings}
    assert f"{known['optimum']:.8f}" == f"{printed:.8f}"


def test_paco_counts_the_positives_of_balanced_labels_in_batch_and_queue():
    given = {"n": 64, "classes": 8, "queue": 64, "alpha": 0.05, "temperature": 0.1}
    one, other = (
        {r.situation: r.value for r in expected_readings("paco", {**given, **more}).readings}
        for more in ({}, {"positives": 128 // 8 - 1})
    )
    # The bound holds for any labels, and those of the queue may be none of the batch.
    alone = {r.situation: r.value for r in expected_readings("paco", {**given, "queue": 0}).readings}
    assert 0 < one.pop("lower bound") == alone["lower bound"] < other.pop("lower bound")
    assert one == other
    # 127 other rows and 8 centers.
    assert close(one["chance"], (1 + 0.05 * 15) * log(127 + 8))


@sweep(("alpha", "form"), [(a, form) for a in (0.05, 0.5, 2.0, 10.0) for form in ("sum", "normalized")])
def test_no_labels_are_below_the_bound_of_paco_and_balanced_ones_attain_it(alpha, form):
    """Of each partition of n rows into C classes, with the optimal probabilities of PC-5 for every anchor."""

    def partitions(n, classes, most):
        if classes == 0:
            yield from [()] if n == 0 else []
            return
        for first in range(min(n, most), -1, -1):
            yield from ((first, *rest) for rest in partitions(n - first, classes - 1, first))

    def least(positives):
        p = np.array([1 / (1 + alpha * positives)] + [alpha / (1 + alpha * positives)] * positives)
        row = -np.sum(np.array([1.0] + [alpha] * positives) * np.log(p))
        return row / (1 + alpha * positives) if form == "normalized" else row

    for n, classes in ((3, 2), (7, 3), (11, 10), (12, 3), (9, 4)):
        rows = {sizes: sum(m * least(m - 1) for m in sizes if m) / n for sizes in partitions(n, classes, n)}
        given = {"n": n, "classes": classes, "alpha": alpha, "form": form, "temperature": 0.1}
        bound = {r.situation: r.value for r in expected_readings("paco", given).readings}["lower bound"]
        assert abs(min(rows.values()) - bound) <= 1e-12 * (1 + bound), (n, classes, rows, bound)
        assert bound >= 0
    # A queue adds positives, which only raises the least value of an anchor.
    assert np.all(np.diff([least(positives) for positives in range(30)]) > 0)


def test_a_queue_of_other_classes_reads_less_than_balanced_labels_would():
    z, queue = np.array([[1.0, 0.0]]), np.tile([-1.0, 0.0], (3, 1))
    centers = np.array([[60.0, 0.0], [-60.0, 0.0]])
    value = losses.paco(
        z, np.array([0]), centers, alpha=1.0, temperature=0.1, queue=queue, queue_labels=np.ones(3, int)
    )
    assert 0 <= value < 1e-6
    given = {"n": 1, "queue": 3, "classes": 2, "alpha": 1.0, "temperature": 0.1}
    assert {r.situation: r.value for r in expected_readings("paco", given).readings}["lower bound"] == 0


def test_equal_rows_of_uniformity_read_collapse():
    assert values("uniformity")["collapse"] == losses.uniformity(np.ones((N, D))) == 0


def test_opposed_and_aligned_extremes_attain_the_cosine_bounds():
    # One query: its key at -1 and a negative at 1, and the other way round.
    query, other = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]])
    known = {r.situation: r.value for r in expected_readings("moco", {"queue": 1, "temperature": 0.5}).readings}
    assert close(losses.moco(query, other, query, temperature=0.5), known["upper bound"])
    assert close(losses.moco(query, query, other, temperature=0.5), known["lower bound"])


# By name: those whose chance depends on D.
WITH_DIM = [n for n, loss in ALL.items() if any(e.dim for e in loss.declaration.expectations)]


def drawn(name, given, batches=400):
    """Mean and standard deviation of the loss over batches of random rows; centers are 0."""
    rng, of_batches = np.random.default_rng(0), []
    for _ in range(batches):
        arguments = {**inputs(name, lambda rows: rng.standard_normal((rows, D))), **given}
        centers = {"centers": 0 * arguments["centers"]} if "centers" in arguments else {}
        of_batches.append(ALL[name](**{**arguments, **centers}))
    return np.mean(of_batches), np.std(of_batches, ddof=1)


DRAWS = "hundreds of batches; the other losses have the same integrals"


def spread(name, given):
    return next(r for r in with_spread(expected_readings(name, given)).readings if r.situation == "chance").spread


FAST = {"alignment", "nt_xent", "siglip", "uniformity"}


@pytest.mark.parametrize("name", partly_slow([*WITH_DIM, "simple"], FAST.__contains__, DRAWS))
def test_random_rows_read_chance_on_average_and_scatter_as_is_said(name):
    # 400 independent batches: their mean lies within 4 standard errors, which are small enough to tell D = 8 from none.
    mean, deviation = drawn(name, {})
    error, expected = deviation / 20, chance(name, sizes(name))
    assert abs(mean - expected.value) <= 4 * np.hypot(error, expected.error / 2)
    # That deviation is off by 4 %, and by 9 % the one over 64 batches.
    assert abs(spread(name, sizes(name)) / deviation - 1) < 0.3
    without = chance(name, {k: v for k, v in sizes(name).items() if k != "dim"})
    assert name in ("alignment", "simple") or mean > without.value + 4 * error


def test_scatter_of_a_large_batch_comes_from_a_smaller_one(monkeypatch):
    cases = {
        "nt_xent": {"n": 32, "dim": 8, "temperature": 0.1},
        "supcon_out": {"n": 64, "dim": 8, "temperature": 0.1, "classes": 4},
        "moco": {"n": 64, "dim": 8, "temperature": 0.1, "queue": 8},
    }
    whole = {name: spread(name, given) for name, given in cases.items()}
    monkeypatch.setattr(one_batch, "_ROWS", 18)
    part = {name: spread(name, given) for name, given in cases.items()}
    assert abs(part["nt_xent"] / whole["nt_xent"] - 1) < 0.3
    # Never less: that would call chance what is not.
    assert all(part[name] > 0.8 * whole[name] for name in cases)


@sweep(
    ("name", "given"),
    [
        ("nt_xent", {"n": 8, "temperature": 0.1}),
        ("alignment", {"dim": 8}),
        ("arcface", {"dim": 8}),
        ("moco", {"n": 8, "dim": 8, "queue": 65536, "temperature": 0.1}),
        ("paco", {"n": 8, "dim": 8, "positives": 3, "temperature": 0.1, "alpha": 1}),
        ("supcon_out", {"n": 8, "dim": 8, "temperature": 0.1}),
        ("uniformity", {"n": 300, "dim": 64, "t": 1000}),
    ],
)
def test_scatter_is_left_out_where_it_is_not_known(name, given):
    assert spread(name, given) is None


@pytest.mark.parametrize(
    "extra", [Array("weights", ("N",), ""), Array("more", ("M", "D"), ""), Labels("labels", ("N",), "")]
)
def test_scatter_is_left_out_for_a_loss_with_inputs_of_another_kind(extra, monkeypatch):
    declaration = ALL["nt_xent"].declaration
    own = losses.LossFunction(replace(declaration, parameters=(*declaration.parameters, extra)))
    monkeypatch.setattr(one_batch, "get_loss", lambda _: own)
    assert spread("nt_xent", {"n": 8, "dim": 8, "temperature": 0.1}) is None


def test_scatter_takes_any_number_of_features():
    # The mean over pairs of the cosine, over T: what is left of chance in many dimensions.
    assert abs(spread("nt_xent", {"n": 16, "dim": 10**12, "temperature": 0.1}) * 4 * 10**5 - 1) < 0.3


@pytest.mark.parametrize(
    ("name", "given"),
    partly_slow(
        [
            ("alignment", {"exponent": 1.0}),
            ("alignment", {"exponent": 5.0}),
            ("debiased", {"temperature": 0.1, "positive_prior": 0.4}),
            ("dclw", {"temperature": 0.1, "sigma": 0.2}),
            ("hard_contrastive", {"temperature": 0.1, "fraction": 0.2}),
            ("hcl", {"temperature": 0.1, "concentration": 2.0}),
            ("paco", {"temperature": 0.1, "alpha": 0.5, "form": "normalized"}),
            ("uniformity", {"t": 1.0}),
            ("uniformity", {"t": 5.0}),
        ],
        lambda case: case[0] == "hcl" or 5.0 in case[1].values(),
        DRAWS,
    ),
)
def test_chance_depends_on_every_scalar_as_the_loss_does(name, given):
    # What is added to DCL is not much more than the scatter of 400 batches.
    batches = 1600 if name == "dclw" else 400
    mean, deviation = drawn(name, given, batches)
    error, expected = deviation / sqrt(batches), chance(name, {**sizes(name), **given})
    assert abs(mean - expected.value) <= 4 * np.hypot(error, expected.error / 2)
    assert error < 0.2


@pytest.mark.parametrize(
    ("given", "shown"),
    [({"n": 8, "dim": 4}, True), ({"n": 2, "dim": 4}, False), ({"n": 8, "dim": 4, "t": 1e-9}, False)],
)
def test_what_the_error_is_stands_where_there_is_one(given, shown):
    assert ("±" in chance("uniformity", given).because) == shown


def test_chance_with_the_hardest_negative_alone_is_that_of_any_large_concentration():
    # The same draws, so that rounding is all that differs: at 2^52 it is 0.4.
    given = {"n": 8, "dim": 4, "temperature": 0.5}
    large, larger = (chance("hcl", {**given, "concentration": b}).value for b in (1e7, 3.4e10))
    assert abs(large - larger) < 1e-5


def test_without_dim_chance_is_that_of_equal_similarities():
    known = {r.situation: r.value for r in expected_readings("nt_xent", {"n": 256, "temperature": 0.07}).readings}
    assert known["chance"] == known["collapse"] == log(511)


def chance(name, given):
    return next(r for r in expected_readings(name, given).readings if r.situation == "chance")


def test_formula_of_chance_is_what_is_computed():
    # At T = 0.001 its limit for many negatives is three times the mean.
    given = {"n": 256, "temperature": 0.001}
    assert chance("nt_xent", given).formula == "log(2N - 1)"
    cold = chance("nt_xent", {**given, "dim": 128})
    assert cold.formula == "E log sum of 2N - 1 terms e^(s/T)"
    assert cold.value == mean_log_sum(2 * 256 - 1, 1 / 0.001, 128)
    assert "at most log(2N - 1) + log 0F1(; D/2; 1/(4 T^2))" in cold.because
    assert cold.value < (log(511) + log_0f1(64, 1e6 / 4)) / 3


@sweep("name", WITH_DIM)
def test_chance_for_a_given_dim_tends_to_the_one_without(name):
    given = {k: v for k, v in sizes(name).items() if k != "dim"}
    assert abs(chance(name, {**given, "dim": 10**8}).value - chance(name, given).value) < 1e-3


@sweep(
    ("name", "given", "conventions"),
    [
        ("nt_xent", {"n": 8, "temperature": 1}, "mean reduction, rows of length 1, in nats"),
        ("uniformity", {"n": 8}, "one number, rows of length 1, in nats"),
        ("cross_entropy", {}, "mean reduction, in nats"),
        ("balanced_softmax", {}, "mean reduction, in nats"),
        ("nce", {"noise_ratio": 1}, "mean reduction, in nats"),
        ("alignment", {}, "mean reduction, rows of length 1, no unit"),
        ("simple", {"n": 8}, "mean reduction, rows of length 1, no unit"),
    ],
)
def test_conventions_follow_from_the_declaration(name, given, conventions):
    assert expected_readings(name, given).conventions == conventions


def test_what_only_dim_brings_into_play_may_be_given_without_it():
    expected = expected_readings("supcon_in", {"n": 64, "temperature": 0.1, "classes": 8})
    assert dict(expected.settings) == {"n": 64, "dim": None, "classes": 8, "views": 1, "temperature": 0.1}


def test_simplex_does_not_fit_into_few_dimensions():
    def optimum(dim):
        known = expected_readings("nt_xent", {"n": N, "temperature": 0.5, "dim": dim}).readings
        return next(r.value for r in known if r.situation == "optimum")

    assert optimum(N - 2) is None
    assert optimum(N - 1) == optimum(None)


def test_logit_scale_is_one_over_the_temperature():
    assert expected_readings("clip", {"n": 8, "temperature": 0.25}) == expected_readings(
        "clip", {"n": 8, "logit_scale": "4"}
    )
    given = ({"n": 8, "logit_scale": 4}, {"n": 8, "temperature": 0.25})
    assert expected_readings("nt_xent", given[0]) == expected_readings("nt_xent", given[1])


def test_defaults_are_named_and_what_was_given_is_not():
    expected = expected_readings("supcon_out", {"n": 30, "temperature": 0.1, "classes": "3"})
    assert expected.defaults == {"views", "dim"}
    assert dict(expected.settings) == {"n": 30, "dim": None, "classes": 3, "views": 1, "temperature": 0.1}


@sweep(
    ("name", "given", "message"),
    [
        ("nt_xent", {}, "needs `n` (samples in the batch) and `temperature` (> 0); give, for example, --n 256 --temp"),
        ("hard_contrastive", {"n": 8}, "needs `fraction` (> 0 and <= 1) and `temperature` (> 0)"),
        ("moco", {"temperature": 1}, "moco needs `queue` (rows in the queue); give, for example, --set queue=65536"),
        ("nt_xent", {"n": 0, "temperature": 1}, "must be an integer from 1 to 1,000,000,000,000,000, got 0"),
        ("nt_xent", {"n": "2.5", "temperature": 1}, "must be an integer from 1 to 1,000,000,000,000,000, got 2.5"),
        ("nt_xent", {"n": "many", "temperature": 1}, "`n` must be a number, got 'many'"),
        ("nt_xent", {"n": 8, "temperature": -0.07}, "`temperature` must be > 0, got -0.07"),
        ("nt_xent", {"n": 8, "temperature": "inf"}, "`temperature` must be finite and > 0, got inf"),
        ("clip", {"n": 8, "temperature": 0}, "`temperature` must be > 0, got 0.0"),
        ("clip", {"n": 8, "temperature": 1, "logit_scale": 1}, "give one of them"),
        ("nt_xent", {"n": 8, "temprature": 1}, "no size or scalar `temprature`; did you mean `temperature`?"),
        ("nt_xent", {"n": 8, "temperature": 1, "classes": 4}, "no reading of nt_xent depends on `classes`"),
        ("balanced_softmax", {"dim": 3}, "no reading of balanced_softmax depends on `dim`; they depend on `classes`"),
        (
            "arcface",
            {"queue": 8},
            "no reading of arcface depends on `queue`; they depend on `dim`, `classes`, `fallback`, `margin`, `sc",
        ),
        ("cross_entropy", {"n": 8}, "; leave `n` out"),
        ("balanced_softmax", {"temperature": 1}, "; leave `temperature` out"),
        ("supcon_out", {"n": 8, "temperature": 1, "form": "sums"}, "`form` must be one of 'mean', 'sum', got 'sums'"),
        ("supcon_out", {"n": 9, "temperature": 1, "no_positive": "zero"}, "for no_positive='error' only"),
        (
            "hcl",
            {"n": 8, "temperature": 1, "concentration": 2**53},
            "`concentration` must be >= 0 and < 9007199254740992, got 9007199254740992",
        ),
        ("nt_xnet", {}, "did you mean 'nt_xent'"),
    ],
)
def test_refusals_say_what_to_do(name, given, message):
    with pytest.raises(InputError) as caught:
        expected_readings(name, given)
    assert message in str(caught.value)


def test_policies_at_their_default_may_be_given():
    form = next(p for p in ALL["paco"].parameters if isinstance(p, Choice) and p.name == "form")
    assert form.default == "sum"
    given = {"n": 30, "alpha": 0.1, "classes": 3, "temperature": 0.1}
    assert expected_readings("paco", {**given, "form": "sum"}).readings == expected_readings("paco", given).readings
    assert (
        expected_readings("paco", {**given, "form": "normalized"}).readings != expected_readings("paco", given).readings
    )
