"""Measures the formula of a program by calling it: the reference's with up to three of its stages done otherwise.

search        which ways of the stages predict what the program gives
composed      the calls that are searched, and the formulas that predict them
composition   a formula: its value and its gradients on any inputs, its text beside that of the reference
symbols       sizes and scalars of a call by the letter that a formula has for them
measured      a formula as an explanation, which is held to all cases and to fresh calls as every other is
"""
