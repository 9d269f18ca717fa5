"""The catalogue of known bugs: a file for each kind, a function under `mutants.bug.bug` for each bug.

The programs are plain code, as their authors wrote them. They import NumPy and `mutants.bug` only:
what shares code with the checker that must find it measures nothing. Files named ``held_out_*`` were written without a
look at the search for conventions, and pairs of two bugs at once have more than one id in ``named``; both are scored
apart.
"""
