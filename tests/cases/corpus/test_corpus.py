"""The designed corpus: deterministic, telling, in range of its format, and never a failure where nothing is asked."""

from dataclasses import replace

import numpy as np
import pytest
from slow import partly_slow
from sweep import every_loss, sweep

from nceref import get_loss, verify
from nceref.cases.corpus import corpus as module
from nceref.cases.corpus.corpus import corpus, designed_inputs, evaluate
from nceref.cases.corpus.geometries import EVERY, FEW, PLACES, SUITES, specs
from nceref.cases.records import Probe
from nceref.cases.rounding import rounded
from nceref.engine import bound_loss, passes
from nceref.engine.arguments import bind
from nceref.engine.passes import evaluate as evaluate_pass
from nceref.errors import InputError
from nceref.tolerance.implementation import FORMATS


def probes(name, settings=None, **more):
    return corpus(get_loss(name).declaration, settings or {}, **more)


def inputs(name, suite, settings=None, dtype="float64", fixed=None):
    """Inputs by id, without their references: most of the time goes into these."""
    made = list(designed_inputs(get_loss(name).declaration, settings or {}, suite, dtype, 0, fixed or {}))
    assert len({id for id, _ in made}) == len(made)
    return dict(made)


def by_id(name, id, settings=None, **more):
    return next(p for p in probes(name, settings, **more) if p.id == id)


@sweep("suite", ["quick", "standard"])
@every_loss
def test_ids_are_unique_and_the_designed_probe_comes_first(loss_name, suite):
    ids = list(inputs(loss_name, suite))
    assert ids[0].split("-")[0] == "designed"
    # Without a temperature, a geometry comes once.
    least = {"quick": 10, "standard": 15} if ids[0] == "designed" else {"quick": 12, "standard": 38}
    assert len(ids) >= least[suite]


def test_the_full_suite_has_every_geometry_and_two_sizes():
    ids = list(inputs("supcon_out", "full"))
    few = sum(map(len, FEW.values()))
    assert len(ids) == len(EVERY) * (len(PLACES) - len(FEW) + 7) + few  # seven of them are large as well
    assert {id.removeprefix("large-").rpartition("-")[0] for id in ids} == set(PLACES)


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_is_warm_cold_steep_and_biased(suite):
    of = {name: inputs(name, suite).values() for name in ("nt_xent", "clip", "siglip")}
    assert {0.3, 0.07, 0.001} <= {x["temperature"] for x in of["nt_xent"]}
    assert 100.0 in {x["logit_scale"] for x in of["clip"]}
    assert min(abs(x["logit_bias"]) for x in of["siglip"]) >= 5
    assert len({x["logit_bias"] for x in of["siglip"]}) > 2


@pytest.mark.parametrize("suite", SUITES)
def test_temperature_geometry_and_size_are_not_confounded(suite):
    """What fails at one level of one of them fails beside cases of the same level of the others that pass."""
    cases = [
        (place, temperature, tuple({**sizes, **PLACES[place][1]}[letter] for letter in "ND"))
        for _, place, temperature, sizes in specs(suite)
    ]
    at, of, shaped = {}, {}, {}
    for place, temperature, size in cases:
        at.setdefault(temperature, set()).add(place)
        of.setdefault(place, set()).add(temperature)
        shaped.setdefault(size, set()).add(place)
    assert min(map(len, at.values())) >= 2
    # A geometry of its own size has rows that are drawn like those of the designed one.
    own = {PLACES[place][0] for places in shaped.values() if len(places) == 1 for place in places}
    assert own <= {PLACES["designed"][0], PLACES["lengths"][0], PLACES["random"][0]}
    once = {place for place, temperatures in of.items() if len(temperatures) == 1}
    assert not once & {"seven", "classes", "aligned", "opposed", "antipodal", "separated", "collapsed", "duplicate"}
    assert all(len(at[temperature]) >= 2 for place in once for temperature in of[place])
    labelled = {place for place, *_ in cases if place in ("classes", "lonely", "one-class")}
    assert all(len(shaped[size]) >= 2 for place, _, size in cases if place in labelled)


@every_loss
def test_the_designed_batch_is_five_by_three_and_has_no_symmetry(loss_name):
    first = next(iter(inputs(loss_name, "quick").values()))
    floats = [x for x in first.values() if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.ndim == 2]
    assert any(x.shape[0] == 5 for x in first.values() if isinstance(x, np.ndarray))
    for x in floats:
        lengths = np.linalg.norm(x, axis=1)
        assert len(np.unique(x)) == x.size
        assert np.ptp(lengths) > 0.1
        assert np.min(np.abs(lengths - 1)) > 1e-3


def test_sizes_differ_from_one_another_and_between_probes():
    shapes = {p.inputs["z1"].shape for p in probes("nt_xent", suite="quick") if not p.skip}
    assert len(shapes) >= 4
    assert all(n != d for n, d in shapes)


def test_classes_are_of_unequal_size_and_some_have_three_members():
    counts = [np.unique(x["labels"], return_counts=True)[1] for x in inputs("supcon_out", "quick").values()]
    assert any(len(set(c.tolist())) > 1 and max(c) == 3 for c in counts)


def test_what_is_remembered_is_bounded_and_belongs_to_the_declaration_and_not_to_its_name(monkeypatch):
    monkeypatch.setattr(module, "evaluate", lambda loss, x, dtype, *_, forms: Probe("x", loss, x, dtype))
    limit = module._probes.cache_info().maxsize
    for seed in range(limit + 3):
        probes("alignment", suite="quick", seed=seed)
    assert module._probes.cache_info().currsize == limit
    namesake = replace(get_loss("alignment").declaration, summary="another loss of this name")
    assert corpus(namesake, {}, suite="quick", seed=limit)[0].loss is namesake
    module._probes.cache_clear()


def test_the_same_call_gives_the_same_probes_and_another_seed_others():
    first = probes("alignment", suite="quick")
    assert probes("alignment", suite="quick") is first
    module._probes.cache_clear()
    again, other = probes("alignment", suite="quick"), probes("alignment", suite="quick", seed=1)
    assert [p.value for p in again] == [p.value for p in first]
    assert [p.id for p in other] == [p.id for p in first]
    assert other[0].value != first[0].value


@sweep("dtype", [dtype for dtype in FORMATS if dtype != "float64"])
@every_loss
def test_inputs_are_numbers_of_the_format(loss_name, dtype):
    for case in inputs(loss_name, "quick", dtype=dtype).values():
        for x in case.values():
            assert np.array_equal(rounded(x, dtype), x)
            assert not isinstance(x, np.ndarray) or not x.flags.writeable


def test_rounding_is_that_of_the_formats():
    x = np.array([1 / 3, -2.0 / 3, 1e-3, 1e-7, 3e-8, 65519.0, 7e4, 0.0, 1e-41])
    for dtype in ("float32", "float16"):
        with np.errstate(over="ignore"):
            assert np.array_equal(rounded(x, dtype), x.astype(dtype).astype(np.float64))
    # To nearest, ties to even: 1 + 2^-8 lies in the middle between 1 and 1 + 2^-7.
    assert np.array_equal(rounded(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8]), "bfloat16"), [1, 1 + 2.0**-6])
    assert rounded(0.07, "bfloat16") == 0.06982421875
    assert rounded("l2", "float16") == "l2"
    assert rounded(True, "float16") is True


def test_bfloat16_is_that_of_pytorch():
    torch = pytest.importorskip("torch", reason="another implementation of the format")
    x = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-20, 20).repeat(25)
    assert np.array_equal(rounded(x, "bfloat16"), torch.tensor(x).to(torch.bfloat16).double().numpy())


def test_what_the_reference_refuses_is_skipped_in_its_words():
    assert "has no positive" in by_id("supcon_out", "lonely-0.3", suite="quick").skip
    assert "is zero and has no direction" in by_id("nt_xent", "zero-0.3", suite="quick").skip
    assert "no negatives" in by_id("dcl", "single-0.3", suite="quick").skip
    skipped = by_id("dcl", "single-0.3", suite="quick")
    assert skipped.value is None
    assert skipped.bounds is None
    assert skipped.inputs["z1"].shape[0] == 1


@pytest.mark.parametrize("policy", ["skip", "zero"])
@pytest.mark.parametrize("by", ["labels", "mask"])
def test_an_anchor_without_positive_is_judged_under_a_policy(policy, by):
    case = inputs("supcon_out", "quick", {by: ..., "no_positive": policy})["lonely-0.3"]
    probe = evaluate(get_loss("supcon_out").declaration, case)
    assert not probe.skip
    assert np.isfinite(probe.value)
    assert evaluate(get_loss("supcon_out").declaration, case, reduction="none").value[0] == 0


def test_on_a_kink_the_value_is_judged_and_the_gradients_are_not():
    probe = by_id("arcface", "antipodal-0.3", suite="quick")
    assert not probe.skip
    assert probe.grads == {}
    assert probe.bounds.value > 0


def test_settings_choose_what_is_given():
    def first(settings):
        return inputs("supcon_out", "quick", settings)["designed-0.3"]

    queued = first({"labels": ..., "queue": ..., "queue_labels": ..., "form": "sum"})
    assert {"queue", "queue_labels", "labels"} <= set(queued)
    assert queued["form"] == "sum"
    views = first({"embeddings": "views"})
    assert views["embeddings"].ndim == 3
    assert "labels" not in views
    # A policy alone leaves the arrays of the first variant.
    assert "labels" in first({"no_positive": "zero"})


def test_without_normalization_rows_stay_raw_unless_the_loss_refuses_them():
    raw = inputs("nt_xent", "quick", {"normalize": "none"})["designed-0.3"]
    assert np.max(np.linalg.norm(raw["z1"], axis=1)) > 1
    short = inputs("arcface", "quick", {"normalize": "none"})["designed-0.3"]
    assert not evaluate(get_loss("arcface").declaration, short).skip
    assert np.max(np.linalg.norm(short["embeddings"], axis=1)) < 1


def test_a_fixed_scalar_is_the_same_everywhere_and_no_probe_comes_twice():
    fixed = inputs("nt_xent", "standard", fixed={"temperature": 0.07}, dtype="bfloat16")
    assert {x["temperature"] for x in fixed.values()} == {0.07}
    assert len(fixed) == len({id.split("-")[0] for id in fixed})
    margins = probes("arcface", suite="quick", fixed={"margin": 0.25, "scale": 30.0})
    assert {(p.inputs["margin"], p.inputs["scale"]) for p in margins} == {(0.25, 30.0)}


VARIED = [
    ("alignment", "exponent"), ("uniformity", "t"), ("arcface", "margin"), ("cosface", "margin"), ("dclw", "sigma"),
    ("cross_entropy", "label_smoothing"), ("debiased", "positive_prior"), ("hcl", "concentration"),
    ("hard_contrastive", "fraction"), ("paco", "alpha"), ("nce", "noise_ratio"),
]  # fmt: skip


CHEAP = ("alignment", "uniformity", "cross_entropy", "hard_contrastive", "nce")
"""Of which all probes of the quick suite are soon evaluated; inputs alone cost nothing."""


@pytest.mark.parametrize(
    ("name", "scalar", "suite"),
    partly_slow(
        [(*one, suite) for one in VARIED for suite in ("quick", "standard")],
        lambda case: case[2] == "standard" or case[0] in CHEAP,
        "turns are taken alike by all losses",
    ),
)
def test_a_hyperparameter_that_is_not_asked_for_varies_after_the_first_probe(name, scalar, suite):
    # Of the quick suite, the cases that are judged; of the longer one, all.
    made = inputs(name, suite)
    skipped = {p.id for p in probes(name, suite="quick") if p.skip} if suite == "quick" else {}
    values = [x[scalar] for id, x in made.items() if id not in skipped]
    declared = next(p for p in get_loss(name).declaration.parameters if p.name == scalar)
    usual = get_loss(name).declaration.variants[0].get(scalar, declared.default)
    usual = np.mean(declared.typical) if usual is ... else usual
    assert values[0] == usual
    others = [x for x in values if x != usual]
    assert len(set(others)) == 3
    assert all(declared.typical[0] < x < declared.typical[1] for x in others)
    assert len(others) >= len(values) // 3
    chosen = inputs(name, suite, {scalar: 0.25}), inputs(name, suite, fixed={scalar: 0.25})
    assert {x[scalar] for each in chosen for x in each.values()} == {0.25}


@pytest.mark.parametrize("suite", SUITES)
def test_a_loss_without_a_temperature_meets_every_share_in_every_suite(suite):
    for dtype in ("float64", "float32"):
        assert len({x["exponent"] for x in inputs("alignment", suite, dtype=dtype).values()}) == 4


def test_each_temperature_of_the_full_suite_meets_several_margins():
    met = {}
    for case in inputs("cosface", "full").values():
        met.setdefault(case["scale"], set()).add(case["margin"])
    assert min(map(len, met.values())) == 4


def squared(x, y, exponent):
    """Takes the exponent and ignores it."""
    return fixed_square(x, y)


def fixed_square(x, y):
    x, y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, y))
    return np.mean(np.sum((x - y) ** 2, axis=1))


def test_a_target_that_ignores_a_scalar_that_it_takes_differs_and_one_that_takes_none_has_the_default():
    assert verify(squared, loss="alignment", suite="quick").verdict == "differs"
    report = verify(fixed_square, loss="alignment", suite="quick")
    assert report.verdict == "value-only"
    assert "exponent = 2" in str(report)


def test_a_batch_that_only_a_policy_gives_a_value_is_not_judged():
    assert "single" not in {p.id.split("-")[0] for p in probes("simple", suite="quick")}
    assert "single-0.3" in {p.id for p in probes("info_nce", suite="quick")}


def test_rows_and_sums_belong_to_the_mean():
    mean, total, rows = (by_id("nt_xent", "designed-0.3", suite="quick", reduction=r) for r in ("mean", "sum", "none"))
    assert rows.value.shape == (10,)
    assert abs(np.sum(rows.value) - total.value) <= total.bounds.value
    assert abs(total.value / 10 - mean.value) <= mean.bounds.value
    assert np.all(np.abs(rows.grads["z1"] / 10 - mean.grads["z1"]) <= mean.bounds.grads["z1"])


def test_one_probe_for_given_inputs_has_the_reference_and_its_bounds():
    rows = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
    inputs = {"z1": rows, "z2": rows[::-1], "temperature": 0.5}
    probe = evaluate(get_loss("nt_xent").declaration, inputs, id="mine")
    assert probe.id == "mine"
    assert probe.value == get_loss("nt_xent")(rows, rows[::-1], temperature=0.5)
    assert set(probe.grads) == set(probe.bounds.grads) == {"z1", "z2", "temperature"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"suite": "huge"}, "`suite` must be one of 'quick'"),
        ({"dtype": "float8"}, "`dtype` must be one of"),
        ({"reduction": "max"}, "`reduction` must be"),
        ({"settings": {"colour": 1}}, "no argument `colour`"),
        ({"fixed": {"normalize": 1.0}}, "no scalar `normalize`"),
    ],
)
def test_a_word_that_is_not_known_is_refused(more, message):
    settings = more.pop("settings", {})
    with pytest.raises(InputError, match=message):
        probes("nt_xent", settings, **more)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_probe_costs_one_binding_and_one_forward_pass(monkeypatch, reduction):
    """What is bound for the reference serves the bounds, the kinks and every explanation."""
    loss = get_loss("arcface").declaration
    given = by_id("arcface", "designed-0.3", suite="quick").inputs
    events = []
    monkeypatch.setattr(bound_loss, "bind", lambda *args: events.append("bind") or bind(*args))
    counted = replace(loss, plan=lambda **arguments: events.append("plan") or loss.plan(**arguments))
    monkeypatch.setattr(passes, "evaluate", lambda *args: events.append("pass") or evaluate_pass(*args))
    probe = evaluate(counted, given, reduction=reduction)
    assert probe.bound.plan is probe.bound.plan
    assert events == ["bind", "plan", "pass"]


def test_a_changed_probe_is_bound_again():
    probe = by_id("nt_xent", "designed-0.3", suite="quick")
    moved = replace(probe, inputs={**probe.inputs, "temperature": 0.5})
    assert (probe.bound.arguments["temperature"], moved.bound.arguments["temperature"]) == (0.3, 0.5)
