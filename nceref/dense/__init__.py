"""Losses once more, as short dense NumPy in which every stage can be done otherwise: one file for every kind of scene."""
