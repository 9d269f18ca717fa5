"""Sizes and batches of a user's own: every case has them, and a file that is not what it should be is refused."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from nceref import get_loss, verify
from nceref.cases.corpus.corpus import designed_inputs
from nceref.cases.corpus.files import read_inputs
from nceref.cases.corpus.resizing import Resizing
from nceref.errors import InputError, UnavailableError
from nceref.verification.report import CONFORMS, DIFFERS, TOO_LITTLE

INFO_NCE = get_loss("info_nce")


def made(name, resizing, suite="standard"):
    return dict(designed_inputs(get_loss(name).declaration, {}, suite, "float64", 0, {}, None, resizing))


@pytest.mark.parametrize("name", ["info_nce", "moco", "supcon_out", "cosface"])
def test_all_sizes_are_multiples(name):
    for id, inputs in made(name, Resizing(16)).items():
        shapes = [np.shape(x) for x in inputs.values() if np.ndim(x)]
        assert shapes
        assert all(n % 16 == 0 for shape in shapes for n in shape), id


def test_all_cases_have_the_shape_and_one_that_is_about_size_is_left_out():
    cases = made("nt_xent", Resizing(1, 24, 10))
    assert {x["z1"].shape for x in cases.values()} == {(24, 10)}
    geometries = {id.rpartition("-")[0] for id in cases}
    assert {"designed", "aligned", "opposed", "collapsed", "zero", "extreme"} <= geometries
    assert not geometries & {"n17", "n1025", "d65", "wide", "many", "single"}
    weighted = made("cosface", Resizing(1, 0, 10, 7))
    assert {x["class_weights"].shape for x in weighted.values()} == {(7, 10)}
    assert {len(x["embeddings"]) for x in weighted.values()} >= {1, 5, 17, 129, 1025}
    assert not {id.rpartition("-")[0] for id in weighted} & {"d65", "wide", "one-class"}


def in_multiples(queries, keys, temperature):
    if len(queries) % 16:
        raise ValueError
    return INFO_NCE.value_and_grad(queries, keys, temperature=float(temperature))


def test_a_target_that_needs_multiples_conforms_with_them():
    assert verify(in_multiples, loss="info_nce", suite="quick").verdict == "error"
    report = verify(in_multiples, loss="info_nce", suite="quick", multiple_of=16)
    assert report.verdict == "conforms"
    assert report.scope.ranges["rows"] == (16, 144)


def self_contrast_kept(z1, z2, temperature):
    if len(z1) % 32:
        raise ValueError
    z = np.concatenate([z1, z2]) / np.linalg.norm(np.concatenate([z1, z2]), axis=1, keepdims=True)
    logits = z @ z.T / temperature
    return np.mean(np.logaddexp.reduce(logits, axis=1) - np.diagonal(np.roll(logits, len(z1), axis=1)))


@pytest.mark.parametrize("sizes", [{"multiple_of": 32}, {"shape": (32, 12)}], ids=str)
def test_what_is_wrong_at_large_sizes_alone_is_explained_and_tried_on_fresh_calls_of_these(sizes):
    report = verify(self_contrast_kept, loss="nt_xent", suite="quick", **sizes)
    assert [d.id for d in report.diagnosis] == ["self-contrast-kept"]
    assert "6 of 6 fresh calls" in report.diagnosis[0].sentence


def wrong_for_forty(queries, keys, temperature):
    return INFO_NCE(queries, keys, temperature=float(temperature)) * (1 + (len(queries) == 40))


def test_a_batch_of_ones_own_is_judged_beside_the_others(tmp_path):
    rows = np.random.default_rng(0).standard_normal((2, 40, 8)).astype(np.float32)
    np.savez(tmp_path / "batch.npz", q=rows[0], keys=rows[1])
    assert verify(wrong_for_forty, loss="info_nce", suite="quick").ok
    report = verify(wrong_for_forty, loss="info_nce", suite="quick", calls=0, inputs=str(tmp_path / "batch.npz"))
    failed = {r.case for r in report.results if r.status == "fail"}
    assert failed == {"given-0.3", "given-0.07", "given-0.01"}


ROWS = np.ones((4, 2))


def doubled(queries, keys, temperature):
    value, grads = INFO_NCE.value_and_grad(queries, keys, temperature=float(temperature))
    return 2 * value, grads


UNJUDGED = {
    "a row of zeros": ({"queries": [[1.0, 2.0], [0.0, 0.0]]}, "float64", "`queries` row 1 is zero"),
    "no matrix": ({"queries": [1.0, 2.0], "keys": [1.0, 2.0]}, "float64", r"`queries` must be \(N, D\)"),
    "a temperature below 0": ({"temperature": -1.0}, "float64", "`temperature` must be > 0"),
    "beyond float32": (
        {"queries": [[1e300, 0.0], [0.0, 1.0]]},
        ("float64", "float32"),
        "float32: `queries` must be fin",
    ),
}


BATCH = {"queries": np.eye(2), "keys": np.eye(2) + 1}


def test_a_batch_that_is_judged_passes(tmp_path):
    path = str(tmp_path / "batch.npz")
    np.savez(path, **BATCH)
    options = {"loss": "info_nce", "suite": "quick", "dtype": ("float64", "float32"), "inputs": path}
    assert verify(INFO_NCE.value_and_grad, **options).exit_code == CONFORMS


@pytest.mark.parametrize("name", UNJUDGED)
def test_a_batch_that_was_not_judged_does_not_pass(tmp_path, name):
    own, dtype, reason = UNJUDGED[name]
    path = str(tmp_path / "batch.npz")
    options = {"loss": "info_nce", "suite": "quick", "dtype": dtype, "inputs": path}
    np.savez(path, **{**BATCH, **own})
    report = verify(INFO_NCE.value_and_grad, **options)
    assert (report.verdict, report.exit_code) == ("inconclusive", TOO_LITTLE)
    assert re.search(
        f"^too little was executed: the batch of `inputs` could not be judged in .*{reason}", report.reason
    )


def test_what_the_caller_names_is_judged_and_a_wrong_answer_comes_first(tmp_path):
    own, dtype, _ = UNJUDGED["a row of zeros"]
    np.savez(tmp_path / "batch.npz", **{**BATCH, **own})
    options = {"loss": "info_nce", "suite": "quick", "dtype": dtype, "inputs": str(tmp_path / "batch.npz")}
    assert verify(INFO_NCE.value_and_grad, **options, case="designed-0.3").exit_code == CONFORMS
    assert verify(doubled, **options, calls=0).exit_code == DIFFERS


REFUSED = [
    ({"foo": ROWS}, "has 'foo', which is no input of info_nce"),
    ({"queries": ROWS}, "'keys' is missing"),
    ({"queries": ROWS, "keys": np.array([None])}, "cannot be read: .*allow_pickle=False"),
    ({"queries": ROWS, "keys": ROWS * np.nan}, "must be finite, got NaN or infinity in 'keys'"),
    ({"queries": ROWS, "keys": np.ones((3000, 2))}, "between 1 and 2048 rows under 'keys'"),
    ({"queries": ROWS[:0], "keys": ROWS[:0]}, r"empty under 'queries': its shape is \(0, 2\); save at least"),
    ({"queries": ROWS[:, :0], "keys": ROWS[:, :0]}, r"empty under 'queries': its shape is \(4, 0\)"),
    ({"queries": ROWS, "q": ROWS, "keys": ROWS}, "stands for an input that is there already"),
    ({"queries": ROWS, "keys": ROWS > 0}, "must have numbers under 'keys', got bool"),
    ({"queries": ROWS, "keys": np.ones((5, 2))}, r"one size N, got \(4, 2\) in `queries` and \(5, 2\) in `keys`"),
    ({"queries": ROWS, "keys": ROWS, "temperature": ROWS}, "must have one number under 'temperature'"),
]


@pytest.mark.parametrize(("arrays", "message"), REFUSED)
def test_a_file_that_has_something_else_is_refused_by_name(tmp_path, arrays, message):
    np.savez(tmp_path / "batch.npz", **arrays)
    with pytest.raises(InputError, match=message):
        read_inputs(tmp_path / "batch.npz", INFO_NCE.declaration)


@pytest.mark.parametrize(
    ("kind", "stored", "numbers"),
    [
        ("BF16", np.array([0x3F80, 0xC040], "<u2"), [1.0, -3.0]),
        ("F16", np.array([0.5, 2.0], "<f2"), [0.5, 2.0]),
        ("I64", np.array([3, -4], "<i8"), [3.0, -4.0]),
        ("F8_E4M3", np.array([1, 2], "u1"), "'queries' is of type F8_E4M3; store it in float32"),
    ],
)
def test_tensors_are_read_in_their_format_and_others_are_refused(kind, stored, numbers, tmp_path, monkeypatch):
    record = {"dtype": kind, "shape": [2, 1], "data": stored.tobytes()}
    reader = SimpleNamespace(
        SafetensorError=ValueError, deserialize=lambda raw: [(n, record) for n in raw.decode().split()]
    )
    monkeypatch.setitem(sys.modules, "safetensors", reader)
    (tmp_path / "x.safetensors").write_text("queries keys")
    if isinstance(numbers, str):
        with pytest.raises(InputError, match=numbers):
            read_inputs(tmp_path / "x.safetensors", INFO_NCE.declaration)
    else:
        read = read_inputs(tmp_path / "x.safetensors", INFO_NCE.declaration)
        assert {name: x.tolist() for name, x in read.items()} == {
            n: [[x] for x in numbers] for n in ("queries", "keys")
        }


def test_what_is_no_such_file_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "text.safetensors").write_text("no archive")
    for name, message in (
        ("text.npz", "no archive of arrays"),
        ("none.npz", r"cannot read `inputs` .*none\.npz: no such file"),
        ("x.pt", "must be a file"),
    ):
        with pytest.raises(InputError, match=message):
            read_inputs(tmp_path / name, INFO_NCE.declaration)
    with pytest.raises((InputError, UnavailableError), match=r"cannot be read|install safetensors"):
        read_inputs(tmp_path / "text.safetensors", INFO_NCE.declaration)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": "5"}, "`shape` must be integers"),
        ({"shape": (5, 0)}, "`shape` must be"),
        ({"shape": "5000,3"}, "at most 2048,65536,2048"),
        ({"multiple_of": 0}, "`multiple_of` must be"),
    ],
)
def test_a_size_that_is_none_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        verify(in_multiples, loss="info_nce", **options)
