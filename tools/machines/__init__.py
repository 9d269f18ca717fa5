"""Checks of one result on every machine: a matrix of vector extensions, BLAS kernels, threads and NumPy versions."""
