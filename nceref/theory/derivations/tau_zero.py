"""InfoNCE as the temperature goes to zero."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import info_nce
from nceref.theory.chain import Chain, Name, Step, Use, at_most, equal
from nceref.theory.derivation import Derivation

N, i, j, e = sp.symbols("N i j e", integer=True, positive=True)
k, n, m = sp.symbols("k n m", integer=True, positive=True)
r = sp.Symbol("r", integer=True, nonnegative=True)
tau, c, x = sp.Symbol("tau", positive=True), sp.Symbol("c", real=True), sp.Symbol("x", real=True)
lead, delta, count = sp.symbols("h delta y", positive=True)
L, M, T = sp.symbols("L M T", real=True)
s, g, w = (sp.IndexedBase(name, real=True) for name in "sgw")


def _cases(ties, *tenths):
    """Similarities in tenths, one mapping for each case: of symbols, SymPy cannot decide which exponential wins."""
    return tuple({m: ties, **{s[n]: sp.Rational(x, 10) for n, x in enumerate(case)}} for case in tenths)


# One or two negatives beat the positive, the positive wins, or it is tied with some.
cases = (*_cases(1, (5, 6, 9, 3), (5, 2, -3, 0)), *_cases(2, (2, 5, 5, 1), (5, 5, 1, 0)), *_cases(3, (4, 4, 4, -2)))


def _sum(shift):
    return sp.Sum(sp.exp((g[k] - shift) / tau), (k, 0, N - 1))


def _total(shift):
    return sp.log(_sum(shift))


def _program(read):
    negatives = [[read(s[n])] for n in range(1, int(read(N)))]
    return info_nce.formula(Symbols(), [[1]], [[read(s[0])]], negatives, temperature=tau, normalize="none")[0]


def _largest(size):
    return sp.Max(*(s[n] - s[0] for n in range(size[N])))


def _names():
    return (
        Name(s[k], "similarity of candidate k to the anchor; the positive is candidate 0"),
        Name(tau, "temperature"),
        Name(g[i], "gap of candidate i to the positive; that of the positive itself is 0", s[i] - s[0]),
        Name(j, "a candidate with the largest gap"),
        Name(M, "that gap, at least 0: the maximum that is published in (5)", _largest, g[j]),
        Name(L, "loss of the anchor", _total(0)),
        Name(lead, "by how much a negative beats the positive, where one does", _largest),
        Name(m, "how many of the N candidates have the largest gap"),
        Name(r, "how many have not"),
        Name(w[e], "gap of the one of these with number e, less the largest"),
        Name(delta, "by how much the second largest gap is smaller"),
        Name(T, "the sum without the largest gap, sorted: m of the terms are 1",
             m + sp.Sum(sp.exp(w[n] / tau), (n, 1, r))),
        Name(c, "any number"),
    )  # fmt: skip


below, ahead, apart = at_most(g[i], M), at_most(lead, M), at_most(w[e], -delta)


def _steps():
    return (*_start(), *_constant(), *_limit())


def _start():
    return (
        Step("Start: divide by the exponential of the positive; its own term is then the constant 1.",
             equal(L, _total(0)), "program", _program),
        Step("Any constant c can be taken out of the sum.", equal(L, c / tau + _total(c))),
        Step("So can the largest gap.", equal(L - M / tau, _total(M))),
    )  # fmt: skip


def _constant():
    """The steps to the part of the loss beside M / tau, between two bounds."""
    rest = Step("The terms that are not 1 are not negative,", at_most(0, sp.Sum(sp.exp(w[n] / tau), (n, 1, r))), "sign")
    each = Step("and none is larger than that of the second largest gap.",
                at_most(sp.exp(w[e] / tau), sp.exp(-delta / tau)), "increasing",
                (sp.exp(x / tau), x, Use(apart)))  # fmt: skip
    above = Step("The sorted sum is m at least,", at_most(m, T), "follows", (Use(rest),))
    below_that = Step("and above m by r such terms at most,", at_most(T, m + r * sp.exp(-delta / tau)), "follows",
                      (Use(each, 1, {e: n}, (n, 1, r)),))  # fmt: skip
    lower = Step("and so for the logarithms,", at_most(sp.log(m), sp.log(T)), "increasing",
                 (sp.log(count), count, Use(above)))  # fmt: skip
    upper = Step("on both sides.", at_most(sp.log(T), sp.log(m + r * sp.exp(-delta / tau))), "increasing",
                 (sp.log(count), count, Use(below_that)))  # fmt: skip
    return (
        rest, each, above, below_that, lower, upper,
        Step("So beside M / tau the loss keeps a constant: the number of candidates tied at the top counts.",
             equal(sp.Limit(sp.log(T), tau, 0, "+"), sp.log(m)), "squeeze", (lower, upper)),
        Step("For instance, unsorted.", equal(sp.Limit(L - M / tau, tau, 0, "+"), sp.log(m)), "limit", cases),
    )  # fmt: skip


def _limit():
    """The steps to the limit of tau L, between two bounds."""
    one = Step("Take out the largest gap again. One term of the sum is then 1, and none is negative,",
               at_most(1, _sum(M)), "term", j)  # fmt: skip
    each = Step("nor larger than 1,", at_most(sp.exp((g[i] - M) / tau), 1), "increasing",
                (sp.exp((x - M) / tau), x, Use(below)))  # fmt: skip
    summed = Step("so the sum is at most N, where all candidates are tied.", at_most(_sum(M), N), "follows",
                  (Use(each, 1, {i: k}, (k, 0, N - 1)),))  # fmt: skip
    low = Step("The logarithm is at least 0,", at_most(0, _total(M)), "increasing", (sp.log(count), count, Use(one)))
    high = Step("and at most that of N.", at_most(_total(M), sp.log(N)), "increasing",
                (sp.log(count), count, Use(summed)))  # fmt: skip
    diverging = Step("Where a negative beats the positive, the loss is at least this,", at_most(lead / tau, L),
                     "follows", (Use(low), Use(ahead, 1 / tau)))  # fmt: skip
    above = Step("But tau L lies above the largest gap, at every temperature,", at_most(M, tau * L), "follows",
                 (Use(low, tau),))  # fmt: skip
    room = Step("and above it by tau log N at most.", at_most(tau * L, M + tau * sp.log(N)), "follows",
                (Use(high, tau),))  # fmt: skip
    return (
        one, each, summed, low, high, diverging,
        Step("and has no limit, as the source writes it.", equal(sp.Limit(L, tau, 0, "+"), sp.oo), "squeeze",
             (diverging,)),
        above, room,
        Step("That room closes,", equal(sp.Limit(M + tau * sp.log(N), tau, 0, "+"), M), "limit"),
        Step("so what has a limit is tau L: the hinge with margin 0 on the hardest negative.",
             equal(sp.Limit(tau * L, tau, 0, "+"), M), "squeeze", (above, room)),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({N: 3, i: 1, r: 1, e: 1}, {N: 4, i: 2, r: 2, e: 2}),
        ranges={w: (-2, -1), delta: (0, 1)},
        given=(below, ahead, apart),
        indices={i: (0, N - 1), j: (0, N - 1), e: (1, r)},
        conditions=("one anchor with one positive", "similarities do not depend on the temperature"),
    )


DERIVATION = Derivation(
    name="tau-zero",
    title="InfoNCE as the temperature goes to zero: the hinge on the hardest negative",
    sources=("source 000, (3) to (5)", "Wang & Liu 2021, eq. (6)", "two-sided bound and constants: derived here"),
    steps=_chain,
)
