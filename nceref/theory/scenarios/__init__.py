"""The scenarios: what the names in an executable statement mean. One file each; every file here is discovered."""
