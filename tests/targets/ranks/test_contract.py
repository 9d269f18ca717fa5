"""The contract of a run on ranks: shards, joined answers, options; everything that needs no process."""

from functools import lru_cache

import numpy as np
import pytest

import nceref
from nceref.cases.corpus.corpus import corpus
from nceref.cases.corpus.resizing import Resizing
from nceref.cases.judge import judge
from nceref.cases.records import Observation, Outcome
from nceref.errors import InputError
from nceref.targets.ranks.contract import Contract, rows_of
from nceref.targets.ranks.options import contracts, importable

CONTRACTS = [
    Contract(1),
    Contract(3),
    Contract(2, "sum", "sum"),
    Contract(2, "each"),
    Contract(2, "rank0", shards=(3, 1)),
    Contract(3, duplicate=True),
]


@lru_cache
def cases(name, unit):
    loss = nceref.get_loss(name).declaration
    return [p for p in corpus(loss, {}, suite="quick", resizing=Resizing(unit)) if not p.skip and not p.is_large]


@pytest.mark.parametrize("name", ["clip", "nt_xent", "supcon_out", "cosface", "moco"])
def test_right_answers_in_parts_are_joined_to_the_right_one(name):
    for contract in CONTRACTS:
        # 12 rows and multiples of them are in whole shares for each; where rows may be repeated, any number is.
        judged = [p for p in cases(name, 1 if contract.unit == 1 else 12) if contract.fits(p)][::6]
        assert judged
        for probe in judged:
            parts = contract.parted((probe.value, probe.grads), probe)
            outcome = contract.joined([Outcome(value, grads) for value, grads in parts], probe)
            assert not [r for r in judge(Observation(probe, outcome)) if r.status == "fail"], (contract, probe.id)


def test_a_rank_has_its_rows_and_the_whole_of_what_is_shared():
    probe = next(p for p in cases("moco", 4) if rows_of(p) == 8)
    shards = [Contract(2, shards=(3, 1)).shard(probe, rank) for rank in (0, 1)]
    assert [len(s.inputs["queries"]) for s in shards] == [6, 2]
    assert np.array_equal(np.concatenate([s.inputs["keys"] for s in shards]), probe.inputs["keys"])
    assert all(np.array_equal(s.inputs["queue"], probe.inputs["queue"]) for s in shards)


def test_rows_are_repeated_from_the_first_one_on():
    assert [list(rows) for rows in Contract(3, duplicate=True).rows(7)] == [[0, 1, 2], [3, 4, 5], [6, 0, 1]]
    assert [list(rows) for rows in Contract(2, shards=(3, 1)).rows(8)] == [[0, 1, 2, 3, 4, 5], [6, 7]]


@pytest.mark.parametrize(
    ("value", "answers", "remark"),
    [
        ("mean", (1.0, np.nan), "a value that is not finite on rank 1 of 2"),
        ("each", (1.0, 2.0), "gives 2 on rank 1 and 1 on rank 0"),
        ("mean", (1.0, 2.0), ""),
    ],
)
def test_what_one_rank_does_differently_names_it(value, answers, remark):
    probe = cases("clip", 2)[0]
    remarks = Contract(2, value).joined([Outcome(x, {}) for x in answers], probe).remarks
    assert remark in " ".join(remarks.values())
    assert bool(remarks) == bool(remark)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"ranks": 0}, "`ranks` must be integers from 1 to 64, such as 2,3, got 0"),
        ({"ranks": "two"}, "got 'two'"),
        ({"sync": "sum"}, "`sync` is about ranks, but `ranks` is not given"),
        ({"ranks": 2, "value": "max"}, "`value` must be one of"),
        ({"ranks": 2, "added": "loss.py:g"}, "`added` (--with) must be a target and its weight"),
        ({"ranks": 2, "added": ("loss.py:g", 0)}, "finite and not 0"),
        ({"ranks": 3, "shards": "3,1"}, "`shards` must have a share for each rank"),
        ({"ranks": 2, "shards": "3,1", "duplicate": True}, "exclude each other"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, named):
    with pytest.raises(InputError) as caught:
        nceref.verify("loss.py:f", "clip", **given)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"isolate": True}, "`isolate` gives every process a network of its own"),
        ({"repro": True}, "`repro` writes a script of one process"),
        ({"reduction": "none"}, "`reduction` must be mean or sum on ranks"),
        ({"device": "cuda"}, "`device` must be cpu on ranks"),
    ],
)
def test_what_ranks_exclude_is_refused(given, named):
    with pytest.raises(InputError) as caught:
        nceref.verify("loss.py:f", "clip", ranks=2, **given)
    assert named in str(caught.value)


def test_a_function_becomes_text_that_other_processes_import():
    assert importable(nceref.verification.verifier.verify) == "nceref.verification.verifier:verify"
    with pytest.raises(InputError, match=r"other processes can import, which .*lambda"):
        importable(lambda z1, z2: 0.0)


def test_one_rank_is_always_judged_and_comes_first():
    assert contracts({"ranks": "2,3"}) == (Contract(1), Contract(2), Contract(3))
    assert contracts({"ranks": [1]}) == (Contract(1),)
    assert contracts({}) == ()


def test_a_target_of_numpy_has_no_ranks(tmp_path):
    (tmp_path / "loss.py").write_text(
        "import numpy as np\ndef f(image, text, logit_scale):\n    return np.sum(image)\n"
    )
    report = nceref.verify(f"{tmp_path}/loss.py:f", "clip", ranks=2)
    assert report.exit_code == 4
    assert "is taken for one of numpy" in report.reason
