"""The figures: one file each, discovered because it is there."""
