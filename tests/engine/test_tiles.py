"""Tiles: what is made once, what is kept, and products against broadcasting."""

import array_api_strict
import numpy as np
import pytest

from nceref.engine.tiles import Slopes, Tile, View, row_major

pytestmark = pytest.mark.machine

RNG = np.random.default_rng(0)


def tile(rows, columns):
    s = np.random.default_rng(1).standard_normal((rows.stop - rows.start, columns.stop - columns.start))
    return Tile(s, rows, columns, bounded=True)


def test_slopes_add_up_whatever_way_they_come():
    t = tile(slice(0, 3), slice(4, 9))
    made, other, dense = RNG.standard_normal((3, 3, 5))
    u, v, w = RNG.standard_normal(3), RNG.standard_normal(5), RNG.standard_normal(3)
    slopes = Slopes(t)
    slopes.scale(View(t, False), made, u)
    slopes.scale(View(t, True), made, v)
    slopes.scale(View(t, False), made, u)
    slopes.scale(View(t, True), other, v)
    slopes.add(dense.copy())
    slopes.on_line(slice(1, 14, 6), w)
    expected = made * (2 * u[:, None] + v[None, :]) + other * v[None, :] + dense
    expected[[0, 1, 2], [1, 2, 3]] += w
    assert np.all(np.abs(slopes.total() - expected) <= 16 * np.finfo(float).eps * (np.abs(expected) + 1))
    assert Slopes(t).total() is None


@pytest.mark.parametrize("xp", [np, array_api_strict])
def test_lines_alone_make_a_tile_of_zeros(xp):
    t = Tile(xp.zeros((2, 3)), slice(0, 2), slice(0, 3))
    slopes = Slopes(t)
    slopes.on_line(slice(0, 5, 4), xp.asarray([1.0, 2.0]))
    assert np.array_equal(np.asarray(slopes.total()), [[1, 0, 0], [0, 2, 0]])


def test_something_is_made_once_for_both_directions():
    t = tile(slice(0, 4), slice(4, 9))
    views = View(t, False), View(t, True)
    symmetric, other = (
        [t.once(view.key("x", symmetric=same), lambda: object()) for view in views] for same in (True, False)
    )
    assert symmetric[0] is symmetric[1]
    assert other[1] is not other[0]


def test_a_moved_tile_keeps_one_array():
    store = np.empty(30)
    t = tile(slice(0, 4), slice(4, 9))
    logits = t.moved(store, 0, rereads=True)
    assert np.shares_memory(logits.s, store)
    assert np.array_equal(logits.s, t.s)
    t.once("e", lambda: np.exp(t.s))
    made = t.moved(store, 10, rereads=False)
    assert made.s is None
    assert np.array_equal(made.once("e", None), np.exp(t.s))
    assert t.moved(store, 10, rereads=True).made == {}
    made.copy().once("more", lambda: 1)
    assert "more" not in made.made


def test_flat_writes_reach_a_column_major_block():
    s = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    assert row_major(s).flags.c_contiguous
    view = View(Tile(s, slice(0, 3), slice(0, 4)), False)
    assert np.array_equal(view.tile.line(slice(0, 12, 5)), [0.0, 5.0, 10.0])
