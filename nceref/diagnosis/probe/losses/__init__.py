"""Losses as parts: one file a kind of batch."""
