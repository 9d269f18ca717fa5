"""SigLIP: every image-text pair is a binary problem.

L = -(1/N) sum_ij log sigmoid( y_ij (t x_i.y_j + b) ),    y_ij = 1 on the diagonal, -1 elsewhere
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import HeadRows, sigmoid, softplus, softplus_and_sigmoid_of_block
from nceref.engine.layouts import two_towers
from nceref.engine.parameters import LOGIT_SCALE, NORMALIZE, NORMALIZED
from nceref.engine.patterns import Except, Only, itself
from nceref.engine.plan import Comparison, Plan
from nceref.engine.similarity import Offset, times
from nceref.engine.statistics import Sum, Term
from nceref.spec import Array, Expectation, Loss, Scalar, Source, always


def formula(m, image, text, *, logit_scale, logit_bias, normalize):
    """Row sums of -log sigmoid(y l)."""
    x, y = rows(m, image, normalize), rows(m, text, normalize)
    out = []
    for i, x_i in enumerate(x):
        signs = [1 if j == i else -1 for j in range(len(y))]
        logits = [logit_scale * dot(x_i, y_j) + logit_bias for y_j in y]
        out.append(sum(-m.log(1 / (1 + m.exp(-sign * x))) for sign, x in zip(signs, logits, strict=True)))
    return out


def plan(image, text, *, logit_scale, logit_bias, normalize) -> Plan:
    """Two sums of softplus a row."""
    own = itself(image.shape[0])
    factor, bias = times(logit_scale, "logit_scale"), Offset(logit_bias, "logit_bias")
    terms = {
        # All pairs but N: value and slope come from one exponential of a block.
        "negatives": Term(Sum(softplus, sigmoid, softplus_and_sigmoid_of_block), Except(own)),
        "positive": Term(Sum(lambda s: softplus(-s), lambda s: -sigmoid(-s)), Only(own)),
    }
    return Plan((Comparison(two_towers(normalize, factor, bias, image=image, text=text), terms),), _head)


def _head(stats) -> HeadRows:
    """Negatives + positive."""

    def vjp(c):
        return {"negatives": c, "positive": c}

    return stats["negatives"] + stats["positive"], vjp


LOSS = Loss(
    name="siglip",
    summary="Sigmoid loss over all image-text pairs, summed over pairs and divided by N.",
    text="L = -(1/N) sum_ij log sigmoid(y_ij (t x_i.y_j + b)),  y_ij = 1 if i = j else -1",
    latex=r"L = -\frac1N\sum_{i,j=1}^{N}\log\sigma\big(y_{ij}(t\,x_i\cdot y_j + b)\big),"
    r"\qquad y_{ij} = 2\cdot 1[i=j]-1",
    gradient="dL/dl_ij = -y_ij sigmoid(-y_ij l_ij) / N,  l_ij = t x_i.y_j + b,"
    "  dL/dt = sum_ij (dL/dl_ij) x_i.y_j,  dL/db = sum_ij dL/dl_ij",
    parameters=(
        Array("image", ("N", "D"), "Image embeddings; row i belongs to text i."),
        Array("text", ("N", "D"), "Text embeddings."),
        LOGIT_SCALE,
        Scalar("logit_bias", "b", "Added to every logit.", default=0.0, typical=(-10.0, 0.0)),
        NORMALIZE,
    ),
    sources=(
        Source("google-research/big_vision", "big_vision/trainers/proj/image_text/siglip.py", "authors' code"),
        Source("own derivation", "SIG-1, G-8, optimum for a given scale and bias", "derived here"),
        Source("Lee, Chang & Sohn 2024, arXiv:2402.12613", "abstract: optimum from simplex to antipodal", "paper"),
        Source("Bangachev et al. 2025, arXiv:2509.18552", "abstract: trained scale and bias bring it to 0", "paper"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives",
            "rotation_invariant", "view_swap_invariant",
        ),
        **NORMALIZED,
    },
    sign=">= 0",
    unit="nats",
    rows="(N,), sums over a row of pairs",
    expectations=(
        Expectation(
            "chance", "softplus(-b) + (N-1) softplus(b)",
            "independent uniform rows as D grows: all similarities 0 (SIG-1)",
            lambda s: s.softplus(-s.logit_bias) + (s.n - 1) * s.softplus(s.logit_bias), dim=False,
        ),
        Expectation(
            "chance", "E softplus(-t s - b) + (N-1) E softplus(t s + b)",
            "s the cosine of independent uniform rows in D dimensions (SIG-1, WI-2)",
            lambda s: s.pair_chance(), dim=True,
        ),
        Expectation(
            "collapse", "softplus(-t-b) + (N-1) softplus(t+b)", "all similarities 1 (SIG-1)",
            lambda s: s.softplus(-s.logit_scale - s.logit_bias) + (s.n - 1) * s.softplus(s.logit_scale + s.logit_bias),
        ),
        Expectation(
            "optimum", "min over d in [0, 1] of softplus(-t(1-2d)-b) + (N-1) softplus(b - t(1+(N-2)d)/(N-1))",
            "d = 0: an aligned simplex, D >= N - 1; d = 1: all images opposite to all texts; between, D >= N. Over t "
            "and b the infimum is 0, never attained: on the simplex with b = -t (N-2) / (2N-2) the loss is "
            "N softplus(-t N / (2N-2))",
            lambda s: s.sigmoid_optimum(),
        ),
        Expectation(
            "lower bound", "softplus(-t-b) + (N-1) softplus(b-t)", "positives at 1, negatives at -1",
            lambda s: s.softplus(-s.logit_scale - s.logit_bias) + (s.n - 1) * s.softplus(s.logit_bias - s.logit_scale),
        ),
        Expectation(
            "upper bound", "softplus(t-b) + (N-1) softplus(t+b)",
            "positives at -1, negatives at 1; need not be reached by more than 2 pairs",
            lambda s: s.softplus(s.logit_scale - s.logit_bias) + (s.n - 1) * s.softplus(s.logit_scale + s.logit_bias),
        ),
    ),
    notes="Divided by N, not by the N^2 pairs: a mean over pairs is N times smaller.",
    variants=({"logit_bias": -5.0}, {"logit_bias": 0.0}),
)  # fmt: skip
