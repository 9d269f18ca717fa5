"""The same on every machine: a matrix of vector extensions, BLAS kernels, threads and NumPy versions.

`python -m tools.machines list` names the lines of the matrix on this machine, `test` runs the marked tests under each,
`quick` judges the reference vectors under the highest and the lowest dispatch level, `errors` and `functions` measure
the tables of docs/reliability.md.
"""
