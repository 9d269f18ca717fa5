"""Standard results of other papers about losses that separate the own pair from all others."""

from nceref.theory.claim import Chapter, Claim
from nceref.theory.verdicts import Verdict

DERIVED = "derived here; the paper was not read"


def _compositions(total, parts):
    """All counts of `parts` kinds that add up to `total`."""
    from itertools import product

    import numpy as np

    heads = [h for h in product(range(total + 1), repeat=parts - 1) if sum(h) <= total]
    return np.array([[*h, total - sum(h)] for h in heads])


def _bound(joint, critic, n):
    """Log n minus the InfoNCE loss with n candidates, over all draws of the n - 1 negatives: no sampling noise."""
    import numpy as np
    from scipy.special import gammaln

    counts = _compositions(n - 1, len(joint))
    log_share = gammaln(n) - gammaln(counts + 1).sum(axis=1) + counts @ np.log(joint.sum(axis=1))
    others = np.exp(log_share)[:, None, None], (counts @ critic)[:, None, :]
    return float((joint * (others[0] * np.log(n * critic / (critic + others[1]))).sum(axis=0)).sum())


def _information(joint):
    """Mutual information, its chi-squared counterpart, and the ratio p(x | c) / p(x), the best critic."""
    import numpy as np

    ratio = joint / joint.sum(axis=1, keepdims=True) / joint.sum(axis=0)
    return float((joint * np.log(ratio)).sum()), float((joint * ratio).sum() - 1), ratio


def _never_above_the_information(rng):
    """The bound rises with the candidates, is largest for the ratio of the laws, and stays below the information.

    20 joint laws of 2 or 3 times 2 to 4 states, 2 to 9 candidates, exact sums.
    """
    import numpy as np

    held = []
    for _ in range(20):
        size = rng.integers(2, 4), rng.integers(2, 5)
        joint = rng.dirichlet(np.ones(size[0] * size[1])).reshape(size)
        information, _, ratio = _information(joint)
        best = [_bound(joint, ratio, n) for n in (2, 3, 5, 9)]
        other = [_bound(joint, np.exp(rng.standard_normal(size)), n) for n in (2, 3, 5, 9)]
        least = [min(information, np.log(n)) for n in (2, 3, 5, 9)]
        held += [np.all(np.diff(best) > 0), np.all(np.less(other, best)), np.all(np.less(best, least))]
    return all(held)


def _reaches_the_information():
    """What is missing with n candidates is chi^2 / 2n; a nearly deterministic joint reaches log 2 with two."""
    import numpy as np

    joint = np.array([[0.4, 0.1], [0.1, 0.4]])
    information, chi, ratio = _information(joint)
    missing = [n * (information - _bound(joint, ratio, n)) / (chi / 2) for n in (500, 1000, 2000)]
    # Nearly deterministic, and without a 0, of which the logarithm is taken.
    sharp = np.eye(100) * (0.01 - 99e-9) + (1 - np.eye(100)) * 1e-9
    return np.allclose(missing, 1, atol=0.005) and 0.98 * np.log(2) < _two(sharp) < np.log(2)


def _two(joint):
    """The bound with two candidates, for many values."""
    import numpy as np

    ratio, p = _information(joint)[2], joint.sum(axis=1)
    inside = np.log(2 * ratio[:, None, :] / (ratio[:, None, :] + ratio[None, :, :]))
    return float(np.einsum("xc,y,xyc->", joint, p, inside))


def _nt_xent_is_supcon_without_labels(rng):
    """Rows of both, a direct softmax over 2N - 1, and the sum of the two one-way means, twice the mean.

    2 to 8 pairs in 4 dimensions, temperature 0.3.
    """
    import numpy as np

    from nceref import losses

    held = []
    for n in (2, 3, 5, 8):
        z = rng.standard_normal((n, 2, 4))
        z /= np.linalg.norm(z, axis=2, keepdims=True)
        stacked = np.concatenate([z[:, 0], z[:, 1]])
        logits = stacked @ stacked.T / 0.3 - np.diag([np.inf] * (2 * n))
        direct = np.logaddexp.reduce(logits, axis=1) - np.roll(logits, n, axis=1).diagonal()
        rows = losses.nt_xent(z[:, 0], z[:, 1], temperature=0.3, reduction="none")
        mean = losses.supcon_out(z, temperature=0.3)
        held += [np.allclose(rows, direct, rtol=1e-12), np.isclose(rows.mean(), mean, rtol=1e-12)]
        held += [np.isclose(direct[:n].mean() + direct[n:].mean(), 2 * mean, rtol=1e-12)]
    return all(held)


def _gradient_by_the_anchor(rng):
    """The gradient of the implementation by one query: 6 negatives in space, temperature 0.4."""
    import numpy as np

    from nceref import losses

    q, k, negatives = rng.standard_normal((1, 3)), rng.standard_normal((1, 3)), rng.standard_normal((6, 3))
    _, grad = losses.info_nce.value_and_grad(q, k, negatives, temperature=0.4, normalize="none")
    p = np.exp(q @ np.concatenate([k, negatives]).T / 0.4)[0]
    p /= p.sum()
    return np.allclose(-grad["queries"][0], ((1 - p[0]) * k[0] - p[1:] @ negatives) / 0.4, rtol=1e-12)


def _unrolled():
    """Four steps of the average."""
    import sympy

    m, theta, *q = sympy.symbols("m theta q0:4")
    closed = m**4 * theta + (1 - m) * sum(m ** (3 - i) * x for i, x in enumerate(q))
    for x in q:
        theta = m * theta + (1 - m) * x
    return sympy.expand(theta - closed) == 0


def _half_life():
    """At m = 0.999 the weight m^n passes 1/2 between 692 and 693 steps, at log 2 / -log m."""
    from mpmath import mp, mpf

    with mp.workdps(50):
        m = mpf(999) / 1000
        steps = -mp.log(2) / mp.log(m)
        return m**693 < 0.5 < m**692 and 692 < steps < 693 and abs(m**steps - 0.5) < mpf(10) ** -48


def _queue_of_keys(rng):
    """The loss is a (K + 1)-way cross-entropy with the own key as class 0, and only the query gets a gradient.

    5 queries, a queue of 9, 4 dimensions.
    """
    import numpy as np

    from nceref import losses

    q, k, queue = (rng.standard_normal((rows, 4)) for rows in (5, 5, 9))
    value, grad = losses.moco.value_and_grad(q, k, queue, temperature=0.2)
    q, k, queue = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k, queue))
    logits = np.hstack([(q * k).sum(axis=1, keepdims=True), q @ queue.T])
    ways = losses.cross_entropy(logits, np.zeros(5, dtype=int), temperature=0.2)
    return np.isclose(value, ways, rtol=1e-12) and set(grad) == {"queries", "temperature"}


def _clip_by_logits():
    """Two images and two texts: the slope of every logit."""
    import sympy

    logits = sympy.Matrix(2, 2, sympy.symbols("l0:4", real=True))
    rows, columns = ([sum(sympy.exp(x) for x in line) for line in m.tolist()] for m in (logits, logits.T))
    loss = sum(sympy.log(rows[i]) + sympy.log(columns[i]) - 2 * logits[i, i] for i in range(2)) / 4
    wanted = [
        (sympy.exp(logits[i, j]) / rows[i] + sympy.exp(logits[i, j]) / columns[j] - 2 * int(i == j)) / 4
        for i in range(2)
        for j in range(2)
    ]
    return all(sympy.simplify(sympy.diff(loss, x) - g) == 0 for x, g in zip(logits, wanted, strict=True))


def _unit_rows(rng, *sizes):
    import numpy as np

    drawn = [rng.standard_normal(size) for size in sizes]
    return [x / np.linalg.norm(x, axis=1, keepdims=True) for x in drawn]


def _gradients_of_two_towers(name, slopes, **scalars):
    """Whether a loss has the gradients that its slopes G by the logits give: t G y, t G' x, and sum G x.y."""

    def compare(rng):
        """The gradients of the implementation are those that its slopes by the logits give: 7 pairs in 4 dimensions."""
        import numpy as np

        from nceref import losses

        x, y = _unit_rows(rng, (7, 4), (7, 4))
        _, grad = losses.get_loss(name).value_and_grad(x, y, normalize="none", **scalars)
        scale, cosines = scalars["logit_scale"], x @ y.T
        g = slopes(np, scale * cosines + scalars.get("logit_bias", 0.0))
        wanted = {"image": scale * g @ y, "text": scale * g.T @ x, "logit_scale": (g * cosines).sum()}
        wanted |= {"logit_bias": g.sum()} if "logit_bias" in scalars else {}
        return set(grad) == set(wanted) and all(np.allclose(grad[k], v, rtol=1e-10) for k, v in wanted.items())

    return compare


def _clip_slopes(np, logits):
    e = np.exp(logits)
    n = len(e)
    return (e / e.sum(axis=1, keepdims=True) + e / e.sum(axis=0) - 2 * np.eye(n)) / (2 * n)


def _siglip_slopes(np, logits):
    y = 2 * np.eye(len(logits)) - 1
    return -y / (1 + np.exp(y * logits)) / len(logits)


def _siglip_pair():
    """A positive and a negative pair: derivatives by the cosine, the scale and the bias."""
    import sympy

    x, t, b = sympy.symbols("x t b", real=True)
    loss = [sympy.log(1 + sympy.exp(-y * (t * x + b))) for y in (1, -1)]
    e = [-y / (1 + sympy.exp(y * (t * x + b))) for y in (1, -1)]
    apart = [sympy.diff(f, v) - g * by for f, g in zip(loss, e, strict=True) for v, by in ((x, t), (t, x), (b, 1))]
    return all(sympy.simplify(one) == 0 for one in apart)


def _siglip_at_the_start():
    """At t = 10, b = -10 and cosines 0, one positive costs as much as 220 thousand negatives."""
    import numpy as np
    from mpmath import mp

    from nceref import losses

    with mp.workdps(50):
        positive, negative = mp.log(1 + mp.exp(10)), mp.log(1 + mp.exp(-10))
        right = abs(positive - negative - 10) < mp.mpf(10) ** -48 and 220_000 < positive / negative < 221_000
    image, text = np.split(np.eye(64), 2)
    value = losses.siglip(image, text, logit_scale=10.0, logit_bias=-10.0)
    return right and abs(value - float(positive + 31 * negative)) < 1e-13


CHAPTER = Chapter(
    name="standard_pairs",
    title="Standard results: the own pair among others",
    claims=(
        Claim(
            id="CPC-1",
            title="log N - L is a lower bound of the mutual information",
            source="Oord et al. 2018 (CPC)",
            place=DERIVED,
            published="I(x; c) >= log N - L for any critic; the best one is proportional to p(x | c) / p(x).",
            latex=r"\log N-L_N[f]\le\log N-L_N\Big[\frac{p(x|c)}{p(x)}\Big]\le\min(I,\log N),\qquad "
            r" I-(\log N-L_N)\simeq\frac{\chi^2}{2N},\quad\chi^2=E\frac{p(x|c)}{p(x)}-1",
            given="laws: N >= 2 candidates, one from the joint law, the others independent; any positive scores",
            expected=Verdict.AGREES,
            numeric=_reaches_the_information,
            random=_never_above_the_information,
            no_evidence="symbolic: an expectation over all draws of negatives has no closed form",
        ),
        Claim(
            id="SIM-1",
            title="NT-Xent: 2N anchors, SupCon without labels",
            source="Chen et al. 2020 (SimCLR)",
            place="objective.py of the authors; " + DERIVED,
            published="Each of 2N rows has one positive and 2(N - 1) negatives; the code adds the two one-way means.",
            latex=r"L=\frac1{2N}\sum_{i=1}^{2N}-\log\frac{e^{s_{ip(i)}/\tau}}{\sum_{j\ne i}e^{s_{ij}/\tau}}"
            r"=L_{SupCon}\text{ without labels};\qquad\text{code: }L_a+L_b=2L",
            given="a batch of N >= 2 pairs; tau > 0",
            expected=Verdict.AGREES,
            random=_nt_xent_is_supcon_without_labels,
            no_evidence="symbolic, numeric: the same function is written twice; batches show that programs agree",
        ),
        Claim(
            id="SIM-2",
            title="gradient of NT-Xent with respect to the anchor",
            source="Chen et al. 2020 (SimCLR)",
            place=DERIVED,
            published="The positive attracts with (1 - P_+) / tau, each negative repels with P_j / tau.",
            latex=r"-\frac{\partial L}{\partial u}=\frac1\tau\Big[(1-P_+)\,v^+-\sum_jP_jv_j^-\Big]",
            given="u the anchor, v the candidates, s their products",
            expected=Verdict.AGREES,
            formula="-d(L, s[0]) == (1 - P[0]) / t and [d(L, s[j]) for j in range(1, N)] == [p / t for p in P[1:]]",
            derivation="gradients",
            numeric=True,
            random=_gradient_by_the_anchor,
        ),
        Claim(
            id="MOCO-1",
            title="momentum average of the encoder, and K + 1 classes",
            source="He et al. 2020 (MoCo)",
            place="moco/builder.py of the authors; " + DERIVED,
            published="Keys come from a running average of the query encoder; the loss is a (K+1)-way cross-entropy.",
            latex=r"\theta_k^{(n)}=m^n\theta_k^{(0)}+(1-m)\sum_{i=1}^{n}m^{n-i}\theta_q^{(i)},\qquad "
            r"m^n=\tfrac12:\ n=\frac{\ln2}{-\ln m}=692.8\ \text{for}\ m=0.999",
            given="0 <= m < 1; keys and queue are constants",
            expected=Verdict.AGREES,
            symbolic=_unrolled,
            numeric=_half_life,
            random=_queue_of_keys,
        ),
        Claim(
            id="CLIP-1",
            title="symmetric cross-entropy with a learned scale, and its gradient",
            source="Radford et al. 2021 (CLIP)",
            place="clip/model.py of the authors; " + DERIVED,
            published="Cosines times exp(t), t = log(1 / 0.07) at first; cross-entropy along rows and along columns.",
            latex=r"G=\frac1{2N}(\mathrm{softmax}_{row}+\mathrm{softmax}_{col}-2I),\quad\frac{\partial L}{\partial u}"
            r"=e^tGv,\quad\frac{\partial L}{\partial v}=e^tG^\top u,\quad\frac{\partial L}{\partial t}=\sum G\odot l,"
            r"\quad l=e^tuv^\top",
            given="a batch of N >= 2 pairs; t is the log of the scale",
            expected=Verdict.AGREES,
            symbolic=_clip_by_logits,
            random=_gradients_of_two_towers("clip", _clip_slopes, logit_scale=1 / 0.07),
            no_evidence="numeric: the symbolic identity holds for all logits",
        ),
        Claim(
            id="SIG-1",
            title="sigmoid loss: gradient, and what b = -10 is for",
            source="Zhai et al. 2023 (SigLIP)",
            place="trainers/proj/image_text/siglip.py of big_vision, t and b of "
            "configs/proj/image_text/SigLIP_demo.ipynb; " + DERIVED,
            published="Every pair is a binary problem; t = 10 and b = -10 at first, against the many negatives.",
            latex=r"L=-\frac1N\sum_{ij}\log\sigma\big(c_{ij}(tX_{ij}+b)\big),\quad e_{ij}=-\frac{c_{ij}}N"
            r"\sigma\big(-c_{ij}(tX_{ij}+b)\big);\quad\partial_X=te,\ \partial_t=\textstyle\sum eX,\ \partial_b=\sum e",
            given="a batch of N pairs: all N^2 of them, of cosines X_ij and labels c_ij, 1 if i = j and else -1, "
            "divided by N",
            expected=Verdict.AGREES,
            symbolic=_siglip_pair,
            numeric=_siglip_at_the_start,
            random=_gradients_of_two_towers("siglip", _siglip_slopes, logit_scale=10.0, logit_bias=-5.0),
        ),
    ),
)
