import json
from decimal import Decimal, localcontext
from itertools import pairwise
from math import exp, isfinite, log, sqrt
from sys import float_info

import numpy as np
import pytest
from sweep import sweep

from nceref.registry import discover
from nceref.spec import Loss
from nceref.theory import analogues
from nceref.theory.figures.class_bounds import FIGURE
from nceref.theory.prove import claims
from nceref.theory.table import Cell, Table
from nceref.theory.tables import class_bounds, contrastive_vs_simple, conventions, hardness, paco_optimum
from nceref.theory.tables.temperature_cross_entropy import single_precision
from nceref.theory.verdicts import Verdict, verdict
from tools import analogues as made

pytestmark = pytest.mark.machine

TABLES = discover("nceref.theory.tables", "TABLE", Table)
AGREES, PRINTED, TRUNCATED = Verdict.AGREES, Verdict.PRINTED_DIGITS, Verdict.TRUNCATED
ARTIFACT, WRONG = Verdict.FLOAT32_ARTIFACT, Verdict.WRONG

every_table = pytest.mark.parametrize("name", TABLES)


def plain(value):
    numbers = value.computed if isinstance(value, Cell) else value
    return numbers if isinstance(numbers, tuple) else (numbers,)


def verdicts(name, column):
    return [verdict(row[column]) for row in TABLES[name].rows() if isinstance(row.get(column), Cell)]


def published(name, column):
    return [row[column].published for row in TABLES[name].rows()]


def exact_softmax(logits, temperature):
    with localcontext() as context:
        context.prec = 40
        weights = [(Decimal(logit) / Decimal(temperature)).exp() for logit in logits]
        # The loss as log(1 + others / own): 40 digits are too few for the logarithm of 1 - 1e-42.
        losses = [(1 + (sum(weights) - own) / own).ln() for own in weights]
        return [weight / sum(weights) for weight in weights], losses


def relative_error(logits, temperature):
    """Bound for float64: a logit l is off by 2 roundings, which exp turns into a relative error; then N + 2 more."""
    largest = max(abs(Decimal(logit) / Decimal(temperature)) for logit in logits)
    return (2 * 2 * float(largest) + len(logits) + 2) * float_info.epsilon


def near(computed, exact, relative):
    return abs(Decimal(computed) - exact) <= Decimal(relative) * abs(exact)


@every_table
def test_every_row_keeps_to_the_columns_and_every_column_is_used(name):
    rows = TABLES[name].rows()
    used = {column for row in rows for column, value in row.items() if value is not None}
    assert used == set(TABLES[name].columns)
    assert all(list(row) == [column for column in TABLES[name].columns if column in row] for row in rows)


@every_table
def test_every_number_is_a_finite_python_number(name):
    for row in TABLES[name].rows():
        for value in row.values():
            assert all(type(number) in {str, int, float, type(None)} for number in plain(value))
            assert all(isfinite(number) for number in plain(value) if isinstance(number, float))


def test_source_001_prints_two_right_losses_and_a_float32_artifact():
    assert published("temperature-cross-entropy", "loss, class 2") == ["0.4076", "0.1429", "4.5418e-05"]
    assert verdicts("temperature-cross-entropy", "loss, class 2") == [PRINTED, PRINTED, ARTIFACT]
    for k in range(3):
        assert verdicts("temperature-cross-entropy", f"softmax[{k}]") == [PRINTED] * 3


def test_the_artifacts_are_the_textbook_loss_in_float32():
    assert f"{single_precision((1.0, 2.0, 3.0), 2, 0.1):.4e}" == "4.5418e-05"
    assert f"{TABLES['temperature-cross-entropy'].rows()[-1]['loss, class 2'].computed:.4e}" == "4.5401e-05"
    assert single_precision((0.5, 0.25, -0.45, -0.1), 0, 0.01) == 0
    assert TABLES["temperature-easy"].rows()[-1]["loss"].computed > 0


def test_the_wrong_class_of_source_001_loses_the_gap_of_the_logits_more():
    for row in TABLES["temperature-cross-entropy"].rows():
        gap = 2 / row["temperature"]
        bound = (2 + row["loss, class 0"]) * 4 * float_info.epsilon
        assert abs(row["loss, class 0"] - row["loss, class 2"].computed - gap) <= bound


@sweep(
    ("column", "easy", "hard"),
    [
        ("sim/tau", [AGREES] * 4, [AGREES] * 4),
        ("softmax[0]", [PRINTED] * 4, [PRINTED, PRINTED, TRUNCATED, TRUNCATED]),
        ("softmax[1]", [PRINTED, PRINTED, TRUNCATED, TRUNCATED], [PRINTED] * 4),
        ("softmax[2]", [PRINTED, PRINTED, TRUNCATED, PRINTED], [PRINTED, PRINTED, TRUNCATED, PRINTED]),
        ("softmax[3]", [PRINTED, PRINTED, PRINTED, TRUNCATED], [PRINTED, PRINTED, PRINTED, TRUNCATED]),
        ("loss", [PRINTED, PRINTED, PRINTED, ARTIFACT], [PRINTED] * 4),
    ],
)
def test_source_003_truncates_four_probabilities_of_each_table(column, easy, hard):
    assert verdicts("temperature-easy", column) == easy
    assert verdicts("temperature-hard", column) == hard


@pytest.mark.parametrize(
    ("name", "logits", "loss", "positive"),
    [
        ("temperature-cross-entropy", ("1", "2", "3"), "loss, class 2", 2),
        ("temperature-easy", ("0.5", "0.25", "-0.45", "-0.1"), "loss", 0),
        ("temperature-hard", ("0.25", "0.5", "-0.45", "-0.1"), "loss", 0),
    ],
)
def test_softmax_and_loss_equal_their_40_digit_values(name, logits, loss, positive):
    for row in TABLES[name].rows():
        temperature = str(row["temperature"])
        probabilities, losses = exact_softmax(logits, temperature)
        bound = relative_error(logits, temperature)
        assert all(near(row[f"softmax[{k}]"].computed, p, bound) for k, p in enumerate(probabilities))
        assert near(row[loss].computed, losses[positive], bound)


def test_a_lower_temperature_can_lower_the_loss_although_a_negative_is_more_similar():
    first, second, *_ = (row["loss"].computed for row in TABLES["temperature-hard"].rows())
    assert second < first


def test_every_accuracy_that_source_000_repeats_is_that_of_the_paper():
    assert verdicts("contrastive-vs-simple", "source 000") == [AGREES] * 8


@pytest.mark.parametrize("column", ["accuracy", "uniformity", "tolerance"])
def test_what_was_measured_on_trained_networks_is_not_reproducible_here(column):
    assert verdicts("contrastive-vs-simple", column) == [Verdict.NOT_REPRODUCIBLE] * 4 * 10


def test_the_gain_is_the_difference_of_the_printed_accuracies():
    rows = TABLES["contrastive-vs-simple"].rows()
    gains = {row["dataset"]: row["gain"] for row in rows if row["tau"] == 0.07 and row["loss"] == "contrastive"}
    printed = {
        "CIFAR-10": Decimal("79.75") - Decimal("74.83"),
        "CIFAR-100": Decimal("51.82") - Decimal("39.31"),
        "ImageNet-100": Decimal("71.53") - Decimal("48.09"),
        "SVHN": Decimal("92.55") - Decimal("70.83"),
    }
    assert gains == {dataset: float(gain) for dataset, gain in printed.items()}


def test_another_temperature_is_better_than_that_of_source_000_on_every_dataset():
    for accuracy, _, _ in contrastive_vs_simple.PAPER.values():
        assert max(map(float, accuracy[:4])) > float(accuracy[0])


def test_the_contrastive_loss_gets_more_tolerant_and_less_uniform_with_temperature():
    for _, uniformity, tolerance in contrastive_vs_simple.PAPER.values():
        assert sorted(uniformity[:4], key=float, reverse=True) == list(uniformity[:4])
        assert sorted(tolerance[:4], key=float) == list(tolerance[:4])


def test_no_published_uniformity_exceeds_that_of_the_uniform_law_in_128_dimensions():
    half, argument, term, series = 64, 4.0, 1.0, 1.0
    for k in range(60):
        term *= argument / ((half + k) * (k + 1))
        series += term
    largest = max(float(u) for _, uniformity, _ in contrastive_vs_simple.PAPER.values() for u in uniformity)
    assert largest <= 4 - log(series)


def test_the_published_tolerance_is_no_unconditional_mean():
    for dataset, same_label in {"CIFAR-10": 1 / 10, "CIFAR-100": 1 / 100}.items():
        assert max(map(float, contrastive_vs_simple.PAPER[dataset][2])) > same_label


def test_penalties_are_boltzmann_shares_of_the_negatives_and_gradients_are_probabilities_over_temperature():
    candidates = (hardness.POSITIVE, *hardness.NEGATIVES)
    for row in TABLES["hardness"].rows():
        t, s = row["temperature"], row["similarity"]
        penalty = exp(s / t) / sum(exp(other / t) for other in hardness.NEGATIVES)
        gradient = exp(s / t) / sum(exp(other / t) for other in candidates) / t
        for computed, expected in ((row["relative penalty"], penalty), (row["gradient"], gradient)):
            assert near(computed, Decimal(expected), 2 * relative_error(candidates, t))


def penalties(similarity):
    return [row["relative penalty"] for row in TABLES["hardness"].rows() if row["similarity"] == similarity]


def test_only_the_hardest_and_the_easiest_share_are_monotone_in_the_temperature():
    hardest, middle, easiest = (penalties(similarity) for similarity in sorted(hardness.NEGATIVES, reverse=True))
    assert all(before > after for before, after in pairwise(hardest))
    assert all(before < after for before, after in pairwise(easiest))
    assert max(middle) not in {middle[0], middle[-1]}


@sweep("temperature", hardness.TEMPERATURES)
def test_the_strongest_push_is_the_peak_of_the_tangential_force(temperature):
    grid = np.linspace(-1, 1, 20001)[1:-1]
    peak = grid[np.argmax(grid / temperature + np.log1p(-grid * grid) / 2)]
    assert abs(hardness.strongest_push(temperature) - peak) <= grid[1] - grid[0]


def test_the_strongest_push_at_temperature_1_is_the_golden_ratio_minus_1():
    assert abs(hardness.strongest_push(1.0) - (sqrt(5) - 1) / 2) <= float_info.epsilon


@sweep("temperature", hardness.TEMPERATURES)
def test_the_share_above_a_similarity_is_the_integral_of_the_boltzmann_law(temperature):
    # Midpoints: the error of the rule is h^2 / 24 times the second derivative, which is the integrand / tau^2.
    steps = 20000
    middles = -1 + (np.arange(steps) + 0.5) * 2 / steps
    law = np.exp((middles - 1) / temperature)
    bound = 2 * (2 / steps / temperature) ** 2 / 24 + steps * float_info.epsilon
    assert abs(hardness.share_above(0.8, temperature) - law[middles > 0.8].sum() / law.sum()) <= bound


def test_source_004_prints_a_balanced_optimum_that_holds_for_no_class_of_a_long_tail():
    assert published("paco-optimum", "P_sup") == ["0.71"] * 5
    assert verdicts("paco-optimum", "P_sup") == [PRINTED] + [WRONG] * 4
    balanced = TABLES["paco-optimum"].rows()[0]
    assert (balanced["alpha K"].published, balanced["pair probability"].published) == ("0.41", "0.035")
    assert verdicts("paco-optimum", "alpha K") + verdicts("paco-optimum", "pair probability") == [PRINTED] * 2


@sweep("positives", [1, 2, 8, 90])
@sweep("alpha", [1.0, 0.05, 0.01])
def test_no_probabilities_give_less_than_the_lowest_loss_and_the_optimum_attains_it(alpha, positives):
    def loss(center, pairs):
        return -log(center) - alpha * sum(map(log, pairs))

    lowest = paco_optimum.lowest_loss(alpha, positives)
    optimum = [paco_optimum.pair_probability(alpha, positives)] * positives
    attained = loss(paco_optimum.center_probability(alpha, positives), optimum)
    rounding = 4 * (positives + 2) * (1 + attained) * float_info.epsilon
    assert abs(attained - lowest) <= rounding
    for center, *pairs in np.random.default_rng(positives).dirichlet(np.ones(positives + 1), size=200):
        assert loss(center, pairs) >= lowest - rounding


@pytest.mark.parametrize("positives", [0.5, 8.192, 90.0])
def test_the_lowest_extra_is_the_minimum_over_the_probability_of_the_centers(positives):
    alpha = paco_optimum.ALPHA
    best = paco_optimum.center_probability(alpha, positives)
    lowest = paco_optimum.lowest_extra(alpha, positives)
    rounding = 16 * (1 + alpha * positives) * (1 + lowest) * float_info.epsilon
    grid = np.linspace(0, 1, 999)[1:-1]
    assert abs(-log(best) - alpha * positives * log(1 - best) - lowest) <= rounding
    assert np.all(-np.log(grid) - alpha * positives * np.log1p(-grid) >= lowest - rounding)


def test_the_bound_splits_into_the_supervised_contrastive_one_and_the_extra():
    for row in TABLES["paco-optimum"].rows():
        alpha, positives = row["alpha"], row["K"]
        whole = alpha * positives * log(positives) + row["lowest L_extra"]
        rounding = 16 * (1 + alpha * positives) * (1 + abs(whole)) * float_info.epsilon
        assert abs(whole - row["lowest loss"]) <= rounding


def test_without_centers_the_bounds_are_k_log_k_and_log_k():
    *rows, lone = TABLES["class-bounds"].rows()[: len(class_bounds.CLASS_SIZES)]
    for row in rows:
        positives = row["K"]
        assert (row["sum bound"], row["normalized bound"]) == (positives * log(positives), log(positives))
    assert lone["K"] < 1
    assert {lone[name] for name in class_bounds.QUANTITIES} == {None}


def test_no_bound_is_negative_and_no_probability_above_1():
    for row in TABLES["class-bounds"].rows():
        if row["K"] is not None and row["sum bound"] is not None:
            assert min(row["sum bound"], row["normalized bound"]) >= 0
            assert 0 < row["pair probability"] <= 1


def gaps(name):
    rows = [row for row in TABLES["class-bounds"].rows() if row["class"] == "head - tail"]
    return {row["alpha"]: row[name] for row in rows if row["alpha"] != "none"}


def test_a_smaller_alpha_brings_the_sum_bounds_together():
    by_alpha = sorted(gaps("sum bound").items())
    assert all(closer[1] < farther[1] for closer, farther in pairwise(by_alpha))


def test_a_smaller_alpha_does_not_bring_the_ratio_of_the_sum_bounds_to_1():
    head, tail = class_bounds.POSITIVES[0], class_bounds.POSITIVES[-1]
    ratios = [class_bounds.bounds(a, head)[0] / class_bounds.bounds(a, tail)[0] for a in (1e-2, 1e-4, 1e-6)]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[-1] > head / tail


def test_the_normalized_bounds_are_farthest_apart_at_the_named_alpha():
    found = gaps("normalized bound")
    widest = class_bounds.widest_alpha(class_bounds.POSITIVES[0], class_bounds.POSITIVES[-1])
    assert max(found, key=found.get) == widest
    # Only for alpha up to 1: then they part again, and farther.
    assert class_bounds.normalized_gap(10) > found[widest] > class_bounds.normalized_gap(1)
    assert f"{class_bounds.normalized_gap(widest):.3f} nats" in FIGURE.caption


def test_centers_bring_the_pair_probabilities_of_head_and_tail_together():
    ratios = [row["pair probability"] for row in TABLES["class-bounds"].rows() if row["class"] == "head / tail"]
    assert all(before < after < 1 for before, after in pairwise(ratios))


def test_every_implementation_has_one_row_that_states_every_convention():
    rows = TABLES["conventions"].rows()
    assert len({row["peer"] for row in rows}) == len(rows)
    assert all(row[column] for row in rows for column in conventions.COLUMNS)


def test_every_declared_loss_is_listed():
    assert [row["loss"] for row in TABLES["losses"].rows()] == list(discover("nceref.family", "LOSS", Loss))


def test_results_that_are_images_stand_beside_the_recorded_analogue():
    assert json.loads(analogues.PATH.read_text(encoding="utf-8")) == made.content()
    rows = TABLES["long-tail-results"].rows()
    images = [row for row in rows if row["published"] == "no number"]
    assert {row["image"] for row in images} == {"PaCoF2", "PaCoT1", "PaCoF3", "PaCoF6"}
    source = {(row["image"], row["measure"], row["loss"], row["data"]): row["analogue"] for row in images}
    record = json.loads((made.RECORDS / "long-tail.json").read_text(encoding="utf-8"))["values"]
    assert source["PaCoF6", "tail", "CE", "drawn"] == pytest.approx(100 * np.mean(record["CE"]["tail"]), rel=1e-5)
    mean, total = (source["PaCoF2", "pull slope", loss, "drawn"] for loss in ("SupCon mean", "SupCon sum"))
    assert mean < 0 < total


def test_published_accuracies_of_paco_are_those_of_the_claim():
    read = [row["published"] for row in TABLES["long-tail-results"].rows() if isinstance(row["published"], Cell)]
    assert {verdict(cell) for cell in read} == {Verdict.NOT_REPRODUCIBLE}
    claimed = ", ".join(value.published for value in claims()["PC-19"].values).split(", ")
    assert [cell.published for cell in read if cell.published not in claimed] == []
