"""Correct programs that are not written like the reference: none of them may be called wrong.

A file holds ``VARIANTS``, a tuple of `Mutant` whose ``named`` is empty: other orders of summation,
other ways to mask, to shift, to accumulate, to lay out the logits.
"""
