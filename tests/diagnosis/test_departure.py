"""Where a target that nothing explains departs: quantities, cases, rows, temperatures."""

import numpy as np
import pytest
from diagnosis.altered_losses import altered, observed, right, temperature, times
from diagnosis.test_fresh import calls_of, without

from mutants.bug import stop as real
from nceref.diagnosis.departure import departure


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0, 9, "it shows at every temperature"), (0.05, 0.4, "it shows at temperature 0.07 to 0.3 (0.0001 to 5")],
)
def test_a_range_of_temperatures_is_told_by_both_ends(low, high, said):
    def target(probe, value, grads):
        return (value * (1 + value) + 0.1, grads) if low < temperature(probe) < high else (value, grads)

    assert said in departure(altered("nt_xent", target, every=1))[0].sentence


def test_temperatures_that_are_no_range_are_not_told_as_one():
    def target(probe, value, grads):
        return (value, grads) if 0.05 < temperature(probe) < 0.4 else (value * (1 + value) + 0.1, grads)

    assert "it shows" not in departure(altered("nt_xent", target, every=1))[0].sentence


def test_what_nothing_explains_is_told_by_quantity_and_temperature():
    def target(probe, value, grads):
        return (value * (1 + value) + 0.1, grads) if temperature(probe) < 0.1 else (value, grads)

    (found,) = departure(altered("nt_xent", target, every=1))
    assert found.id == "unexplained"
    assert "exactly those at temperature" in found.sentence
    assert "it shows at temperature 0.0001 to 0.07 (0.0001 to 5 were tried)" in found.sentence
    assert departure(altered("nt_xent", times(1.0))) == ()


def test_a_row_that_departs_under_no_reduction_is_told():
    def target(probe, value, grads):
        return np.append(value[:-1], value[-1] + 7 + value[0]), grads

    (found,) = departure(altered("nt_xent", target, every=1, reduction="none"))
    assert found.id == "unexplained"
    assert "only the last row departs" in found.sentence


def smooth(x):
    return x * (1 + 1e-7)


@pytest.mark.parametrize(
    ("change", "said"),
    [(np.float32, "change from one input to the next nearby as roundings do"), (smooth, "are alike for inputs nearby")],
)
def test_small_errors_of_few_cases_are_roundings_or_none(change, said):
    def target(queries, keys, temperature):
        value = right(queries, keys, temperature)
        return np.float64(change(real(value))) if len(queries) > 100 else value

    seen = observed(target, "info_nce")
    assert said in departure(seen, calls_of(target, seen, without))[0].sentence


def test_a_value_that_is_rounded_at_last_is_told_by_its_numbers():
    def target(queries, keys, temperature):
        return np.float64(np.float16(real(right(queries, keys, temperature))))

    seen = observed(target, "info_nce")
    sentence = departure(seen, calls_of(target, seen, without))[0].sentence
    assert "every value is a number of float16, to which it was rounded at last" in sentence
