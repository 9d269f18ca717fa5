"""A loss as parts that can be replaced one by one: rows, similarities, logits, pairs, row losses, means.

work      what is on hand while the parts are evaluated, and what one way of doing a part is
layouts   the parts of each loss as the reference does them
rows, similarities, logits, pairs, heads, means
          other ways of doing each of them
search    which ways a target does them
"""
