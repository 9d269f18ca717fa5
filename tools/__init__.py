"""What is run from a clone only, and is no part of the installed package."""
