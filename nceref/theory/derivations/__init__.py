"""The derivations: one file each, discovered because it is there."""
