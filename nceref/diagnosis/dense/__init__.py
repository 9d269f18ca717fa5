"""The machinery of the dense forms: batches of anchors and candidates, and every stage from them to one number.

batch         what an input is arranged into, and the rows that come out
temperatures  what multiplies the similarities
denominators  who is in the denominator
stages        row losses, directions, means
ways          other ways of each stage, without a name, from which formulas are made
"""
