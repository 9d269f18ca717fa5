"""The tables: one file each, discovered because it is there."""
