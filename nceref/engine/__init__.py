"""The blockwise forward and backward passes, and all that they are made of.

arguments, arrays, namespaces, settings, threads   what comes in, and where it is computed
embeddings, similarity, distances                  from rows to logits, and back
patterns, label_patterns, tiles                    who is compared with whom, a block at a time
statistics, bounded_statistics, heads              what a row is folded into, and the loss it gives
plan, layouts                                      one loss as comparisons, statistics and a head
passes, anatomy                                    the two passes; the same, opened up for small batches
parameters, formulas                               words that the declarations in `nceref.family` share
"""
