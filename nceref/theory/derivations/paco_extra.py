"""The minimum of the extra term of the decomposed PaCo loss: at 0.71 for the published numbers."""

import sympy as sp

from nceref.theory.chain import Chain, Name, Step, at_most, equal, less
from nceref.theory.derivation import Derivation

p, a = sp.symbols("p a", positive=True)
alpha, queue, share, product, center, pair = sp.symbols("alpha n q a_0 p_0 r_0", positive=True)
L, best = sp.Symbol("L_extra", real=True), sp.Symbol("p_best", positive=True)
extra = -sp.log(p) - a * sp.log(1 - p)
lowest = -sp.log(best) - a * sp.log(1 - best)
slope = -1 / p + a / (1 - p)
rise = 1 / p**2 + a / (1 - p) ** 2


def _rounds(number, text):
    """The relation that `text` is the number, rounded to its last digit."""
    room = sp.Rational(1, 2 * 10 ** len(text.partition(".")[2]))
    return at_most(sp.Abs(number - sp.Rational(text)), room)


def _names():
    return (
        Name(p, "probability of all centers together"),
        Name(a, "weight of a positive times number of positives"),
        Name(L, "extra term: the bracket of the decomposition (see paco-decomposition)", extra),
        Name(best, "where it is lowest", 1 / (1 + a)),
        Name(alpha, "weight of a positive in the published setting", sp.Rational("0.05")),
        Name(queue, "length of its queue", sp.Integer(8192)),
        Name(share, "share of each class", sp.Rational("0.001")),
        Name(product, "weight times expected number of positives", alpha * queue * share),
        Name(center, "best probability of all centers there", 1 / (1 + product)),
        Name(pair, "best probability of each positive there", alpha / (1 + product)),
    )  # fmt: skip


def _steps():
    return (
        Step("Start: the slope of the extra term.", equal(sp.Derivative(L, p), slope)),
        Step("It is 0 at one point.", equal(p, 1 / (1 + a)), "solve", (slope, p)),
        Step("It rises everywhere:", equal(sp.Derivative(slope, p), rise)),
        Step("by squares with positive factors, so the term is convex and the point its minimum.",
             less(0, rise), "sign"),
        Step("Curvature there.", equal(1 / best**2 + a / (1 - best) ** 2, (1 + a) ** 3 / a)),
        Step("Value there.", equal(lowest, (1 + a) * sp.log(1 + a) - a * sp.log(a))),
        Step("No other probability gives less.", at_most(lowest, L), "tangent", (p, best, rise)),
        Step("The published setting.", equal(product, sp.Rational(256, 625))),
        Step("That is the published 0.41, rounded.", _rounds(product, "0.41"), "numbers"),
        Step("The minimum there.", equal(center, sp.Rational(625, 881))),
        Step("Each positive then has the published 0.035 (see paco-optimum).", _rounds(pair, "0.035"), "numbers"),
        Step("The centers have the published 0.71. A class with another number of positives has another minimum.",
             _rounds(center, "0.71"), "numbers"),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        ranges={p: (0, 1)},
        given=(less(p, 1),),
        conditions=("the probability of the centers is free", "every class has the expected number of positives"),
    )


DERIVATION = Derivation(
    name="paco-extra",
    title="PaCo: the extra term is lowest where the centers have 0.71",
    sources=("source 004, section PaCo under Balanced Setting, last formulas and figure",),
    steps=_chain,
)
