"""Pages of text, the terminal, pictures, and files that are whole or not there."""
