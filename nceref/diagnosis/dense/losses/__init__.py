"""Losses once more, as short dense NumPy in which every stage can be done otherwise: one file a kind of batch."""
