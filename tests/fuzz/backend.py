"""A Hypothesis backend that draws every input anew: its own one mutates each five times, which repeats most of it.

Nor does it read all modules that are imported, for constants to try: that takes seconds, and inputs would depend on it.
"""

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from hypothesis.internal.constants_ast import Constants

NAME = "fresh"


class FreshProvider(HypothesisProvider):
    """Hypothesis's generator under another name; shrinking is Hypothesis's own."""

    _local_constants = Constants()


AVAILABLE_PROVIDERS[NAME] = f"{__name__}.FreshProvider"
