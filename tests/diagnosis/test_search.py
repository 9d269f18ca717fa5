"""Targets written plainly, with one thing or two done otherwise, are named; what is on no list is not."""

import catalogue
import numpy as np
import pytest
from diagnosis.altered_losses import altered, observed, right, slopes, times, towers, two_views, views
from slow import partly_slow

from mutants.bug import bugs, gradient_programs, unit
from mutants.bug import stop as real
from nceref import get_loss
from nceref.cases.corpus.corpus import corpus, evaluate
from nceref.cases.records import Observation, Outcome
from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.intended import intended
from nceref.diagnosis.search import explanations


def first(target, name, **arguments):
    found = explanations(observed(target, name, **arguments))
    return found[0] if found else None


def of_program(name):
    """What explains every other case of a program of the catalogue."""
    return explanations(list(catalogue.observed(bugs()[name], every=2)))


SWEEP = "the search of another convention"
KINDS = (
    "nt-xent-own-logit-kept", "clip-one-way", "info-nce-keys-from-no-grad",
    "info-nce-temperature-multiplied", "info-nce-small-constant-in-the-log", "nt-xent-kept-and-summed",
)  # fmt: skip
"""Programs that have one convention of a kind, and one that has two; the score has all."""


@pytest.mark.parametrize("name", KINDS)
def test_what_a_program_does_otherwise_is_named(name):
    (found, *others) = of_program(name)
    assert len(others) <= 2
    explained = [len(e.ids) for e in (found, *others) if e.gradient]
    assert explained == sorted(explained)
    assert set(found.ids) == set(bugs()[name].named)
    assert found.gradient
    assert 0 < found.cases <= found.of
    assert found.residual <= 1


def subtracted_in_the_graph(z1, z2, temperature, normalize):
    """The self-contrast is subtracted as a constant, so that its gradient stays."""
    logits, positive = views(z1, z2, temperature, self_kept=True)
    own = np.exp(real(np.diagonal(logits)))
    return np.mean(np.log(np.sum(np.exp(logits), axis=1) - own) - positive)


def test_a_self_contrast_that_is_subtracted_as_a_constant_is_named():
    """On unit rows the value is right, but for what cancels, and the gradient has a term more along each row."""
    loss = get_loss("nt_xent").declaration
    observations = []
    for number, t in enumerate((0.3, 0.5, 0.4, 0.6)):
        z1, z2 = unit(np.random.default_rng(number).standard_normal((2, 5, 3)))
        inputs = {"z1": z1, "z2": z2, "temperature": t, "normalize": "none"}
        probe = evaluate(loss, inputs)
        value = float(np.real(subtracted_in_the_graph(**inputs)))
        observations.append(Observation(probe, Outcome(value, slopes(subtracted_in_the_graph, probe))))
    assert [r.ids for r in explanations(observations)] == [("self-contrast-in-gradient",)]


def test_the_inside_form_in_place_of_the_outside_form_is_named():
    inside = get_loss("supcon_in")
    found = first_of_reference(inside, "supcon_out", {"embeddings", "labels", "temperature"})
    assert found.ids == ("sum-inside-log",)


def first_of_reference(other, name, taken):
    """What is said about another loss of the family, handed over with its own gradients."""
    observations = []
    for p in corpus(get_loss(name).declaration, {}, suite="quick"):
        if not p.skip:
            value, grads = other.value_and_grad(**{k: x for k, x in p.inputs.items() if k in taken})
            observations.append(Observation(p, Outcome(value, grads)))
    return explanations(observations)[0]


def test_a_setting_is_described():
    assert of_program("info-nce-small-constant-in-the-log")[0].options[0].setting == "eps = 1e-08 in the ratio"
    assert of_program("nt-xent-temperature-pinned")[0].options[0].setting == "temperature = 0.5"


def of_rows(program):
    """A target of `info_nce` that does something to the rows that nobody does."""
    return lambda queries, keys, temperature: program(towers(queries, keys, temperature))


STRANGE = {
    "steps": of_rows(lambda rows: np.mean(np.where(real(rows) > 1, 2.0, 0.5))),
    "a length added": lambda queries, keys, temperature: right(queries, keys, temperature) + 0.1 * np.mean(queries**2),
}


@pytest.mark.parametrize(
    ("what", "dtype"),
    partly_slow([("steps", "bfloat16"), ("a length added", "float32")], lambda case: case[0] == "steps", SWEEP),
)
def test_what_is_on_no_list_has_no_explanation(what, dtype):
    assert explanations(observed(STRANGE[what], "info_nce", dtype=dtype)) == ()


def test_three_conventions_of_which_one_is_a_reduction_are_found():
    def target(z1, z2, temperature):
        return np.mean(two_views(z1, z2, temperature, self_kept=True, inverse_temperature=1.0)) / len(z1)

    found = explanations(observed(target, "nt_xent"))
    assert set(found[0].ids) == {"temperature-missing", "self-contrast-kept", "divided-by-n-twice"}


def test_a_known_value_with_an_unknown_gradient_is_flagged():
    wrong = altered("simple", lambda probe, value, grads: (2 * value, {k: np.cos(g) for k, g in grads.items()}))
    found = explanations(wrong)[0]
    assert found.ids == ("outer-factor-2",)
    assert not found.gradient


def test_a_factor_on_the_gradient_of_one_input_is_told():
    scaled = []
    for o in observed(right, "info_nce"):
        grads = {name: grad * (8 if name == "temperature" else 1) for name, grad in o.outcome.grads.items()}
        scaled.append(Observation(o.probe, Outcome(o.outcome.value, grads)))
    (found, *_) = explanations(scaled)
    assert found.ids == ("gradient-constant-factor",)
    assert any("the gradient of temperature is 8 times" in words.text for words in found.gradient_words)


def test_cases_that_are_not_finite_are_left_out():
    observations = [
        Observation(o.probe, Outcome(np.nan, o.outcome.grads)) if n % 3 == 0 else o
        for n, o in enumerate(catalogue.observed(bugs()["nt-xent-own-logit-kept"], every=2))
    ]
    found = explanations(observations)[0]
    assert found.ids == ("self-contrast-kept",)
    assert found.of == sum(np.isfinite(o.outcome.value) for o in observations)


def test_nothing_observed_has_no_explanation():
    assert explanations([]) == ()


def test_an_unknown_constant_needs_three_cases():
    scaled = [o for o in altered("simple", times(1.7)) if not o.probe.skip]
    assert explanations(scaled[:2]) == ()
    assert explanations(scaled[:4])[0].ids == ("outer-factor-constant",)


def test_the_same_values_are_read_once():
    assert [r.ids for r in of_program("clip-both-ways-added")] == [("directions-summed",)]


def one_way_of_raw_texts(image, text, logit_scale, **_):
    s = np.log(logit_scale) * unit(image) @ text.T
    return np.mean(np.logaddexp.reduce(s, axis=1) - np.diag(s))


def of_distances(x, t, **_):
    apart = np.linalg.norm(unit(x)[:, None] - unit(x), axis=-1)
    return np.log(np.mean(np.exp(-0.5 * t * apart)))


def smoothed(logits, target, temperature, share=0.1, **_):
    s = logits / temperature**2
    log_p = s - np.logaddexp.reduce(s, axis=1)[:, None]
    return -np.sum((1 - share) * log_p[np.arange(len(s)), target] + share * np.mean(log_p, axis=1))


def test_a_missing_temperature_is_named_beside_other_rows():
    def of_raw_points(x, t, **_):
        i, j = np.triu_indices(len(x), 1)
        return np.log(np.mean(np.exp(-np.sum((x[i] - x[j]) ** 2, axis=1))))

    probes = [p for p in corpus(get_loss("uniformity").declaration, {}, suite="quick") if not p.skip]
    found = explanations([Observation(p, Outcome(float(of_raw_points(**p.inputs)))) for p in probes])
    assert found[0].ids == ("rows-not-normalized", "temperature-missing")


@pytest.mark.parametrize(
    ("name", "target", "ids"),
    [
        pytest.param("clip", one_way_of_raw_texts,
                     {"second-input-not-normalized", "scale-without-exponential", "one-direction-only"},
                     marks=pytest.mark.slow(reason=SWEEP)),
        ("uniformity", of_distances, {"temperature-off-by-a-factor", "distance-not-squared", "diagonal-included"}),
        ("cross_entropy", smoothed, {"temperature-squared", "scalar-ignored", "sum-instead-of-mean"}),
        # No usual number: it is solved for, beside the sum.
        ("cross_entropy", lambda temperature, **given: smoothed(temperature=np.sqrt(temperature), share=0.137, **given),
         {"scalar-ignored", "sum-instead-of-mean"}),
    ],
    ids=["two and a reduction", "three", "a number and a factor", "a number that is solved for"],
)  # fmt: skip
def test_three_conventions_are_named(name, target, ids):
    with np.errstate(all="ignore"):
        probes = [p for p in corpus(get_loss(name).declaration, {}, suite="quick")[::2] if not p.skip]
        seen = [Observation(p, Outcome(float(target(**p.inputs)))) for p in probes]
    found = explanations(seen)
    assert {frozenset(one.ids) for one in found} & {frozenset(ids)}


def test_the_search_is_bounded_where_nothing_fits(monkeypatch):
    """Evaluations of variants are what it costs: 13,000 of this loss, most of them for sets of three."""
    count = 0
    answer = CaseAnalysis.answer

    def counting(analysis, structure):
        nonlocal count
        count += 1
        return answer(analysis, structure)

    monkeypatch.setattr(CaseAnalysis, "answer", counting)
    assert explanations(altered("siglip", lambda probe, value, grads: (value**1.3, {}), every=1)) == ()
    # Without a limit to sets of three it would be 14,833.
    assert 1000 < count < 14000


def test_three_conventions_may_have_a_factor_as_well():
    observations = catalogue.observed(gradient_programs()["supcon-out-own-row-positive-rescaled"], every=3)
    (found, *_) = explanations(observations)
    assert found.ids == (
        "rows-not-normalized",
        "self-contrast-kept",
        "self-counted-as-positive",
        "outer-factor-temperature-over-base",
    )


def test_what_is_read_predicts_what_was_observed_once_it_is_intended():
    observations = list(catalogue.observed(bugs()["info-nce-momentum-target"], every=2))
    (reading, *_) = explanations(observations)
    probe = intended(observations[0].probe, {CONVENTIONS[id].axis: id for id in reading.ids})
    seen = observations[0].outcome
    assert probe.value == pytest.approx(seen.value, rel=1e-12)
    assert np.all(probe.grads["keys"] == 0)
    assert probe.grads["temperature"] == pytest.approx(float(seen.grads["temperature"]), rel=1e-10)


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_other_reductions_are_searched_too(reduction):
    loss = get_loss("nt_xent").declaration
    observations = []
    for p in corpus(loss, {}, suite="quick", reduction=reduction):
        if not p.skip:
            rows = two_views(**p.inputs, self_kept=True)
            observations.append(Observation(p, Outcome(rows if reduction == "none" else np.sum(rows))))
    assert explanations(observations)[0].ids == ("self-contrast-kept",)
