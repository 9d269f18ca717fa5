"""How far a correct program may be off: a bound by rounding-error analysis for every value and gradient."""

from nceref.tolerance.analysis import Analysis, Bounds, bounds, close

__all__ = ["Analysis", "Bounds", "bounds", "close"]
