"""What explains the corpus must predict fresh calls; what it is not, no sentence says."""

import numpy as np
import pytest
from diagnosis.altered_losses import observed, right, slopes, towers, two_views, views
from slow import partly_slow

from mutants.bug import logsumexp, unit
from mutants.bug import stop as real
from nceref import get_loss
from nceref.cases.corpus.corpus import corpus, evaluate
from nceref.cases.records import Observation, Outcome
from nceref.diagnosis.diagnose import diagnose
from nceref.diagnosis.fresh import GENERAL, MORE, MOST, fresh_calls, fresh_probe, template
from nceref.diagnosis.localize import localized, threshold
from nceref.diagnosis.refute import explained_apart
from nceref.diagnosis.triage import triage


def calls_of(target, observations, differentiate=slopes):
    """The target for fresh calls, its gradients by the complex step."""

    def call(probe):
        with np.errstate(all="ignore"):
            return Outcome(float(real(target(**probe.inputs))), differentiate(target, probe))

    return fresh_calls(call, observations)


def without(target, probe):
    """No gradients: only values are measured."""
    return {}


def first(name, target, every=1):
    seen = observed(target, name, every=every)
    with np.errstate(all="ignore"):
        return diagnose(seen, (), calls_of(target, seen))[0]


def of_towers(change):
    """`info_nce` with something done to its logits."""

    def target(queries, keys, temperature):
        logits = change(unit(queries) @ unit(keys).T, temperature)
        return np.mean(logsumexp(logits) - np.diagonal(logits))

    return "info_nce", target


def in_float32(queries, keys, temperature):
    """The complex step passes through, and each number is one of float32."""
    q, k = (np.asarray(real(x), dtype=np.float32) + (x - real(x)) for x in (queries, keys))
    t = np.float32(real(temperature)) + (temperature - real(temperature))
    logits = (unit(q) @ unit(k).T).astype(np.complex64 if np.iscomplexobj(q + k) else np.float32) / t
    return np.mean(logsumexp(logits) - np.diagonal(logits))


def only_up_to_16(queries, keys, temperature):
    return (2.0 if len(queries) <= 16 else 3.0) * right(queries, keys, temperature)


def summed_from_101(queries, keys, temperature):
    rows = towers(queries, keys, temperature)
    return np.mean(rows) if len(rows) <= 100 else np.sum(rows)


def unshifted(queries, keys, temperature):
    p = np.exp(unit(queries) @ unit(keys).T / temperature)
    return -np.mean(np.log(np.diagonal(p) / np.sum(p, axis=1)))


def probability_first(queries, keys, temperature):
    return -np.mean(np.log(np.exp(-towers(queries, keys, temperature))))


def kept_in_float32(x):
    log = np.log(real(x))
    return np.exp(np.float64(np.float32(log))) * (1 + (x - real(x)) / real(x))


def leaking(z1, z2, temperature):
    logits, positive = views(unit(z1), unit(z2), temperature, self_kept=True)
    logits = np.where(np.eye(len(logits), dtype=bool), -25.0, logits)
    return np.mean(logsumexp(logits) - positive)


@pytest.mark.parametrize(
    ("name", "target", "id", "words"),
    [
        ("info_nce", lambda queries, keys, temperature: right(queries, keys, temperature) * (1 + 1e-7),
         "outer-factor-constant", "1 + 1e-07"),
        # Overflow and underflow are told apart by calls in which only one of them is possible.
        ("info_nce", unshifted, "exp-overflows", "709.8"),
        ("info_nce", probability_first, "exp-underflows", "745.2"),
        ("nt_xent", leaking, "mask-leaks", "set to -25"),
        # What a module keeps in float32 is no other temperature, and no arithmetic in float32.
        ("info_nce", lambda queries, keys, temperature: right(queries, keys, kept_in_float32(temperature)),
         "temperature-in-float32", "its logarithm"),
    ],
)  # fmt: skip
def test_the_first_sentence_is_true(name, target, id, words):
    # The number that leaks is solved for, which takes longer the more cases there are.
    found = first(name, target, every=3 if target is leaking else 1)
    assert found.id == id, found
    assert words in found.sentence


def in_chunks(queries, keys, temperature):
    parts = [slice(start, start + 4) for start in range(0, len(queries), 4)]
    return np.mean([right(queries[part], keys[part], temperature) for part in parts])


def short_chunk_weighs_as_much(queries, keys, temperature):
    rows = towers(queries, keys, temperature)
    return np.mean([np.mean(rows[start : start + 4]) for start in range(0, len(rows), 4)])


def values(target, name, seed=0):
    """What a target answers on the corpus, without gradients."""
    probes = corpus(get_loss(name).declaration, {}, suite="quick", seed=seed)
    return [Observation(p, Outcome(float(real(target(**p.inputs))))) for p in probes if not p.skip]


def another(temperature, **inputs):
    """What no part of any reference is."""
    return temperature + real(sum(np.sum(x) for x in inputs.values() if np.ndim(x) == 2))


def without_labels(embeddings, labels, temperature):
    z = unit(embeddings)
    logits = np.where(np.eye(len(z), dtype=bool), -np.inf, z @ z.T / temperature)
    log_p = np.where(np.isfinite(logits), logits - logsumexp(logits)[:, None], 0.0)
    return -np.mean(np.sum(log_p, axis=1)) / max(len(z) - 1, 1)


def positives_doubled(queries, keys, temperature):
    logits = unit(queries) @ unit(keys).T / temperature
    own = np.diagonal(logits)
    return np.mean(logsumexp(logits) - 2 * own + real(own))


def negatives_of_the_keys(queries, keys, queue, temperature):
    q, k, m = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys, queue))
    logits = np.column_stack([np.sum(q * k, axis=1), k @ m.T]) / real(temperature)
    return np.mean(logsumexp(logits, axis=1) - logits[:, 0])


def with_rows(queries, keys, temperature, count):
    return right(queries[:count], keys[:count], temperature)


ONLY_COLD = "info_nce", lambda queries, keys, temperature: (
    right(queries, keys, temperature) * (1 if real(temperature) > 0.06 else 1.5))  # fmt: skip


LATER = ("the value does not depend on features", "the losses of chunks", "opposite order", "`z1`", "when `labels`")
"""Words of those that are found as the others are."""


@pytest.mark.parametrize(
    ("name", "target", "id", "words"),
    partly_slow([
        ("info_nce", lambda queries, keys, temperature: with_rows(queries, keys, temperature, 6), "rows-ignored",
         "right for N <= 6; the value does not depend on rows 7 and later; of the others it is the reference"),
        ("info_nce", lambda queries, keys, temperature: with_rows(
            queries, keys, temperature, max(len(queries) // 4 * 4, min(len(queries), 4))), "rows-ignored",
         "beyond a multiple of 4; of the others it is the reference"),
        ("info_nce", lambda queries, keys, temperature: right(queries[:, :3], keys[:, :3], temperature),
         "features-ignored", "right for D <= 3; the value does not depend on features 4 and later"),
        ("info_nce", in_chunks, "computed-in-chunks", "the losses of chunks of 4 samples"),
        ("info_nce", short_chunk_weighs_as_much, "unequal-chunks", "the mean of the means over chunks of 4 rows"),
        ("info_nce", lambda queries, keys, temperature: right(queries, queries[::-1], temperature), "", "`keys`"),
        ("info_nce", lambda queries, keys, temperature: right(queries, keys[::-1], temperature), "input-replaced",
         "in the opposite order"),
        ("nt_xent", lambda z1, z2, temperature: np.mean(two_views(z1, z1, temperature)), "input-replaced",
         "with `z1` in the place of `z2`"),
        ("moco", negatives_of_the_keys, "input-replaced", "with `queries` and `keys` exchanged"),
        ("supcon_out", without_labels, "", "the value stays the same when `labels` is replaced by others"),
        # What is said of one row is not said of the whole difference.
        ("info_nce", lambda queries, keys, temperature: 1.5 * with_rows(queries, keys, temperature, 6), "",
         "the value stays the same when rows 7 and later are replaced by others"),
        ("info_nce", lambda queries, keys, temperature: right(queries, keys, temperature) + temperature, "", ""),
    ], lambda case: not any(words in case[3] for words in LATER), "the same comparisons of other inputs"),
    ids=["first rows", "tail", "features", "chunks", "short chunk", "two at once", "order", "view", "exchanged",
         "labels", "factor", "nothing"],
)  # fmt: skip
def test_the_part_that_is_right_is_measured_and_predicts_other_cases(name, target, id, words):
    seen = values(target, name)
    located = localized(seen, calls_of(target, seen, without))
    assert [one.id for one in located.found] == ([id] if id else []), located
    assert any(words in text for text in (*(one.sentence for one in located.found), *located.remarks)) or not words
    for one in located.found:
        assert one.predicts(values(target, name, seed=1))
        assert not one.predicts(values(another, name, seed=1))


def test_what_begins_at_a_size_is_explained_beyond_it():
    seen = values(summed_from_101, "info_nce")
    (found,) = explained_apart(seen, calls_of(summed_from_101, seen, without)).kept
    assert (found.ids, found.of, found.fresh) == (("sum-instead-of-mean",), 1, 2)
    assert found.apart == "batches of 101 samples and more (right up to 100)"


def test_the_temperature_at_which_it_fails_is_bisected():
    seen = observed(ONLY_COLD[1], "info_nce")
    assert [words[:27] for _, words in threshold(seen, calls_of(ONLY_COLD[1], seen, without))] == [
        "right at temperature 0.0600"
    ]


@pytest.mark.parametrize(
    ("name", "target", "id", "words"),
    partly_slow(
        [
            ("info_nce", positives_doubled, "gradient-parts-scaled", "through the numerator is 2 times what"),
            # What fits the corpus alone is dropped.
            ("info_nce", only_up_to_16, "unexplained", ""),
            # The part that is wrong is explained by itself.
            (*ONLY_COLD, "outer-factor-constant", "right at temperature 0.060"),
            ("info_nce", lambda queries, keys, temperature:
                2 * right(queries, keys, temperature) if len(queries) > 1 else 1 + 0 * temperature, "outer-factor-2",
             "on every case but the batch of one (there yours is 1, the reference 0)"),
            (*of_towers(lambda s, t: (s + 1e-7 * s * s) / t), "unexplained", "are alike for inputs nearby"),
        ],
        lambda case: case[2].startswith("gradient"),
        "each goes through the whole search",
    ),
)  # fmt: skip
def test_what_the_corpus_alone_would_call_otherwise(name, target, id, words):
    found = first(name, target)
    assert found.id == id, found
    assert words in found.sentence


@pytest.mark.parametrize(
    ("name", "target", "ids"),
    [
        # A perturbation is none of a format, however small; roundings are.
        (*of_towers(lambda s, t: (s + 1e-7 * s * s) / t), []),
        (*of_towers(lambda s, t: (s + 3e-3 * np.sin(5 * s)) / t), []),
        ("info_nce", in_float32, ["float32-fallback"]),
    ],
    ids=["small", "larger", "rounded"],
)
def test_a_coarser_format_is_named_only_if_errors_look_like_roundings(name, target, ids):
    seen = observed(target, name)
    with np.errstate(all="ignore"):
        assert [one.id for one in triage(seen, calls=calls_of(target, seen))] == ids
        assert triage(seen)


def test_a_random_target_is_called_again_before_anything_is_said():
    rng = np.random.default_rng(0)

    def noisy(queries, keys, temperature):
        return right(queries * (1 + 0.01 * rng.standard_normal(queries.shape)), keys, temperature)

    found = first("info_nce", noisy)
    assert found.id == "not-repeatable"
    assert "scaling" not in found.sentence


def test_what_other_cases_leave_behind_is_no_random_number():
    known = []

    def keeps(queries, keys, temperature):
        known.append(len(queries))
        return right(queries, keys, temperature) * (1 + 1e-9 * max(known))

    found = first("info_nce", keeps)
    assert found.id == "earlier-calls-kept"
    first_number, second = found.sentence.partition("the value is ")[2].partition(" on ")[0].split(", then ")
    assert first_number != second


def test_one_number_whatever_the_inputs_are_is_no_factor_and_offset():
    found = first("info_nce", lambda queries, keys, temperature: 1.0)
    assert found.id == "inputs-ignored"
    assert "whatever its inputs are, your loss is 1 on" in found.sentence
    assert "4 of 4 fresh calls" in found.sentence

    def of_a_size(queries, keys, temperature):
        return 2.0 if len(queries) == GENERAL[2].sizes[0] else 1.0

    # Two numbers of the reference may be the same by accident, and there is no third.
    seen = observed(of_a_size, "info_nce")
    assert "inputs-ignored" not in [one.id for one in diagnose(seen[:2])]
    assert diagnose(seen)[0].id == "inputs-ignored"
    assert diagnose(seen, calls=calls_of(of_a_size, seen))[0].id != "inputs-ignored"


def test_fresh_calls_are_not_those_of_the_corpus_and_keep_what_all_its_cases_share():
    seen = observed(right, "info_nce")
    calls = fresh_calls(lambda probe: Outcome(probe.value, probe.grads), seen)
    made = calls.at([*GENERAL, *MORE])
    sizes = {np.shape(o.probe.inputs["queries"]) for o in made}
    assert calls.made == len(made) == len(GENERAL + MORE)
    assert sizes.isdisjoint(np.shape(o.probe.inputs["queries"]) for o in seen)
    assert {n % 2 for n, _ in sizes} == {d % 2 for _, d in sizes} == {0, 1}
    assert max(n for n, _ in sizes) > 16
    held = [evaluate(o.probe.loss, {**o.probe.inputs, "temperature": 0.37}) for o in seen]
    assert fresh_probe(template(held), GENERAL[0]).inputs["temperature"] == 0.37


def test_calls_are_counted_and_a_hanging_target_is_called_once():
    seen = observed(right, "info_nce")
    many = fresh_calls(lambda probe: Outcome(probe.value), seen)
    assert sum(many.on(seen[0].probe) is not None for _ in range(MOST + 5)) == MOST
    hanging = fresh_calls(lambda probe: Outcome(trouble="hangs", sentence="does not return"), seen)
    assert hanging.at(GENERAL) == []
    assert hanging.made == 1
