"""Measures the formula of a program by calling it.

search, composed, composition
              the reference's with up to three of its stages done otherwise
structure, recover, model, pattern
              sums of logarithms: which pairs enter which of them, with what weight and power
design, calls calls on rows that are made for it
expressions, words
              numbers as expressions in sizes and scalars; formulas as lines of text
"""
