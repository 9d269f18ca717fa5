"""Correct programs of unusual shape: backward passes by hand, chunks, checkpoints, detached maxima."""
