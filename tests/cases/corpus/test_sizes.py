"""Bugs that show in batches and rows beyond the size of a tile only: every suite must see them."""

import numpy as np
import pytest
from slow import partly_slow
from sweep import every_loss

from nceref import get_loss, verify
from nceref.cases.corpus.corpus import designed_inputs, evaluate
from nceref.cases.judge import judge
from nceref.cases.records import Probe
from nceref.spec import Array
from nceref.verification.verifier import observe

LOSS = {name: get_loss(name) for name in ("info_nce", "nt_xent", "supcon_out", "cross_entropy")}


def rows_of(queries, keys, temperature):
    return LOSS["info_nce"](queries, keys, temperature=temperature, reduction="none")


def tail_dropped(queries, keys, temperature):
    rows = rows_of(queries, keys, temperature)
    return np.mean(rows[: len(rows) // 16 * 16 or None])


def mean_of_chunk_means(queries, keys, temperature):
    rows = rows_of(queries, keys, temperature)
    return np.mean([np.mean(rows[i : i + 64]) for i in range(0, len(rows), 64)])


def hardest_negatives_only(queries, keys, temperature):
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
    logits = q @ k.T / temperature
    own = np.diagonal(logits)
    others = np.sort(np.where(np.eye(len(q)), -np.inf, logits), axis=1)[:, -100:]
    return np.mean(np.logaddexp.reduce(np.column_stack([own, others]), axis=1) - own)


def another_path_above_64_rows(queries, keys, temperature):
    return np.mean(rows_of(queries, keys, temperature if len(queries) <= 64 else 0.5 * temperature))


def first_64_features(z1, z2, temperature):
    return LOSS["nt_xent"](z1[:, :64], z2[:, :64], temperature=temperature)


def labels_in_8_bits(embeddings, labels, temperature):
    return LOSS["supcon_out"](embeddings, labels.astype(np.int8).astype(int), temperature=temperature)


def classes_in_8_bits(logits, target):
    return LOSS["cross_entropy"](logits, target.astype(np.uint8).astype(int))


def gradient_of_the_first_64_rows(queries, keys, temperature):
    value, grads = LOSS["info_nce"].value_and_grad(queries, keys, temperature=temperature)
    grads["keys"][64:] = 0
    return value, grads


WHERE = (
    "and more", "and n129", "and n17", "and later", "right for N <= 64",
    "the whole chunks of 16 rows, or all rows where there is none",
)  # fmt: skip
BUGS = [
    ("info_nce", tail_dropped), ("info_nce", mean_of_chunk_means), ("info_nce", hardest_negatives_only),
    ("info_nce", another_path_above_64_rows), ("nt_xent", first_64_features),
    ("supcon_out", labels_in_8_bits),
    ("cross_entropy", classes_in_8_bits), ("info_nce", gradient_of_the_first_64_rows),
]  # fmt: skip


NAMES = {"ids": lambda x: getattr(x, "__qualname__", x)}
SHORT = (first_64_features, gradient_of_the_first_64_rows)
"""Of the others a formula is looked for in vain, or late; they are explained in the same ways."""


@pytest.mark.parametrize(("loss", "bug"), BUGS, **NAMES)
def test_a_bug_of_large_inputs_is_seen_by_the_quick_suite(loss, bug):
    judged = [r for o in observe(bug, loss, suite="quick") for r in judge(o)]
    failed = {r.case for r in judged if r.status == "fail"}
    assert failed
    assert all(case.startswith(("n17", "n129", "d65")) for case in failed)


@pytest.mark.parametrize(("loss", "bug"), partly_slow(BUGS, lambda case: case[1] in SHORT, "a long search"), **NAMES)
def test_it_is_said_from_which_size_a_bug_shows(loss, bug):
    report = verify(bug, loss=loss, suite="quick")
    assert report.verdict == "differs"
    sentence = report.diagnosis[0].sentence
    assert any(words in sentence for words in WHERE), sentence


def test_every_suite_has_what_is_left_over_of_a_tile():
    shapes = {
        suite: {x["z1"].shape for _, x in designed_inputs(LOSS["nt_xent"].declaration, {}, suite, "float64", 0, {})}
        for suite in ("quick", "standard")
    }
    rows, widths = ({suite: {s[axis] for s in x} for suite, x in shapes.items()} for axis in (0, 1))
    assert {17, 129} <= rows["quick"]
    assert {17, 33, 127, 128, 129, 513} <= rows["standard"]
    assert 65 in widths["quick"]
    assert {65, 513} <= widths["standard"]


@every_loss
def test_large_cases_are_judged_for_every_loss(loss_name):
    declared = get_loss(loss_name).declaration
    wide = {"d65"} if any(isinstance(p, Array) and "D" in p.shape for p in declared.parameters) else set()
    made = designed_inputs(declared, {}, "quick", "float64", 0, {})
    large = [evaluate(declared, x, id=id) for id, x in made if Probe(id, declared, x, "float64").is_large]
    assert {p.id.split("-")[0] for p in large} == {"n17", "n129", *wide}
    for probe in large:
        assert not probe.skip
        assert probe.grads
        assert np.all(probe.bounds.value < 1e-6 * max(1, np.max(np.abs(probe.value))))


def held_above(least):
    def run(queries, keys, temperature):
        return LOSS["info_nce"](queries, keys, temperature=max(float(temperature), least))

    return run


def length_floored(queries, keys, temperature):
    rows = [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-3) for x in (queries, keys)]
    return LOSS["info_nce"](*rows, temperature=float(temperature), normalize="none")


@pytest.mark.parametrize(
    ("bug", "cases", "intended"),
    [
        (held_above(5e-4), {"designed-0.0001", "seven-0.0001"}, {"temperature": "temperature-clamped=0.0005"}),
        (length_floored, {"extreme-0.3"}, {"normalization": "norm-floored=0.001"}),
    ],
    ids=["temperature", "length"],
)
def test_a_floor_under_small_numbers_is_seen_unless_it_is_intended(bug, cases, intended):
    def judged(**options):
        # A row of zeros is where a floor is meant, and where nothing is asked.
        with np.errstate(all="ignore"):
            report = verify(bug, loss="info_nce", suite="quick", calls=0, **options)
        return report.verdict, {r.case for r in report.results if r.status == "fail" and r.quantity == "value"}

    assert judged() == ("differs", cases)
    assert judged(**intended)[0] == "value-only"
