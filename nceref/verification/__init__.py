"""Is this implementation right, and if not, what is it? The machinery behind `nceref verify`.

verifier     all of it, in order: request, run, verdict, explanation, report
records      what the parts hand to one another
request      the arguments of `verify`, checked
target_run   the target on the cases of one format: called, judged, and the verifier tested beside it
explain      what the difference is, what it does to training, and its smallest script
corpus       designed inputs of a loss: each case with its reference and the bound of every quantity
targets      from a name to something that is called with the inputs of the loss and gives gradients
judge        compares quantity by quantity
invariances  what must hold between answers of the target itself
self_test    wrong answers that every run must reject
verdict      which verdict the results amount to
conventions  the closed list of what implementations differ in
diagnosis    which of them explains a difference, or what else is true of it
report       verdict, explanation and results; `page` lays out their parts
html         reports as HTML documents
repro        the smallest failing input, as a stand-alone script
identify     tries a target as every loss
peers        released packages, known differences, audit
bugs         catalogue of wrong and right programs that measures the verifier
dense        the losses once more, as dense textbook code
"""
