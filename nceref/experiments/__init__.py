"""Small data and short training behind the experiments: `samples`, `measures`, and the two kinds of run."""
