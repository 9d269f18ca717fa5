"""`nceref experiment`: its page, its record, its files, and what it refuses."""

import json

import numpy as np
import pytest
from experiments.small_runs import ALL, shortened, trained

from nceref.cli import experiment_page
from nceref.experiments import experiment as experiments
from nceref.experiments.experiment import Results


@pytest.mark.parametrize("name", ALL)
def test_the_pages_fit_in_80_columns(name):
    seeds = range(3)
    rng = np.random.default_rng(0)
    values = {
        s: {
            m.name: tuple(10 * rng.random(3) if m.name in ("pull ratio", "rank") else rng.random(3))
            for m in ALL[name].measures
        }
        for s in ALL[name].settings
    }
    page = experiment_page.page_of(ALL[name], Results(tuple(seeds), values)).text()
    assert max(map(len, page.splitlines())) <= 80
    last = [line for line in page.splitlines() if line.startswith(ALL[name].settings[-1])]
    columns = [m for m in ALL[name].measures if m.table]
    assert len(last) == len({m.table for m in columns}), "one line for each loss in each table"
    assert sum(line.count("±") for line in last) == len(columns)


def test_a_record_holds_all_results():
    study, (results, _) = shortened("long-tail"), trained("long-tail")
    again = experiment_page.recorded(json.loads(experiment_page.to_json(study, results)))
    assert experiment_page.page_of(study, again).text() == experiment_page.page_of(study, results).text()
    assert experiment_page.to_json(study, again) == experiment_page.to_json(study, results)
    assert len(experiment_page.record(study, results)["statements"]) == len(study.statements)


def test_a_figure_is_the_same_every_time():
    study, (results, _) = shortened("long-tail"), trained("long-tail")
    assert experiment_page.figure(study, results, "svg") == experiment_page.figure(study, results, "svg")


@pytest.fixture
def calls(monkeypatch):
    """The command with results that are there: what it runs is recorded."""
    seen = []

    def run(study, seeds, on_progress, *, first, processes):
        seen.append((study.name, seeds, first))
        return trained(study.name)[0]

    monkeypatch.setattr(experiment_page, "experiments", lambda: {"long-tail": shortened("long-tail")})
    monkeypatch.setattr(experiments, "run", run)
    return seen


def test_the_command_writes_its_files_and_says_what_prints_them_again(run, calls, tmp_path):
    status, out, err = run(
        "experiment", "long-tail", "--out", str(tmp_path / "out"), "--json", str(tmp_path / "r.json")
    )
    paths = [tmp_path / "out" / f"long-tail.{suffix}" for suffix in ("txt", "json", "svg", "png")]
    assert status == 0
    assert err.splitlines() == [f"wrote {path}" for path in (tmp_path / "r.json", *paths)]
    assert set((tmp_path / "out").iterdir()) == set(paths)
    assert paths[0].read_text(encoding="utf-8") == out
    assert paths[1].read_bytes() == (tmp_path / "r.json").read_bytes()
    record = json.loads(paths[1].read_text(encoding="utf-8"))
    assert record["seeds"] == [1000, 1001]
    assert record["command"] == "nceref experiment long-tail --seeds 2"
    assert "seeds 1000 to 1001" in out
    assert run("experiment", "long-tail", "--first-seed", "7", "--seeds", "1")[0] == 0
    assert calls == [("long-tail", None, 1000), ("long-tail", 1, 7)]


def test_other_first_seeds_are_in_the_command():
    results = Results((7,), {})
    assert experiment_page.command(ALL["long-tail"], results) == "nceref experiment long-tail --seeds 1 --first-seed 7"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["long-tial"], "did you mean 'long-tail"),
        (["long-tail", "--seeds", "0"], "`seeds` must be an integer >= 1, got 0"),
        (["long-tail", "--out", "{file}/sub"], "not a directory; choose another place"),
        (["--seeds", "2"], "need the NAME of an experiment"),
        (["--first-seed", "2"], "need the NAME of an experiment"),
        (["long-tail", "--first-seed", "-2"], "`first` must be an integer >= 0, got -2"),
    ],
)
def test_bad_calls_say_what_is_wrong_before_anything_runs(run, words, message, tmp_path):
    (tmp_path / "file").write_text("")
    status, out, err = run("experiment", *(w.format(file=tmp_path / "file") for w in words))
    assert (status, out) == (2, "")
    assert message in err
