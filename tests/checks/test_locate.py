"""Where a value belongs among the readings of NT-Xent at N = 256, T = 0.07."""

import numpy as np
import pytest
from sweep import sweep

from nceref.checks.expect import expected_readings
from nceref.checks.locate import locate
from nceref.checks.one_batch import with_spread
from nceref.errors import InputError
from nceref.losses import get_loss


@pytest.fixture(scope="module")
def run():
    return with_spread(expected_readings("nt_xent", {"n": 256, "temperature": 0.07, "dim": 300}))


@sweep(
    ("value", "expected"),
    [
        ("6.2364", "6.2364 is collapse (6.23637), to 5 digits."),
        ("6.24", "6.24 is collapse (6.23637), to 3 digits."),
        ("3.013e-4", "3.013e-4 is optimum (0.0003012782), to 4 digits."),
        ("12.473", "12.473 is twice collapse (6.23637): two directions are added, not averaged."),
        ("8.9972", "8.9972 is collapse (6.23637) in bits."),
        ("3193.0", "3193.0 is 512 times collapse (6.23637): a sum over rows, not a mean."),
        ("3.2", "3.2 lies between optimum (0.0003012782) and collapse (6.23637): positives are told"),
        ("20", " and upper bound (34.80584): worse than guessing"),
        ("6.4", "): between random rows and equal ones."),
        ("1e-5", "no batch reads that, only a single row"),
        ("-0.5", "-0.5 is below the lower bound (1.99139e-10): another loss, another reduction, or rows"),
        ("99", "99 is above the upper bound (34.80584)"),
    ],
)
def test_a_reading_is_placed(run, value, expected):
    location = locate(run, value)
    assert expected in location.sentences[0] + location.sentences[-1]
    assert location.possible == (value not in {"-0.5", "99", "3193.0", "1e-5"})


@pytest.mark.parametrize(("value", "possible"), [("0", False), ("0.0000", False), ("0.00", True), ("0.0003", True)])
def test_digits_printed_decide_whether_the_optimum_may_be_meant(run, value, possible):
    # The optimum is 3.01e-4: with four decimals that is 0.0003.
    assert locate(run, value).possible == possible


def test_zero_may_be_what_a_log_or_float32_rounds_to(run):
    assert "0.0000 in a log may also be the rounding of a tiny loss" in locate(run, "0").sentences[-1]
    tiny = expected_readings("nt_xent", {"n": 8, "temperature": 0.02})
    assert locate(tiny, "0").possible


def test_one_digit_is_no_match_unless_the_values_are_equal(run):
    assert locate(run, "6").sentences[0].startswith("6 lies between optimum")
    assert locate(run, "6.2").sentences[0] == "6.2 is collapse (6.23637), to 2 digits."
    assert locate(expected_readings("alignment", {}), "2").sentences[0] == "2 is chance (2), exactly."


def test_less_than_chance_is_no_room_for_more_where_the_optimum_is_not_known():
    between = locate(expected_readings("uniformity", {"n": 256, "dim": 64}), "-3.95")
    assert between.possible
    assert "the optimum is not known for these sizes" in between.sentences[0]
    pentagon = expected_readings("uniformity", {"n": 5, "dim": 2})
    assert not locate(pentagon, "-3.46").possible
    assert locate(pentagon, "-3.4457").sentences[0].startswith("-3.4457 is optimum")


POINTS = {"n": 8, "dim": 4}


@sweep(
    ("name", "given", "value", "expected"),
    [
        # 400 batches of eight points read -2.47 in the mean, with a standard deviation of 0.3.
        (
            "uniformity",
            POINTS,
            "-2.7",
            "One batch of random rows may be that far from the mean over many: it is 0.7 standard deviations of one",
        ),
        ("uniformity", POINTS, "-1.9", "standard deviations of one batch (0.32) above chance (-2.467651)."),
        ("uniformity", POINTS, "-3.9", "and there is room for more; a collapse onto a few points may read that too."),
        ("alignment", {"n": 16, "dim": 4}, "2.4", "1.6 standard deviations of one batch (0.25) above chance (2)."),
        ("alignment", {"dim": 4}, "1.6", "one batch of random rows may read that too: give --n."),
        ("nt_xent", {"n": 4, "temperature": 0.5, "dim": 2}, "1.9459", "collapse (1.94591), to 5 digits."),
        (
            "nt_xent",
            {"n": 4, "temperature": 0.5, "dim": 2},
            "1.9459",
            "One batch of random rows may be that far from the mean over many",
        ),
        ("nt_xent", {"n": 4, "temperature": 0.5}, "1.2", "one batch of random rows may read that too: give --dim."),
        ("nt_xent", {"n": 256, "temperature": 0.07, "dim": 128}, "6.2364", "is collapse (6.23637), to 5 digits."),
        ("moco", {"queue": 65536, "n": 256, "dim": 8, "temperature": 0.1}, "15", "or about chance: batches of random"),
    ],
)
def test_what_one_batch_of_random_rows_reads_is_not_told_from_chance(name, given, value, expected):
    location = locate(with_spread(expected_readings(name, given)), value)
    text = " ".join(location.sentences)
    assert location.possible
    assert expected in text
    # Nothing is said to be learned where one batch of random rows reads that.
    assert "One batch" not in text or "positives are told" not in text
    assert value != "6.2364" or "One batch" not in text


def test_random_rows_are_awaited_where_their_reading_needs_dim():
    assert (
        "what random rows read depends on --dim"
        in locate(expected_readings("uniformity", {"n": 256}), "-3").sentences[0]
    )


def rows(rng, *shape):
    return rng.standard_normal(shape)


RANDOM = {
    "arcface": ({"classes": 100}, lambda g, d: (rows(g, 64, d), rows(g, 100, d), g.integers(0, 100, 64)), {}),
    "cosface": ({"classes": 100}, lambda g, d: (rows(g, 64, d), rows(g, 100, d), g.integers(0, 100, 64)), {}),
    "clip": ({"n": 64}, lambda g, d: rows(g, 2, 64, d), {"logit_scale": 20.0}),
    "dclw": ({"n": 64}, lambda g, d: rows(g, 2, 64, d), {"temperature": 0.1}),
    "hard_contrastive": ({"n": 64}, lambda g, d: rows(g, 2, 64, d), {"temperature": 0.3, "fraction": 0.2}),
    "hcl": ({"n": 64}, lambda g, d: rows(g, 2, 64, d), {"temperature": 0.5}),
    "nt_xent": ({"n": 64}, lambda g, d: rows(g, 2, 64, d), {"temperature": 0.1}),
    "siglip": ({"n": 64}, lambda g, d: rows(g, 2, 64, d), {"logit_scale": 1.0, "logit_bias": -10.0}),
    "supcon_in": ({"n": 64, "classes": 8}, lambda g, d: (rows(g, 64, d), np.arange(64) % 8), {"temperature": 0.1}),
    "supcon_out": ({"n": 64, "classes": 8}, lambda g, d: (rows(g, 64, d), np.arange(64) % 8), {"temperature": 0.1}),
}


@sweep("dim", [8, 128])
@sweep("name", RANDOM)
def test_random_rows_are_accused_of_nothing(name, dim):
    given, inputs, scalars = RANDOM[name]
    rng = np.random.default_rng(0)
    # The loss takes no number of features where no reading depends on it.
    known = [expected_readings(name, {**given, **scalars})]
    known += [expected_readings(name, {**given, **scalars, "dim": dim})] if "dim" in known[0].settings else []
    for _ in range(10):
        value = get_loss(name)(*inputs(rng, dim), **scalars)
        for location in (locate(expected, f"{value:.5g}") for expected in known):
            assert location.possible
            assert not any(word in " ".join(location.sentences) for word in ("worse", "shuffled", "flipped"))


def test_a_flipped_sign_is_called_worse_than_guessing_once_dim_is_known():
    rng = np.random.default_rng(0)
    x = rows(rng, 64, 128)
    value = f"{get_loss('nt_xent')(x, -x, temperature=0.1):.5g}"
    given = {"n": 64, "temperature": 0.1}
    assert "worse than guessing" in locate(expected_readings("nt_xent", {**given, "dim": 128}), value).sentences[0]
    assert "in few dimensions: give --dim" in locate(expected_readings("nt_xent", given), value).sentences[0]


def test_scores_above_chance_have_an_innocent_reading_too():
    text = locate(expected_readings("cross_entropy", {"classes": 10}), "3.5").sentences[0]
    assert "large random logits read that" in text


@pytest.mark.parametrize("value", ["6", "2.7034", "5.4067", "1"])
def test_nothing_is_said_of_rows_and_pairs_where_there_are_none(value):
    text = " ".join(locate(expected_readings("nce", {"noise_ratio": 5}), value).sentences)
    assert not any(word in text for word in ("rows", "pairs", "directions", "positives"))


@pytest.mark.parametrize(
    ("value", "possible", "expected"),
    [
        ("1e-9", False, "1e-9 is below the lower bound (4.534538e-08)"),
        ("1e-300", False, "is below the lower bound"),
        ("0", True, "as low as it gets, where float32 rounds: print more digits."),
        ("0.0000", True, "as low as it gets, to the digits given."),
        ("4.1e-8", True, "as low as it gets, where float32 rounds"),
    ],
)
def test_below_the_lower_bound_is_what_no_rounding_of_float32_makes(value, possible, expected):
    location = locate(expected_readings("hcl", {"n": 12, "temperature": 0.1}), value)
    assert (location.possible, expected in location.sentences[0]) == (possible, True)


def test_a_missing_number_of_samples_is_asked_for():
    expected = expected_readings("cosface", {"dim": 64, "classes": 10})
    assert "may read that too: give --n." in locate(expected, "30").sentences[0]


def test_below_the_bound_of_a_row_no_single_row_is_blamed(run):
    assert "is below the lower bound (1.99139e-10): another loss" in locate(run, "1e-11").sentences[0]
    assert not any("single row" in locate(run, value).sentences[0] for value in ("0", "1e-11"))


@pytest.mark.parametrize(
    ("given", "value", "expected"),
    [
        # The standard deviation of one batch is 0.0157.
        ({"dim": 64}, "0.03", "One batch of random rows may be that far from the mean over many"),
        ({"dim": 64}, "0.065", "more than all but a few batches of random rows read, 4.1 standard deviations"),
        ({"dim": 64}, "0.1", "worse than guessing"),
        ({}, "0.1", "more than chance; one batch of random rows may read that too: give --dim"),
        # Rows +-1 have a standard deviation of 0.126.
        ({}, "0.7", "worse than guessing"),
    ],
)
def test_above_chance_is_measured_by_the_scatter_of_one_batch(given, value, expected):
    location = locate(with_spread(expected_readings("simple", {"n": 64, **given})), value)
    assert expected in " ".join(location.sentences)


def test_without_dim_collapse_and_chance_are_told_to_be_one():
    sentences = locate(expected_readings("nt_xent", {"n": 256, "temperature": 0.07}), "6.236").sentences
    assert sentences[0] == "6.236 is collapse and chance (6.23637), to 4 digits."
    assert "give --dim to separate chance from collapse" in sentences[-1]


@pytest.mark.parametrize(
    ("value", "message"), [("six", "`value` must be a number, got 'six'"), ("nan", "must be finite, got nan")]
)
def test_a_reading_that_is_no_number_is_refused(run, value, message):
    with pytest.raises(InputError) as caught:
        locate(run, value)
    assert message in str(caught.value)
