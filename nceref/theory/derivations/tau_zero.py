"""What remains of InfoNCE as the temperature goes to zero."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import info_nce
from nceref.theory.chain import Chain, Name, Step, at_most, equal
from nceref.theory.derivation import Derivation

N, k, i = sp.symbols("N k i", integer=True, positive=True)
tau, c = sp.Symbol("tau", positive=True), sp.Symbol("c", real=True)
L, M, m = sp.symbols("L M m")
s, g = sp.IndexedBase("s", real=True), sp.IndexedBase("g")


def _cases(*tenths):
    """Similarities in tenths, one mapping for each case: of symbols, SymPy cannot decide which exponential wins."""
    return tuple({s[n]: sp.Rational(x, 10) for n, x in enumerate(case)} for case in tenths)


# A negative beats the positive, the positive wins, or it is tied with some.
wrong = _cases((2, 5, 5), (5, 6, 9))
right, even = _cases((5, 2, -3)), _cases((5, 5, 1), (4, 4, 4))


def _total(shift):
    return sp.log(sp.Sum(sp.exp((g[k] - shift) / tau), (k, 0, N - 1)))


def _program(read):
    negatives = [[read(s[n])] for n in range(1, int(read(N)))]
    return info_nce.formula(Symbols(), [[1]], [[read(s[0])]], negatives, temperature=tau, normalize="none")[0]


def _gaps(size):
    return [s[n] - s[0] for n in range(size[N])]


def _tied(size):
    return sum(sp.KroneckerDelta(gap, sp.Max(*_gaps(size))) for gap in _gaps(size))


def _names():
    return (
        Name(s[k], "similarity of candidate k to the anchor; the positive is candidate 0"),
        Name(tau, "temperature"),
        Name(g[i], "gap of candidate i to the positive; that of the positive itself is 0", s[i] - s[0]),
        Name(M, "largest gap, at least 0: the maximum that is published in (5)", lambda size: sp.Max(*_gaps(size))),
        Name(m, "how many of the N candidates have that gap", _tied),
        Name(L, "loss of the anchor", _total(0)),
    )  # fmt: skip


def _steps():
    return (
        Step("Start: divide by the exponential of the positive; its own term is then the constant 1.",
             equal(L, _total(0)), "program", _program),
        Step("Any constant c can be taken out of the sum.", equal(L, c / tau + _total(c))),
        Step("Take out the largest gap. One term is then 1 and none is negative: the logarithm is at least 0.",
             at_most(0, _total(M)), "numbers", (*wrong, *right, *even)),
        Step("No term is larger than 1: the logarithm is at most that of N, where all candidates are tied.",
             at_most(_total(M), sp.log(N)), "numbers", (*wrong, *right, *even)),
        Step("So tau L lies above the largest gap, at every temperature,",
             at_most(M, tau * L), "numbers", (*wrong, *right, *even)),
        Step("and above it by tau log N at most.",
             at_most(tau * L, M + tau * sp.log(N)), "numbers", (*wrong, *right, *even)),
        Step("That room closes.", equal(sp.Limit(M + tau * sp.log(N), tau, 0, "+"), M), "limit"),
        Step("The loss itself, as the source writes the limit, has none where a negative beats the positive.",
             equal(sp.Limit(L, tau, 0, "+"), sp.oo), "limit", wrong),
        Step("Beside M / tau it keeps a constant: the number of candidates tied at the top counts.",
             equal(sp.Limit(L - M / tau, tau, 0, "+"), sp.log(m)), "limit", (*wrong, *right, *even)),
        Step("What has a limit is tau L: the hinge with margin 0 on the hardest negative.",
             equal(sp.Limit(tau * L, tau, 0, "+"), M), "limit", (*wrong, *right, *even)),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        sizes=({N: 2}, {N: 3}),
    )


DERIVATION = Derivation(
    name="tau-zero",
    title="InfoNCE as the temperature goes to zero: the hinge on the hardest negative",
    sources=("source 000, (3) to (5)", "Wang & Liu 2021, eq. (6)", "two-sided bound and constants: derived here"),
    steps=_chain,
)
