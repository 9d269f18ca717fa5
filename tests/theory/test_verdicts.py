import string
from decimal import ROUND_DOWN, Decimal
from math import exp, inf, log1p, nan

import numpy as np
import pytest
from sweep import sweep

from nceref.errors import InputError
from nceref.registry import discover
from nceref.theory.table import Cell, Table
from nceref.theory.verdicts import Verdict, printed_numbers, verdict


def cells():
    tables = discover("nceref.theory.tables", "TABLE", Table)
    return [
        pytest.param(value, id=f"{name}-{number}-{column}")
        for name, table in tables.items()
        for number, row in enumerate(table.rows())
        for column, value in row.items()
        if isinstance(value, Cell)
    ]


def altered(text):
    """Every text that differs from `text` in one digit."""
    digits = [i for i, character in enumerate(text) if character in string.digits]
    return [text[:i] + other + text[i + 1 :] for i in digits for other in string.digits if other != text[i]]


@sweep(
    ("published", "computed", "expected"),
    [
        ("10", 0.5 / 0.05, Verdict.AGREES),
        ("-9", -0.45 / 0.05, Verdict.AGREES),
        ("0.3", 0.1 + 0.2, Verdict.AGREES),
        ("0.67", 2 / 3, Verdict.PRINTED_DIGITS),
        ("0.66", 2 / 3, Verdict.TRUNCATED),
        ("0.68", 2 / 3, Verdict.WRONG),
        ("0.67", 0.662, Verdict.WRONG),
        ("-0.67", -2 / 3, Verdict.PRINTED_DIGITS),
        ("-0.66", -2 / 3, Verdict.TRUNCATED),
        ("0.67", -2 / 3, Verdict.WRONG),
        ("1.00", 1 - 1.4e-11, Verdict.PRINTED_DIGITS),
        ("25", 25 + 1.4e-11, Verdict.PRINTED_DIGITS),
        ("3", 2.5, Verdict.PRINTED_DIGITS),
        ("2", 2.5, Verdict.TRUNCATED),
        ("6.6e-03", 6.69e-3, Verdict.TRUNCATED),
        ("6.7e-03", 6.69e-3, Verdict.PRINTED_DIGITS),
        ("6.1-06", 6.103e-6, Verdict.PRINTED_DIGITS),
        ("5.5-42", 5.521e-42, Verdict.PRINTED_DIGITS),
        ("8.7-27", 8.757e-27, Verdict.TRUNCATED),
    ],
)
def test_a_number_is_judged_by_its_printed_digits(published, computed, expected):
    assert verdict(Cell(published, computed)) is expected


def test_a_float32_artifact_equals_the_float32_evaluation_and_not_the_exact_number():
    exact = log1p(exp(-10) + exp(-20))
    single = float(np.log(np.float32(1) + np.float32(exp(-10) + exp(-20))))
    assert verdict(Cell("4.5418e-05", exact, single)) is Verdict.FLOAT32_ARTIFACT
    assert verdict(Cell("4.5401e-05", exact, single)) is Verdict.PRINTED_DIGITS
    assert verdict(Cell("4.5418e-05", exact)) is Verdict.WRONG


@pytest.mark.parametrize("zero", ["0", "0.00", "0e-05"])
def test_a_printed_zero_agrees_with_nothing_but_an_exact_zero(zero):
    assert verdict(Cell(zero, 0.0)) is Verdict.AGREES
    assert verdict(Cell(zero, exp(-25))) is Verdict.WRONG
    assert verdict(Cell(zero, exp(-25), 0.0)) is Verdict.FLOAT32_ARTIFACT
    assert verdict(Cell(zero, exp(-25), exp(-25))) is Verdict.WRONG


def test_a_list_gets_the_worst_verdict_of_its_numbers():
    exact = (0.5, 2 / 3, 2 / 3, 4.0)
    assert verdict(Cell("[0.5, 0.67, 0.67, 4]", exact)) is Verdict.PRINTED_DIGITS
    assert verdict(Cell("[0.5, 0.67, 0.66, 4]", exact)) is Verdict.TRUNCATED
    assert verdict(Cell("0.5, 0.67, 0.66, 5", exact, (0.5, 0.7, 0.7, 5.0))) is Verdict.FLOAT32_ARTIFACT
    assert verdict(Cell("[ 0.5, 0.67, 0.66, 5]", exact)) is Verdict.WRONG


def test_another_count_of_numbers_is_wrong():
    assert verdict(Cell("[0.5, 0.5]", (0.5,))) is Verdict.WRONG
    assert verdict(Cell("0.5", (0.5, 0.5))) is Verdict.WRONG


def test_what_cannot_be_computed_is_not_reproducible_here():
    assert verdict(Cell("79.75", None)) is Verdict.NOT_REPRODUCIBLE


def test_the_digits_of_a_list_are_read_as_printed():
    assert printed_numbers("[ 25, 1.00, 5.5-42]") == (Decimal("25"), Decimal("1.00"), Decimal("5.5e-42"))
    assert [number.as_tuple().exponent for number in printed_numbers("[ 25, 1.00, 5.5-42]")] == [0, -2, -43]


@pytest.mark.parametrize("text", ["", "5-3", "70%", "[1, ]", "one"])
def test_a_text_without_a_number_is_refused(text):
    with pytest.raises(InputError, match="must be a number or a list of numbers"):
        verdict(Cell(text, 1.0))


@pytest.mark.parametrize("computed", [nan, inf, (1.0, -inf)])
def test_a_computed_number_that_is_not_finite_is_refused(computed):
    with pytest.raises(InputError, match="must be finite"):
        verdict(Cell("1", computed))


@sweep("cell", cells())
def test_another_digit_anywhere_in_a_table_changes_the_verdict(cell):
    before = verdict(cell)
    changed = [
        text for text in altered(cell.published) if verdict(Cell(text, cell.computed, cell.single)) is not before
    ]
    if before is Verdict.NOT_REPRODUCIBLE:
        assert changed == []
    elif before is Verdict.WRONG:
        unit = Decimal(1).scaleb(printed_numbers(cell.published)[0].as_tuple().exponent)
        exact = Decimal(cell.computed)
        right = {str(exact.quantize(unit)), str(exact.quantize(unit, rounding=ROUND_DOWN))}
        assert set(changed) == right.intersection(altered(cell.published))
    else:
        assert changed == altered(cell.published)


@pytest.mark.parametrize("cell", [cell for cell in cells() if verdict(cell.values[0]) is Verdict.WRONG])
def test_the_right_digits_make_a_wrong_cell_agree(cell):
    digits = -printed_numbers(cell.published)[0].as_tuple().exponent
    assert verdict(Cell(f"{cell.computed:.{digits}f}", cell.computed)) is Verdict.PRINTED_DIGITS


@sweep("seed", range(20))
def test_another_digit_changes_the_verdict_of_any_number(seed):
    rng = np.random.default_rng(seed)
    computed = float(rng.normal() * 10.0 ** rng.integers(-30, 30))
    for text in (f"{computed:.{rng.integers(0, 17)}e}", f"{computed:.{rng.integers(0, 17)}g}", repr(computed)):
        before = verdict(Cell(text, computed))
        assert before in {Verdict.AGREES, Verdict.PRINTED_DIGITS}
        assert all(verdict(Cell(other, computed)) is not before for other in altered(text))
