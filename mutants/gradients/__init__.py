"""Programs that bring their own gradients, by authors who have not read the search; a framework is a file.

`wrong`: the value is right and a gradient is wrong. `triples`: three changes, in different stages of the loss. `right`:
correct programs of unusual shape. A program of NumPy returns its value and a gradient for each input by name; those of
PyTorch and JAX are differentiated by their framework.
"""
