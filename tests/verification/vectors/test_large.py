"""Large cases: inputs by a rule, rows that are listed, files of the package, and what of an answer is judged."""

from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest
from slow import partly_slow
from sweep import sweep
from verification.vectors.answers import proven

from nceref import InputError
from nceref.cases.rounding import rounded
from nceref.losses import all_losses, get_loss
from nceref.verification.vectors import packed
from nceref.verification.vectors.check import check_vectors
from nceref.verification.vectors.large import large_case
from nceref.verification.vectors.ranks_file import read_ranks
from nceref.verification.vectors.records import case_of, placed, record_of
from nceref.verification.vectors.rows import EDGES, LISTED, listed_rows, whole
from nceref.verification.vectors.shared_inputs import shared_arrays, shared_inputs
from nceref.verification.vectors.store import (
    DATA,
    RANKS,
    ChecksumError,
    check_files,
    folder_files,
    read_vectors,
)
from tools.vectors.cases import small_cases
from tools.vectors.files import large_files, package_files

pytestmark = pytest.mark.machine


def test_inputs_follow_the_rule_and_are_exact_in_every_format():
    arrays = shared_arrays()
    # (1664525 + 1013904223) >> 16 = 15496, which is 2 more than 122 * 127.
    assert arrays["rows"][0, 0] == (2 - 63) / 64
    state = 2
    for column in range(3):
        state = (1664525 * state + 1013904223) % 2**32
        assert arrays["partners"][0, column] - arrays["rows"][0, column] == ((state >> 16) % 127 - 63) / 64
    for name, x in arrays.items():
        assert all(np.array_equal(rounded(x, dtype), x) for dtype in ("float64", "float32", "bfloat16", "float16")), (
            name
        )
    assert min(np.bincount(arrays["labels"])) >= 2


@sweep("name", all_losses())
def test_every_loss_takes_the_shared_inputs(name):
    inputs, loss = shared_inputs(get_loss(name).declaration), get_loss(name)
    assert np.isfinite(loss(**inputs))
    assert max(len(x) for x in inputs.values() if isinstance(x, np.ndarray)) >= 130


def test_rows_are_listed_from_end_to_end():
    rows = listed_rows({"value": (), "grad.a": (131, 97), "grad.b": (97, 97), "grad.t": ()})
    assert {name: len(x) for name, x in rows.items()} == {"grad.a": LISTED // 2, "grad.b": LISTED // 2}
    assert set(EDGES) <= set(rows["grad.a"])
    assert max(np.diff(rows["grad.a"])) <= 8
    assert listed_rows({"grad.a": (131, 97)})["grad.a"][:3] == (0, 1, 2)


def test_rows_that_are_not_listed_are_not_judged():
    output = stored("simple").outputs["grad.keys"]
    numbers, rooms = np.arange(6.0).reshape(2, 3), np.full((2, 3), 0.5)
    out, room = placed(numbers, rooms, replace(output, shape=(4, 3), rows=(0, 3)))
    assert np.array_equal(out[[0, 3]], numbers)
    assert room.tolist() == [[0.5] * 3, [np.inf] * 3, [np.inf] * 3, [0.5] * 3]
    assert placed(numbers, rooms, replace(output, shape=(2, 3), rows=None)) == (numbers, rooms)


@pytest.mark.parametrize(
    ("given", "rows", "expected"),
    [
        (["a", "b", "c", 0, 1, "NaN"], (0, 3), ["a", "b", "c", 3, 4, 5, 6, 7, 8, 0, 1, "NaN"]),
        ([0] * 12, (0, 3), [0] * 12),
        ([0] * 6, None, [0] * 6),
        ([0] * 7, (0, 3), [0] * 7),
        ("text", (0, 3), "text"),
    ],
)
def test_the_listed_rows_alone_are_an_answer(given, rows, expected):
    assert whole(given, np.arange(12.0).reshape(4, 3), rows) == expected


CONTENT = {name: (DATA / name).read_bytes() for name in (packed.RECORDS, packed.ARRAYS)}


@cache
def stored(name):
    """The large case of a loss as the package has it."""
    ((_, record),) = packed.unpacked(*CONTENT.values(), [name])
    return case_of(name, record, "here")


@pytest.mark.parametrize(
    "name", partly_slow(all_losses(), ("clip", "supcon_out", "cross_entropy", "nce").__contains__, "all losses")
)
def test_the_program_of_every_loss_is_within_its_bound_of_the_stored_numbers(name):
    assert check_vectors(name, [stored(name)]).wrong == ()


def test_equal_cases_give_equal_files_that_are_small():
    assert large_files(stored(name) for name in all_losses()) == CONTENT
    assert sum(map(len, CONTENT.values())) < 175e3 * len(all_losses())


def test_a_stored_number_that_is_off_is_seen():
    case = stored("simple")
    output = case.outputs["grad.keys"]
    numbers = output.numbers.copy()
    numbers[5, 7] += 1e-9
    changed = replace(case, outputs={**case.outputs, "grad.keys": replace(output, numbers=numbers)})
    (sentence,) = check_vectors("simple", [changed]).wrong
    assert f"at [{output.rows[5]}, 7]" in sentence


def test_an_array_that_is_not_there_is_named():
    records = CONTENT[packed.RECORDS].replace(b'"array": "rows"', b'"array": "cols"')
    with pytest.raises(InputError, match=r"there is no array .cols. in large\.safetensors"):
        list(packed.unpacked(records, CONTENT[packed.ARRAYS], ["simple"]))


@pytest.mark.parametrize("name", partly_slow(all_losses(), "nce".__eq__, "each takes 3 to 20 seconds"))
def test_certified_anew_the_numbers_are_the_same(name):
    pytest.importorskip("flint", reason="python-flint is not installed: pip install 'nceref[certify]'")
    fresh, kept = large_case(get_loss(name).declaration), stored(name)
    fresh = replace(fresh, kills=kept.kills, blind=kept.blind)
    assert proven(record_of(fresh)) == proven(record_of(kept))


def test_folders_of_the_package_and_of_others_have_the_same_cases(tmp_path):
    pytest.importorskip("flint", reason="python-flint is not installed: pip install 'nceref[certify]'")
    small = list(islice(small_cases(get_loss("nce").declaration, second=False), 2))
    folders = {}
    for name, files in {
        "package": package_files({"nce": small}),
        "export": folder_files({"nce": [*small, stored("nce")]}, {RANKS: (DATA / RANKS).read_bytes()}),
    }.items():
        (tmp_path / name).mkdir()
        for file, content in files.items():
            (tmp_path / name / file).write_bytes(content)
        assert check_files(tmp_path / name) == len(files) - 1
        folders[name] = read_vectors(tmp_path / name)
        assert len(read_ranks(folders[name].manifest, tmp_path / name, ("clip",))) == 12
    package, export = (list(map(record_of, each.cases["nce"])) for each in folders.values())
    assert package == export == list(map(record_of, [*small, stored("nce")]))
    assert folders["package"].manifest["counts"] == {"nce": len(small) + 1}
    (tmp_path / "export" / RANKS).write_bytes(b"{}")
    with pytest.raises(ChecksumError, match=r"ranks\.json was changed"):
        read_ranks(folders["export"].manifest, tmp_path / "export")
    (tmp_path / "package" / packed.ARRAYS).write_bytes(CONTENT[packed.ARRAYS][:-1])
    with pytest.raises(ChecksumError, match=r"large\.safetensors was changed"):
        read_vectors(tmp_path / "package")
