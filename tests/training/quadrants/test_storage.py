"""Saved runs go on where they were, damaged files are told, and a record has every number."""

import json
import zipfile
from itertools import cycle

import numpy as np
import pytest
from slow import partly_slow

from nceref.errors import InputError
from nceref.training.quadrants import record, replay, samples, storage
from nceref.training.quadrants.batch import PUBLISHED


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "run.npz"

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
    header = changes.pop("header", {})
    if isinstance(header, dict):
        header = json.dumps(json.loads(str(arrays["header"])) | header)
    np.savez(path, **arrays | {"header": np.array(header)} | changes)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-40]), "damaged, its end is missing"),
        (lambda p: p.write_bytes(p.read_bytes().replace(b"PK", b"PQ")), "its end is missing, or it is not"),
        (lambda p: p.write_bytes(b""), "damaged, its end is missing, or it is not an .npz file; name another file"),
        (lambda p: p.write_text("hello"), "or it is not an .npz file"),
        (lambda p: np.savez(p, a=np.zeros(3)), "damaged, or another .npz file: it has no `checkpoint`"),
        (lambda p: np.save(p.with_suffix(".npy"), np.zeros(3)) or p.with_suffix(".npy").replace(p), "not an .npz file"),
        (lambda p: p.write_bytes(p.read_bytes().replace(b"losses.npy", b"lasses.npy")), "it has no `losses`"),
        (lambda p: p.write_bytes(p.read_bytes().replace(b"'shape'", b"'shopp'")), "its `header` cannot be read"),
        (lambda p: rewritten(p, header="{"), "damaged, its `header` is not JSON"),
        (lambda p: rewritten(p, header={"format": "other"}), "its header does not say 'nceref quadrants'"),
        (lambda p: rewritten(p, header={"version": 99}), "it is of version 99, not 1"),
        (
            lambda p: rewritten(p, header={"steps": 10**12}),
            "damaged, its checksum \\(`digest`\\) is not that of its content",
        ),
        (
            lambda p: rewritten(p, header={"temperatures": [0.4]}),
            "damaged, its checksum \\(`digest`\\) is not that of its content",
        ),
        (
            lambda p: rewritten(p, losses=np.array(1.0)),
            "damaged, its checksum \\(`digest`\\) is not that of its content",
        ),
        (
            lambda p: rewritten(p, stopped=np.array([-5, 0])),
            "damaged, its checksum \\(`digest`\\) is not that of its content",
        ),
        (lambda p: p.unlink(), "cannot read"),
    ],
)
def test_a_file_that_is_no_saved_run_is_refused(tmp_path, spoil, message):
    path = saved(tmp_path / "run.npz")
    spoil(path)
    with pytest.raises(InputError, match=message):
        storage.load(path)


@pytest.mark.parametrize("step", partly_slow((3, 1), (3).__eq__, "the bytes between"))
def test_every_flipped_or_missing_byte_is_refused_or_changes_nothing(tmp_path, monkeypatch, step):
    path = tmp_path / "run.npz"
    replay.run(temperatures=(0.5,), steps=1, save=path)
    setup, state = storage.load(path)
    content = path.read_bytes()
    masks = zip(range(0, len(content), step), cycle((1, 32, 128, 255)), strict=False)
    flipped = (content[:i] + bytes([content[i] ^ mask]) + content[i + 1 :] for i, mask in masks)
    loaded = []
    for damaged in (*flipped, *(content[:size] for size in range(0, len(content), 5 * step))):
        monkeypatch.setattr(storage.files, "read", lambda path, damaged=damaged: damaged)
        try:
            loaded.append(storage.load(path))
        except InputError as error:
            assert str(error).startswith(f"{path} is no saved run: ")  # noqa: PT017
    # Times and attributes of the archive do not matter.
    assert 0 < len(loaded) < len(content) / 5
    for result, again in loaded:
        assert (result, again.done) == (setup, state.done)
        for name in ("weights", "checkpoint", "losses", "hits", "growth", "stopped"):
            assert getattr(again, name).tobytes() == getattr(state, name).tobytes()


def forged(path, **changes):
    """The file with other entries of the header or other arrays, and a digest that fits."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name not in ("header", "digest")}
    header = json.loads(str(np.load(path)["header"]))
    header = json.dumps({k: v for k, v in (header | changes.pop("header", {})).items() if v != "left out"})
    arrays |= changes
    np.savez(path, header=np.array(header), digest=np.array(storage._digest(header, arrays)), **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"header": {"seeds": "left out"}}, "says what no run does ('seeds')"),
        ({"header": {"done": "left out"}}, "says what no run does ('done')"),
        ({"header": {"seeds": 5}}, "says what no run does"),
        ({"header": {"seeds": ["0"]}}, "`seed` must be an integer"),
        ({"header": {"temperatures": ["0.5"]}}, "says what no run does"),
        ({"header": {"temperatures": [float("nan")]}}, "`temperatures` must be > 0"),
        ({"header": {"steps": 10**7}}, "losses of shape (20, 1)"),
        ({"header": {"steps": 1e1}}, "`steps` must be an integer"),
        ({"header": {"seeds": [*range(9999)]}}, "losses of shape (20, 1)"),
        ({"header": {"done": 21}}, "`done` must be an integer from 0 to 20, got 21"),
        ({"header": {"done": -1}}, "`done` must be an integer from 0 to 20, got -1"),
        ({"header": {"dtype": "float16"}}, "`dtype` must be 'float32' or 'float64'"),
        ({"header": {"dtype": "float64"}}, "weights of dtype float32"),
        ({"header": {"confounder": "yes"}}, "confounder must be true or false"),
        ({"weights": np.zeros((2, 2, 10, 2))}, "weights of dtype float64"),
        ({"weights": np.full((2, 2, 10, 2), np.nan, np.float32)}, "weights or steps out of their range"),
        ({"weights": np.zeros((2, 2, 10, 3), np.float32)}, "weights of dtype float32 and shape (2, 2, 10, 3)"),
        ({"losses": np.array(1.0)}, "losses of shape ()"),
        ({"hits": np.zeros((20, 1))}, "hits of dtype float64"),
        ({"stopped": np.array([-5, 0])}, "weights or steps out of their range"),
        ({"stopped": np.array([21, 0])}, "weights or steps out of their range"),
        ({"growth": np.zeros((1, 1), ">f8")}, "growth of dtype >f8"),
        ({"more": np.zeros(1)}, "it has more arrays than a run"),
    ],
)
def test_a_file_that_says_what_no_run_does_is_refused_though_its_digest_fits(tmp_path, changes, message):
    path = saved(tmp_path / "run.npz")
    forged(path, **changes)
    with pytest.raises(InputError) as caught:
        replay.resume(path)
    assert message in str(caught.value)


def test_a_packed_file_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = saved(tmp_path / "run.npz")
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez_compressed(path, **arrays | {"losses": np.zeros((10**7, 1), np.float32)})
    assert path.stat().st_size < 10**5
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it is unpacked"))
    with pytest.raises(InputError, match="it is packed, or says wrong sizes"):
        storage.load(path)


class Loud:
    def __reduce__(self):
        return (pytest.fail, ("code of the file runs",))


def test_a_pickle_is_not_read(tmp_path):
    path = saved(tmp_path / "run.npz")
    rewritten(path, losses=np.array([Loud()], dtype=object))
    with pytest.raises(InputError, match="damaged, its `losses` cannot be read"):
        storage.load(path)


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
    for place, why in ((tmp_path, "it is a folder; name a file"), ("/dev/full", "no space left on device; free some")):
        with pytest.raises(InputError, match=rf"cannot write `save` {place}: {why}"):
            saved(place)


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
