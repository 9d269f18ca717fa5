"""Reports as HTML documents.

document    one report, or several with an overview, in one file that loads nothing
view        what all parts of a document share: ids, levels of headings, how much is shown
findings    verdict, explanations, what to change, how to repeat it
cases       results by clause, as strip plots and tables
circumstances  what was not judged, the test of the verifier itself, versions
"""
