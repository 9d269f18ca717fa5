"""Experiments: the rule of their verdicts, what they measure, and that a run can be had again, byte by byte."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nceref
from nceref import experiment_pages
from nceref.analogues import contrast, measures, tail
from nceref.analogues.samples import Samples, digits, long_tail, moved, synthetic
from nceref.analogues.setting import CLASSIFIER, Setting, Training
from nceref.commands.experiment import experiment as command
from nceref.errors import InputError, NcerefError, UnavailableError
from nceref.experiment import (
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
from nceref.experiments import contrastive_vs_simple
from nceref.experiments import long_tail as long_tail_experiment
from nceref.experiments.long_tail import PUBLISHED
from nceref.training import Moment

ALL = experiment_pages.experiments()
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
    page = experiment_pages.text(ALL[name], Results(tuple(seeds), values))
    assert max(map(len, page.splitlines())) <= 80
    last = [line for line in page.splitlines() if line.startswith(ALL[name].settings[-1])]
    columns = [m for m in ALL[name].measures if m.table]
    assert len(last) == len({m.table for m in columns}), "one line for each loss in each table"
    assert sum(line.count("±") for line in last) == len(columns)


def test_the_numbers_of_paco_are_those_of_the_ledger():
    ledger = CliRunner().invoke(_claims(), ["PC-19"]).output
    assert all(row["PaCo"] in ledger for row in PUBLISHED.rows())


def _claims():
    from nceref.commands.claims import claims

    return claims


def test_the_published_columns_are_those_of_wang_and_liu():
    rows = {(r["data"], r["measure"]): r for r in contrastive_vs_simple.PUBLISHED.rows()}
    assert rows["CIFAR-10", "accuracy"]["0.07"] == "79.75"
    assert rows["CIFAR-10", "accuracy"]["Simple"] == "74.83"
    assert rows["SVHN", "tolerance"]["Simple"] == "0.074"
    assert rows["ImageNet-100", "uniformity"]["hard Simple"] == "3.917"


def test_measures_of_features_worked_by_hand():
    z = np.array([[1.0, 0], [1, 0], [0, 1], [0, -1]])
    labels = np.array([0, 0, 1, 1])
    assert measures.tolerance(z, labels) == pytest.approx((2 * 1 + 2 * -1) / 4)
    # Squared distances of the six pairs: 0, 4 and four times 2.
    assert measures.uniformity(z) == pytest.approx(-np.log((1 + np.exp(-8) + 4 * np.exp(-4)) / 6))
    assert measures.effective_rank(np.vstack([np.eye(3), -np.eye(3)])) == pytest.approx(3)
    assert measures.effective_rank(np.array([[1.0, 0], [-1, 0], [0, 0]])) == pytest.approx(1)
    assert measures.neighbor_accuracy(z, labels, z, labels, k=1) == 1
    assert measures.slope(np.array([1, 10, 100]), np.array([5.0, 0.5, np.nan])) == pytest.approx(-1)


def test_the_probe_is_the_minimum_of_its_objective():
    """At it the mean of (p - y) x is -decay w, and that of p - y is 0; columns are standardized, constant ones too."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    x = rng.standard_normal((60, 4)) + np.eye(3, 4)[labels]
    x[:, 3] = 2.0
    assert np.mean(measures.probed(x, labels, x) == labels) > 0.5
    np.testing.assert_array_equal(measures.probed(x * [1, 1e3, 1, 1] + 5, labels, x * [1, 1e3, 1, 1] + 5),
                                  measures.probed(x, labels, x))  # fmt: skip
    sklearn = pytest.importorskip("sklearn.linear_model", reason="another logistic regression")
    z = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    other = sklearn.LogisticRegression(C=1 / (len(x) * measures.DECAY), tol=1e-8, max_iter=10_000).fit(z, labels)
    test = rng.standard_normal((500, 4)) + np.array([0, 0, 0, 2])
    found = measures.probed(x, labels, test)
    seen = other.predict((test - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1))
    assert np.mean(found == seen) > 0.99


@pytest.mark.parametrize(("form", "factor"), [("sum", 2), ("mean", None)])
def test_the_pull_of_supcon_is_what_was_derived(form, factor):
    """2 K (1 - p) for the sum over K positives, 2 (1 - p) for their mean, where no positive has more than its share."""
    z = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1], [0, 1]])
    y = np.array([0, 0, 0, 1, 1])
    seen = tail.Gradients("supcon_out", 2)
    inputs = {"embeddings": z, "labels": y, "temperature": 1.0, "form": form}
    seen.watch(Moment(tail.EVERY, 0, inputs, 0.0, {"embeddings": np.arange(10.0).reshape(5, 2)}))
    # Norms of the gradient of the mean, times the number of anchors.
    norms = 5 * np.hypot(np.arange(0, 10, 2), np.arange(1, 10, 2))
    np.testing.assert_allclose(seen.norms, [norms[:3].mean(), norms[3:].mean()], rtol=1e-12)
    p = [2 * np.e / (2 * np.e + 2), np.e / (np.e + 3)]
    count = [2, 1] if factor else [1, 1]
    np.testing.assert_allclose(seen.pulls, [2 * k * (1 - q) for k, q in zip(count, p, strict=True)], rtol=1e-12)


def test_gradients_of_two_views_are_told_by_the_labels_of_their_samples():
    z = np.random.default_rng(1).standard_normal((4, 2, 3))
    y = np.array([0, 1, 1, 2])
    rows = np.concatenate([z[:, 0], z[:, 1]])
    stacked, flat = tail.Gradients("supcon_out", 3), tail.Gradients("supcon_out", 3)
    for seen, inputs, labels in ((stacked, z, y), (flat, rows, np.tile(y, 2))):
        given = {"embeddings": inputs, "labels": labels, "temperature": 0.5}
        _, grads = nceref.get_loss("supcon_out").value_and_grad(**given)
        seen.watch(Moment(tail.EVERY, 0, given, 0.0, grads))
    np.testing.assert_allclose(stacked.pulls, flat.pulls, rtol=1e-12)
    np.testing.assert_allclose(stacked.norms, flat.norms, rtol=1e-12)


def test_a_long_tail_falls_geometrically():
    assert long_tail(3, 500, 5).tolist() == [500, 50, 5]
    assert small(0).counts.tolist() == long_tail(4, 40, 4).tolist()
    assert np.bincount(small(0).test_labels).tolist() == [6] * 4


@pytest.mark.parametrize("name", ["contrastive-vs-simple", "long-tail"])
def test_a_run_can_be_had_again(name):
    experiment = shortened(name)
    jobs = []
    first, again = run(experiment, noted=jobs.append), run(experiment)
    assert len(jobs) == 2 * len(experiment.settings)
    assert experiment_pages.text(experiment, first) == experiment_pages.text(experiment, again)
    assert experiment_pages.to_json(experiment, first) == experiment_pages.to_json(experiment, again)
    assert experiment_pages.figure(experiment, first, "svg") == experiment_pages.figure(experiment, again, "svg")


@pytest.mark.parametrize("name", ["contrastive-vs-simple", "long-tail"])
def test_processes_change_nothing(name):
    experiment = shortened(name)
    jobs = []
    alone, together = run(experiment, first=3), run(experiment, noted=jobs.append, first=3, processes=2)
    assert experiment_pages.to_json(experiment, alone) == experiment_pages.to_json(experiment, together)
    assert [job.id for job in jobs] == [f"{name}, seed {seed}" for seed in (3, 4) for name in experiment.settings]


def test_a_record_holds_all_results():
    experiment = shortened("long-tail")
    first = run(experiment)
    again = experiment_pages.recorded(json.loads(experiment_pages.to_json(experiment, first)))
    assert experiment_pages.text(experiment, again) == experiment_pages.text(experiment, first)
    assert experiment_pages.to_json(experiment, again) == experiment_pages.to_json(experiment, first)


@pytest.mark.parametrize("name", ALL)
def test_the_results_that_are_kept_are_those_of_these_experiments(name):
    kept = Path(__file__).parents[1] / "docs" / "experiments"
    content = json.loads((kept / f"{name}.json").read_text(encoding="utf-8"))
    results = experiment_pages.recorded(content)
    assert results.seeds == tuple(range(FIRST_SEED, FIRST_SEED + ALL[name].seeds))
    assert content == experiment_pages.record(ALL[name], results)
    assert (kept / f"{name}.txt").read_text(encoding="utf-8") == experiment_pages.text(ALL[name], results)
    assert (kept / f"{name}.svg").read_bytes() == experiment_pages.figure(ALL[name], results, "svg")


def test_fewer_seeds_are_the_first_ones():
    experiment = shortened("contrastive-vs-simple")
    one, two = run(experiment, 1), run(experiment, 2)
    assert one.seeds == (FIRST_SEED,)
    assert two.seeds == (FIRST_SEED, FIRST_SEED + 1)
    assert all(two.values[s][m][:1] == x for s, rows in one.values.items() for m, x in rows.items())


def test_a_run_that_diverges_is_named():
    training = replace(SMALL, rate=1e30)
    settings = (Setting("CE", "cross_entropy", reads=CLASSIFIER),)
    with pytest.raises(NcerefError, match=r"^CE with seed 0 diverged at step \d: "):
        tail.run([0], lambda job: job, data=small, settings=settings, training=training)


@pytest.mark.parametrize("seeds", [0, -1, True])
def test_no_seeds_are_refused(seeds):
    with pytest.raises(InputError, match="`seeds` must be an integer >= 1"):
        run(ALL["long-tail"], seeds)


def test_without_scikit_learn_the_error_names_the_command(monkeypatch):
    from nceref.analogues import samples

    samples._digits.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(UnavailableError, match=r"not installed; pip install 'nceref\[experiments\]'"):
        digits(0)


def test_digits_are_split_and_moved():
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    s = digits(0, long_tail(10, 120, 2))
    assert isinstance(s, Samples)
    assert s.counts.tolist() == long_tail(10, 120, 2).tolist()
    assert len(s.test) == 500
    trained = {x.tobytes() for x in s.train}
    assert not trained & {x.tobytes() for x in s.test}
    view = moved(np.random.default_rng(0), s.train)
    assert view.shape == s.train.shape
    likeness = [np.corrcoef(a, b)[0, 1] for a, b in zip(view, s.train, strict=True)]
    assert 0.5 < np.mean(likeness) < 0.99, "another image of the same digit"


def test_the_command_lists_and_runs(tmp_path, monkeypatch):
    def call(*words):
        return CliRunner().invoke(command, words)

    listed = call().output
    assert all(name in listed for name in ALL)
    experiment = shortened("long-tail")
    monkeypatch.setattr(experiment_pages, "experiments", lambda: {"long-tail": experiment})
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
