"""CLIP: InfoNCE in both directions between images and texts.

L = (1/2N) sum_i [ -log softmax_j(t x_i.y_j)_i - log softmax_j(t x_j.y_i)_i ]
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.heads import HeadRows, softplus_and_sigmoid
from nceref.engine.layouts import two_towers
from nceref.engine.namespaces import array_namespace
from nceref.engine.parameters import LOGIT_SCALE, NORMALIZE, NORMALIZED
from nceref.engine.patterns import Except, Only, itself
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import shared
from nceref.engine.similarity import times
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.spec import Array, Expectation, Loss, Relation, Source, always


def formula(m, image, text, *, logit_scale, normalize):
    """Rows of images against texts first, then rows of texts against images."""
    x, y = rows(m, image, normalize), rows(m, text, normalize)
    out = []
    for anchors, candidates in ((x, y), (y, x)):
        for i, a in enumerate(anchors):
            p = [m.exp(logit_scale * dot(a, b)) for b in candidates]
            out.append(-m.log(p[i] / sum(p)))
    return out


def plan(image, text, *, logit_scale, normalize) -> Plan:
    """One matrix of logits, reduced along rows and along columns."""
    own = itself(image.shape[0])
    logits = two_towers(normalize, times(logit_scale, "logit_scale"), image=image, text=text)
    terms = {
        "negatives": Term(LogSumExp(), Except(own)),
        "negatives_of_text": Term(LogSumExp(), Except(own), along="columns"),
        "positive": Term(Sum(), Only(own)),
    }
    return Plan((Comparison(logits, terms),), _head)


def _head(stats) -> HeadRows:
    """softplus(negatives - positive) in both directions; the positive is the same number."""
    xp = array_namespace(stats["positive"])
    # Stacked, since the rows of this loss are (2, N): images, then texts.
    gap = xp.stack([stats["negatives"], stats["negatives_of_text"]]) - stats["positive"][None, :]
    loss, missed = softplus_and_sigmoid(gap)

    def vjp(c):
        g = c * missed
        return {"negatives": g[0, :], "negatives_of_text": g[1, :], "positive": -(g[0, :] + g[1, :])}

    return loss, vjp


def _half_sum(losses, inputs):
    same = {**shared(losses.info_nce, inputs), "temperature": 1 / inputs["logit_scale"]}
    pairs = [(inputs["image"], inputs["text"]), (inputs["text"], inputs["image"])]
    return losses.clip(**inputs), sum(losses.info_nce(*pair, **same) for pair in pairs) / 2


LOSS = Loss(
    name="clip",
    summary="Symmetric InfoNCE between two towers; a logit scale multiplies the similarities.",
    text="L = (1/2N) sum_i [ -log softmax_j(t x_i.y_j)_i - log softmax_j(t x_j.y_i)_i ]",
    latex=r"L = \frac1{2N}\sum_{i=1}^{N}\Big[-\log\frac{e^{t\,x_i\cdot y_i}}{\sum_j e^{t\,x_i\cdot y_j}}"
    r" - \log\frac{e^{t\,x_i\cdot y_i}}{\sum_j e^{t\,x_j\cdot y_i}}\Big]",
    gradient="dL/dl_ij = (softmax_k(l_ik)_j + softmax_k(l_kj)_i - 2 [i = j]) / 2N,  l_ij = t x_i.y_j,"
    "  dL/dt = sum_ij (dL/dl_ij) x_i.y_j",
    parameters=(
        Array("image", ("N", "D"), "Image embeddings; row i belongs to text i."),
        Array("text", ("N", "D"), "Text embeddings."),
        LOGIT_SCALE,
        NORMALIZE,
    ),
    sources=(
        Source("openai/CLIP", "clip/model.py, forward and logit_scale: the logits", "authors' code"),
        Source("mlfoundations/open_clip", "src/open_clip/loss.py, ClipLoss", "third-party code"),
        Source("own derivation", "CLIP-1, G-5", "derived here"),
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
    rows="(2, N), images first",
    relations=(Relation("info_nce", "half the sum of InfoNCE in both directions, T = 1 / logit_scale", _half_sum),),
    expectations=(
        Expectation(
            "chance", "log N", "independent uniform rows as D grows: all similarities 0 (WI-2)",
            lambda s: s.log(s.n), dim=False,
        ),
        Expectation(
            "chance", "E log sum of N terms e^(t s)",
            "s cosines of independent uniform rows in D dimensions;"
            " at most log N + log 0F1(; D/2; t^2/4) (WI-2, WI-3)",
            lambda s: s.chance(s.n - 1), dim=True,
        ),
        Expectation("collapse", "log N", "all similarities equal (NC-5)", lambda s: s.log(s.n)),
        Expectation(
            "optimum", "log(1 + (N-1) e^(-t N / (N-1)))", "aligned simplex, D >= N - 1 (SC-8, GR-2)",
            lambda s: s.simplex(s.n, s.n - 1),
        ),
        Expectation(
            "lower bound", "log(1 + (N-1) e^(-2t))", "cosines in [-1, 1] (WL-1)",
            lambda s: s.cosine_bound(s.n - 1, -2),
        ),
        Expectation(
            "upper bound", "log(1 + (N-1) e^(2t))",
            "cosines in [-1, 1] (WL-1); need not be reached by more than 2 pairs",
            lambda s: s.cosine_bound(s.n - 1, 2),
        ),
    ),
    known_as=("MultipleNegativesSymmetricRankingLoss",),
    notes="A bias added to all logits cancels in the softmax: a dropped logit bias is invisible here, not in SigLIP.",
)  # fmt: skip
