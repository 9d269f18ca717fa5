"""Is this implementation right, and if not, what is it? The machinery behind `nceref verify`.

verifier     all of it, in order: request, target, cases, judge, identities, canaries, explanation, report
records      what the parts hand to one another
request      what the caller asked for, checked
inputs       the designed corpus of a loss: each case with its reference and the bound of every quantity
targets      from a name to something that is called with the inputs of the loss and asked for gradients
judge        compares quantity by quantity; `identities` are second witnesses, `canaries` prove that it can fail
conventions  the closed list of what implementations differ in
diagnosis    which of them explains a difference, or what else can be said of it
report       verdict, explanation and results; `page` lays it out
identity     tries a target as every loss
"""
