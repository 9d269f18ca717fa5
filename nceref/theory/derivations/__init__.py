"""The derivations: one file each, found because it is there."""
