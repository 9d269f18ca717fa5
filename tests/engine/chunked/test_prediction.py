"""What a run is predicted to take: counted in its graph, and with rates that are given."""

import json
from collections import Counter

import numpy as np
import pytest

from nceref import InputError, losses
from nceref.engine.chunked import prediction, tasks
from nceref.engine.chunked.prediction import (
    Rates,
    arguments,
    default_chunk,
    measure_rates,
    outlook,
    predict,
    read_rates,
)
from nceref.errors import FileError

pytest.importorskip("dask.array", reason="Dask is not installed: pip install 'nceref[dask]'")

NT_XENT, INFO_NCE = losses.nt_xent.declaration, losses.info_nce.declaration
RATES = Rates(1e-8, 1e-3, 1e9)


def test_tasks_are_those_of_the_run():
    import dask

    ran = []
    given = arguments(NT_XENT, 300, 8, 100, "float32")
    value, grads = losses.nt_xent.value_and_grad(**given, compute=False)
    with dask.callbacks.Callback(pretask=lambda key, graph, state: ran.append(key)):
        dask.compute(value, *grads.values())
    windows = [key for key in ran if isinstance(key, tuple) and key[0].endswith("-fold")]
    assert len(windows) == len(set(windows)) == 6 * 7 // 2
    # Dask joins a task with the only one that follows it, and adds some for what it is given and for what is requested.
    assert len(ran) == pytest.approx(predict(NT_XENT, 300, 8, 1, RATES, 100).tasks, rel=0.1)


@pytest.mark.parametrize("loss", [INFO_NCE, NT_XENT, losses.clip.declaration])
def test_rows_and_chains_are_waited_for_by_two_tasks_at_most(loss):
    # With more, each worker would keep all rows that it has met.
    graph = prediction._graph(loss, 800, 8, 100, "float32").tasks
    waiting = Counter(key for task in graph.values() for key in set(flat(task[1:])) if key in graph)
    large = {key: count for key, count in waiting.items() if key[0].endswith(("-load", "-rows", "-pull", "-chain"))}
    assert len(large) > 64
    assert {key for key, count in large.items() if count > (4 if key[0].endswith("-pull") else 2)} == set()


def test_dask_sees_how_large_the_arrays_in_its_tasks_are():
    from dask.sizeof import sizeof

    x = np.zeros((50, 40))
    rows = tasks.Rows(x, ())
    for held in (rows, (tasks.Sums(x, {}), tasks.NO_SUMS), tasks.Head(1.0, {"a": x}, {}, 0)):
        assert x.nbytes < sizeof(held) < 1.2 * x.nbytes


def flat(x):
    """What stands in nested lists."""
    return [one for part in x for one in flat(part)] if isinstance(x, list | tuple) and not is_key(x) else [x]


def is_key(x):
    return isinstance(x, tuple) and isinstance(x[0] if x else None, str)


@pytest.mark.parametrize(("loss", "pairs"), [(INFO_NCE, 300 * 300), (NT_XENT, (600 * 600 + 6 * 100 * 100) // 2)])
def test_pairs_and_operations_are_counted_window_by_window(loss, pairs):
    one = predict(loss, 300, 8, 1, RATES, 100)
    assert (one.pairs, one.operations, one.moved) == (pairs, 8 * 8 * pairs, 0)
    assert one.seconds == pytest.approx(pairs * 1e-8 + one.tasks * 1e-3)


def test_memory_of_a_worker_is_its_share_and_a_few_chunks():
    small, large = (predict(INFO_NCE, n, 16, 4, RATES, 100).memory for n in (400, 4000))
    assert large - small == 3 * 2 * 3600 * 16 * 4 // 4
    assert predict(INFO_NCE, 4000, 16, 4, RATES, 100, "float64").memory == 2 * large


def test_default_chunks_are_few():
    assert [default_chunk(rows) for rows in (10, 20_000, 2**21)] == [10, 8192, 2**15]


def test_every_loss_of_embeddings_is_predicted(loss_name):
    loss = losses.get_loss(loss_name).declaration
    if loss_name == "nce":
        with pytest.raises(InputError, match="nce has vectors alone"):
            outlook(loss, rows=10, dim=4)
        return
    run = predict(loss, 300, 8, 2, RATES, 100)
    assert run.tasks > 3 * 3
    assert run.pairs > 0


def test_rates_are_measured():
    rates = measure_rates(INFO_NCE, 4, "float32")
    assert rates.seconds_per_pair > 0
    assert rates.seconds_per_task >= 0
    assert rates.bytes_per_second > 0


def test_rates_of_another_machine_come_from_what_was_printed_there(tmp_path, monkeypatch):
    monkeypatch.setattr(prediction, "TABULATED", (1 << 14, 1 << 15))
    file = tmp_path / "rates.json"
    file.write_text(json.dumps({"rates": vars(RATES), "loss": "nt_xent"}))
    assert read_rates(str(file)) == RATES
    there = outlook(NT_XENT, rows=1000, dim=8, workers=2, rates=str(file))
    assert (there.rates, there.measured) == (RATES, ())
    assert len({(p.rows, p.workers) for p in there.others}) == len(there.others) == 8
    assert np.all(np.diff([p.seconds for p in there.others[:4]]) < 0)


WRONG = {
    "no JSON": ("{", InputError, "is not JSON.*; pass what `nceref scale --json` prints"),
    "a list": ("[1]", InputError, "must hold a JSON object, got a list; pass what `nceref scale --json` prints"),
    "no rates": ('{"rates": [1]}', InputError, "must have seconds_per_pair, seconds_per_task, bytes_per_second"),
    "one too few": (json.dumps({"seconds_per_pair": 1}), InputError, "each a number > 0"),
    "a negative one": (json.dumps({**vars(RATES), "seconds_per_task": -1}), InputError, "each a number > 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_rates_that_are_none(tmp_path, name):
    text, error, message = WRONG[name]
    (tmp_path / "rates.json").write_text(text)
    with pytest.raises(error, match=message):
        read_rates(str(tmp_path / "rates.json"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match=r"cannot read `rates` .*none\.json: no such file"):
        read_rates(str(tmp_path / "none.json"))


def test_more_chunks_than_a_scheduler_takes_are_refused():
    with pytest.raises(InputError, match="10 rows cut 1,000,000 into 100,000 chunks; pass at least 1,954"):
        outlook(NT_XENT, rows=10**6, dim=8, chunk=10)
