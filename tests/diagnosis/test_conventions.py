"""The closed list of conventions: ids, threads and settings are well-formed; factors are what their ids say."""

import math
import re

import pytest
from sweep import sweep

from nceref.diagnosis import conventions
from nceref.diagnosis.conventions import CONVENTIONS, of_kind
from nceref.diagnosis.dense import forms
from nceref.losses import all_losses


def test_every_id_is_there_once():
    assert len(CONVENTIONS) == len(conventions._LISTED)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id) for id in CONVENTIONS)


def test_threads_are_issues_of_repositories():
    threads = [thread for convention in CONVENTIONS.values() for thread in convention.threads]
    assert len(threads) > 100
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) for thread in threads)


def test_settings_differ_and_so_do_their_descriptions():
    for convention in CONVENTIONS.values():
        assert len(set(convention.settings)) == len(convention.settings)
        described = [convention.describe(setting) for setting in convention.settings if setting is not None]
        assert all(described)
        assert len(set(described)) == len(described)


@sweep("kind", sorted({convention.kind for convention in CONVENTIONS.values()} - {""}))
def test_a_kind_applies_as_a_whole(kind):
    ids = set(of_kind(kind))
    own = [ids & set(forms.form_of(loss.declaration).conventions) for loss in all_losses().values()]
    # A single convention of a kind may apply to other losses as well, such as the sum to uniformity.
    assert ids in own


@sweep(
    ("id", "setting", "factor"),
    [
        ("temperature-multiplied", None, 0.25),
        ("temperature-exponentiated", None, math.exp(0.25)),
        ("temperature-squared", None, 16.0),
        ("temperature-square-root", None, 2.0),
        ("temperature-off-by-a-factor", 10.0, 0.4),
        ("temperature-clamped", 0.5, 2.0),
        ("temperature-clamped", 0.1, 4.0),
        ("scale-exponentiated", None, math.exp(4.0)),
        ("scale-without-exponential", None, math.log(4.0)),
        ("scale-clamped", 3.0, 3.0),
        ("scale-clamped", (5.0, 9.0), 5.0),
        ("outer-factor-2-temperature", 8, 0.5),
        ("outer-factor-n", 8, 8.0),
        ("log-base-2", 8, 1 / math.log(2)),
    ],
)
def test_a_factor_is_what_its_id_says(id, setting, factor):
    """At the temperature 0.25, which is the scale 4."""
    assert CONVENTIONS[id].factor(0.25, setting) == pytest.approx(factor, rel=1e-15)
