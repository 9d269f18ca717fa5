"""Released packages: where their losses are, and how each is called."""
