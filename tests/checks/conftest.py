"""What tests of declared properties and relations share."""

import pytest

from nceref.checks import run, settings


@pytest.fixture
def one_by_one(monkeypatch):
    """Settings with one parameter that differs from the first ones."""
    monkeypatch.setattr(settings, "combinations", lambda *_: [])
    run._property_cases.cache_clear()
    yield
    run._property_cases.cache_clear()
