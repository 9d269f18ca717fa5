"""Experiments: the rule of their verdicts, what they measure, and that a run can be had again, byte by byte."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nceref
from nceref.cli import experiment_page
from nceref.cli.experiment import experiment as command
from nceref.errors import InputError
from nceref.experiments import contrast, tail
from nceref.experiments.experiment import (
    FIRST_SEED,
    PARTLY,
    REVERSED,
    SHOWN,
    UNDECIDED,
    UNSEEN,
    Contrast,
    Results,
    Statement,
    difference,
    half_interval,
    judge,
    run,
)
from nceref.experiments.samples import long_tail, synthetic
from nceref.experiments.setting import Training
from nceref.experiments.studies import contrastive_vs_simple
from nceref.experiments.studies import long_tail as long_tail_experiment
from nceref.experiments.studies.long_tail import PUBLISHED
from nceref.theory import figure_files

ALL = experiment_page.experiments()
SMALL = Training((32, 16, 8), 12, 6, 1e-3)


def small(seed):
    return synthetic(seed, long_tail(4, 40, 4), latent=3, test=6)


def shortened(name):
    """An experiment with the same settings and statements, on few samples and steps."""
    experiment = ALL[name]
    more = {k: v for k, v in experiment.run.keywords.items() if k not in ("data", "training")}
    return replace(experiment, run=partial(experiment.run.func, data=small, training=SMALL, **more), seeds=2)


def results(**values):
    return Results((0, 1, 2), {name: {"m": x} for name, x in values.items()})


@pytest.mark.parametrize(
    ("a", "b", "verdict", "same"),
    [
        ((4.0, 4.1, 4.2), (1.0, 1.0, 1.0), SHOWN, UNSEEN),
        ((1.0, 1.0, 1.0), (4.0, 4.1, 4.2), REVERSED, UNSEEN),
        ((1.1, 1.0, 0.9), (1.0, 1.0, 1.0), UNSEEN, SHOWN),
        # The mean is above its standard deviation, 2 and 1, but not above its interval, 2 +- 2.48.
        ((1.0, 2.0, 3.0), (0.0, 0.0, 0.0), UNSEEN, UNSEEN),
        # 0.4 +- 0.99: the mean is within the margin of 0.5, the interval is not.
        ((0.0, 0.4, 0.8), (0.0, 0.0, 0.0), UNSEEN, UNSEEN),
    ],
)
def test_the_verdict_is_that_of_the_interval_of_the_mean(a, b, verdict, same):
    statement = Statement("a above b", "nowhere", (difference("m", "a", "b"),))
    assert judge(statement, results(a=a, b=b)).verdict == verdict
    assert judge(replace(statement, margin=0.5), results(a=a, b=b)).verdict == same


def test_an_interval_is_student_s():
    """Three values: 4.30265 standard errors, from any table of Student's t with two degrees of freedom."""
    assert half_interval((1.0, 2.0, 3.0)) == pytest.approx(4.30265 / 3**0.5, rel=1e-5)


def test_a_statement_holds_in_part_and_pairs_seeds():
    """Seeds that differ more than the losses do hide nothing: 1, 11 and 21 are all above 0, 10 and 20 by 1."""
    r = results(a=(1.0, 11.1, 20.9), b=(0.0, 10.0, 20.0), c=(5.0, 15.0, 25.0))
    found = judge(Statement("a above b and c", "", (difference("m", "a", "b"), difference("m", "a", "c"))), r)
    assert found.verdict == PARTLY
    assert found.numbers[0] == pytest.approx((1.0, 0.1 * 4.30265 / 3**0.5), rel=1e-5)


def test_contrasts_say_what_they_are():
    assert str(difference("all", "PaCo", "CE")) == "all: PaCo - CE"
    assert str(Contrast("all", {"no prior": 2, "CE": -1, "PaCo": -0.5})) == "all: 2 no prior - CE - 0.5 PaCo"
    assert str(Contrast("slope", {"sum": -1})) == "slope: - sum"


def test_one_seed_has_no_verdict():
    one = Results((0,), {"a": {"m": (2.0,)}, "b": {"m": (1.0,)}})
    assert judge(Statement("", "", (Contrast("m", {"a": 1, "b": -1}),)), one).verdict == UNDECIDED


@pytest.mark.parametrize("name", ALL)
def test_every_statement_is_about_what_is_measured(name):
    experiment = ALL[name]
    for statement in experiment.statements:
        assert statement.contrasts, statement.text
        for c in statement.contrasts:
            assert c.measure in {m.name for m in experiment.measures}
            assert set(c.weights) <= set(experiment.settings)


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


def test_the_numbers_of_paco_are_those_of_the_ledger():
    ledger = CliRunner().invoke(_claims(), ["PC-19"]).output
    assert all(row["PaCo"] in ledger for row in PUBLISHED.rows())


def _claims():
    from nceref.cli.claims import claims

    return claims


def test_the_published_columns_are_those_of_wang_and_liu():
    rows = {(r["data"], r["measure"]): r for r in contrastive_vs_simple.PUBLISHED.rows()}
    assert rows["CIFAR-10", "accuracy"]["0.07"] == "79.75"
    assert rows["CIFAR-10", "accuracy"]["Simple"] == "74.83"
    assert rows["SVHN", "tolerance"]["Simple"] == "0.074"
    assert rows["ImageNet-100", "uniformity"]["hard Simple"] == "3.917"


@pytest.mark.parametrize("name", ["contrastive-vs-simple", "long-tail"])
def test_a_run_can_be_had_again(name):
    experiment = shortened(name)
    jobs = []
    first, again = run(experiment, on_progress=jobs.append), run(experiment)
    assert len(jobs) == 2 * len(experiment.settings)
    assert experiment_page.page_of(experiment, first).text() == experiment_page.page_of(experiment, again).text()
    assert experiment_page.to_json(experiment, first) == experiment_page.to_json(experiment, again)
    assert experiment_page.figure(experiment, first, "svg") == experiment_page.figure(experiment, again, "svg")


@pytest.mark.parametrize("name", ["contrastive-vs-simple", "long-tail"])
def test_processes_change_nothing(name):
    experiment = shortened(name)
    jobs = []
    alone, together = run(experiment, first=3), run(experiment, on_progress=jobs.append, first=3, processes=2)
    assert experiment_page.to_json(experiment, alone) == experiment_page.to_json(experiment, together)
    assert [job.id for job in jobs] == [f"{name}, seed {seed}" for seed in (3, 4) for name in experiment.settings]


def test_a_record_holds_all_results():
    experiment = shortened("long-tail")
    first = run(experiment)
    again = experiment_page.recorded(json.loads(experiment_page.to_json(experiment, first)))
    assert experiment_page.page_of(experiment, again).text() == experiment_page.page_of(experiment, first).text()
    assert experiment_page.to_json(experiment, again) == experiment_page.to_json(experiment, first)


@pytest.mark.parametrize("name", ALL)
def test_the_results_that_are_kept_are_those_of_these_experiments(name):
    kept = Path(__file__).parents[2] / "docs" / "experiments"
    content = json.loads((kept / f"{name}.json").read_text(encoding="utf-8"))
    results = experiment_page.recorded(content)
    assert results.seeds == tuple(range(FIRST_SEED, FIRST_SEED + ALL[name].seeds))
    assert content == experiment_page.record(ALL[name], results)
    assert (kept / f"{name}.txt").read_text(encoding="utf-8") == experiment_page.page_of(ALL[name], results).text()
    manifest = json.loads((kept.parents[2] / "figures" / "manifest.json").read_text(encoding="utf-8"))
    # Other tools make other bytes.
    if manifest["quadrants"]["drawn with"] == figure_files.tools():
        assert (kept / f"{name}.svg").read_bytes() == experiment_page.figure(ALL[name], results, "svg")


@pytest.mark.parametrize(
    ("name", "rows"), [("long-tail", ("CE", "PaCo 0.05")), ("contrastive-vs-simple", ("InfoNCE 0.3",))]
)
def test_the_results_that_are_kept_can_be_had_again(name, rows):
    """Some settings with the first seed; another machine may round otherwise, which training blows up a little."""
    experiment = ALL[name]
    settings = tuple(s for s in experiment.run.keywords["settings"] if s.name in rows)
    kept = json.loads((Path(__file__).parents[2] / "docs" / "experiments" / f"{name}.json").read_text(encoding="utf-8"))
    more = experiment.run.keywords | {"settings": settings}
    found = run(replace(experiment, run=partial(experiment.run.func, **more)), 1)
    for row in rows:
        for measure, (value,) in found.values[row].items():
            assert value == pytest.approx(kept["values"][row][measure][0], rel=0.02, abs=0.02), (row, measure)


def test_fewer_seeds_are_the_first_ones():
    experiment = shortened("contrastive-vs-simple")
    one, two = run(experiment, 1), run(experiment, 2)
    assert one.seeds == (FIRST_SEED,)
    assert two.seeds == (FIRST_SEED, FIRST_SEED + 1)
    assert all(two.values[s][m][:1] == x for s, rows in one.values.items() for m, x in rows.items())


@pytest.mark.parametrize("seeds", [0, -1, True])
def test_no_seeds_are_refused(seeds):
    with pytest.raises(InputError, match="`seeds` must be an integer >= 1"):
        run(ALL["long-tail"], seeds)


def test_the_command_lists_and_runs(tmp_path, monkeypatch):
    def call(*words):
        return CliRunner().invoke(command, words)

    listed = call().output
    assert all(name in listed for name in ALL)
    experiment = shortened("long-tail")
    monkeypatch.setattr(experiment_page, "experiments", lambda: {"long-tail": experiment})
    done = call("long-tail", "--out", str(tmp_path / "out"), "--json", str(tmp_path / "r.json"))
    assert done.exit_code == 0, done.output
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        f"long-tail.{s}" for s in ("json", "png", "svg", "txt")
    ]
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["seeds"] == [1000, 1001]
    assert record["command"] == "nceref experiment long-tail --seeds 2"
    assert len(record["statements"]) == len(long_tail_experiment.STATEMENTS)
    assert "seeds 1000 to 1001" in done.output
    assert call("long-tail", "--first-seed", "7", "--seeds", "1").output.count("--seeds 1 --first-seed 7") == 2
    assert json.loads(call("long-tail", "--json", "-").stdout) == record


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["long-tial"], "did you mean 'long-tail"),
        (["long-tail", "--seeds", "0"], "`seeds` must be an integer >= 1, got 0"),
        (["long-tail", "--out", "{file}/sub"], "not a directory; choose another place"),
        (["--seeds", "2"], "need the NAME of an experiment"),
        (["--first-seed", "2"], "need the NAME of an experiment"),
        (["long-tail", "--first-seed", "-2"], "`first` must be an integer >= 0, got -2"),
    ],
)
def test_bad_calls_say_what_is_wrong_before_anything_runs(words, said, tmp_path):
    (tmp_path / "file").write_text("")
    found = CliRunner().invoke(command, [w.format(file=tmp_path / "file") for w in words])
    assert found.exit_code
    assert said in f"{found.output}{found.exception}"


def test_losses_of_the_settings_exist():
    for name in ("contrastive-vs-simple", "long-tail"):
        for setting in ALL[name].run.keywords["settings"]:
            assert setting.loss in nceref.all_losses()
    assert ALL["long-tail"].run.func is tail.run
    assert ALL["contrastive-vs-simple"].run.func is contrast.run
