"""Saved runs go on where they were, damaged files are told, and a record has every number."""

import json

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.training.quadrants import record, replay, samples, storage
from nceref.training.quadrants.batch import PUBLISHED


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "new" / "run.npz"

    def stop(done):
        if done == 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay.run(steps=1100, on_progress=stop, save=path)
    assert replay.saved(path).done == 500
    assert len(replay.saved(path).runs[0].losses) == 500
    resumed, whole = replay.resume(path), replay.run(steps=1100)
    assert resumed.done == replay.saved(path).done == 1100
    for a, b in zip(resumed.runs, whole.runs, strict=True):
        for name in ("W1", "W2", "losses", "hits", "features"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert a.growth == b.growth
    assert [p.name for p in path.parent.iterdir()] == ["run.npz"]


def saved(path):
    replay.run(temperatures=(0.5,), steps=20, save=path)
    return path


def rewritten(path, **changes):
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays["header"])) | changes.pop("header", {})
    np.savez(path, **arrays | {"header": np.array(json.dumps(header))} | changes)


def flipped(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 0xA1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-40]), "damaged, or not an .npz file"),
        (lambda p: p.write_bytes(p.read_bytes().replace(b"PK", b"PQ")), "damaged, or not an .npz file"),
        (lambda p: p.write_bytes(b""), "damaged, or not an .npz file"),
        (lambda p: p.write_text("hello"), "damaged, or not an .npz file"),
        (lambda p: np.savez(p, a=np.zeros(3)), "damaged, or not an .npz file"),
        (lambda p: np.save(p.with_suffix(".npy"), np.zeros(3)) or p.with_suffix(".npy").replace(p), "damaged, or not"),
        (lambda p: rewritten(p, header={"format": "other"}), "its header does not say 'nceref quadrants'"),
        (lambda p: rewritten(p, header={"version": 99}), "it is of version 99, not 1"),
        (lambda p: rewritten(p, header={"steps": 10**12}), "damaged, its content is not what was saved"),
        (lambda p: rewritten(p, header={"temperatures": [0.4]}), "damaged, its content is not what was saved"),
        (lambda p: rewritten(p, losses=np.array(1.0)), "damaged, its content is not what was saved"),
        (lambda p: rewritten(p, stopped=np.array([-5, 0])), "damaged, its content is not what was saved"),
        (lambda p: p.unlink(), "cannot read"),
    ],
)
def test_a_file_that_is_no_saved_run_is_refused(tmp_path, spoil, message):
    path = saved(tmp_path / "run.npz")
    spoil(path)
    with pytest.raises(InputError, match=message):
        storage.load(path)


def test_no_single_flipped_byte_is_loaded_as_something_else(tmp_path):
    path = saved(tmp_path / "run.npz")
    setup, state = storage.load(path)
    content = path.read_bytes()
    loaded = 0
    for at in range(0, len(content), 41):
        path.write_bytes(content)
        flipped(path, at)
        try:
            result, again = storage.load(path)
        except InputError:
            continue
        # Times and attributes of the archive do not matter.
        loaded += 1
        assert result == setup
        np.testing.assert_array_equal(again.weights, state.weights)
    assert loaded < 20


def test_seeds_may_be_numpy_s(tmp_path):
    runs = replay.run(np.arange(2), (0.5,), 20, save=tmp_path / "run.npz")
    assert replay.saved(tmp_path / "run.npz").setup == runs.setup
    assert [type(seed) for seed in runs.setup.seeds] == [int, int]


def test_a_long_run_is_saved_now_and_then(tmp_path, monkeypatch):
    monkeypatch.setattr(replay, "_BETWEEN", -1)
    seen = []
    replay.run(temperatures=(0.5,), steps=600, save=tmp_path / "run.npz",
               on_progress=lambda done: seen.append(replay.saved(tmp_path / "run.npz").done))  # fmt: skip
    assert seen == [250, 500, 600]


def test_another_file_is_not_replaced(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, mine=np.ones(3))
    content = path.read_bytes()
    with pytest.raises(InputError, match=r"mine.npz is no saved run: .*; name another file"):
        saved(path)
    assert path.read_bytes() == content
    (tmp_path / "empty").touch()
    assert replay.saved(saved(tmp_path / "empty")).done == 20


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot write .*: it is a folder; name a file"):
        saved(tmp_path)


def test_the_record_has_every_number_exactly():
    runs = replay.run((0,), steps=510)
    result = json.loads(json.dumps(record.record(runs), allow_nan=False))
    drawn = samples.draw(0)
    for name in ("samples", "W1", "W2"):
        np.testing.assert_array_equal(np.array(result[name], np.float32), getattr(drawn, name))
        np.testing.assert_array_equal(np.array(result[name]), getattr(drawn, name).astype(np.float64))
    assert [r["temperature"] for r in result["runs"]] == list(PUBLISHED)
    for run, r in zip(runs.runs, result["runs"], strict=True):
        assert (np.shape(r["W1"]), np.shape(r["W2"]), np.shape(r["features"])) == ((10, 2), (2, 10), (100, 2))
        for name in ("W1", "W2", "features"):
            np.testing.assert_array_equal(np.array(r[name], np.float32), getattr(run, name))
        for a, b in zip(r["weights_at_500"], run.weights_at_500, strict=True):
            np.testing.assert_array_equal(np.array(a, np.float32), b)
        assert r["statistics"]["uniformity"] == run.statistics.uniformity


def test_the_record_of_several_seeds_asks_which():
    runs = replay.run((0, 1), (0.5,), 5)
    with pytest.raises(InputError, match=r"`seed` must say which one of \(0, 1\)"):
        record.record(runs)
    with pytest.raises(InputError, match=r"`seed` must be one of \(0, 1\), got 2"):
        record.record(runs, 2)
    assert record.record(runs, 1)["samples"] == samples.draw(1).samples.tolist()
    assert record.record(runs, 1)["runs"][0]["weights_at_500"] is None
