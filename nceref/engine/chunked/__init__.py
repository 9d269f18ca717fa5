"""Losses of arrays in row chunks, larger than a memory: Dask computes them, here or on a cluster.

`arguments` checks what the caller passed, without reading it. `graph` writes down the tasks: every pair of chunks is a
window (`nceref.engine.windows`) that is folded, the states merge, the head runs on vectors, and gradients are pulled
along chains from window to window. `tasks` has what a worker does, `run` computes the graph and ends in one error.
"""
