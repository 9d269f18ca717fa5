"""Is this implementation right, and if not, what is it? The machinery behind `nceref verify`.

corpus       designed inputs of a loss, each with its reference and the bound of every quantity
loading      from a target's name to something that can be called; `binding` matches its arguments
frameworks   how NumPy, PyTorch and JAX are handed arrays and asked for gradients
runner       runs a target on the corpus, in this process or in a child that may hang or die
judge        compares quantity by quantity
conventions  the closed list of what may differ; `dense` evaluates a loss under any of them, `search` finds which
patterns     what can be said where no convention fits
verify       all of it, in order
"""
