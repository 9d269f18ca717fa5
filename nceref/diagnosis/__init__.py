"""What a difference is: search of conventions, patterns where none fits, arithmetic beside both."""
