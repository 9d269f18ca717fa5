"""Somebody else's loss: located, its arguments matched, run in its framework, here or in a process of its own."""
