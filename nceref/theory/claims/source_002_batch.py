"""Source 002, in passing: false negatives in a batch, numerator and denominator of the loss, and smoothed targets."""

from nceref.theory.claim import Chapter, Claim, Repair
from nceref.theory.verdicts import Verdict

SOURCE = "source 002"
SMOOTHED = (
    "one_hot == L and sum(y) == 1 and smoothed == L + e * (s[0] - s_mean) / t"
    " and [t * d(smoothed, s[j]) for j in range(N)] == [P[j] - y[j] for j in range(N)]"
)
"""A part of the target for every candidate: what that adds to the loss, and to its slopes."""


def _one_more_sample():
    """What one more sample adds to the chance, and its derivative by q, for every N; r = 1 - q is positive."""
    import sympy

    r, n = sympy.Symbol("r", positive=True), sympy.Symbol("N", positive=True)
    chance = 1 - r ** (n - 1)
    added, slope = chance.subs(n, n + 1) - chance, -chance.diff(r)
    return all(sympy.simplify(x) == 0 for x in (added - (1 - r) * r ** (n - 1), slope - (n - 1) * r ** (n - 2)))


CHAPTER = Chapter(
    name="source_002_batch",
    title="Source 002: false negatives, the ratio, and smoothed targets",
    claims=(
        Claim(
            id="NC-7",
            title="a larger batch makes false negatives less likely",
            source=SOURCE,
            place="question on the settings of experiments",
            published="A larger corpus and a larger batch lower the probability of sampling a false negative.",
            latex=r"1-(1-q)^{N}-\big(1-(1-q)^{N-1}\big)=q(1-q)^{N-1}>0,\qquad "
            r"E\Big[\frac{\text{false negatives}}{N-1}\Big]=q,\qquad q=\tfrac1C\ \text{for}\ C\ \text{equal classes}",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="A larger batch raises it: one of N - 1 negatives at least is of the anchor's class with "
            "probability 1 - (1 - q)^(N - 1). Their expected share is q for every N. Only a corpus in which the class "
            "is rarer lowers q; more samples of the same classes do not.",
            scenario="false_negatives",
            as_published="in_twice_as_many <= chance",
            counterexample={"q": 0.001, "N": 256},
            formula="chance < with_one_more <= in_twice_as_many and with_one_more - chance == q * (1 - q)**(N - 1)"
            " and d(chance, q) == (N - 1) * (1 - q)**(N - 2) and share == q",
            symbolic=_one_more_sample,
            numeric=True,
            random=True,
        ),
        Claim(
            id="NC-8",
            title="minimizing raises the numerator and lowers the denominator",
            source=SOURCE,
            place="paragraph after the InfoNCE formula",
            published="The denominator is the positive and all negatives; to minimize the loss is to maximize the "
            "numerator and to minimize the denominator.",
            latex=r"L=-\log\frac nd:\quad \sum_j\frac{\partial L}{\partial s_j}=0,\qquad -\nabla_sL\cdot\nabla_s\log n"
            r"=\frac{1-P_+}{\tau^2},\qquad -\nabla_sL\cdot\nabla_s\log d=\frac{P_+-\sum_jP_j^2}{\tau^2}",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="Only their ratio counts: what multiplies both leaves the loss as it is. A step of descent in the "
            "similarities raises the numerator, which is in the denominator too, and raises the denominator with it "
            "where P_+ > sum P_j^2: wherever the positive is the most similar, unless all are equal.",
            scenario="split",
            as_published="0 <= sum(d(L, s[j]) * d(uniformity, s[j]) for j in range(N))",
            counterexample={"s": (0.5, 0.25, -0.45, -0.1), "t": 0.5, "w": 1.0},
            formula="L == alignment + uniformity and sum(d(L, s[j]) for j in range(N)) == 0"
            " and sum(d(L, s[j]) * d(alignment, s[j]) for j in range(N)) == (1 - P[0]) / t**2"
            " and sum(d(L, s[j]) * d(uniformity, s[j]) for j in range(N)) == (sum(p**2 for p in P) - P[0]) / t**2",
            symbolic=True,
            numeric=True,
            random="sum(d(L, s[j]) * P[j] for j in range(N)) == (sum(p**2 for p in P) - P[0]) / t"
            " and d(uniformity, s[1]) == P[1] / t and d(alignment, s[0]) == -1 / t and d(alignment, s[1]) == 0"
            " and 0 <= max(0, s[0] - max(*s[1:])) * (P[0] - sum(p**2 for p in P))",
        ),
        Claim(
            id="NC-9",
            title="InfoNCE is cross-entropy of a one-hot target, not a smoothed one",
            source=SOURCE,
            place="note after the InfoNCE formula",
            published="The structure is that of cross-entropy with a one-hot target; label smoothing is no part of it.",
            latex=r"L_\epsilon:=-\sum_{j=0}^{K}y_j\log P_j=L+\frac\epsilon\tau(s_+-\bar s),\qquad"
            r"\tau\frac{\partial L_\epsilon}{\partial s_j}=P_j-y_j\quad\text{for}\quad"
            r" y_j=(1-\epsilon)\delta_{j0}+\frac\epsilon{K+1},\quad0<\epsilon<1,\quad K\ge1",
            expected=Verdict.AGREES,
            scenario="smoothing",
            # Every target is positive, and that of the positive the largest, for no other epsilon.
            formula=f"{SMOOTHED} and 0 < y and y[1] < y[0]",
            symbolic=SMOOTHED,
            numeric=True,
            random=True,
        ),
    ),
)
