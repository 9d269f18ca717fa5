"""Measures the formula of a program by calling it: the reference's with up to three of its stages done otherwise.

search        which ways of the stages predict what the program gives
composed      the calls that are searched, and the formulas that predict them
composition   a formula, its text beside that of the reference
measured      the fresh calls that a formula must predict
expressions   numbers as expressions in sizes and scalars
"""
