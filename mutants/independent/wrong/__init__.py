"""Wrong programs from public threads and public code, a file for each kind of mechanism."""
