"""Correct programs that are not written like the reference: none of them may be called wrong.

Each is a function under `mutants.bug.correct`: other orders of summation, other ways to mask, to
shift, to accumulate, to lay out the logits.
"""
