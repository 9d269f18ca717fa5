"""Programs with three changes each, in different stages of the loss."""
