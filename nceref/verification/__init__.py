"""Verification of an implementation: what it computes in place of the reference, behind `nceref verify`.

request       the arguments of `verify`, checked
verifier      a verification in order: request, run, verdict, explanation, report
target_run    the target on the cases of one format: called, judged, and the verifier tested beside it
self_test     wrong answers that every run must reject
modes         other ways of calling a target
verdict       the verdict that the results amount to
explain       the explanation of a difference, its effect on training, and its smallest script
report        verdict, explanation and results; `page` lays out their parts
html          reports as HTML documents
repro         a small failing input, as a stand-alone script
trials        calls on a few cases, one way after another: by `adapters` as one loss, by `loss_search` as all
identify      the answer which loss a target is
vectors       reference vectors, and recorded outputs that are judged on them
manifest      the targets of a project in one file
conformance   tests of a loss in pytest
audit         released packages and their known differences
"""
