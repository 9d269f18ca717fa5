"""Wrong programs of several ranks."""
