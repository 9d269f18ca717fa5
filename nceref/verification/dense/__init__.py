"""The machinery of the dense forms: scenes of anchors and candidates, and every stage from them to one number.

scene         what an input is arranged into, and the rows that come out
temperatures  what multiplies the similarities
denominators  who is in the denominator
stages        row losses, directions, means
"""
