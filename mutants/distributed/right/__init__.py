"""Correct programs of several ranks."""
