"""Somebody else's loss: found, its arguments matched, run in its framework, here or in a process of its own."""
