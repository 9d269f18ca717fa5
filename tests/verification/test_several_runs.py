"""Explanations of several runs: once where they agree, with the runs that they are of, and apart where they differ."""

import numpy as np
import pytest

import nceref
from nceref.cases.records import Diagnosis, DiagnosisPart
from nceref.verification.several_runs import ExplainedRun, joined_diagnoses, joined_training, training_lines


def explained(words, id="a", cases="on 9 of 9 cases", effect="the value is off", more=()):
    parts = (DiagnosisPart("your loss equals another", cases, "computes"), *(DiagnosisPart(text) for text in more))
    return ExplainedRun(words, (Diagnosis(id, parts),), {"sentence": effect, "calls": len(words)})


@pytest.mark.parametrize(
    ("runs", "sentences", "effects"),
    [
        ([explained("")], ["your loss equals another, on 9 of 9 cases"], ["the value is off"]),
        (
            [explained("in float64"), explained("in float32")],
            ["in float64 and in float32 your loss equals another, on 9 of 9 cases"],
            ["in float64 and in float32 the value is off"],
        ),
        (
            [explained("in float64", more=["x is wrong"]), explained("in float32", cases="on 8 of 8", effect="NaN")],
            ["in float64 and in float32 your loss equals another, in float64 on 9 of 9 cases, and in float32 on 8 of 8;"
             " in float64 x is wrong"],
            ["in float64 the value is off", "in float32 NaN"],
        ),
        (
            [explained("in float64"), explained("in float32", "b"), ExplainedRun("in float16")],
            ["in float64 your loss equals another, on 9 of 9 cases",
             "in float32 your loss equals another, on 9 of 9 cases"],
            ["in float64 and in float32 the value is off"],
        ),
    ],
    ids=["one", "alike", "other numbers", "another"],
)  # fmt: skip
def test_what_agrees_is_said_once_with_its_runs(runs, sentences, effects):
    assert [d.sentence for d in joined_diagnoses(runs)] == sentences
    effect = joined_training(runs)
    assert list(training_lines(effect)) == effects
    assert effect["sentence"] == "; ".join(effects)
    # The numbers of each run are kept.
    assert [each["calls"] for each in effect.get("runs", [effect])] == [len(r.words) for r in runs if r.training]


def test_each_format_is_explained():
    def rounded(queries, keys, temperature):
        """Right in float32, by another factor in float64."""
        kind = queries.dtype
        q, k = ((x / np.linalg.norm(x, axis=1, keepdims=True)) for x in (queries, keys))
        logits = q @ k.T / kind.type(temperature)
        value = np.mean(np.logaddexp.reduce(logits, axis=1) - np.diag(logits))
        return float(value) * (2 if kind == np.float64 else 3)

    report = nceref.verify(rounded, "info_nce", suite="quick", dtype=["float64", "float32"])
    assert [(d.where, d.id) for d in report.diagnosis] == [
        ("in float64", "outer-factor-2"), ("in float32", "outer-factor-constant"),
    ]  # fmt: skip
    lines = list(training_lines(report.training))
    assert [line.split(" on ")[0] for line in lines] == ["in float64", "in float32"]
    text, page = " ".join(str(report).split()), report.to_html()
    assert all(line in text and line[1:] in page for line in lines)
    assert '<property name="outer-factor-2.fix"' in report.to_junit()
