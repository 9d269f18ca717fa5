"""One file for each experiment: a small analogue of a published result that needs large data."""
