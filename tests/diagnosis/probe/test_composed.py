"""A loss as stages: each as in the reference, and programs of which some are done otherwise."""

from inspect import signature

import numpy as np
import pytest
from diagnosis.probe.fresh_targets import inputs_like, measured_of
from slow import partly_slow

import nceref
from nceref.cases.records import Outcome
from nceref.diagnosis.dense.forms import FORMULA, batches, form_of, gradients, stages
from nceref.diagnosis.dense.ways.way import INTEGER, REAL, Stage, Way
from nceref.diagnosis.expressions import Product, expression_of, has_expression
from nceref.diagnosis.fresh import fresh_inputs
from nceref.diagnosis.probe.composed import SEARCHED
from nceref.diagnosis.probe.composition import Composition, lines
from nceref.diagnosis.probe.search import ONE, Replacement, TargetCall, number
from nceref.engine.bound_loss import bound_loss

MASKS = ("mask", "anchor_mode")
"""Inputs beside which a loss has no parts."""


@pytest.mark.parametrize(
    "name",
    partly_slow(
        nceref.all_losses(), ("clip", "dcl", "siglip", "supcon_in", "arcface").__contains__, "every kind of part"
    ),
)
def test_stages_make_up_the_reference(name):
    loss = nceref.get_loss(name).declaration
    for variant in loss.variants:
        inputs = fresh_inputs(
            inputs_like(loss, {"hardness": 0.0, **variant} if name == "mnrl" else variant), SEARCHED[1]
        )
        made = batches(loss, inputs)
        # Rows that are weighted have no other means, and logits with a hardness no other temperature.
        weighted = {"anchor_weights", "hardness"} & {*variant} or variant.get("correction") == "weighted"
        # Of two directions one alone has hard negatives.
        apart = variant.get("directions") == "symmetric" and "negatives" in variant
        assert (made is None) == bool(weighted or apart)
        if made is None:
            continue
        for reduction in ("mean", "sum") if loss.has_rows else ("mean",):
            y = float(bound_loss(loss, (), inputs).evaluate(reduction).value(reduction))
            line_up = stages(loss, inputs, reduction)
            assert TargetCall(line_up, made, y, 0.0, {}).tried({}) == pytest.approx(y, rel=1e-13)
            check_gradients(loss, inputs, reduction, line_up)


def check_gradients(loss, inputs, reduction, line_up):
    unchanged = Composition(loss, reduction, line_up, Replacement(()), 2.0**-53)
    bound = bound_loss(loss, (), inputs)
    given = {p.name: bound.arguments[p.name] for p in loss.parameters}
    want = bound.evaluate(reduction, keep=True).gradients()
    found = gradients(form_of(loss), given, {FORMULA: unchanged}, [*want], reduction)
    for name, gradient in want.items():
        room = 1e-12 * np.max(np.abs(gradient))
        np.testing.assert_allclose(found[name], gradient, rtol=1e-11, atol=room, err_msg=name)


@pytest.mark.parametrize(
    "name", partly_slow(["alignment", "nce", "info_nce", "siglip"], ("alignment", "nce").__contains__, "every way")
)
@np.errstate(all="ignore")
def test_ways_have_the_gradients_of_their_values(name):
    loss = nceref.get_loss(name).declaration
    inputs = dict(bound_loss(loss, (), fresh_inputs(inputs_like(loss, {}), SEARCHED[1])).arguments)
    leaves = [p for p in loss.differentiable if inputs.get(p) is not None]
    line_up = stages(loss, inputs, "mean")
    rng = np.random.default_rng(1)
    along = {leaf: 0.1 * rng.standard_normal(np.shape(inputs[leaf])) for leaf in leaves}
    changes = [(k, n, way) for k, stage in enumerate(line_up) for n, way in stage.alone if "rounded" not in way.text]
    without = 0
    for k, n, way in changes:
        constant = number({REAL: 0.4, INTEGER: 2.0}[way.constant]) if way.constant else None
        formula = Composition(loss, "mean", line_up, Replacement(((k, n),), constant), 2.0**-53)

        def value(step, formula=formula):
            moved = {leaf: inputs[leaf] + step * along[leaf] for leaf in leaves}
            return formula.rows({**inputs, **moved}).values[0]

        if not np.isfinite(value(0.0)):
            continue
        try:
            found = gradients(form_of(loss), inputs, {FORMULA: formula}, leaves)
        except (TypeError, AttributeError):
            # What the tape has no rule for is not compared.
            without += 1
            continue
        slope = sum(np.sum(found[leaf] * along[leaf]) for leaf in leaves)
        near = (8 * (value(1e-6) - value(-1e-6)) - value(2e-6) + value(-2e-6)) / 12e-6
        assert slope == pytest.approx(near, rel=1e-5, abs=1e-5), way.text
    assert without <= len(changes) / 50


@pytest.mark.parametrize(
    "name",
    partly_slow(
        ["supcon_out", "clip", "hcl", "dclw", "paco", "siglip"],
        ("dclw", "siglip").__contains__,
        "the same ways, of other losses",
    ),
)
def test_ways_at_once_are_what_they_are_one_by_one(name):
    """Also those that look at other rows, and those with a constant for each pair or for each row."""
    loss = nceref.get_loss(name).declaration
    inputs = fresh_inputs(inputs_like(loss, loss.variants[0]), SEARCHED[2])
    call = TargetCall(stages(loss, inputs, "mean"), batches(loss, inputs), 0.0, 1e-12, {})
    constants = (0.3, 1.0, 1.7, 2.0)
    with np.errstate(all="ignore"):
        call.before({}, keep=True)
        for k, stage in enumerate(call.stages[:-1]):
            few = [n for n, way in stage.alone[1:] if not way.constant][:12]
            numbers = [n for n in few if np.isfinite(call.tried({k: n}))]
            for n in numbers:
                call.before({k: n}, keep=True)
            for other, later in list(enumerate(call.stages[:-1]))[k + 1 :]:
                ways = [(n, ONE) for n, way in later.alone[1:] if not way.constant][:12]
                ways += [(n, number(0.7)) for n, way in later.alone if way.constant == REAL][:6]
                pairs = call.rows_of_pairs(k, [(n, ONE) for n in numbers], other, ways)
                values = [[call.tried({k: n, other: m}, c) for m, c in ways] for n in numbers]
                np.testing.assert_allclose(np.mean(pairs, axis=-1), values, rtol=1e-9, atol=1e-12)
            for n in (n for n, way in stage.alone if way.constant == REAL):
                values = [call.tried({k: n}, number(c)) for c in constants]
                np.testing.assert_allclose(call.with_constants({k: n}, constants), values, rtol=1e-9, atol=1e-12)


PROGRAMS = []
"""Loss, settings, program and what is different; the last few are quick."""


def program(loss, difference, **settings):
    def register(function):
        PROGRAMS.append((loss, settings, function, difference))
        return function

    return register


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def log_sum(x):
    return np.log(np.sum(np.exp(x), axis=1))


def surprise(logits, target):
    return log_sum(logits) - logits[np.arange(len(target)), target]


def angles(embeddings, class_weights):
    return np.arccos(np.clip(unit(embeddings) @ unit(class_weights).T, -1, 1))


@program("arcface", "l_ik = s (cos(theta + m)) if cos theta > cos m, else s (cos theta), for the target")
def margin_near_the_center_only(embeddings, class_weights, target, margin, scale):
    theta = angles(embeddings, class_weights)
    own = np.eye(len(class_weights))[target] > 0
    return np.mean(surprise(scale * np.cos(theta + margin * (own & (theta < margin))), target))


@program("hard_contrastive", "Z_i over the positive and the k easiest negatives")
def easiest_negatives(queries, keys, temperature, fraction):
    s = unit(queries) @ unit(keys).T
    n = len(s)
    own = np.eye(n, dtype=bool)
    k = int(np.ceil(round(fraction * (n - 1), 9)))
    limit = np.sort(np.where(own, np.inf, s), axis=1)[:, max(k, 1) - 1, None]
    return np.mean(log_sum(np.where(own | (s <= limit), s / temperature, -np.inf)) - np.diag(s) / temperature)


@program("info_nce", "s_ij = 1/(1 + |a - b|^2)")
def student_similarity(queries, keys, temperature):
    squares = np.sum((unit(queries)[:, None] - unit(keys)) ** 2, axis=2)
    return np.mean(surprise(1 / (1 + squares) / temperature, np.arange(len(queries))))


@program("clip", "L = (7/10) of the first direction and (3/10) of the second")
def directions_that_weigh_unequally(image, text, logit_scale):
    logits = logit_scale * unit(image) @ unit(text).T
    return 0.7 * np.mean(log_sum(logits) - np.diag(logits)) + 0.3 * np.mean(log_sum(logits.T) - np.diag(logits))


@program("nt_xent", "L = (1/4) of the first view and (3/4) of the second")
def views_that_weigh_unequally(z1, z2, temperature):
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    logits = np.where(np.eye(2 * n, dtype=bool), -np.inf, z @ z.T / temperature)
    rows = surprise(logits, np.roll(np.arange(2 * n), n))
    return 0.25 * np.mean(rows[:n]) + 0.75 * np.mean(rows[n:])


@program("info_nce", "Z_i over all candidates, and the other anchors")
def other_queries_among_the_negatives(queries, keys, temperature):
    x, y = unit(queries), unit(keys)
    others = np.where(np.eye(len(x), dtype=bool), -np.inf, x @ x.T)
    return np.mean(surprise(np.concatenate([x @ y.T, others], axis=1) / temperature, np.arange(len(x))))


@program("sampled_softmax", "l_ij = (s_ij + log(m_j))/T, in the reference l_ij = s_ij/T - log(m_j)")
def correction_added_before_the_temperature(queries, items, expected_counts, temperature):
    s = unit(queries) @ unit(items).T + np.log(expected_counts)
    return np.mean(surprise(s / temperature, np.arange(len(s))))


@program("sampled_softmax", "l_ij = s_ij/T - log(m_j + 1)", correction="negatives")
def count_and_one_taken_off_all(queries, items, expected_counts, temperature):
    s = unit(queries) @ unit(items).T / temperature - np.log1p(expected_counts)
    return np.mean(surprise(s, np.arange(len(s))))


@program("info_nce", "l_ij = s_ij/T, 1/(10 T) smaller for positives, in the reference l_ij = s_ij/T")
def margin_taken_off_the_positives(queries, keys, temperature):
    s = unit(queries) @ unit(keys).T
    return np.mean(surprise((s - 0.1 * np.eye(len(s))) / temperature, np.arange(len(s))))


@program("siglip", "l_ij = t s_ij + b/2")
def half_of_the_bias(image, text, logit_scale, logit_bias):
    logits = logit_scale * unit(image) @ unit(text).T + logit_bias / 2
    return np.sum(np.log1p(np.exp(logits * (1 - 2 * np.eye(len(logits)))))) / len(logits)


@program("hcl", "w_ij = e^(b l_ij), in the reference w_ij = e^(b l_ij) over its mean")
def importance_without_its_mean(z1, z2, temperature, positive_prior, concentration):
    z, n = unit(np.concatenate([z1, z2])), len(z1)
    e = np.exp(z @ z.T / temperature)
    own = np.eye(2 * n, dtype=bool)
    positive = np.roll(own, n, axis=1)
    inside = ~own & ~positive
    estimate = np.sum(inside * e ** (1 + concentration), axis=1) - positive_prior * (2 * n - 2) * e[positive]
    kept = np.maximum(estimate / (1 - positive_prior), (2 * n - 2) * np.exp(-1 / temperature))
    return np.mean(np.log(1 + kept / e[positive]))


@program("supcon_out", "P(i): positives with j > i", labels=...)
def pairs_once(embeddings, labels, temperature):
    x = unit(embeddings) @ unit(embeddings).T / temperature
    own = np.eye(len(x), dtype=bool)
    after = np.triu(labels[:, None] == labels, 1)
    log_p = x - log_sum(np.where(own, -np.inf, x))[:, None]
    return np.mean(-np.sum(after * log_p, axis=1) / np.maximum(np.sum(after, axis=1), 1))


@program("balanced_softmax", "l_ik = x_ik/T + (3/2) log(n_k)")
def counts_to_a_power(logits, target, class_counts, temperature):
    return np.mean(surprise(logits / temperature + 1.5 * np.log(class_counts), target))


@program("cross_entropy", "L = mean of L_i over rows of all classes but 0")
def class_zero_ignored(logits, target, temperature):
    rows = surprise(logits / temperature, target)
    return np.sum(rows * (target != 0)) / max(np.sum(target != 0), 1)


@program("cross_entropy", "P(i): the target and e/C of every class, in the reference P(i): (1 - e) of the target")
def smoothing_on_top(logits, target, temperature, label_smoothing):
    x = logits / temperature
    weights = np.eye(x.shape[1])[target] + label_smoothing / x.shape[1]
    return np.mean(np.sum(weights * (log_sum(x)[:, None] - x), axis=1))


@program("cross_entropy", "L = the sum of means of chunks of 32 rows")
def chunks_of_32(logits, target, temperature):
    rows = surprise(logits / temperature, target)
    return sum(np.mean(rows[k : k + 32]) for k in range(0, len(rows), 32))


@program("cosface", "rows: the first 64 features of x, then divided by their length")
def first_64_features(embeddings, class_weights, target, margin, scale):
    own = np.eye(len(class_weights))[target]
    return np.mean(surprise(scale * (np.cos(angles(embeddings[:, :64], class_weights[:, :64])) - margin * own), target))


def diagnosis_of(loss, settings, function, reduction="mean"):
    declaration = nceref.get_loss(loss).declaration
    defaults = {p.name: getattr(p, "default", None) for p in declaration.parameters}

    def call(probe):
        given = {name: probe.inputs.get(name, defaults[name]) for name in signature(function).parameters}
        with np.errstate(all="ignore"):
            return Outcome(function(**given))

    # What a target does not take stays as it is by default.
    fixed = {name: x for name, x in defaults.items() if x == 0 and name not in signature(function).parameters}
    return measured_of(call, declaration, {**declaration.variants[0], **fixed, **settings}, reduction=reduction)


QUICK = PROGRAMS[-4:]


@pytest.mark.parametrize(
    ("loss", "settings", "function", "difference"),
    partly_slow(PROGRAMS, QUICK.__contains__, "every kind of part"),
    ids=lambda x: getattr(x, "__name__", None),
)
def test_the_part_that_differs_is_measured(loss, settings, function, difference):
    diagnosis = diagnosis_of(loss, settings, function)
    assert f"another formula ({difference}" in diagnosis.sentence
    part = difference.partition(", in the reference")[0]
    assert f"<<{part}" in diagnosis.formula
    assert diagnosis.reference.count("<<") == diagnosis.formula.count("<<") == 1
    assert diagnosis.fix


def three_at_once(image, text, logit_bias):
    logits = unit(image) @ unit(text).T + logit_bias
    n = len(logits)
    return np.sum(np.triu(np.log1p(np.exp(logits * (1 - 2 * np.eye(n)))))) / n**2


def test_three_parts_that_differ_at_once_are_measured():
    diagnosis = diagnosis_of("siglip", {}, three_at_once)
    assert diagnosis.formula.count("<<") == 3
    assert "<<L = sum_i L_i/N^2>>" in diagnosis.formula
    assert "<<m_ij over candidates j >= i>>" in diagnosis.formula
    assert "<<l_ij = s_ij + b>>" in diagnosis.formula
    assert diagnosis.fix.count("in the place of") == 3


def uneven_directions_of_centered_rows(image, text, logit_scale):
    x, y = (unit(each - each.mean(axis=0)) for each in (image, text))
    logits = logit_scale * x @ y.T
    return 0.7 * np.mean(log_sum(logits) - np.diag(logits)) + 0.3 * np.mean(log_sum(logits.T) - np.diag(logits))


def test_a_constant_beside_another_change_is_measured():
    diagnosis = diagnosis_of("clip", {}, uneven_directions_of_centered_rows)
    assert "<<L = (7/10) of the first direction and (3/10) of the second>>" in diagnosis.formula
    assert diagnosis.formula.count("<<") == 2


def positives_half_as_large_of_later_keys(queries, keys, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    own = np.eye(len(logits), dtype=bool)
    logits = np.where(own, logits / 2, logits)
    return np.sum(log_sum(np.where(np.triu(~own) | own, logits, -np.inf)) - np.diag(logits))


@pytest.mark.slow(reason="a search of many pairs; the test above has a quicker one")
def test_a_constant_in_a_stage_beside_two_others_is_measured():
    diagnosis = diagnosis_of("info_nce", {}, positives_half_as_large_of_later_keys)
    assert "<<l_ij = s_ij/T, (1/2) times as large for positives>>" in diagnosis.formula
    assert "<<Z_i over candidates j >= i>>" in diagnosis.formula
    assert "<<L = sum_i L_i>>" in diagnosis.formula


def warm_positives_of_clipped_similarities(queries, keys, temperature):
    similarities = np.maximum(unit(queries) @ unit(keys).T, 0)
    logits = similarities / np.where(np.eye(len(similarities), dtype=bool), 1, temperature)
    return np.mean(log_sum(logits) - np.diag(logits))


def margin_of_clipped_similarities(queries, keys, temperature):
    similarities = np.maximum(unit(queries) @ unit(keys).T, 0)
    logits = (similarities - 0.1 * np.eye(len(similarities))) / temperature
    return np.mean(log_sum(logits) - np.diag(logits))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (warm_positives_of_clipped_similarities, "T times as large for positives"),
        pytest.param(
            margin_of_clipped_similarities,
            "1/(10 T) smaller for positives",
            marks=pytest.mark.slow(reason="a search of many pairs; the other is one as well"),
        ),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_the_temperature_and_what_is_taken_off_are_usual_constants(function, words):
    diagnosis = diagnosis_of("info_nce", {}, function)
    assert f"<<l_ij = s_ij/T, {words}>>" in diagnosis.formula
    assert "<<s_ij = max(a.b, 0)>>" in diagnosis.formula
    assert diagnosis.formula.count("<<") == 2


def test_rows_that_are_added_up_are_measured_as_well():
    def without_class_zero(logits, target, temperature):
        return surprise(logits / temperature, target) * (target != 0)

    diagnosis = diagnosis_of("cross_entropy", {}, without_class_zero, "none")
    assert diagnosis.sentence.startswith(
        "the sum of your rows equals that of the reference with another formula (L = sum of L_i over rows of all"
        " classes but 0, in the reference L = sum_i L_i)"
    )


def test_one_negative_constant_is_subtracted():
    stage = Stage("mean", "L = ", tuple(Way(text, lambda batch, c: c) for text in ("J", "J + {c}", "{c} J")))
    minus = (Product(-1.0, (("log T", 1.0),)),)
    assert lines((stage,), Replacement(((0, 1),), minus))[:2] == ("<<L = J - log T>>", "<<L = J>>")
    assert lines((stage,), Replacement(((0, 2),), minus))[0] == "<<L = (-log T) J>>"


def test_what_a_number_leaves_of_one_is_a_number():
    texts = ("J", "{c} of the first and 1 - {c} of the second", "(1 - {c}) J")
    stage = Stage("mean", "L = ", tuple(Way(text, lambda batch, c: c) for text in texts))
    share = (Product(0.7),)
    assert lines((stage,), Replacement(((0, 1),), share))[0] == "<<L = (7/10) of the first and (3/10) of the second>>"
    assert lines((stage,), Replacement(((0, 2),), share))[0] == "<<L = (3/10) J>>"


def test_a_number_that_follows_an_expression_is_not_given_up_after_four_places():
    rng = np.random.default_rng(3)
    places = [
        {"N": n, "T": t, "C": c, "D": 8.0}
        for n, t, c in zip((5, 6, 4, 7, 8, 24), rng.uniform(0.4, 0.7, 6), (3, 4, 3, 5, 4, 6), strict=True)
    ]
    followed = (
        lambda v: 0.3,
        lambda v: 2 * v["N"] - 1,
        lambda v: 0.5 / v["T"] ** 2,
        lambda v: np.exp(-2 / v["T"]),
        lambda v: np.log(v["N"]) - 3 / v["C"],
        lambda v: (1 / v["T"] - 2) / v["N"],
    )
    for of in followed:
        values = np.array([of(v) for v in places])
        off = 1e-8 * np.abs(values)
        # As far off as roundings put them.
        values = values + rng.uniform(-1, 1, 6) * off
        assert expression_of(values, off, places)
        assert has_expression(values[:4], off[:4], places[:4])
    values = rng.uniform(0.5, 2.0, 6)
    assert not has_expression(values[:4], 1e-8 * values[:4], places[:4])
