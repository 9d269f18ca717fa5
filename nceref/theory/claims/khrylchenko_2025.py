"""Khrylchenko et al. 2025: the logQ correction of sampled softmax, and its refinement."""

from nceref.theory.claim import Chapter, Claim
from nceref.theory.verdicts import Verdict

SOURCE = "Khrylchenko et al. 2025"


def _weighted_gap_has_the_same_slopes():
    """By each logit, the weight (1 - P) a constant: slopes of the weighted gap are those of the softmax."""
    import sympy

    s, x, y = sympy.symbols("s_p x_1 x_2", real=True)
    mass = sympy.exp(x) + sympy.exp(y)
    weight = mass / (sympy.exp(s) + mass)
    refined, softmax = sympy.log(mass) - s, sympy.log(sympy.exp(s) + mass) - s
    return all(sympy.simplify(weight * refined.diff(v) - softmax.diff(v)) == 0 for v in (s, x, y))


def _losses_have_the_same_gradient(rng):
    """The package's two losses, on random rows and counts; 3 to 8 pairs in 4 dimensions."""
    import numpy as np

    from nceref import losses

    n = int(rng.integers(3, 9))
    given = (*rng.standard_normal((2, n, 4)), rng.uniform(0.1, 5, n))
    both = [
        losses.sampled_softmax.value_and_grad(*given, temperature=0.3, correction=correction)[1]
        for correction in ("negatives", "weighted")
    ]
    return all(np.allclose(both[0][name], both[1][name], rtol=1e-11, atol=1e-13) for name in both[0])


def expected_slopes(logits, q, draws, correction):
    """E d L / d logit of item 0 as the positive, over all draws of so many negatives from the law `q`, an array."""
    from itertools import product

    import numpy as np

    total = np.zeros(len(logits))
    for drawn in product(range(len(logits)), repeat=draws):
        chance = np.prod(q[list(drawn)])
        items = (0, *(j for j in drawn if correction == "all" or j != 0))
        # Beside the positive, an item stands for 1 / (n Q) of the catalog.
        log_m = np.array([np.log(draws * q[j]) for j in items])
        log_m[0] = 0.0 if correction == "negatives" else log_m[0]
        x = logits[list(items)] - log_m
        p = np.exp(x - np.logaddexp.reduce(x))
        for item, share in zip(items, p, strict=True):
            total[item] += chance * share
        total[0] -= chance
    return total


def biases(logits, q, draws):
    """Distance of the expected slopes from those of the full softmax, by correction."""
    import numpy as np

    full = np.exp(logits - np.logaddexp.reduce(logits)) - np.eye(len(logits))[0]
    return {
        name: float(np.linalg.norm(expected_slopes(logits, q, draws, name) - full)) for name in ("all", "negatives")
    }


def _bias_falls_with_the_draws():
    """Four items, of which the positive is the most popular: 1, 2, 4 and 6 draws, all of them enumerated."""
    from itertools import pairwise

    import numpy as np

    logits, q = np.array([1.0, 0.5, -0.3, 0.2]), np.array([0.4, 0.3, 0.2, 0.1])
    by_draws = [biases(logits, q, n) for n in (1, 2, 4, 6)]
    falls = all(a[name] > b[name] > 1e-3 for name in by_draws[0] for a, b in pairwise(by_draws))
    return falls and all(found["negatives"] < found["all"] for found in by_draws)


def _both_are_biased(rng):
    """Three to four items, one to three draws: neither has the slopes of the full softmax in the mean."""
    k, draws = int(rng.integers(3, 5)), int(rng.integers(1, 4))
    found = biases(rng.standard_normal(k), rng.dirichlet([2.0] * k), draws)
    return min(found.values()) > 1e-6


CHAPTER = Chapter(
    name="khrylchenko_2025",
    title="Khrylchenko et al. 2025: correcting the logQ correction",
    claims=(
        Claim(
            id="LQ-1",
            title="a weight for the probability of a mistake refines logQ",
            source=SOURCE,
            place="arXiv:2507.09331, abstract",
            published="The positive is in the denominator with probability 1 and is not sampled; accounting for that"
            " brings a weight of each sample, the probability that the model misclassifies it.",
            latex=r"\nabla\big[\mathrm{sg}(1-P)(\log S-s_p)\big]=\nabla\Big[-\log\frac{e^{s_p}}{e^{s_p}+S}\Big],"
            r"\quad S=\sum_{j\ne p}e^{s_j-\log m_j},\ P=\frac{e^{s_p}}{e^{s_p}+S}",
            given="a row with a negative, m_j the expected counts of the items, constants",
            expected=Verdict.AGREES,
            symbolic=_weighted_gap_has_the_same_slopes,
            random=_losses_have_the_same_gradient,
            no_evidence="50 digits: it is an identity of slopes, which the symbols prove",
        ),
        Claim(
            id="LQ-2",
            title="the logQ correction does not fully remove the bias",
            source=SOURCE,
            place="arXiv:2507.09331, abstract",
            published="Subtracting log-probabilities from all logits improves models but does not eliminate the bias of"
            " the gradient; a refined formula is proposed.",
            latex=r"\Big\|\mathbb{E}\,\nabla L_n-\nabla L_{\text{softmax}}\Big\|>0\text{ for }n<\infty,"
            r"\text{ of both corrections}",
            given="n independent draws of negatives from a law Q over a finite catalog, the positive beside them",
            expected=Verdict.AGREES,
            numeric=_bias_falls_with_the_draws,
            random=_both_are_biased,
            no_evidence="symbolic: it is an expectation over draws; the refined formula is biased too, by less on the"
            " fixed instance",
        ),
    ),
)
