"""Frameworks that targets are written in, one a file, and the calls of targets in any of them."""

NAMES = ("numpy", "torch", "jax")
"""The files; the first is the framework of a target that uses none of the others."""
