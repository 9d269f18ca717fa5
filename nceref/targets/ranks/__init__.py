"""Targets on several ranks: their processes, and what each rank gets and gives."""
