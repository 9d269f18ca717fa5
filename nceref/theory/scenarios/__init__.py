"""The worlds: what the names of an executable statement mean; one file each, found because it is there."""
