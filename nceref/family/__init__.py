"""One loss per file: formula, statistics, head, properties, sources."""
