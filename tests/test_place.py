"""Where a value belongs among the readings of NT-Xent at N = 256, T = 0.07."""

import pytest

from nceref.errors import InputError
from nceref.expect import outlook
from nceref.place import locate


@pytest.fixture
def run():
    return outlook("nt_xent", {"n": 256, "temperature": 0.07, "dim": 300})


@pytest.mark.parametrize(
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
    place = locate(run, value)
    assert expected in place.sentences[0] + place.sentences[-1]
    assert place.possible == (value not in {"-0.5", "99", "3193.0"})


def test_zero_is_possible_where_float32_rounds_the_bound_to_it(run):
    assert locate(run, "0.0").possible


def test_without_dim_collapse_and_chance_are_told_to_be_one():
    sentences = locate(outlook("nt_xent", {"n": 256, "temperature": 0.07}), "6.236").sentences
    assert sentences[0] == "6.236 is collapse and chance (6.23637), to 4 digits."
    assert "--dim tells chance from collapse" in sentences[-1]


@pytest.mark.parametrize(
    ("value", "message"), [("six", "`value` must be a number, got 'six'"), ("nan", "must be finite, got nan")]
)
def test_a_reading_that_is_no_number_is_refused(run, value, message):
    with pytest.raises(InputError) as caught:
        locate(run, value)
    assert message in str(caught.value)
