"""The blockwise forward and backward passes, and all that they are made of.

One call of a loss goes through these modules in this order: `arguments` checks what the caller passed, the plan of the
loss (`plan`, `layouts`) states comparisons, row statistics and a head, `passes` runs both passes over blocks of logits.
To read the engine, begin with `plan` and `passes`; `statistics`, `patterns` and `similarity` are the kinds of objects
that a plan is made of, and each of their files begins with the methods that such an object has.

arguments, arrays, namespaces, settings, threads   what comes in, and where it is computed
embeddings, similarity, distances, ties            from rows to logits, and back; equal rows have equal logits
patterns, label_patterns, tiles                    who is compared with whom, a block at a time
statistics, unshifted_statistics, heads            what a row is folded into, and the loss it gives
plan, layouts                                      one loss as comparisons, statistics and a head
passes, anatomy                                    the two passes; the same, opened up for small batches
parameters, formulas                               words that the declarations in `nceref.family` share
"""
