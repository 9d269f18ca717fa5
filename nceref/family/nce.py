"""Binary noise-contrastive estimation: classify data against noise of known density.

L = mean_data softplus(-u) + nu mean_noise softplus(u),    u = log p_model - log p_noise - log nu
"""

import math
from typing import Any

from nceref.engine.embeddings import Rows, given
from nceref.engine.heads import HeadRows, sigmoid, softplus
from nceref.engine.namespaces import array_namespace
from nceref.engine.patterns import Everyone
from nceref.engine.plan import Comparison, Plan
from nceref.engine.similarity import Given, Offset
from nceref.engine.statistics import Sum, Term
from nceref.spec import Array, Expectation, Loss, Relation, Scalar, Source, always


def formula(m, data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio):
    """-log h on data, -log(1 - h) on noise; noise rows carry nu N / M, so that the rows add up to N times the loss."""
    on_data = [a - b - m.log(noise_ratio) for a, b in zip(data_logits, data_log_noise, strict=True)]
    on_noise = [a - b - m.log(noise_ratio) for a, b in zip(noise_logits, noise_log_noise, strict=True)]
    data = [-m.log(1 / (1 + m.exp(-u))) for u in on_data]
    noise = [-m.log(1 - 1 / (1 + m.exp(-u))) for u in on_noise]
    share = noise_ratio * len(data) / len(noise)
    return data + [share * row for row in noise]


def plan(data_logits, noise_logits, *, data_log_noise, noise_log_noise, noise_ratio) -> Plan:
    """Two columns of log-odds."""
    shift = Offset(-math.log(noise_ratio))
    data = Given(_odds("data_logits", data_logits, data_log_noise), offset=shift)
    noise = Given(_odds("noise_logits", noise_logits, noise_log_noise), offset=shift)
    positive = Term(Sum(lambda s: softplus(-s), lambda s: -sigmoid(-s)), Everyone())
    negatives = Term(Sum(softplus, sigmoid), Everyone())
    n = data_logits.shape[0]
    return Plan(
        (Comparison(data, {"positive": positive}), Comparison(noise, {"negatives": negatives})),
        lambda stats: _head(stats, noise_ratio, n / noise_logits.shape[0]),
        divisor=n,
        stack=0,
    )


def _odds(name, logits, log_noise):
    source = given(name, logits)
    # The parts stay those of the logits: the density of the noise is a constant.
    return Rows(source.values - log_noise[:, None], source.parts)


def _head(stats, ratio, size) -> HeadRows:
    """Data rows, then noise rows times nu N / M, which may be subnormal by itself."""
    n = stats["positive"].shape[0]

    def vjp(c):
        return {"positive": c[:n], "negatives": ratio * (size * c[n:])}

    return array_namespace(stats["positive"]).concat([stats["positive"], ratio * (size * stats["negatives"])]), vjp


def _shifted(losses, inputs):
    return losses.nce(**inputs), losses.nce(
        **{name: x + 3 if name != "noise_ratio" else x for name, x in inputs.items()}
    )


_VECTOR: Any = {"embedding": False, "like": "vector"}

LOSS = Loss(
    name="nce",
    summary="Binary noise-contrastive estimation with a known noise density; no normalizer is assumed.",
    text="L = mean_data softplus(-u) + nu mean_noise softplus(u),  u = logit - log p_noise - log nu",
    latex=r"L = -\frac1N\sum_{i=1}^{N}\log h(x_i) - \frac{\nu}{M}\sum_{j=1}^{M}\log\big(1-h(y_j)\big),\qquad"
    r" h = \sigma(\log p_m - \log p_n - \log\nu)",
    gradient="dL/dlogit = -(1 - h)/N on data, nu h/M on noise,  h = sigmoid(u)",
    parameters=(
        Array("data_logits", ("N",), "Unnormalized log-density of the model at the data.", **_VECTOR),
        Array("noise_logits", ("M",), "The same at the noise samples.", **_VECTOR),
        Array(
            "data_log_noise", ("N",), "Log-density of the noise at the data; a constant.", positional=False,
            constant=True, **_VECTOR,
        ),
        Array(
            "noise_log_noise", ("M",), "Log-density of the noise at the noise; a constant.", positional=False,
            constant=True, **_VECTOR,
        ),
        Scalar("noise_ratio", r"\nu", "Noise samples per data sample.", low=0.0, constant=True, typical=(1.0, 5.0)),
    ),
    sources=(Source("own derivation", "NCE-1 (objective and optimum of Gutmann & Hyvarinen)", "derived here"),),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives",
        ),
    },
    sign=">= 0",
    unit="nats",
    rows="(N + M,), data first; noise rows times nu N / M",
    relations=(Relation("nce", "the densities of model and noise may be multiplied by one number", _shifted),),
    expectations=(
        Expectation(
            "chance", "log(1 + nu) + nu log((1 + nu) / nu)", "the model equals the noise (NCE-1)",
            lambda s: s.log(1 + s.noise_ratio) + s.noise_ratio * s.log((1 + s.noise_ratio) / s.noise_ratio),
        ),
        Expectation(
            "collapse", "log(1 + nu) + nu log((1 + nu) / nu)",
            "equal odds on data and noise, u = -log nu; any other equal u reads softplus(-u) + nu softplus(u), which "
            "is more (NCE-1)",
            lambda s: s.log(1 + s.noise_ratio) + s.noise_ratio * s.log((1 + s.noise_ratio) / s.noise_ratio),
        ),
        Expectation("optimum", "0", "", lambda s: s.infimum()),
        Expectation("lower bound", "0", "two cross-entropies", lambda s: 0.0),
        Expectation("upper bound", "none", "", lambda s: s.absent("any value is possible: logits have no bound")),
    ),
    mean_over="data_logits",
    notes="The logits are not softmaxed: the model learns its own normalizer.",
)  # fmt: skip
