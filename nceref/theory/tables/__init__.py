"""The tables: one file each, found because it is there."""
