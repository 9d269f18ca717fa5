"""Programs of several ranks, in PyTorch: each is what one rank runs on its own rows."""
