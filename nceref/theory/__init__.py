"""Published statements: claims with evidence, derivations, tables and figures, and what proves and prints them."""
