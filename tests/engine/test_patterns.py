"""Patterns: cutting a tile is masking it, and diagonals are lines of it."""

import numpy as np
import pytest
from sweep import sweep

from nceref.engine.label_patterns import OtherLabel, SameLabel, Weighted
from nceref.engine.patterns import Diagonal, Except, Index, Only
from nceref.engine.tiles import Tile, View

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, 9)
PATTERNS = (
    Except((Diagonal(0, 9),)),
    Except((Diagonal(0, 4, 5), Diagonal(5, 9, -5))),
    Except((Index(RNG.integers(0, 9, 9)),)),
    Only((Diagonal(0, 4, 5), Diagonal(5, 9, -5))),
    SameLabel(LABELS, LABELS, (Diagonal(0, 9),)),
    OtherLabel(LABELS, LABELS),
    Weighted(np.abs(RNG.standard_normal((9, 9))) * (RNG.random((9, 9)) < 0.5), (Diagonal(0, 9),)),
)
SPANS = [slice(0, 9), slice(0, 4), slice(3, 8), slice(5, 9), slice(8, 9)]


def tile(rows, columns):
    s = np.random.default_rng(1).standard_normal((rows.stop - rows.start, columns.stop - columns.start))
    return Tile(s, rows, columns, bounded=True)


@sweep("flip", [False, True])
@sweep("fill", [0.0, -np.inf])
@sweep("pattern", PATTERNS, ids=lambda p: type(p).__name__)
def test_cutting_a_tile_is_masking_it(pattern, fill, flip):
    for rows in SPANS:
        for columns in SPANS:
            view = View(tile(rows, columns), flip)
            mask = pattern.mask(view.rows, view.columns, view.s)
            mask = np.full(view.s.shape, mask is None) if mask is None or mask is False else mask
            expected = np.where(mask, view.s, fill)
            assert np.array_equal(view.turned(pattern.cut(view.tile.s.copy(), view, fill)), expected)
            assert np.array_equal(view.turned(pattern.inside(view)) > 0, mask)


@pytest.mark.parametrize("flip", [False, True])
def test_lines_are_the_pairs_of_a_diagonal(flip):
    pattern = PATTERNS[3]
    for rows in SPANS:
        for columns in SPANS:
            view = View(tile(rows, columns), flip)
            mask = pattern.mask(view.rows, view.columns, view.s)
            mask = np.zeros(view.s.shape, bool) if mask is False else mask
            covered = np.zeros(view.s.shape)
            for own, where in pattern.lines(view):
                assert np.array_equal(view.tile.line(where), view.s[own][mask[own]])
                covered[own] += mask[own]
            assert np.array_equal(covered, mask)


@sweep(
    ("pattern", "symmetric"),
    [*zip(PATTERNS, (True, True, False, True, True, True, False), strict=True), (Except((Diagonal(0, 4, 5),)), False)],
)
def test_a_pattern_is_symmetric_if_it_holds_the_mirror_image_of_every_pair(pattern, symmetric):
    assert pattern.symmetric is symmetric
    dense = pattern.mask(slice(0, 9), slice(0, 9), np.zeros((9, 9)))
    assert not symmetric or np.array_equal(dense, dense.T)
