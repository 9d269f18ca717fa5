"""The toy of source 003, replayed without a framework: 100 points on four quadrants and a tiny encoder.

`samples` and `indices` regenerate the random numbers of the published script, `replay` trains, `statistics` measures,
`storage` saves and resumes, `record` writes JSON.
"""
