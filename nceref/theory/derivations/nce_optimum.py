"""The optimum of noise-contrastive estimation: the share of the data, and with it the normalized density."""

import sympy as sp

from nceref.exact.number_systems import Symbols
from nceref.losses import nce
from nceref.theory.chain import Chain, Name, Step, at_most, equal, less
from nceref.theory.derivation import Derivation

p_d, p_n, p_m, ratio = sp.symbols("p_d p_n p_m nu", positive=True)
h, u = sp.Symbol("h", positive=True), sp.Symbol("u", real=True)
J, best = sp.Symbol("J", real=True), sp.Symbol("h_best", positive=True)
sigmoid = 1 / (1 + sp.exp(-u))
objective = p_d * sp.log(h) + ratio * p_n * sp.log(1 - h)
slope = p_d / h - ratio * p_n / (1 - h)
fall = p_d / h**2 + ratio * p_n / (1 - h) ** 2
share = p_d / (p_d + ratio * p_n)


def _program(read):
    given = {"data_log_noise": [sp.log(p_n)], "noise_log_noise": [sp.log(p_n)], "noise_ratio": ratio}
    return nce.formula(Symbols(), [sp.log(p_m)], [sp.log(p_m)], **given)[0]


def _names():
    return (
        Name(p_d, "density of the data at a point"),
        Name(p_n, "density of the noise there, known"),
        Name(ratio, "number of noise samples for each sample of the data"),
        Name(p_m, "model of the density, not normalized"),
        Name(h, "probability that a classifier gives to `data` there"),
        Name(J, "contribution of the point to the objective, which is maximized", objective),
        Name(u, "log-odds that the classifier is built on", sp.log(p_m) - sp.log(p_n) - sp.log(ratio)),
        Name(best, "best classifier", share),
    )  # fmt: skip


def _steps():
    return (
        Step("Start: the classifier is the sigmoid of the log-odds; its loss on a sample of the data.",
             equal(sp.log(1 + sp.exp(-u)), -sp.log(sigmoid)), "program", _program),
        Step("If the classifier were free at each point: slope of the objective,",
             equal(sp.Derivative(J, h), slope)),
        Step("which is 0 at the share of the data among all samples there.",
             equal(h, share), "solve", (slope, h)),
        Step("The slope falls everywhere:", equal(sp.Derivative(slope, h), -fall)),
        Step("by squares with positive factors.", less(0, fall), "sign"),
        Step("So this is the maximum: no other value gives more.",
             at_most(J, p_d * sp.log(best) + ratio * p_n * sp.log(1 - best)), "tangent", (h, best, fall)),
        Step("The sigmoid of the log-odds has the same form.", equal(sigmoid, p_m / (p_m + ratio * p_n))),
        Step("Two such shares are equal where the model is the density of the data, normalized: nobody had to"
             " normalize it.",
             equal(p_m, p_d), "solve", (p_m / (p_m + ratio * p_n) - share, p_m)),
    )  # fmt: skip


def _chain():
    return Chain(
        names=_names(),
        steps=_steps(),
        ranges={h: (0, 1)},
        given=(less(h, 1),),
        conditions=(
            "p_n > 0 where p_d > 0",
            "the model contains p_d",
            "the points are those where p_d > 0",
            "infinitely many samples",
        ),
    )


DERIVATION = Derivation(
    name="nce-optimum",
    title="Noise-contrastive estimation: its optimum is the share of the data",
    sources=("source 002, which takes NCE and InfoNCE for one loss", "optimum of Gutmann & Hyvarinen: derived here"),
    steps=_chain,
)
