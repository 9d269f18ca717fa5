"""Released packages: how their losses are called (`packages`), and where they differ from the reference."""
