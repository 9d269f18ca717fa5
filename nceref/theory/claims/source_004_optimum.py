"""Source 004: the forms of the losses, where supervised contrast and PaCo have their optimum, and PaCo's parts."""

from nceref.theory.claim import Chapter, Claim, Counter, Repair
from nceref.theory.verdicts import Verdict

SOURCE = "source 004"
# The queue of the source; all images of ImageNet-LT, those of its largest class, of one with 20, and of its smallest.
QUEUE, IMAGES, MOST, FEW, FEWEST = 8192, 115846, 1280, 20, 5


def _centers_or_keys(rng):
    """Cross-entropy (2) without a temperature is InfoNCE (1) with temperature 1, the own center as the positive.

    6 samples and 5 classes in 4 dimensions.
    """
    import numpy as np

    from nceref import losses

    q, w, y = rng.standard_normal((6, 4)), rng.standard_normal((5, 4)), rng.integers(0, 5, 6)
    logits = q @ w.T
    printed = [-np.log(np.exp(row[k]) / np.exp(row).sum()) for row, k in zip(logits, y, strict=True)]
    as_contrast = [
        losses.info_nce(q[[i]], w[[k]], np.delete(w, k, axis=0), temperature=1.0, normalize="none")
        for i, k in enumerate(y)
    ]
    ours = losses.cross_entropy(logits, y, temperature=1.0, reduction="none")
    return np.allclose(ours, printed, rtol=1e-12) and np.allclose(ours, as_contrast, rtol=1e-12)


def _queue_and_two_views(rng):
    """(3) over A(i) and P(i) of (4): the anchor from the first view, all others from both views and the queue.

    5 images in two views and a queue of 7, in 4 dimensions, 3 classes.
    """
    import numpy as np

    from nceref import losses

    z, queue = rng.standard_normal((5, 2, 4)), rng.standard_normal((7, 4))
    y, queue_y = np.array([0, 1, 0, 2, 1]), rng.integers(0, 3, 7)
    others, names = np.concatenate([z[:, 0], z[:, 1], queue]), np.concatenate([y, y, queue_y])
    printed, counts = [], []
    for i in range(5):
        p = np.exp(np.delete(others, i, axis=0) @ z[i, 0])
        positive = np.delete(names, i) == y[i]
        printed.append(-np.log(p[positive] / p.sum()).sum())
        counts.append(positive.sum())
    total, mean = (
        losses.supcon_out(z, y, queue=queue, queue_labels=queue_y, form=form, temperature=1.0, anchor_mode="one",
                          normalize="none", reduction="none")
        for form in ("sum", "mean")
    )  # fmt: skip
    return np.allclose(total, printed, rtol=1e-12) and np.allclose(np.multiply(counts, mean), printed, rtol=1e-12)


def _positives_are_counted():
    import numpy as np
    from scipy.optimize import minimize
    from scipy.special import log_softmax, softmax

    target = np.array([1.0, 1, 1, 0, 0, 0, 0])
    end = minimize(
        lambda x: (-(target * log_softmax(x)).sum(), 3 * softmax(x) - target), np.zeros(7), jac=True, method="L-BFGS-B"
    )
    pair, tail = softmax(end.x)[0], QUEUE * FEWEST / IMAGES
    return Counter(
        f"an anchor with 3 positives, 4 samples of its class: each gets {pair:.4f} by descent, not 1/4; {FEWEST} of"
        f" {IMAGES} images and a queue of {QUEUE}, K = {tail:.3f} and 1/K = {1 / tail:.2f}, which is no probability",
        abs(pair - 1 / 3) < 1e-4 and 1 / tail > 1,
    )


def _lowest(m, alpha, k):
    """Infimum of the printed sum for a class with k positives."""
    mass = 1 + alpha * k
    return mass * m.log(mass) - alpha * k * m.log(alpha)


def _gap(m, alpha, head, tail):
    """Infimum of the larger class minus that of the smaller, each divided by 1 + alpha K."""
    return _lowest(m, alpha, head) / (1 + alpha * head) - _lowest(m, alpha, tail) / (1 + alpha * tail)


def _gaps_of_two_classes():
    """Sum form: rises with alpha. Normalized: up to 1 / sqrt(K_h K_t), down to 1, then up again to log(K_h / K_t)."""
    import mpmath

    m = mpmath.MPContext()
    m.dps = 50
    grid = [m.mpf(10) ** (m.mpf(i) / 4) for i in range(-16, 9)]
    for head, tail in ((m.mpf(90), m.mpf(8)), (m.mpf(90.5), m.mpf(1))):
        widest = 1 / m.sqrt(head * tail)
        sums = [_lowest(m, a, head) - _lowest(m, a, tail) for a in grid]
        steps = sorted([*grid, widest])
        apart = [_gap(m, a, head, tail) for a in steps]
        peak, one = steps.index(widest), steps.index(1)
        rises = apart[: peak + 1], apart[peak : one + 1][::-1], apart[one:]
        last = _gap(m, m.mpf(10) ** 60, head, tail)
        ordered = all(part == sorted(part) for part in (sums, *rises))
        if not ordered or abs(last - m.log(head / tail)) > 1e-40:
            return False
    return True


def _smaller_alpha_wider_gap():
    import math

    head, tail = QUEUE * MOST / IMAGES, QUEUE * FEW / IMAGES
    widest = 1 / math.sqrt(head * tail)
    apart = [_gap(math, alpha, head, tail) for alpha in (1.0, widest)]
    ratios = [_lowest(math, alpha, head) / _lowest(math, alpha, tail) for alpha in (0.05, 1e-9)]
    return Counter(
        f"{MOST} and {FEW} of {IMAGES} images and a queue of {QUEUE}, K = {head:.2f} and {tail:.3f}:"
        f" divided by 1 + alpha K, the bounds differ by {apart[0]:.4f} at alpha 1 and by"
        f" {apart[1]:.4f} at {widest:.4f}; the ratio of the sums is {ratios[0]:.2f} at 0.05 and tends to"
        f" {head / tail:.2f}, not to 1",
        tail > 1 and apart[1] > apart[0] and ratios[1] > 2,
    )


CHAPTER = Chapter(
    name="source_004_optimum",
    title="Source 004: PaCo, its optimum and its parts",
    claims=(
        Claim(
            id="PC-1",
            title="InfoNCE compares with samples, cross-entropy with parameters",
            source=SOURCE,
            place="(1) and (2)",
            published="InfoNCE is a loss without parameters; cross-entropy after a linear layer has the same form, with"
            " class weights as keys and without temperature.",
            latex=r"-\log\frac{e^{q\cdot k^+/\tau}}{e^{q\cdot k^+/\tau}+\sum_{k^-}e^{q\cdot k^-/\tau}},\qquad "
            r"-\log\frac{e^{q\cdot w_y}}{\sum_{i=1}^ne^{q\cdot w_i}}",
            expected=Verdict.AGREES,
            formula="L == -log(exp(s[0] / t) / (exp(s[0] / t) + sum(exp(x / t) for x in s[1:])))",
            symbolic=True,
            numeric=True,
            random=_centers_or_keys,
        ),
        Claim(
            id="PC-2",
            title="supervised contrast with a queue, as a sum over the positives",
            source=SOURCE,
            place="(3) and (4)",
            published="The loss sums -log softmax over all samples of the same label in the queue and in both views, "
            "without 1/|P(i)|; the temperature is not written.",
            latex=r"L_i=-\sum_{z_+\in P(i)}\log\frac{e^{z_+\cdot T(x_i)}}{\sum_{z_k\in A(i)}e^{z_k\cdot T(x_i)}}"
            r"=|P(i)|\,L_i^{out}",
            given="the queue and both views of a batch",
            expected=Verdict.AGREES,
            formula="-sum(log(p) for p in P_p) == K * L_out",
            scenario="positives",
            derivation="supcon-in-out",
            numeric=True,
            random=_queue_and_two_views,
        ),
        Claim(
            id="PC-3",
            title="the optimal similarity of a true positive pair is 1/K_y",
            source=SOURCE,
            place="analysis of supervised contrastive learning",
            published="For a true positive pair, the best similarity probability is 1/K_y, K_y being the number of "
            "samples of the class in the batch, about the length of the queue times the frequency of the class.",
            latex=r"K\log K\le L_i+K\log\frac{\sum_Pp_+}{\sum_{A(i)}p}<L_i,\quad K=|P(i)|:"
            r"\quad\inf L_i=K\log K\text{ as }p_+\to\tfrac1K",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="It is the softmax probability, and K is the number of positives, without the anchor. No finite "
            "logits attain it. K of a rare class may be below 1 on average, where 1/K says nothing.",
            counterexample=_positives_are_counted,
            formula="K * log(K) <= L_supcon + K * log(sum(P_positives) / p_supcon) < L_supcon",
            scenario="paco",
            derivation="paco-optimum",
            numeric=True,
            random=True,
        ),
        Claim(
            id="PC-4",
            title="frequent classes have a higher lower bound, -log(1/K_y)",
            source=SOURCE,
            place="first paragraph, and analysis of supervised contrastive learning",
            published="The lower bound of a frequent class is clearly higher: -log(1/K_y). The first paragraph calls it"
            " better.",
            latex=r"\inf\Big(-\sum_{P(i)}\log p_+\Big)=K\log K,\qquad\inf\Big(-\frac1K\sum_{P(i)}\log p_+\Big)=\log K",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="The bound of the printed sum is K log K; log K is that of the mean over the positives. Both grow "
            "with K.",
            as_published="L_supcon <= log(K) + 1e-20",
            counterexample={
                "alpha": 1.0,
                "center": (0.0, 0.0),
                "positives": (30.0,) * 3,
                "negatives": (-30.0, -30.0),
            },
            formula="K * log(K) < L_supcon"
            " <= K * (log(K) - log(sum(P_positives) / p_supcon) + (max(*positives) - min(*positives))**2 / 8)",
            scenario="paco",
            numeric=True,
            random=True,
            no_evidence="symbolic: the optimum is found in PC-3",
        ),
        Claim(
            id="PC-5",
            title="with a center, optima alpha / (1 + alpha K) and 1 / (1 + alpha K)",
            source=SOURCE,
            place="rebalance in contrastive learning",
            published="With weight alpha on each positive and 1 on the class center, the best similarity of a pair is "
            "alpha / (1 + alpha K_y), that with the center 1 / (1 + alpha K_y).",
            latex=r"L_i=L_{\min}+W\,\mathrm{KL}(w/W\,\Vert\,p),\quad L_{\min}=W\log W-\alpha K\log\alpha,\quad "
            r"W=1+\alpha K:\quad p_+\to\frac\alpha W=\frac1{1/\alpha+K},\ p_c\to\frac1W",
            expected=Verdict.AGREES,
            formula="W * log(W) - alpha * K * log(alpha) < L"
            " and L == -log(P_center) - alpha * sum(log(p) for p in P_positives)"
            " and L == W * log(W) - alpha * K * log(alpha)"
            " - log(W * P_center) - alpha * sum(log(p * W / alpha) for p in P_positives)",
            scenario="paco",
            derivation="paco-optimum",
            numeric=True,
            random=True,
        ),
        Claim(
            id="PC-6",
            title="a smaller alpha brings the lower bounds of two classes together",
            source=SOURCE,
            place="rebalance in contrastive learning",
            published="Pair similarities go from 1/K_h and 1/K_t to 1/(1/alpha + K_h) and 1/(1/alpha + K_t); the "
            "smaller alpha, the closer the lower bounds.",
            latex=r"\frac{dL_{\min}}{d\alpha}=K\log\Big(K+\frac1\alpha\Big),\qquad "
            r"\frac d{d\alpha}\frac{L_{\min}}{1+\alpha K}=-\frac{K\log\alpha}{(1+\alpha K)^2}",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="True of the difference, for the printed sum. The ratio tends to K_h/K_t, not to 1. Divided by "
            "1 + alpha K, the bounds part as alpha falls from 1 to 1 / sqrt(K_h K_t), and only then approach each "
            "other; as alpha rises above 1, they part as well, towards log(K_h/K_t).",
            counterexample=_smaller_alpha_wider_gap,
            formula="alpha / W == 1 / (1 / alpha + K)"
            " and d(W * log(W) - alpha * K * log(alpha), alpha) == K * log(K + 1 / alpha)"
            " and d(log(W) - alpha * K / W * log(alpha), alpha) == -K * log(alpha) / W**2",
            scenario="paco",
            symbolic=True,
            numeric=_gaps_of_two_classes,
            random=True,
        ),
        Claim(
            id="PC-7",
            title="as alpha falls, the loss approaches supervised cross-entropy",
            source=SOURCE,
            place="rebalance in contrastive learning",
            published="The smaller alpha, the weaker the contrast between samples; the loss approaches cross-entropy.",
            latex=r"L_i=L_{sup}-\log P_{sup}-\alpha\sum_{P(i)}\log p_+\ \longrightarrow\ L_{sup}-\log P_{sup}",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="The limit is cross-entropy - log P_sup: the samples stay in the denominator and are all pushed "
            "away, those of the same class too. It is cross-entropy only if they are taken out, or as P_sup goes to 1.",
            as_published="L == L_sup",
            counterexample={
                "alpha": 1e-9,
                "center": (1.0, 0.0, -1.0),
                "positives": (1.0, 0.5),
                "negatives": (0.5, 0.0),
            },
            formula="L == L_sup - log(p_sup) - alpha * sum(log(p) for p in P_positives)",
            scenario="paco",
            derivation="paco-decomposition",
            numeric=True,
            random=True,
        ),
        Claim(
            id="PC-8",
            title="in balance, PaCo is L_sup + alpha L_supcon + an extra term",
            source=SOURCE,
            place="PaCo under balanced setting",
            published="With K* positives for every class, the loss is L_sup + alpha L_supcon - (log P_sup + alpha K* "
            "log P_supcon), and P_supcon = 1 - P_sup.",
            latex=r"L_i=L_{sup}+\alpha L_{supcon}-\big(\log P_{sup}+\alpha|P(i)|\log(1-P_{sup})\big)"
            r"\quad\text{for any labels}",
            expected=Verdict.AGREES,
            formula="L == L_sup + alpha * L_supcon - (log(p_sup) + alpha * K * log(p_supcon))"
            " and p_supcon == 1 - p_sup",
            scenario="paco",
            derivation="paco-decomposition",
            numeric=True,
            random=True,
        ),
    ),
)
