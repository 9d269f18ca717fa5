"""The forms of a page, one a file."""
