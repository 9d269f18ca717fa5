"""Recorded outputs on reference vectors: the verdicts, explanations and exit codes of `verify`."""

import hashlib
import json
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from slow import partly_slow
from verification.vectors import answers

from mutants.bug import bugs
from mutants.score import expected
from nceref.cases.records import Diagnosis, DiagnosisPart
from nceref.errors import InputError
from nceref.verification.report import junit_of
from nceref.verification.several_reports import page_of, record, worst
from nceref.verification.vectors import compare as compare_vectors
from nceref.verification.vectors.compare import compare
from nceref.verification.vectors.export import export
from nceref.verification.vectors.ranks_file import ranks_file, read_ranks
from nceref.verification.vectors.records import probe_of
from nceref.verification.vectors.store import ChecksumError, folder_files, read_vectors

pytestmark = pytest.mark.machine

LOSSES = ("nt_xent", "supcon_out")
"""The second has cases that must be refused, and other settings."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every fourth case, all that must be refused, a large one, and those on several ranks."""
    place, read = tmp_path_factory.mktemp("vectors"), read_vectors(losses=LOSSES)
    few = {loss: [c for i, c in enumerate(read.cases[loss]) if i % 4 == 0 or c.expect == "error"] for loss in LOSSES}
    few["nt_xent"] = [*(c for c in few["nt_xent"] if not is_large(c)), *filter(is_large, read.cases["nt_xent"])]
    ranks = ranks_file(read_ranks(read.manifest, losses=LOSSES[:1]))
    for name, content in folder_files({loss: tuple(cases) for loss, cases in few.items()}, ranks).items():
        (place / name).write_bytes(content)
    return place


def is_large(case):
    return case.id.startswith("large-")


@pytest.fixture(scope="module")
def vectors(folder):
    return read_vectors(folder)


READ_ONCE = cache(read_vectors)


@pytest.fixture
def judged(folder, vectors, tmp_path, monkeypatch):
    # The folder stays as it is, and most of the time goes into reading it.
    monkeypatch.setattr(compare_vectors, "read_vectors", READ_ONCE)

    def judged(lines, **about):
        reports = compare(folder, answers.written(tmp_path / "run.jsonl", vectors.sha256, lines, **about))
        # The folder has two losses, and most tests answer one.
        return tuple(report for report in reports if report.results)

    return judged


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("loss", LOSSES)
def test_right_outputs_conform_in_any_order(judged, vectors, loss, dtype):
    cases = [case for case in vectors.cases[loss] if dtype in case.formats]
    lines = answers.right_answers(cases, answers.bits if dtype == "float64" else answers.flat)
    [report] = judged(lines[::-1], implementation="C++", dtype=dtype)
    assert (report.verdict, report.exit_code, report.loss, report.target) == ("conforms", 0, loss, "C++"), str(report)
    assert report.scope.cases == len(lines)
    judged_once = [r.case for r in report.results if r.quantity in ("value.finite", "behavior.refusal")]
    assert judged_once == [case.id for case in cases]
    skipped = {r.case for r in report.results if r.status == "skip"}
    assert skipped == {case.id for case in vectors.cases[loss]} - set(judged_once)
    assert bool(skipped) == (dtype == "float16")


@pytest.mark.parametrize("entry", ["allowed", "hex"])
def test_numbers_that_are_not_those_of_the_corpus_are_refused(tmp_path, entry):
    """A checksum can be made anew: a case of the package has the numbers of the package."""
    list(export(tmp_path, ("nce",), "float64"))
    path, manifest = tmp_path / "nce.json", tmp_path / "MANIFEST.json"
    content = json.loads(path.read_text())
    output = content["cases"][0]["outputs"]["value"]
    if entry == "allowed":
        output["allowed"]["float64"] = [1e10]
    else:
        output |= {"hex": ["3ff0000000000000"], "decimal": ["1.0"]}
    path.write_text(json.dumps(content))
    about = json.loads(manifest.read_text())
    about["files"]["nce.json"] = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(about))
    read = read_vectors(tmp_path)
    lines = answers.right_answers(read.cases["nce"])
    id = read.cases["nce"][0].id
    with pytest.raises(ChecksumError, match=f"case {id}: its outputs are not those of corpus"):
        compare(tmp_path, answers.written(tmp_path / "run.jsonl", read.sha256, lines))


def test_of_values_alone_the_report_says_what_was_not_judged(judged, vectors):
    lines = [{"id": line["id"], "value": line["value"]} for line in answers.right_answers(vectors.cases["nt_xent"])]
    [report] = judged(lines)
    assert (report.verdict, report.exit_code) == ("value-only", 0)
    assert report.scope.not_judged == ("temperature", "z1", "z2")


def test_of_a_large_case_the_listed_rows_are_judged_and_all_rows_may_be_given(judged, vectors):
    cases = vectors.cases["nt_xent"]
    [case], lines = filter(is_large, cases), answers.right_answers(cases)
    grads, rows = probe_of(case, "float64").grads, case.outputs["grad.z1"].rows
    other = next(row for row in range(len(grads["z1"])) if row not in rows)
    for row, code in ((other, 0), (rows[-1], 1)):
        z1 = np.array(grads["z1"])
        z1[row] += 1.0
        lines[-1]["grad"]["z1"] = answers.flat(z1)
        [report] = judged(lines)
        assert report.exit_code == code
        assert [r.id for r in report.results if r.status == "fail"] == [f"{case.id}/grad.z1"] * code
        assert [d.id for d in report.diagnosis] == ["value-right-gradient-wrong"] * code


def test_cases_on_several_ranks_have_a_report_of_their_own(judged, folder, vectors):
    ranks = read_ranks(vectors.manifest, folder)
    one, several = answers.right_answers(vectors.cases["nt_xent"]), answers.right_ranks(ranks)
    reports = judged([*one, *several], implementation="C++")
    assert [(r.target, r.exit_code, r.scope.cases) for r in reports] == [
        ("C++", 0, len(one)),
        ("C++ on several ranks", 0, len(ranks)),
    ]
    [report] = judged([{"id": several[0]["id"], "unsupported": "one process"}, *several[1:]])
    assert (report.exit_code, report.scope.cases) == (0, len(ranks) - 1)
    for entries, words in (
        ({"value": 1.0}, "answers for no ranks, but the case has 2 ranks"),
        ({"ranks": [{}]}, "1 rank"),
    ):
        with pytest.raises(InputError, match=words):
            judged([{"id": ranks[0].id, **entries}])


def test_ranks_are_explained_by_what_is_between_them_first(judged, folder, vectors, monkeypatch):
    ranks, seen = read_ranks(vectors.manifest, folder), []
    between = Diagnosis("gradient-divided-by-ranks", (DiagnosisPart("smaller"),))
    monkeypatch.setattr(compare_vectors, "ranks_diagnoses", lambda pairs: seen.extend(pairs) or (between,))
    lines = answers.right_ranks(ranks[1:])
    lines[0]["ranks"][1]["grad"]["z1"][0] += 1.0
    [report] = judged(lines)
    assert (report.exit_code, [d.id for d in report.diagnosis]) == (1, ["gradient-divided-by-ranks"])
    assert [(case.id, observation.probe.id) for case, observation in seen] == [(c.id, c.id) for c in ranks[1:]]


NAMED_AT_ONCE = {
    "nt-xent-own-logit-kept",
    "nt-xent-positive-detached",
}
LIMITED = {"nt-xent-bare-exponentials"}
"""Right wherever they are finite: what they are not is a limit of theirs, and is explained as any difference."""


def of_vectors():
    """Bugs of programs that intend the first settings of their loss."""
    meant = (name for name, program in bugs().items() if program.loss in LOSSES and not program.settings)
    return sorted(name for name in meant if "float64" in bugs()[name].dtypes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A function that exports all vectors of a loss once, and returns their folder."""

    @cache
    def whole(loss):
        folder = tmp_path_factory.mktemp(loss)
        list(export(folder, (loss,)))
        return folder

    return whole


@pytest.mark.parametrize("name", partly_slow(of_vectors(), NAMED_AT_ONCE.__contains__, "a fourth of the catalogue"))
def test_known_bugs_have_their_names(whole, tmp_path, monkeypatch, name):
    monkeypatch.setattr(compare_vectors, "read_vectors", READ_ONCE)
    program = bugs()[name]
    folder = whole(program.loss)
    vectors = READ_ONCE(folder)
    lines = answers.of_bug(vectors.cases[program.loss], program)
    [report] = compare(folder, answers.written(tmp_path / "run.jsonl", vectors.sha256, lines))
    assert (report.verdict, report.exit_code) == (("conforms", 0) if name in LIMITED else ("differs", 1))
    first = tuple(sorted((*report.diagnosis, *report.limits)[0].id.split("+")))
    assert first in {expected(program), *(tuple(sorted(other.split("+"))) for other in program.also)}


def test_a_number_where_inputs_must_be_refused_is_wrong(judged, vectors):
    cases = vectors.cases["supcon_out"]
    place = next(place for place, case in enumerate(cases) if case.expect == "error")
    lines = answers.right_answers(cases)
    lines[place] = {"id": cases[place].id, "value": 0.25}
    [report] = judged(lines)
    assert (report.verdict, report.exit_code, report.diagnosis) == ("differs", 1, ())
    assert "the target returns 0.25, where it must refuse the inputs" in report.reason
    lines[place] = {"id": cases[place].id, "unsupported": "that setting"}
    assert judged(lines)[0].exit_code == 0


def test_cases_of_the_first_settings_that_fail_are_explained(judged, vectors):
    cases = [case for case in vectors.cases["supcon_out"] if case.expect == "value"]
    first = set(cases[0].arguments), cases[0].settings
    kinds = [(set(case.arguments), case.settings) == first for case in cases]
    assert set(kinds) == {True, False}
    lines = answers.right_answers(cases)
    for line, usual in zip(lines, kinds, strict=True):
        factor = 2.0 if usual else 3.0
        line["value"] *= factor
        line["grad"] = {name: [factor * x for x in grad] for name, grad in line["grad"].items()}
    [report] = judged(lines)
    assert [d.id for d in report.diagnosis] == ["outer-factor-2"]


def test_an_error_where_a_number_is_right_could_not_be_run(judged, vectors):
    lines = answers.right_answers(vectors.cases["nt_xent"])
    lines[3] = {"id": lines[3]["id"], "error": "out of memory"}
    [report] = judged(lines)
    assert (report.verdict, report.exit_code) == ("differs", 1)
    assert "1 case could not be run: answers with an error: out of memory" in report.reason
    [report] = judged([{"id": line["id"], "error": "no"} for line in lines])
    assert (report.verdict, report.exit_code) == ("error", 4)


@pytest.mark.parametrize("value", ["NaN", "-Infinity"])
def test_what_is_not_finite_is_judged(judged, vectors, value):
    lines = answers.right_answers(vectors.cases["nt_xent"])
    lines[0] |= {"value": value}
    [report] = judged(lines)
    assert report.exit_code == 1
    assert [r.case for r in report.results if r.quantity == "value.finite" and r.status == "fail"] == [lines[0]["id"]]


def test_fewer_than_required_is_too_little_and_each_missing_one_is_listed(judged, vectors):
    lines, least = answers.right_answers(vectors.cases["nt_xent"]), vectors.manifest["min_cases"]["nt_xent"]
    [report] = judged(lines[: least - 1])
    assert (report.exit_code, report.verdict) == (5, "inconclusive")
    assert f"{least - 1} of {len(lines)} cases could be judged, and {least} must be" in report.reason
    missing = {r.case: r.why for r in report.results if r.status == "skip"}
    assert missing == dict.fromkeys([line["id"] for line in lines[least - 1 :]], "the outputs have no line for it")
    [unable] = judged([*lines[: least - 1], *({"id": line["id"], "unsupported": "N"} for line in lines[least - 1 :])])
    assert unable.exit_code == 5
    assert "does not support this: N" in str(unable)


def test_several_losses_have_a_report_each_and_the_worst_exit_code(judged, vectors, folder, tmp_path):
    wrong, right = (answers.right_answers(vectors.cases[loss]) for loss in LOSSES)
    reports = judged([*({"id": line["id"], "value": 2 * line["value"]} for line in wrong), *right])
    assert [report.loss for report in reports] == list(LOSSES)
    assert [report.exit_code for report in reports] == [1, 0]
    assert (worst(reports), record(reports)["exit_code"]) == (1, 1)
    assert [each["loss"] for each in record(reports)["reports"]] == list(LOSSES)
    assert record(reports[:1]) == reports[0].record()
    assert len(ET.fromstring(junit_of(reports)).findall("testsuite")) == 2
    assert "nt_xent" in str(page_of(reports)).splitlines()[-2]
    # Of a loss without a line nothing was executed, whatever the other one says.
    outputs = answers.written(tmp_path / "one.jsonl", vectors.sha256, answers.right_answers(vectors.cases[LOSSES[1]]))
    one, none = compare(folder, outputs)
    assert (one.exit_code, none.loss, none.exit_code, worst((one, none))) == (0, LOSSES[0], 5, 5)
    assert "is answered" in none.reason
    # Without any line, nothing was executed of either.
    assert [(report.loss, report.exit_code) for report in judged([])] == [(loss, 5) for loss in LOSSES]


@pytest.mark.parametrize(
    ("codes", "code"), [((0, 6), 6), ((6, 5), 5), ((5, 1), 1), ((1, 4), 4), ((4, 3, 0), 3), ((0, 0), 0)]
)
def test_the_worst_exit_code(codes, code):
    from types import SimpleNamespace

    assert worst([SimpleNamespace(exit_code=each) for each in codes]) == code


WRONG_LINES = {
    "unknown id": ({"id": "nothing-at-all"}, "line 2: .* has no case nothing-at-all; see nceref vectors list"),
    "nearly an id": (
        {"id": "designed-0.3-00000000"},
        r"has no case designed-0.3-0{8}; did you mean designed-0.3-[0-9a-f]{8}",
    ),
    "entry": ({"gradients": {}}, "line 2: the entry 'gradients' is none of this line, which has `id`, `value`, `grad`"),
    "shape of the value": ({"value": [1, 2]}, "line 2, case designed.*2 numbers"),
    "shape of a gradient": ({"grad": {"z1": [1.0, 2.0]}}, "line 2, case designed.* 2 numbers as the gradient of `z1`"),
    "nested": ({"grad": {"z1": [[1.0, 2.0]]}}, "a list of lists"),
    "input": ({"grad": {"queries": [1.0]}}, "line 2.*'queries'"),
    "text": ({"value": "0.5"}, "line 2.*'0.5'"),
    "null": ({"value": None}, "line 2.*None"),
}


@pytest.mark.parametrize(("entries", "words"), WRONG_LINES.values(), ids=WRONG_LINES)
def test_what_is_no_answer_to_a_case_is_named_with_its_line(judged, vectors, entries, words):
    lines = answers.right_answers(vectors.cases["nt_xent"])
    lines[0] |= entries
    with pytest.raises(InputError, match=rf"run\.jsonl, {words}" if words.startswith("line") else words):
        judged(lines)


def test_other_vectors_are_refused(folder, vectors, tmp_path):
    lines = answers.right_answers(vectors.cases["nt_xent"])
    outputs = answers.written(tmp_path / "run.jsonl", "0" * 64, lines)
    with pytest.raises(
        ChecksumError, match=f"run.jsonl has answers to other vectors: it names the manifest 0000.*{vectors.sha256}"
    ):
        compare(folder, outputs)


def copied(folder, place):
    for path in folder.iterdir():
        (place / path.name).write_bytes(path.read_bytes())
    return place


def changed(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("file", "old", "new", "status", "words"),
    [
        ("nt_xent.json", "3f", "4f", 7, "nt_xent.json was changed"),
        ("MANIFEST.json", "nceref 0", "nceref 9", 7, "has answers to other vectors"),
        ("MANIFEST.json", '"2.0"', '"3.0"', 2, "`format`"),
    ],
)
def test_the_command_exits_7_for_a_broken_checksum(run, folder, vectors, tmp_path, file, old, new, status, words):
    (place := tmp_path / "copy").mkdir()
    changed(copied(folder, place) / file, old, new)
    outputs = answers.written(tmp_path / "run.jsonl", vectors.sha256, answers.right_answers(vectors.cases["nt_xent"]))
    got, out, err = run("compare", str(place), str(outputs))
    assert (got, out) == (status, ""), err
    assert words in err


def test_answers_in_a_format_that_the_folder_has_not_are_refused(tmp_path):
    list(export(tmp_path / "vectors", ("nce",), "float16"))
    read = read_vectors(tmp_path / "vectors")
    lines = answers.right_answers(read.cases["nce"])
    with pytest.raises(InputError, match="the answers are in float64, and the vectors are of float16; name the format"):
        compare(tmp_path / "vectors", answers.written(tmp_path / "run.jsonl", read.sha256, lines))
    named = answers.written(tmp_path / "run.jsonl", read.sha256, lines, dtype="float16")
    # Nor is a file of ranks needed where none of its cases is answered.
    [report] = compare(tmp_path / "vectors", named)
    assert report.verdict == "conforms"


def test_a_case_without_gradients_is_counted_in_the_verdict(judged, vectors):
    lines = answers.right_answers(vectors.cases["nt_xent"])
    lines[2] = {name: x for name, x in lines[2].items() if name != "grad"}
    [report] = judged(lines)
    assert f"; no gradient to judge on 1 of {report.scope.cases} cases" in report.reason
