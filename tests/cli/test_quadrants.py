"""`nceref quadrants`: the summary says what the runs show, files are whole, bad input is refused before training."""

import io
import json
import re
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from nceref.cli import quadrants_page, quadrants_pictures
from nceref.output import terminal
from nceref.theory.figures import quadrants, quadrants_start
from nceref.training.quadrants import batch, findings, panels, replay, samples


@pytest.fixture(scope="module")
def published():
    return replay.run()


@pytest.fixture(scope="module")
def held():
    return replay.run(confounder=True)


@pytest.fixture
def run(run):
    return partial(run, "quadrants")


def test_the_summary_has_the_numbers_of_the_original_program(published):
    lines = [line.split() for line in quadrants_page.page_of(published).text().splitlines()]
    # Loss at both ends, uniformity, both cosines, distance in the square, 1-NN: measured under PyTorch 2.13 on a CPU.
    wanted = [
        ["0.05", "0.598", "0.451", "-1.576", "0.868", "-0.290", "0.017", "0.98"],
        ["0.99", "0.754", "0.738", "-1.580", "0.853", "-0.285", "0.276", "0.97"],
        ["0.5", "0.483", "0.448", "-1.575", "0.854", "-0.285", "0.258", "0.97"],
        ["0.05", "0.583", "0.317", "-1.573", "0.867", "-0.289", "0.020", "0.98"],
        ["0.01", "2.482", "0.392", "-1.509", "0.933", "-0.310", "0.113", "1.00"],
    ]
    start = next(i for i, line in enumerate(lines) if line[:1] == ["start"])
    assert lines[start] == ["start", "0.311", "-1.243", "0.844", "-0.283", "0.322", "0.98"]
    for line, expected in zip(lines[start + 1 :], wanted, strict=False):
        # -1.5735 is on the edge of two roundings.
        numbers = [*line[:3], *line[4:9]]
        assert np.abs(np.array(numbers, float) - np.array(expected, float)).max() < 1.5e-3


def test_each_statement_stands_beside_its_verdict_and_what_the_runs_show(published):
    page = " ".join(quadrants_page.page_of(published).text().split())
    assert "QT-10 at 0.001 the points sit at (-1, 1) and (-1, -1): wrong Here: It takes a run at 0.001 that" in page
    assert "of uniform features, uniformity is -1.575." in page
    assert "From tau = 0.99 to 0.01 the cosine within classes rises each time, while rate / temperature grows" in page
    assert "Most even in the square: 0.05 (distance 0.017); on the circle, which is all that the loss sees:" in page
    assert re.search(r"Run 6 \(tau = 0\.001\): by step [\d,]+ a change of one ulp has grown above 0\.001", page)
    assert "Run 5" not in page


def test_what_rounding_decides_is_not_quoted(published):
    """Seed 11 in float32 ends in all four corners at 0.001, and under the framework in two."""
    shown = quadrants_page.page_of(replay.run((11,))).text().partition("Published statements")[2]
    ended = shown.replace("It takes a run at 0.001", "")
    assert "Here:" in ended
    assert "0.001" not in ended.replace("at 0.001 the points sit", "")
    sound = tuple(replace(run, growth=((len(run.losses), 0.0),)) for run in published.runs)
    page = " ".join(quadrants_page.page_of(replace(published, runs=sound)).text().split())
    assert "Opposite corners hold alike" in page
    assert "Classes are merged, not farther apart, at 0.001" in page


def test_both_rates_stand_beside_each_other(published, held):
    """Of 0.01: cosine within, distance in the square and uniformity, first with the published rate."""
    page = quadrants_page.page_of(held, published).text().partition("Beside the published learning rate")[2]
    row = next(line.split()[1:] for line in page.splitlines() if line.split()[:1] == ["0.01"])
    a, b = (runs.runs[4].statistics for runs in (published, held))
    wanted = [a.cosine_within, b.cosine_within, a.square_distance, b.square_distance, a.uniformity, b.uniformity]
    np.testing.assert_allclose([float(x) for x in row], wanted, atol=5.1e-4)


def test_an_unfinished_or_diverged_run_is_not_judged(published):
    assert "of 10,000 steps" in quadrants_page.page_of(replace(published, done=250)).text().splitlines()[0]
    gone = replay.run(temperatures=(1e-30,), steps=300)
    page = quadrants_page.page_of(gone).text()
    assert page.count("Here: No run is left") == len(quadrants_page.CLAIMS)


def test_what_is_shown_follows_the_runs(published, held):
    page = " ".join(quadrants_page.page_of(held, published).text().split())
    assert "does not rise each time, with the same step sizes" in page
    assert "merged" not in page
    alone = replace(published, runs=published.runs[:1])
    assert "It takes two temperatures" in quadrants_page.page_of(alone).text()
    assert "It takes a run at 0.001 that" in quadrants_page.page_of(alone).text()
    two = (
        published.runs[0],
        replace(published.runs[3], W1=published.runs[3].initial[0], W2=published.runs[3].initial[1]),
    )
    some = " ".join(quadrants_page.page_of(replace(published, runs=two)).text().split())
    assert "in the square: 0.05 (1 of 2 runs)" in some


def test_a_diverged_run_is_named_and_is_a_finding(run, monkeypatch):
    monkeypatch.setattr(batch, "RATE", np.inf)
    with np.errstate(invalid="ignore"):
        status, out, _ = run("--temperature", "0.05", "--steps", "2")
    assert status == 1
    assert "Run 1 (tau = 0.05) diverged at step 1; what is shown is the state before it." in out


def test_a_diverged_run_beside_is_named_and_is_a_finding(run):
    """Only the run with the published rate leaves its range."""
    status, out, _ = run("--temperature", "1e-30", "--steps", "300", "--confounder")
    assert status == 1
    assert "With the published rate: Run 1 (tau = 1e-30) diverged at step" in " ".join(out.split())
    assert "\nRun 1" not in out


def test_corners_are_counted_and_opposite_ones_compared():
    features = np.repeat([(1, 1), (-1, 0.8), (-0.9, -1), (0.5, 0.5)], (40, 2, 42, 16), axis=0)
    content = findings.corners(features)
    assert content == ((40, 2, 42, 0), 16)
    assert content.are_opposite
    assert not content.hold_nearly_all
    # As the source says it: the two corners on the left.
    published = findings.corners(np.repeat([(-1, 1), (-1, -1)], 50, axis=0))
    assert published.hold_nearly_all
    assert not published.are_opposite


def test_json_has_samples_weights_and_runs_in_the_published_order(run, tmp_path):
    path = tmp_path / "runs.json"
    status, out, err = run("--steps", "500", "--json", str(path))
    assert (status, err) == (0, f"wrote {path}\n")
    assert out.startswith("Source 003, replayed: seed 0, float32, 500 steps")
    content = json.loads(path.read_text())
    assert np.shape(content["samples"]) == (100, 2)
    assert [np.shape(content[name]) for name in ("W1", "W2")] == [(10, 2), (2, 10)]
    assert [one["temperature"] for one in content["runs"]] == [0.05, 0.99, 0.5, 0.05, 0.01, 0.001]
    for one in content["runs"]:
        assert [one["W1"], one["W2"]] == one["weights_at_500"]
        assert np.array_equal(np.float32(one["W1"]), np.array(one["W1"]))
        assert np.shape(one["features"]) == (100, 2)


def test_confounder_holds_rate_over_temperature(run):
    _, out, _ = run("--steps", "3", "--confounder", "--json", "-")
    content = json.loads(out)
    assert [one["rate"] / one["temperature"] for one in content["runs"]] == pytest.approx([0.006] * 6)
    assert "Beside the published learning rate" in run("--steps", "3", "--confounder")[1]


def test_pictures_are_written(run, tmp_path):
    from PIL import Image

    status, _, err = run("--steps", "300", "--temperature", "0.2", "--out", str(tmp_path))
    names = ["quadrants-start.png", "quadrants-start.svg", "quadrants.gif", "quadrants.png", "quadrants.svg"]
    assert status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert sorted(err.splitlines()) == [f"wrote {tmp_path / name}" for name in names]
    with Image.open(tmp_path / "quadrants.gif") as animation:
        assert animation.n_frames == 3  # steps 0, 250, 300


@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_run_has_a_panel_and_nothing_else(published, count):
    from matplotlib.figure import Figure

    canvas, shown = Figure(), panels.data(published.runs[:count])
    quadrants.draw(canvas, shown)
    runs = sorted(published.runs[:count], key=lambda run: -run.temperature)
    titles = [f"τ = {run.temperature:g}" for run in runs]
    # The fourth run is at the temperature of the first.
    assert [axes.get_title() for axes in canvas.axes] == [*titles[:3], *(f"{title}, repeated" for title in titles[3:])]
    for axes, run in zip(canvas.axes, runs, strict=True):
        drawn = np.concatenate([line.get_xydata() for line in axes.lines if line.get_linestyle() == "None"])
        features = np.concatenate([run.features[label == samples.LABELS] for label in range(4)]).astype(np.float64)
        assert np.arctan2(*drawn.T) == pytest.approx(np.arctan2(*features.T), abs=1e-6)
        # A ring for each class, the same in every panel.
        assert np.hypot(*drawn.T) == pytest.approx(np.repeat([1.0, 0.87, 0.74, 0.61], 25))
        assert axes.get_xlim() == axes.get_ylim() == (-1.1, 1.1)


def test_a_feature_without_a_direction_stands_in_the_middle():
    features = np.ones((100, 2))
    features[np.flatnonzero(samples.LABELS == 1)[0]] = 0
    places = panels.places(features, 1)
    assert not places[0].any()
    assert np.hypot(*places[1:].T) == pytest.approx(0.87)


def test_an_animation_ends_with_the_features_of_its_run(published):
    number = 5  # at the lowest temperature, where the last bit of any step decides the end
    shown = quadrants_pictures.snapshots_of(published.setup, number)
    assert len(shown) == quadrants_pictures.frames(published.setup) == 41
    assert [step for step, _ in shown[::20]] == [0, 5000, 10_000]
    one = published.runs[number]
    start = np.tanh(one.samples @ one.initial[0].T @ one.initial[1].T)
    assert np.abs(shown[0][1] - start).max() < 1e-6
    np.testing.assert_array_equal(shown[-1][1], one.features)


def test_an_animation_of_diverged_runs_ends_where_they_do():
    shown = quadrants_pictures.snapshots_of(replay.Setup(temperatures=(1e-30,), steps=25_000))
    (run,) = replay.run(temperatures=(1e-30,), steps=250).runs
    assert [step for step, _ in shown] == [0, run.stopped - 1]
    np.testing.assert_array_equal(shown[-1][1], run.features)


def test_each_frame_has_its_title_whole():
    from PIL import Image

    frames = [quadrants_pictures.animation([(0, np.ones((100, 2)))], title) for title in ("τ = 0.2", "τ = 0.9")]
    first, second = (np.asarray(Image.open(io.BytesIO(frame)).convert("L"), dtype=float) for frame in frames)
    # They differ in one letter, which is 8 points high and not cut off at the top.
    rows, _ = np.nonzero(first != second)
    assert len(rows)
    assert rows.min() > 2
    assert np.ptp(rows) >= 7


def test_the_chosen_run_is_animated(run, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(quadrants_pictures, "render", lambda *_: b"")
    monkeypatch.setattr(
        quadrants_pictures, "snapshots_of", lambda setup, number: seen.append(number) or [(0, np.zeros((100, 2)))]
    )
    few = ("--steps", "3", "--temperature", "0.99", "--temperature", "0.5", "--out", str(tmp_path))
    run(*few, "--animate", "0.5")
    run(*few)
    assert seen == [1, 0]


def test_long_runs_have_no_more_frames_than_can_be_watched():
    for steps in (1, 250, 251, 12_501, 1_000_000):
        assert 2 <= quadrants_pictures.frames(replay.Setup(steps=steps)) <= 51


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--temperature", "0"), "`temperatures` must be > 0"),
        (("--temperature", "nan"), "`temperatures` must be > 0"),
        (("--steps", "0"), "`steps` must be an integer from 1 to 10,000,000, got 0"),
        (("--seed", "-1"), "`seed` must be an integer from 0 to 4,294,967,295, got -1"),
        (("--animate", "0.05"), "--animate draws into the folder of --out; name one"),
        (("--animate", "0.3", "--out", "x"), "a run, 0.05, 0.99, 0.5, 0.05, 0.01, 0.001, got 0.3"),
        (("--steps", "1000000000000"), "`steps` must be an integer from 1 to 10,000,000"),
        (("--save", "a.npz", "--json", "./a.npz"), "--json and --save are the same file, a.npz; name two"),
        (("--resume", "nowhere.npz"), "cannot read nowhere.npz"),
        (("--resume", "file"), "file is no saved run: damaged"),
        (("--resume", ""), "--resume is empty; give a path"),
        (("--resume", "file", "--steps", "3"), "leave --steps out"),
    ],
)
def test_wrong_input_is_named(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"PK\x03\x04 nothing")
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert message in err.replace("\n", " ")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("option", "place", "message"),
    [
        ("--out", "file", "cannot write --out file: it is a file; choose another place"),
        ("--out", "file/pictures", "cannot write --out file/pictures: not a directory"),
        ("--json", ".", "cannot write --json .: it is a folder"),
        ("--save", "file/state.npz", "cannot write --save file/state.npz: not a directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_training(run, tmp_path, monkeypatch, option, place, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept")
    monkeypatch.setattr(batch, "advance", lambda *_: pytest.fail("training has begun"))
    status, out, err = run(option, place)
    assert (status, out) == (2, "")
    assert message in err
    assert (tmp_path / "file").read_text() == "kept"


def test_interrupted_runs_are_saved_and_go_on_to_the_same_end(run, tmp_path, monkeypatch):
    path, seen = tmp_path / "state.npz", []

    @contextmanager
    def interrupted(phase, total):
        def on_progress(done):
            seen.append((done.id, total))
            if len(seen) == 2:
                raise KeyboardInterrupt
            return done

        yield on_progress

    with monkeypatch.context() as patch:
        patch.setattr(terminal, "progress", interrupted)
        status, out, err = run("--steps", "1000", "--temperature", "0.05", "--save", str(path))
    assert (status, out) == (130, "")
    assert f"nceref quadrants --resume {path}" in err
    assert seen == [("step 250", 4), ("step 500", 4)]
    assert replay.saved(path).done == 500
    status, out, _ = run("--resume", str(path), "--json", "-")
    whole = replay.run(temperatures=(0.05,), steps=1000)
    assert status == 0
    assert json.loads(out)["runs"][0]["W1"] == whole.runs[0].W1.tolist()


def test_the_figures_show_the_published_runs():
    shown, start = quadrants.data(), quadrants_start.data()
    assert shown["temperature"].tolist() == [0.05, 0.99, 0.5, 0.05, 0.01, 0.001]
    corners = findings.corners(shown["features"][-1])
    assert corners.hold_nearly_all
    assert corners.are_opposite
    assert min(corners.counts[1], corners.counts[3]) > 45
    assert np.array_equal(start["samples"], samples.draw(0).samples)
    assert np.all(start["features"].std(axis=0) < 0.16)
