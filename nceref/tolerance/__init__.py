"""Bounds on the errors of correct programs, by rounding-error analysis, for every value and gradient."""

from nceref.tolerance.analysis import Analysis, Bounds, bounds, close

__all__ = ["Analysis", "Bounds", "bounds", "close"]
