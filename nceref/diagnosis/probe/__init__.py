"""Measures the formula of a program by calling it: which pairs enter which logarithm, with what weight and power."""
