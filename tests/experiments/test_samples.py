"""The data of the experiments: long tails, digits, and what is refused."""

import numpy as np
import pytest
from experiments.small_runs import few_samples

from nceref.errors import InputError, UnavailableError
from nceref.experiments.samples import Samples, digits, long_tail, moved


def test_a_long_tail_falls_geometrically():
    assert long_tail(3, 500, 5).tolist() == [500, 50, 5]
    assert few_samples(0).counts.tolist() == long_tail(3, 12, 3).tolist()
    assert np.bincount(few_samples(0).test_labels).tolist() == [3] * 3


def test_more_digits_than_there_are_are_refused():
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    with pytest.raises(InputError, match="ask for 550 of digit 0, of which there are 178"):
        digits(0, np.full(10, 500))
    with pytest.raises(InputError, match="ask for 201 of digit 0"):
        digits(0, test=200)


def test_without_scikit_learn_the_error_names_the_command(monkeypatch):
    from nceref.experiments import samples

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
