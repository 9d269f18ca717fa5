"""Each loss against its own formula and declared properties, and what it should read in known situations."""
