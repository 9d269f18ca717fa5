"""Programs that are run from a clone only, and are no part of the installed package."""
