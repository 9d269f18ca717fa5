"""Settings: how large a block is, what a device's free memory makes of it, and how strips are dealt to threads."""

import numpy as np
import pytest

from nceref import InputError, config
from nceref.engine import settings, threads

F4, F8 = np.zeros(1, np.float32), np.zeros(1)


def test_a_host_gets_blocks_that_suit_its_caches():
    assert settings.block_shape(300, 400, F4, whole_rows=False) == (300, 873)
    assert settings.block_shape(300, 300, F4, whole_rows=False, square=True) == (300, 300)
    assert settings.block_shape(1, 10**6, F4, whole_rows=False) == (1, 1 << 18)
    assert settings.block_shape(1000, 600, F4, whole_rows=False) == (512, 512)


def test_whole_rows_come_in_strips_of_the_same_area():
    with config(block=512, threads=1):
        assert settings.block_shape(1000, 8192, F4, whole_rows=True) == (32, 8192)
        assert settings.block_shape(1000, 10**6, F4, whole_rows=True) == (16, 10**6)


def test_every_thread_gets_a_strip():
    with config(threads=8):
        assert settings.block_shape(1024, 1 << 15, F4, whole_rows=False) == (128, 2048)
        assert settings.block_shape(1024, 1 << 15, F4, whole_rows=True) == (16, 1 << 15)


@pytest.mark.parametrize(
    ("free", "like", "side"),
    [(16 * 4 * 1000**2, F4, 1000), (16 * 8 * 1000**2, F8, 1000), (1000, F4, 256), (1 << 40, F4, 8192)],
)
def test_a_device_gets_a_sixteenth_of_its_free_memory_in_one_block(monkeypatch, free, like, side):
    monkeypatch.setattr(settings, "free_bytes", lambda like: free)
    monkeypatch.setattr(settings, "on_host", lambda like: False)
    assert settings.block_shape(10**5, 10**5, like, whole_rows=False) == (side, side)
    assert settings.cache_limit(like) == free // 4
    with config(block=64, keep=5):
        assert settings.block_shape(10**5, 10**5, like, whole_rows=False) == (64, 64)
        assert settings.cache_limit(like) == 5


@pytest.mark.parametrize("bad", [-1, 1.5, True, "8"])
def test_a_limit_that_is_no_number_of_bytes_is_refused(bad):
    with pytest.raises(InputError, match="`keep` must be an integer >= 0, got"):
        config(keep=bad)


def test_a_refused_setting_changes_none():
    with pytest.raises(InputError, match="`threads`"):
        config(block=7, threads=0)
    assert settings.block_shape(1000, 600, F4, whole_rows=False) == (512, 512)


def test_strips_of_a_triangle_are_dealt_evenly():
    """Strip i of a triangle of n strips has n - i blocks."""
    strips = [slice(i, i + 1) for i in range(16)]
    dealt = threads.share(lambda own: [strip.start for strip in own], strips, 2)
    assert sorted(i for own in dealt for i in own) == list(range(16))
    assert [sum(16 - i for i in own) for own in dealt] == [68, 68]


def test_there_are_no_more_shares_than_strips():
    assert len(threads.share(list, [slice(0, 1)], 4)) == 1
    assert len(threads.share(list, [slice(0, 1), slice(1, 2)], 0)) == 1
