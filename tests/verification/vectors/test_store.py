"""The vectors of the package: as their manifest says, as their schemas say, and as the formulas of today say."""

import copy
import hashlib
import json
import math
import shutil
import zlib
from dataclasses import replace
from fractions import Fraction
from itertools import islice

import jsonschema
import numpy as np
import pytest
from slow import partly_slow
from sweep import sweep
from verification.vectors import answers
from verification.vectors.answers import proven

from nceref import InputError
from nceref.cases.corpus.corpus import evaluate
from nceref.cases.judge import judge
from nceref.cases.records import Observation, Outcome
from nceref.exact.certified import Enclosure
from nceref.losses import all_losses, get_loss
from nceref.output.schema import check
from nceref.tolerance.implementation import FORMATS
from nceref.verification.vectors.check import bound_slack, check_vectors
from nceref.verification.vectors.compare import compare
from nceref.verification.vectors.export import export
from nceref.verification.vectors.packed import is_large
from nceref.verification.vectors.proven import bound_of, bounded, is_unique, nearest_number, upward
from nceref.verification.vectors.ranks_file import read_ranks
from nceref.verification.vectors.records import ERROR, case_of, probe_of, record_of
from nceref.verification.vectors.store import (
    CHANGES,
    DATA,
    MANIFEST,
    ChecksumError,
    check_files,
    is_required,
    read_vectors,
)
from tools.vectors.cases import small_cases
from tools.vectors.files import package_files

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def vectors():
    return read_vectors()


FEW = ("cross_entropy", "siglip", "paco")
SLOW = pytest.mark.slow(reason="all losses, and `nceref vectors check` has all cases")


@pytest.mark.slow(reason="writes and compresses all cases; the files of a few losses are in `make test`")
def test_every_file_is_as_it_would_be_written(vectors):
    written = package_files(vectors.cases)
    held = {path.name: path.read_bytes() for path in DATA.iterdir()}
    # The generator is the version that wrote them.
    assert {name: x for name, x in written.items() if name != MANIFEST} == {
        name: x for name, x in held.items() if name != MANIFEST
    }
    # A wheel is compressed as well.
    assert sum(len(zlib.compress(content)) for content in held.values()) < 5e6


def test_every_loss_has_cases_and_files_are_as_they_would_be_written(vectors):
    assert set(vectors.cases) == set(all_losses())
    written = package_files({name: vectors.cases[name] for name in FEW})
    assert all(written[name] == (DATA / name).read_bytes() for name in (f"{loss}.json" for loss in FEW))
    assert check_files() == len(list(DATA.iterdir())) - 1
    for loss, count in vectors.manifest["min_cases"].items():
        assert count == sum(map(is_required, vectors.cases[loss])) >= 5


def test_the_change_log_has_this_corpus(vectors):
    last = json.loads((DATA / CHANGES).read_text().splitlines()[-1])
    assert last["corpus"] == vectors.manifest["corpus"]
    # Another set of cases is another corpus, with a line of its own.
    ids = sorted(case.id for each in vectors.cases.values() for case in each)
    assert last["ids"] == hashlib.sha256("\n".join(ids).encode()).hexdigest()
    assert len(last["why"]) > 10


def test_temperatures_formats_and_clauses_are_covered(vectors):
    cases = [case for each in vectors.cases.values() for case in each if not is_large(case)]
    assert min(case.inputs["temperature"] for case in cases if "temperature" in case.inputs) < 1.1e-4
    assert {case.expect for case in cases} == {"value", "error"}
    for case in cases:
        assert max(np.size(x) for x in case.inputs.values()) <= 64
        assert {"float64", "float32"} <= set(case.formats) or case.expect == ERROR
        assert case.clauses
        for output in case.outputs.values():
            assert {"float64", "float32"} <= set(output.unique)
            assert {"arb", "decimal"} == set(output.engines)
            assert output.exact == (output.radius == 0)
    # What is 0 by symmetry is marked.
    assert any(output.exact for case in cases for output in case.outputs.values())


def test_each_known_bug_is_seen_by_some_case_and_a_bug_is_never_both(vectors):
    for loss, cases in vectors.cases.items():
        kills, blind = ({bug for case in cases for bug in getattr(case, name)} for name in ("kills", "blind"))
        assert not any(set(case.kills) & set(case.blind) for case in cases)
        assert blind <= kills, (loss, blind - kills)


def test_the_schemas_hold_and_are_strict(vectors):
    validators = {
        name: jsonschema.Draft202012Validator(json.loads((DATA / f"{name}.schema.json").read_text()))
        for name in ("cases", "manifest")
    }
    validators["manifest"].validate(vectors.manifest)
    # All files are written by one function.
    for loss in ("clip", "paco", "nce"):
        validators["cases"].validate(json.loads((DATA / f"{loss}.json").read_text()))
    content = json.loads((DATA / "uniformity.json").read_text())
    for changed in broken(content["cases"][0]):
        assert list(validators["cases"].iter_errors({**content, "cases": [changed]})), changed
        with pytest.raises(InputError, match=r"^here: `cases"):
            check({**content, "cases": [changed]}, DATA / "cases.schema.json", "here")
    check(content, DATA / "cases.schema.json", "here")


def broken(record):
    """The record with one thing wrong, in many ways; each is against the schema."""
    value = ("outputs", "value")
    places = {
        (): {"id": "designed", "expect": "maybe", "clauses": "ordinary", "more": 1},
        ("inputs", "x"): {"shape": [-1], "hex": ["3fe000000000000"], "kind": "real", "more": 1},
        value: {
            "hex": ["3FE0000000000000"],
            "unique": ["float8"],
            "allowed": {"float8": 1.0},
            "radius": "0",
            "more": 1,
        },
    }
    for path, changes in places.items():
        for key, wrong in changes.items():
            changed = copy.deepcopy(record)
            inner = changed
            for step in path:
                inner = inner[step]
            inner[key] = wrong
            yield changed
            missing = copy.deepcopy(changed)
            inner = missing
            for step in path:
                inner = inner[step]
            del inner[key]
            if key not in ("more", "kind"):
                yield missing


@sweep("change", ["input", "decimal", "expect", "shape", "label"])
def test_a_record_that_contradicts_itself_is_refused(vectors, change):
    record = record_of(vectors.cases["nt_xent"][0])
    if change == "label":
        # NaN, which is no integer.
        record["inputs"]["z1"] |= {"kind": "integer", "hex": ["7ff8000000000000"] * 15}
    elif change == "input":
        record["inputs"]["z1"]["hex"][0] = "3ff0000000000000"
    elif change == "decimal":
        record["outputs"]["value"]["decimal"] = ["1.0"]
    elif change == "expect":
        record["expect"] = ERROR
    else:
        record["outputs"]["grad.z1"]["shape"] = [5, 4]
    with pytest.raises(InputError, match=r"new id|not the same numbers|`expect` must|does not hold|must have integers"):
        case_of("nt_xent", record, "here")


# Against the formulas. The whole of it is `nceref vectors check`.


@pytest.mark.parametrize("losses", [FEW, pytest.param((*all_losses(),), marks=SLOW)], ids=len)
@pytest.mark.parametrize("engine", ["arb", "decimal"])
def test_the_formulas_agree_and_a_changed_number_is_seen(vectors, engine, losses):
    if engine == "arb":
        pytest.importorskip("flint", reason="python-flint is not installed: pip install 'nceref[certify]'")
    for loss in losses:
        small = [case for case in vectors.cases[loss] if not is_large(case)]
        some = small[:1] if engine == "decimal" else (small[0], small[len(small) // 2], small[-1])
        assert check_vectors(loss, some, engine).wrong == ()
    case = vectors.cases["nt_xent"][0]
    for name in case.outputs:
        numbers = case.outputs[name].numbers.copy()
        # Decimals see what is beyond the radius, which is that of the worst entry; balls see the last bit.
        x, radius = numbers.flat[-1], case.outputs[name].radius
        numbers.flat[-1] = np.nextafter(x if engine == "arb" else x + 4 * radius, np.inf)
        wrong = replace(case, outputs={**case.outputs, name: replace(case.outputs[name], numbers=numbers)})
        assert len(check_vectors("nt_xent", [wrong], engine).wrong) == 1


def test_a_bound_of_another_version_is_seen(vectors):
    case = vectors.cases["siglip"][0]
    for name in ("value", "grad.image"):
        output = case.outputs[name]
        for factor in (0.999, 1.002):
            allowed = {dtype: np.array(room) for dtype, room in output.allowed.items()}
            for room in allowed.values():
                # Of one entry alone.
                room[(-1,) * room.ndim] *= factor
            wrong = replace(case, outputs={**case.outputs, name: replace(output, allowed=allowed)})
            assert len(check_vectors("siglip", [wrong], "decimal").wrong) == len(case.formats)


def test_what_differs_between_machines_is_less_than_the_slack_of_a_bound(vectors):
    """A bound that is computed from logits of other last bits is the same bound."""
    rng = np.random.default_rng(5)
    for loss, cases in islice(vectors.cases.items(), 0, None, 4):
        case = cases[3]
        for dtype, probe in bounded(get_loss(loss).declaration, case.arguments).items():
            moved = {
                name: np.nextafter(x, rng.choice([-np.inf, np.inf], np.shape(x)))
                for name, x in case.inputs.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.ndim == 2
            }  # fmt: skip
            near = evaluate(probe.loss, {**case.arguments, **moved}, dtype, against="number")
            for name in case.outputs:
                one, other = bound_of(probe, name), bound_of(near, name)
                if one is not None:
                    assert np.all(np.abs(one - other) <= bound_slack(probe) * one), (case.id, dtype, name)


def test_a_reader_computes_no_bound(vectors, monkeypatch):
    """What a consumer needs is stored: neither the loss is run, nor its errors are analyzed."""

    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr("nceref.tolerance.analysis.Analysis.run", refuse)
    monkeypatch.setattr("nceref.tolerance.implementation.walk", refuse)
    for cases in vectors.cases.values():
        for case in cases[::5]:
            for dtype in case.formats if case.expect != ERROR else ():
                probe = probe_of(case, dtype)
                assert probe.bounds.value == case.outputs["value"].allowed[dtype]
                judge(Observation(probe, Outcome(probe.value, dict(probe.grads))))


def test_the_program_is_judged_by_the_proven_numbers(vectors):
    for cases in vectors.cases.values():
        for case in (cases[0], cases[-1]):
            probe = probe_of(case, "float64")
            if case.expect == ERROR:
                assert probe.skip
                continue
            right = judge(Observation(probe, Outcome(probe.value, dict(probe.grads))))
            assert {result.status for result in right} == {"pass"}
            wrong = judge(Observation(probe, Outcome(probe.value * 1.01 + 0.01, dict(probe.grads))))
            assert [r.quantity for r in wrong if r.status == "fail"] == ["value"]


def test_making_a_case_again_gives_the_same_record(vectors):
    pytest.importorskip("flint", reason="python-flint is not installed: pip install 'nceref[certify]'")
    fresh = next(small_cases(all_losses()["supcon_in"].declaration))
    stored = vectors.cases["supcon_in"][0]
    assert proven(record_of(fresh)) == proven(record_of(replace(stored, kills=(), blind=())))


# Numbers.


def test_the_nearest_number_is_that_of_numpy_and_rounds_once():
    rng = np.random.default_rng(0)
    for x in (*(rng.standard_normal(200) * 2.0 ** rng.integers(-30, 15, 200)), 0.0, 1.0, 2.0**-24, 3 * 2.0**-25):
        for dtype in ("float16", "float32", "float64"):
            assert float(nearest_number(Fraction(x), dtype)) == float(np.dtype(dtype).type(x))
    # Beyond a tie of float16 by less than float64 can hold: in two roundings, the result would be 1.
    assert nearest_number(1 + Fraction(1, 2**11) + Fraction(1, 2**80), "float16") == 1 + Fraction(1, 2**10)
    assert nearest_number(Fraction(257, 256) + Fraction(1, 10**9), "bfloat16") == Fraction(65, 64) - Fraction(1, 128)


def test_what_is_unique_is_far_from_the_middle_of_two_numbers():
    middle = 1 + Fraction(1, 2**11)
    assert not is_unique(Enclosure(middle, Fraction(1, 2**90)), "float16")
    assert is_unique(Enclosure(middle, Fraction(0)), "float16")
    assert is_unique(Enclosure(middle, Fraction(1, 2**90)), "float32")
    # Ten bits wider it would touch the middle.
    assert not is_unique(Enclosure(middle + Fraction(1, 2**82), Fraction(1, 2**90)), "float16")


def test_a_bound_is_rounded_upward():
    rng = np.random.default_rng(1)
    for x in (*10.0 ** rng.uniform(-300, 300, 500), 5e-324, 1.0, 9.996e-7):
        assert x <= upward(x) <= 1.0101 * x or x == upward(x)
    assert upward(Fraction(1, 10**400)) == math.ulp(0.0)
    assert upward(0) == 0


# Folders that are exported.


@pytest.mark.parametrize(
    "dtype", partly_slow(["", *FORMATS], ["", "bfloat16"].__contains__, "the other formats, by the same steps")
)
def test_an_exported_folder_is_read_as_the_package_is_and_contradicts_nothing(tmp_path, vectors, dtype):
    assert [path.name for path in export(tmp_path, ("simple", "nce"), dtype)][-1] == MANIFEST
    assert check_files(tmp_path) == 7
    read = read_vectors(tmp_path)
    assert set(read.cases) == {"simple", "nce"}
    for loss, cases in read.cases.items():
        assert [case.id for case in cases] == [c.id for c in vectors.cases[loss] if not dtype or dtype in c.formats]
        assert {name for case in cases for x in case.outputs.values() for name in x.allowed} == (
            {dtype} if dtype else {*FORMATS}
        )
    assert check_vectors("nce", read.cases["nce"]).wrong == ()


def test_an_error_that_is_no_number_or_not_there_is_refused(vectors):
    record = record_of(vectors.cases["nce"][0])
    for allowed, words in (({}, "in some format"), ({"float64": [float("inf")]}, "finite numbers")):
        record["outputs"]["value"]["allowed"] = allowed
        with pytest.raises(InputError, match=words):
            case_of("nce", record, "here")


def test_a_full_export_has_all_rows_of_the_large_case(tmp_path, vectors):
    pytest.importorskip("flint", reason="python-flint is not installed: pip install 'nceref[certify]'")
    list(export(tmp_path, ("nce",), full=True))
    whole, part = read_vectors(tmp_path).cases["nce"][-1], vectors.cases["nce"][-1]
    assert (whole.id, whole.kills) == (part.id, part.kills)
    for name, output in part.outputs.items():
        assert whole.outputs[name].rows is None
        every = whole.outputs[name].numbers
        assert np.array_equal(every if output.rows is None else every[list(output.rows)], output.numbers)


def test_a_folder_with_other_losses_is_left_as_it_is(tmp_path):
    list(export(tmp_path, ("nce", "simple")))
    list(export(tmp_path, ("simple", "nce"), "float32"))
    before = (tmp_path / MANIFEST).read_bytes()
    with pytest.raises(InputError, match="has vectors of nce, which its manifest would lose"):
        list(export(tmp_path, ("simple",)))
    assert (tmp_path / MANIFEST).read_bytes() == before


def former(folder):
    """Make of a folder one of format 1, which had the largest allowed error of an output in place of all."""
    files = {}
    for path in folder.glob("*.json"):
        if path.name in (MANIFEST, *(path.name for path in DATA.glob("*.schema.json"))):
            continue
        content = json.loads(path.read_text())
        content["format"] = "1.0"
        for output in outputs_in(content):
            output["allowed"] = {dtype: max(room) for dtype, room in output["allowed"].items()}
        path.write_text(json.dumps(content))
        files[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    changed_manifest(folder, format="1.0", corpus="2026.11", files=files)


def outputs_in(content):
    """All outputs of a file, wherever they stand."""
    if isinstance(content, dict) and "allowed" in content:
        yield content
    for inner in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from outputs_in(inner)


def test_a_folder_of_the_former_format_is_judged_by_the_numbers_of_the_package(tmp_path, vectors):
    list(export(tmp_path, ("nce", "clip")))
    former(tmp_path)
    read = read_vectors(tmp_path)
    assert read.manifest["format"] == "1.0"
    assert {loss: list(map(record_of, cases)) for loss, cases in read.cases.items()} == {
        loss: list(map(record_of, vectors.cases[loss])) for loss in ("nce", "clip")
    }
    assert [len(read_ranks(read.manifest, tmp_path, losses)) for losses in ((), ("clip",), ("nce",))] == [12, 12, 0]
    lines = answers.right_answers([*read.cases["nce"], *read.cases["clip"]])
    reports = compare(tmp_path, answers.written(tmp_path / "run.jsonl", read.sha256, lines))
    assert [report.exit_code for report in reports] == [0, 0]
    changed_file(tmp_path, read.cases["nce"][0].id, "designed-0.3-00000000", "nce.json")
    with pytest.raises(InputError, match=r"this version has no case 'designed-0.3-00000000'; export the vectors anew"):
        read_vectors(tmp_path)


# Folders that are not as they should be.


def changed_manifest(folder, **entries):
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def changed_file(folder, old, new, name="uniformity.json"):
    """Another content, with its checksum in the manifest."""
    path = folder / name
    path.write_text(path.read_text().replace(old, new, 1))
    files = json.loads((folder / MANIFEST).read_text())["files"]
    changed_manifest(folder, files={**files, name: hashlib.sha256(path.read_bytes()).hexdigest()})


BROKEN = {
    "format": (lambda f: changed_manifest(f, format="3.0"), InputError, r"`format` must be 2\.x or 1\.x.*'3\.0'"),
    "unknown key": (lambda f: changed_manifest(f, more=1), InputError, "has the unknown entry 'more'"),
    "a list": (lambda f: changed_manifest(f, counts=[1]), InputError, r"`counts` must be a JSON object, got \[1\]"),
    "text": (lambda f: changed_manifest(f, counts={"uniformity": "1"}), InputError, r"`counts\.uniformity` must be a"),
    "no limit": (lambda f: changed_manifest(f, min_cases={"uniformity": 0}), InputError, "`min_cases` of uniformity"),
    "no number": (
        lambda f: changed_file(f, '"radius": ', '"radius": [0], "x": '),
        InputError,
        "has the unknown entry 'x'",
    ),
    "too many": (lambda f: changed_file(f, '"float64": [', '"float64": [1.0, '), InputError, "`allowed` must have a"),
    "other output": (
        lambda f: changed_file(f, '"grad.x"', '"grad.y"'),
        InputError,
        "`outputs` may have value, grad.x, got",
    ),
    "meaning": (lambda f: changed_manifest(f, specification={"uniformity": 2}), InputError, "`specification` of unif"),
    "outside": (
        lambda f: changed_manifest(f, files={"../x": "0" * 64}),
        InputError,
        "must be names of files beside it",
    ),
    "not JSON": (lambda f: (f / MANIFEST).write_text("{"), InputError, "is not JSON"),
    "no manifest": (lambda f: (f / MANIFEST).unlink(), InputError, MANIFEST),
    "changed": (lambda f: (f / "uniformity.json").write_text("{}"), ChecksumError, "was changed: its sha256 is 44136"),
    "cut off": (lambda f: changed_file(f, "\n]}", ""), InputError, "is not JSON"),
    "renamed": (lambda f: changed_file(f, '"uniformity"', '"dcl"'), InputError, "a changed case needs a new id"),
    "twice": (lambda f: changed_file(f, '"id": "', '"id": "x", "id": "'), InputError, "two entries of the same name"),
    "no text": (lambda f: (f / MANIFEST).write_bytes(b"\xff"), InputError, "no text in UTF-8"),
}


@sweep(("change", "error", "message"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_folder_is_refused(tmp_path_factory, change, error, message):
    folder = tmp_path_factory.mktemp("vectors")
    for name in (MANIFEST, "uniformity.json", "large.json", "large.safetensors"):
        shutil.copy(DATA / name, folder)
    change(folder)
    with pytest.raises(error, match=message):
        read_vectors(folder, ("uniformity",))
