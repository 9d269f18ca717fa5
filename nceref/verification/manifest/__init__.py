"""Targets that stand in one file: read, verified one after the other, and reported together."""
