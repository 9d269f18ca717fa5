"""Correct programs of other shapes: other layouts, orders of summation, masks and identities."""
