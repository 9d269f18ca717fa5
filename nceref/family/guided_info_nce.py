"""InfoNCE whose false negatives a guide leaves out (GISTEmbed), or the embeddings themselves (Qwen3).

    L_i = -log( e^{q_i.d_i / T} / (e^{q_i.d_i / T} + sum_{c in C_i} e^{x.c / T}) )

The candidates C_i are those of `directions`: other documents with the query, other queries with the query, other
documents with the own document, and hard negatives with the query. A candidate is left out where the guide finds it
more similar than g_i - m, g_i its similarity of query and document; for a relative margin, than g_i - m |g_i|.
"""

from nceref.engine.formulas import dot, rows
from nceref.engine.guides import NotAbove, guide_rows, limits, rounding
from nceref.engine.heads import softmax_one_positive
from nceref.engine.layouts import among_themselves, two_towers
from nceref.engine.parameters import (
    DOCUMENTS,
    HARD_NEGATIVES,
    L2,
    NORMALIZE,
    NORMALIZED,
    QUERIES,
    TEMPERATURE,
    UNNORMALIZED,
)
from nceref.engine.patterns import Everyone, Except, Only, itself, of_query
from nceref.engine.plan import Comparison, Plan
from nceref.engine.sides import compared, shared
from nceref.engine.similarity import divided_by
from nceref.engine.statistics import LogSumExp, Sum, Term
from nceref.errors import InputError
from nceref.spec import Array, Choice, Expectation, Kink, Loss, Relation, Scalar, Source, always

SUMS = {"qd_qq_dd": ("qq", "dd"), "qd_qq": ("qq",), "qd_dd": ("dd",), "qd": ()}
"""Pairs that are compared beside a query with all documents: queries with queries, documents with documents."""


def formula(
    m, queries, documents, negatives, guide_queries, guide_documents, guide_negatives, *, temperature, margin,
    margin_of, directions, candidates, normalize,
):  # fmt: skip
    """-log softmax of the own document among the candidates that are not above the limit of the row."""
    x = _Rows(m, queries, documents, negatives, normalize)
    g = _Rows(m, guide_queries, guide_documents, guide_negatives, normalize) if guide_queries else x
    out = []
    for i in range(len(x.q)):
        pairs = [("q", i, "d", j) for j in range(len(x.q)) if j != i]
        pairs += [("q", i, "q", j) for j in range(len(x.q)) if j != i and "qq" in SUMS[directions]]
        pairs += [("d", i, "d", j) for j in range(len(x.q)) if j != i and "dd" in SUMS[directions]]
        pairs += [("q", i, "n", j) for j, owner in enumerate(x.owners) if candidates == "joined" or owner == i]
        own = g.similarity("q", i, "d", i)
        size = own if m.above(own, -own) else -own
        limit = own - margin * (size if margin_of == "relative" else 1)
        kept = [pair for pair in pairs if not m.above(g.similarity(*pair), limit)]
        positive = m.exp(x.similarity("q", i, "d", i) / temperature)
        out.append(-m.log(positive / (positive + sum(m.exp(x.similarity(*pair) / temperature) for pair in kept))))
    return out


class _Rows:
    """Queries, documents and hard negatives as they are compared, and the query that each hard negative belongs to."""

    def __init__(self, m, queries, documents, negatives, normalize):
        self.q, self.d = rows(m, queries, normalize), rows(m, documents, normalize)
        self.n = [x for own in negatives or [] for x in rows(m, own, normalize)]
        self.owners = [i for i, own in enumerate(negatives or []) for _ in own]

    def similarity(self, side, i, other, j):
        return dot(getattr(self, side)[i], getattr(self, other)[j])


def plan(
    queries, documents, negatives, guide_queries, guide_documents, guide_negatives, *, temperature, margin, margin_of,
    directions, candidates, normalize,
) -> Plan:  # fmt: skip
    """Queries against documents and among themselves, documents among themselves, and queries against negatives."""
    n, factor, also = queries.shape[0], divided_by(temperature), SUMS[directions]
    _check(negatives, guide_queries, guide_documents, guide_negatives)
    guide = {"guide_queries": guide_queries, "guide_documents": guide_documents, "guide_negatives": guide_negatives}
    own = {"queries": queries, "documents": documents, "negatives": negatives}
    q, d, *hard = guide_rows(normalize, **(own if guide_queries is None else guide))
    most = limits(q, d, margin, margin_of)

    def kept(among, anchors, others):
        return Term(LogSumExp(), NotAbove(among, anchors, others, most))

    others, by_name = Except(itself(n)), {"queries": q, "documents": d}
    across = {"negatives": kept(others, q, d), "positive": Term(Sum(), Only(itself(n)))}
    comparisons = [Comparison(two_towers(normalize, factor, queries=queries, documents=documents), across)]
    comparisons += among_themselves(
        also, normalize, factor, queries, documents, lambda name: kept(others, by_name[name], by_name[name])
    )
    if negatives is not None:
        among = Only(of_query(n, negatives.shape[1])) if candidates == "own" else Everyone()
        logits = two_towers(normalize, factor, queries=queries, negatives=negatives)
        comparisons.append(Comparison(logits, {"hard_negatives": kept(among, q, *hard)}))
    return Plan(tuple(comparisons), softmax_one_positive)


def _check(negatives, guide_queries, guide_documents, guide_negatives):
    given = {"guide_queries": guide_queries, "guide_documents": guide_documents}
    given |= {} if negatives is None else {"guide_negatives": guide_negatives}
    missing = [name for name, x in given.items() if x is None]
    if missing and len(missing) < len(given):
        msg = f"`{missing[0]}` is missing beside the other rows of the guide; pass it, or none of them"
        raise InputError(msg)
    if negatives is None and guide_negatives is not None:
        msg = "`guide_negatives` was given without `negatives`; pass both or neither"
        raise InputError(msg)


def _near_limit(inputs, eps):
    """Whether a candidate is as similar as the limit, to rounding: then it may be left out or not."""
    import numpy as np

    names = ["queries", "documents", "negatives"]
    chosen = [f"guide_{name}" if inputs.get("guide_queries") is not None else name for name in names]
    chosen = chosen if inputs.get("negatives") is not None else chosen[:2]
    if any(inputs.get(name) is None for name in chosen):
        # A guide that lacks rows is refused.
        return False
    q, d, *hard = (x.reshape(-1, x.shape[-1]) for x in compared(inputs, *chosen))
    sums, most = SUMS[inputs["directions"]], limits(q, d, inputs["margin"], inputs["margin_of"])[:, None]
    longest = max(float(np.max(np.linalg.norm(x, axis=1))) for x in (q, d, *hard))
    room = 2 * rounding(q.shape[1], eps) * longest**2

    def is_near(a, b, others):
        return bool(np.any((np.abs(a @ b.T - most) <= room) & others))

    # The row itself is no candidate, whatever the guide says.
    others = ~np.eye(len(q), dtype=bool)
    blocks = [(q, d, others), *((q, x, True) for x in hard)]
    blocks += [(x, x, others) for name, x in (("qq", q), ("dd", d)) if name in sums]
    return any(is_near(*block) for block in blocks)


def _mnrl(losses, inputs):
    return losses.guided_info_nce(**inputs), losses.mnrl(**shared(losses.mnrl, inputs))


def _by_itself(losses, inputs):
    names = [name for name in ("queries", "documents", "negatives") if inputs.get(name) is not None]
    guide = {f"guide_{name}": inputs[name] for name in names}
    return losses.guided_info_nce(**inputs), losses.guided_info_nce(**{**inputs, **guide})


def _below(losses, inputs):
    smaller = {**inputs, "margin": inputs.get("margin", 0.0) - 1}
    return losses.guided_info_nce(**inputs), losses.guided_info_nce(**smaller)


def _most(s):
    """The number of candidates where none is left out."""
    hard = s.hard_negatives * (s.n if s.candidates == "joined" else 1)
    return (s.n - 1) * (1 + len(SUMS[s.directions])) + hard


_GUIDE = "of the guide, a constant; None: the embeddings are their own guide."
_LEFT_OUT = "which candidates are left out depends on the guide"

LOSS = Loss(
    name="guided_info_nce",
    summary="InfoNCE without the candidates that a guide finds more similar than the positive (GISTEmbed).",
    text="L_i = -log( e^(q_i.d_i/T) / (e^(q_i.d_i/T) + sum_{c in C_i} e^(x.c/T)) ),  C_i the candidates c of x, q_i or"
    " d_i, whose similarity by the guide is at most g_i - m (absolute) or g_i - m |g_i| (relative), g_i that of q_i and"
    " d_i;  q_j and d_j for j != i, and hard negatives",
    latex=r"L_i = -\log\frac{e^{q_i\cdot d_i/\tau}}{e^{q_i\cdot d_i/\tau} + \sum_{c\in C_i} e^{x\cdot c/\tau}},"
    r"\qquad C_i = \{c : g(x, c) \le g(q_i, d_i) - m\}",
    gradient="dL_i/ds = (P - [positive]) / T for every candidate of row i that is kept, 0 for the others;"
    "  dL_i/dT = (s_ii - sum P s) / T^2",
    parameters=(
        QUERIES,
        DOCUMENTS,
        HARD_NEGATIVES,
        Array(
            "guide_queries", ("N", "E"), f"Queries {_GUIDE}", required=False, positional=False, constant=True,
            like="guide",
        ),
        Array(
            "guide_documents", ("N", "E"), f"Documents {_GUIDE}", required=False, positional=False, constant=True,
            like="guide",
        ),
        Array(
            "guide_negatives", ("N", "V", "E"), f"Hard negatives {_GUIDE}", required=False, positional=False,
            constant=True, like="guide",
        ),
        TEMPERATURE,
        Scalar(
            "margin", "m", "Taken off the guide's similarity of the positive; below 0 it lets more candidates in.",
            default=0.0, constant=True, typical=(-0.1, 0.2),
        ),
        Choice(
            "margin_of", ("absolute", "relative"), "absolute",
            "The margin is a difference of similarities, or a part of the size of the positive's.",
        ),
        Choice(
            "directions", tuple(SUMS), "qd_qq_dd",
            "Candidates beside hard negatives: qd, other documents with the query; qq, other queries with it; dd, other"
            " documents with the own document.",
        ),
        Choice("candidates", ("joined", "own"), "joined", "Hard negatives of all queries, or of the query alone."),
        NORMALIZE,
    ),
    sources=(
        Source("huggingface/sentence-transformers", "losses/gist_embed.py, forward", "third-party code"),
        Source("modelscope/ms-swift", "InfoNCE with INFONCE_MASK_FAKE_NEGATIVE", "third-party code"),
    ),
    formula=formula,
    plan=plan,
    properties={
        **always(
            "attracts_positives", "convex_in_logits", "nonnegative", "permutation_equivariant", "repels_negatives",
            "rotation_invariant", "row_shift_invariant", "row_slopes_sum_to_zero",
        ),
        **NORMALIZED,
        "temperature_homogeneous": {"margin": 0.0, **UNNORMALIZED},
    },
    rows="(N,)",
    sign=">= 0",
    unit="nats",
    relations=(
        Relation("mnrl", "without a candidate left out it is multiple negatives ranking", _mnrl,
                 given={"margin": -3.0, "directions": "qd", **L2}),
        Relation("guided_info_nce", "without a guide the embeddings are it", _by_itself, given={"guide_queries": None}),
        Relation("guided_info_nce", "never above itself at a smaller margin", _below, "<="),
    ),
    expectations=(
        Expectation("chance", "log(1 + count)", "", lambda s: s.absent(_LEFT_OUT)),
        Expectation(
            "collapse", "log(1 + count), or 0 for a margin above 0",
            "all similarities equal, those of the guide too: all candidates are kept, or none (NC-5)",
            lambda s: s.log(1 + _most(s)) if s.margin <= 0 else 0.0,
        ),
        Expectation("optimum", "0", "", lambda s: s.absent(_LEFT_OUT)),
        Expectation(
            "lower bound", "0", "-log of a probability (WL-1); reached where all candidates are left out",
            lambda s: 0.0,
        ),
        Expectation(
            "upper bound", "log(1 + count e^(2/T))",
            "cosines in [-1, 1], no candidate left out (WL-1); need not be reached",
            lambda s: s.cosine_bound(_most(s), 2),
        ),
    ),
    kinks=(
        Kink("limit", "a candidate is as similar as the limit, to the guide", "it is kept", _near_limit, jumps=True),
    ),
    notes="A row is never its own candidate, and the positive is never left out, whatever the guide says. Where the"
    " embeddings are their own guide, the limit moves with them and has no gradient. margin=-0.1 with"
    " candidates='own' and without a guide is the mask of Qwen3.",
    known_as=("GISTEmbedLoss", "CachedGISTEmbedLoss"),
    variants=(
        {},
        {"guide_queries": ..., "guide_documents": ...},
        {"guide_queries": ..., "guide_documents": ..., "margin": 0.1, "margin_of": "relative"},
        {"directions": "qd", "margin": -3.0},
        {"negatives": ..., "guide_queries": ..., "guide_documents": ..., "guide_negatives": ..., "directions": "qd"},
        {"negatives": ..., "candidates": "own", "margin": -0.1},
        {"directions": "qd_qq", "margin": 0.1},
        {"directions": "qd_dd", "margin": -0.1},
    ),
)  # fmt: skip
