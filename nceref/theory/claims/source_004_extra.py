"""Source 004, second half: L_extra and its numbers, what the code computes, the gradient, the prior of the centers."""

from nceref.theory.claim import Chapter, Claim, Counter, Repair, Value
from nceref.theory.verdicts import Verdict

SOURCE = "source 004"
BALANCED = "section on PaCo under a balanced setting"
CODE = "dvlab-research/Parametric-Contrastive-Learning at fe56535"
# One of 1000 equal classes in a queue of 8192; the largest class of ImageNet-LT, 1280 of 115846 images, in that queue.
_EQUAL, _LARGEST = 8192 * 0.001, 8192 * 1280 / 115846

# Top-1 accuracies in percent, in the order of the tables there.
_ACCURACIES = {
    "GPaCo, ImageNet: R50, ViT-B, ViT-L": "79.7, 84.0, 86.0",
    "others there: CE ViT-B, CE ViT-L, multi-task ViT-B": "83.6, 85.7, 83.4",
    "CIFAR, R50: multi-task, GPaCo": "79.1, 80.3",
    "GPaCo, ImageNet-LT: R50, X50, X101, two X101": "58.5, 58.9, 60.8, 63.2",
    "GPaCo, iNaturalist: R50, R152, two R152": "75.4, 78.1, 79.8",
    "PaCo, ImageNet: R50, R101, R200": "79.3, 80.9, 81.8",
    "PaCo, ImageNet-LT: R50, X50, X101": "57.0, 58.2, 60.0",
    "PaCo, iNaturalist: R50, R152": "73.2, 75.2",
    "Places-LT, R152: GPaCo, PaCo": "41.7, 41.2",
}


def _batch(rng):
    """Normalized embeddings with their queue, labels, centers, features for the centers, and class frequencies."""
    import numpy as np

    z = rng.standard_normal((14, 6))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    y, counts = rng.integers(0, 3, 14), rng.uniform(1, 100, 3)
    centers, features = rng.standard_normal((3, 4)), rng.standard_normal((8, 4))
    return z, y, centers, features, counts / counts.sum()


def _paco(z, y, centers, features, **arguments):
    """Rows of the loss at alpha = 0.05; the first eight samples are the batch, the others its queue."""
    from nceref import losses

    given = {"temperature": 0.2, "reduction": "none", "center_features": features, **arguments}
    return losses.paco(z[:8], y[:8], centers, alpha=0.05, queue=z[8:], queue_labels=y[8:], **given)


def _as_the_code(z, y, centers, features, prior, temperature=0.2, prior_temperature=1.0, smallest=1e-12):
    """What the authors' class computes: a weighted mean of log-probabilities, with its 1e-9 and its 1e-12."""
    import numpy as np

    n = len(features)
    other = np.hstack([np.ones((n, len(prior))), np.arange(len(z)) != np.arange(n)[:, None]])
    weights = np.hstack([y[:n, None] == np.arange(len(prior)), 0.05 * (y[:n, None] == y)]) * other
    centered = (features @ centers.T + np.log(prior + 1e3 * smallest)) / prior_temperature
    logits = np.hstack([centered, z[:n] @ z.T / temperature])
    logits -= logits.max(axis=1, keepdims=True)
    log_p = logits - np.log((np.exp(logits) * other).sum(axis=1, keepdims=True) + smallest)
    return -(weights * log_p).sum(axis=1) / weights.sum(axis=1)


def _code_is_the_normalized_form(rng):
    """Up to the guards, which show at temperature 0.02; with supt, the prior enters as q^(1 / supt).

    20 batches of 8 with a queue of 6, 3 classes; alpha 0.05, temperatures 0.2 and 0.02.
    """
    import numpy as np

    same, biased = [], []
    for z, y, centers, features, prior in (_batch(rng) for _ in range(20)):
        normalized = _paco(z, y, centers, features, form="normalized", class_prior=prior)
        tempered = _paco(z, y, centers / 0.5, features, form="normalized", center_bias=np.log(prior) / 0.5)
        cold = _paco(z, y, centers, features, form="normalized", class_prior=prior, temperature=0.02)
        exact = _as_the_code(z, y, centers, features, prior, smallest=0.0)
        guarded = _as_the_code(z, y, centers, features, prior, prior_temperature=0.5)
        same += [np.allclose(exact, normalized, rtol=1e-12), np.allclose(guarded, tempered, rtol=1e-6)]
        biased += [np.abs(_as_the_code(z, y, centers, features, prior, temperature=0.02) - cold).max()]
    return all(same) and max(biased) > 1


def _sum_is_not_the_mean():
    from numpy.random import default_rng

    given = _batch(default_rng(1))
    code = _as_the_code(*given).mean()
    printed, divided = (_paco(*given[:4], class_prior=given[4], form=f).mean() for f in ("sum", "normalized"))
    return Counter(
        f"a random batch of 8 (seed 1), queue of 6, alpha 0.05, temperature 0.2:"
        f" {code:.6f} by the code, {printed:.6f} by the printed sum, {divided:.6f} divided by 1 + alpha K",
        abs(code - printed) > 0.05 and abs(code - divided) < 1e-6,
    )


def _counts_are_no_frequencies(rng):
    """The prior is log q in the logits; counts in its place change PaCo and leave a pure softmax as it is.

    20 batches of 8 with a queue of 6, 3 classes; alpha 0.05, temperature 0.2.
    """
    import numpy as np

    from nceref.losses import balanced_softmax

    held = []
    for z, y, centers, features, prior in (_batch(rng) for _ in range(20)):
        rebalanced = _paco(z, y, centers, features, class_prior=prior)
        by_bias, by_counts = (_paco(z, y, centers, features, center_bias=np.log(n * prior)) for n in (1, 1000))
        pure = [balanced_softmax(features @ centers.T, y[:8], n * prior) for n in (1, 1000)]
        held += [np.allclose(rebalanced, by_bias, rtol=1e-12), np.allclose(pure[0], pure[1], rtol=1e-12)]
        held += [np.abs(by_counts - by_bias).max() > 5e-4]
    return all(held)


GRADIENT = (
    "d(L, center[0]) == W * P_center - 1"
    " and [d(L, center[j + 1]) for j in range(len(P_others))] == [W * x for x in P_others]"
    " and [d(L, positives[j]) for j in range(K)] == [W * x - alpha for x in P_positives]"
    " and [d(L, negatives[j]) for j in range(len(negatives))] == [W * x for x in P_negatives]"
)

CHAPTER = Chapter(
    name="source_004_extra",
    title="Source 004: L_extra, the code, the gradient and the prior",
    claims=(
        Claim(
            id="PC-9",
            title="L_extra has its minimum at 0.71",
            source=SOURCE,
            place=BALANCED,
            published="With q = 0.001, a queue of 8192 and alpha = 0.05, alpha K is 0.41; L_extra is least at 0.71.",
            latex=r"L_{extra}(p)=-\log p-\alpha K\log(1-p)=L_{extra}(p^*)+(1+\alpha K)\,\mathrm{KL}(p^*\Vert p),\quad "
            r" p^*=\frac1{1+\alpha K},\quad L_{extra}''(p^*)=\frac{(1+\alpha K)^3}{\alpha K}",
            expected=Verdict.PRINTED_DIGITS,
            scenario="probabilities",
            formula="lowest <= L_extra and L_extra - lowest"
            " == (1 + alpha * K) * (p_star * log(p_star / p) + (1 - p_star) * log((1 - p_star) / (1 - p)))",
            values=(
                Value("alpha K", "0.41", lambda: 0.05 * _EQUAL),
                Value("place of the minimum", "0.71", lambda: 1 / (1 + 0.05 * _EQUAL)),
            ),
            derivation="paco-extra",
            numeric=True,
            random=True,
        ),
        Claim(
            id="PC-10",
            title="two true positives are best at 0.035",
            source=SOURCE,
            place=BALANCED,
            published="It follows that the optimal similarity of two true positives, a softmax probability, is 0.035.",
            latex=r"p_+=\frac{1-p^*}{K}=\frac{\alpha}{1+\alpha K}=\frac1{1/\alpha+K}",
            expected=Verdict.PRINTED_DIGITS,
            scenario="probabilities",
            formula="K * pair == 1 - p_star and pair == 1 / (1 / alpha + K)",
            values=(Value("pair", "0.035", lambda: 0.05 / (1 + 0.05 * _EQUAL)),),
            derivation="paco-optimum",
            numeric=True,
            random=True,
        ),
        Claim(
            id="PC-11",
            title="0.71 holds for unbalanced classes as well",
            source=SOURCE,
            place=BALANCED,
            published="The conclusion that L_extra is least at P_sup = 0.71 also holds in the unbalanced state.",
            latex=r"p^*_y=\frac1{1+\alpha K_y},\qquad\frac{\partial p^*_y}{\partial K_y}=-\alpha\,(p^*_y)^2<0",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="The form holds, the number depends on the class: on ImageNet-LT, with alpha = 0.05 and a queue "
            "of 8192, it is 0.181 for the class of 1280 images and 0.983 for one of 5.",
            scenario="probabilities",
            as_published="0.705 <= p_star and p_star < 0.715",
            counterexample={"p": 0.5, "alpha": 0.05, "K": _LARGEST},
            formula="d(L_extra, p) * p * (1 - p) == (1 + alpha * K) * (p - p_star)"
            " and d(p_star, K) == -alpha * p_star**2",
            table="paco-optimum",
            cells={Verdict.PRINTED_DIGITS: 3, Verdict.WRONG: 4},
            symbolic=True,
            numeric=True,
            random=True,
        ),
        Claim(
            id="PC-12",
            title="the code of the authors computes the printed loss",
            source=CODE,
            place="PaCo/LT/losses.py, class PaCoLoss",
            published="The repository is the implementation of the paper, so its class computes the printed loss.",
            latex=r"\ell_i=\frac{\sum_{z_+}w(z_+)(-\log p_+)}{\sum_{z_+}w(z_+)}=\frac{L_i}{1+\alpha|P(i)|}",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="It divides each row by 1 + alpha |P(i)|, which weights classes differently. The prior enters as "
            "log(q + 1e-9) / supt; the temperature divides contrast logits only; 1e-12 in the sum is felt at "
            "temperatures below 0.05.",
            scenario="paco",
            counterexample=_sum_is_not_the_mean,
            formula="-(log(P_center) + alpha * sum(log(x) for x in P_positives)) / (1 + alpha * K) == L / W",
            symbolic=True,
            numeric=True,
            random=_code_is_the_normalized_form,
        ),
        Claim(
            id="PC-13",
            title="gradient of the PaCo loss: W p - w for every logit",
            source="derived here",
            place="from source 004",
            published="A negative is pushed with W p, not p; the size of the gradient depends on the class.",
            latex=r"\frac{\partial L_i}{\partial l_k}=Wp_k-w_k,\quad W=1+\alpha K;\qquad "
            r"\Big\Vert\frac{\partial L_{supcon}}{\partial l}\Big\Vert_1=2K\big(1-\textstyle\sum_P\tilde p\big)"
            r"+2\sum_P\max(0,K\tilde p-1),\quad\tilde p=p/P_{supcon}",
            expected=Verdict.AGREES,
            scenario="paco",
            formula=GRADIENT + " and sum(abs(d(L_supcon, positives[j])) for j in range(K))"
            " + sum(abs(d(L_supcon, negatives[j])) for j in range(M)) == 2 * K * (1 - sum(P_positives) / p_supcon)"
            " + 2 * sum(max(0, K * x / p_supcon - 1) for x in P_positives)",
            symbolic=GRADIENT,
            numeric=True,
            random=True,
        ),
        Claim(
            id="PC-14",
            title="L_supcon falls with P_sup as -K log(0.035 / (1 - p))",
            source=SOURCE,
            place=BALANCED,
            published="L_supcon, with each positive at its optimum 0.035, falls as p = P_sup rises.",
            latex=r"L_{supcon}(p)=K\log K+K\log\frac{1-p}{1-p^*},\qquad L_{supcon}'(p)=-\frac K{1-p},\qquad p\le p^*",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="It falls, but only up to p* = 0.7094, where it is K log K, the least that it can be (PC-4): K "
            "positives of 0.0355 do not fit into 1 - p beyond. The rounded 0.71 and 0.035 hide that.",
            scenario="probabilities",
            as_published="K * log(K) <= L_supcon",
            counterexample={"p": 0.9, "alpha": 0.05, "K": 8.192},
            formula="d(L_supcon, p) == -K / (1 - p) and L_supcon - K * log(K) == K * log((1 - p) / (1 - p_star))",
            symbolic=True,
            numeric=True,
            random=True,
        ),
        Claim(
            id="PC-15",
            title="nearer to the centers, classes are driven apart more",
            source=SOURCE,
            place=BALANCED,
            published="As features gather at the centers, L_supcon must fall: the distance between classes grows.",
            latex=r"\frac{\partial}{\partial\log\mathrm{odds}(p)}\big(\alpha-Wp_+\big)=Wp_+p>0,\qquad "
            r"\frac{\partial}{\partial\log\mathrm{odds}(p)}\,Wp_-=-Wp_-p<0,\quad p=P_{sup}",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="At fixed shares among the samples, the pull on a positive rises with P_sup, and the push on a "
            "negative falls.",
            scenario="paco",
            as_published="0 < sum(d(W * P_negatives[0], center[k]) for k in range(len(center)))",
            counterexample={"alpha": 0.05, "center": (1.5, 0.25), "positives": (0.75, -1.0), "negatives": (0.5, -0.25)},
            formula="[sum(d(alpha - W * P_positives[j], center[k]) for k in range(len(center))) for j in range(K)]"
            " == [W * x * p_sup for x in P_positives]"
            " and [sum(d(-W * P_negatives[j], center[k]) for k in range(len(center))) for j in range(len(negatives))]"
            " == [W * x * p_sup for x in P_negatives]",
            symbolic=True,
            numeric=True,
            random=True,
        ),
        Claim(
            id="PC-16",
            title="the centers are rebalanced by a factor q, a balanced softmax",
            source=SOURCE,
            place="section on center learning rebalance",
            published="psi multiplies the exponential of a center by q(y), as balanced softmax does.",
            latex=r"\psi(c_k)=e^{c_k\cdot F}q_k=e^{c_k\cdot F+\log q_k};\quad q\mapsto e^{\epsilon}q:\ "
            r"\partial_\epsilon L_{sup}=0,\ \ \partial_\epsilon L=W P_{sup}-1",
            expected=Verdict.AGREES,
            scenario="paco",
            formula="sum(d(L_sup, center[k]) for k in range(len(center))) == 0"
            " and sum(d(L, center[k]) for k in range(len(center))) == W * p_sup - 1",
            symbolic=True,
            numeric=True,
            random=_counts_are_no_frequencies,
        ),
        Claim(
            id="PC-17",
            title="supervised contrast on long-tailed data lowers accuracy",
            source=SOURCE,
            place="table PaCoT1",
            published="Applied to long-tailed data directly, supervised contrastive learning loses accuracy.",
            latex=r"\text{an empirical statement; the table is an image}",
            expected=Verdict.NOT_REPRODUCIBLE,
            no_evidence="The text of the source has no number, and the experiment needs images.",
        ),
        Claim(
            id="PC-18",
            title="alpha = 0.05 is good; fixed weights conflict, PaCo's do not",
            source=SOURCE,
            place="sections on rebalance and on the balanced setting",
            published="0.05 balances both aims; losses of fixed weights may conflict, which PaCo avoids.",
            latex=r"\text{a choice, and an empirical statement}",
            expected=Verdict.NOT_REPRODUCIBLE,
            no_evidence="No number is given. The scripts use 0.05 most, but also 0.01 to 0.045 and 0.2; those of the "
            "multi-task baseline, whose weights are fixed, use 0.5.",
        ),
        Claim(
            id="PC-19",
            title="published accuracies of PaCo and GPaCo",
            source=CODE,
            place="README",
            published="Top-1 accuracies of trained networks, in percent.",
            latex=r"\text{measured accuracies}",
            expected=Verdict.NOT_REPRODUCIBLE,
            values=tuple(
                Value(what, text, None, expected=Verdict.NOT_REPRODUCIBLE) for what, text in _ACCURACIES.items()
            ),
            total="1785.0",
            no_evidence="Accuracies were measured; it takes the images and the networks.",
        ),
    ),
)
