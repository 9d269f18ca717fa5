"""Source 000, second half: the temperature between its two ends, where it goes to 0 and where it goes to infinity."""

from nceref.theory.claim import Chapter, Claim, Counter, Repair
from nceref.theory.verdicts import Verdict

SOURCE = "source 000; Wang & Liu 2021"

# Beside the implementations of the table of conventions: two more scripts of authors, and the file of each.
SCRIPTS = {"CLIP, clip/model.py": (0.07,), "SimCLR, run.py": (0.1,)}


def _a_constant_is_lost():
    """Two hardest negatives, by a above the positive or level with it, and one that is lower by c."""
    import sympy

    t, a, c = sympy.symbols("tau a c", positive=True)
    lower = sympy.exp(-c / t)
    left = sympy.log(1 + 2 * sympy.exp(a / t) + lower) - a / t, sympy.log(1 + 2 + lower)
    tied, even = (sympy.limit(x, t, 0, "+") for x in left)
    shown = f"two hardest negatives: L - gap / tau tends to {tied}; gap 0, two of them: L tends to {even}; neither is 0"
    return Counter(shown, tied != 0 != even)


def _entropy_and_its_ends():
    """The derivative of H = log Z - E / tau; and log 3, 0 and log 2 (two tied) as limits for three negatives."""
    import sympy

    x = sympy.Symbol("x", positive=True)  # 1 / tau

    def parts(negatives):
        weights = [sympy.exp(s * x) for s in negatives]
        r = [w / sum(weights) for w in weights]
        mean = sum(p * s for p, s in zip(r, negatives, strict=True))
        spread = sum(p * (s - mean) ** 2 for p, s in zip(r, negatives, strict=True))
        return sympy.log(sum(weights)) - x * mean, spread

    warm = sympy.limit(parts((0, -1, -2))[0], x, 0)
    cold = [sympy.limit(parts(negatives)[0], x, sympy.oo) for negatives in ((0, -1, -2), (0, 0, -1))]
    entropy, spread = parts(sympy.symbols("s1:4", real=True))
    # d tau = -d x / x^2, so Var / tau^3 by tau is -x Var by x.
    return [warm, *cold] == [sympy.log(3), 0, sympy.log(2)] and sympy.simplify(entropy.diff(x) + x * spread) == 0


def _restriction_at_zero():
    """What the restriction to hard negatives changes: nothing, with hard ones above, level with it, and without."""
    import sympy
    from sympy import exp, log

    x, third = sympy.Symbol("x", positive=True), sympy.Rational(1, 3)
    hard = [2 * exp(x / 4), 2, 0]
    lost = [sympy.limit(log(1 + h + exp(-third * x) + exp(-x)) - log(1 + h), x, sympy.oo) for h in hard]
    return lost == [0, 0, 0]


def _shares_at_zero():
    """1 / 2 on each of two hardest; 1 / 3 if the positive ties with them; nothing if it is the most similar."""
    import sympy
    from sympy import exp

    t, a, c = sympy.symbols("tau a c", positive=True)
    hard = exp(a / t) / (1 + 2 * exp(a / t) + exp(-c / t))
    tied, solved = 1 / (3 + exp(-c / t)), exp(-a / t) / (1 + exp(-a / t) + exp(-2 * a / t))
    return [sympy.limit(x, t, 0, "+") for x in (hard, tied, solved)] == [sympy.Rational(1, 2), sympy.Rational(1, 3), 0]


def _far_from_simple():
    """4096 negatives, evenly spread over (-1, 1)."""
    import numpy as np

    from nceref import losses

    negatives = (np.arange(4096) + 0.5) / 2048 - 1
    s, t = np.concatenate([[0.5], negatives])[None], 4096 / 4097
    value = losses.cross_entropy(s, np.array([0]), temperature=t)
    slopes = losses.cross_entropy.anatomy(s, np.array([0]), temperature=t).slopes[0, 1:]
    error, ratio = value - np.log(4097) - (-0.5 + negatives.mean()), slopes.max() / slopes.min()
    shown = (
        f"s_+ = {s[0, 0]}, 4096 negatives in even steps from {negatives[0]:.5f} to {negatives[-1]:.5f}, tau = 4096/4097"
        f": L - log N - L_simple = {error:.4f}; the hardest negative weighs {ratio:.2f} times the easiest, not 1"
    )
    return Counter(shown, bool(error > 0.1 and ratio > 2))


def _hardest_of_a_batch(rng):
    """Fraction 1 is InfoNCE, one negative a softplus, and what lies between is InfoNCE over those that are kept.

    12 batches of 3 to 19 pairs, temperatures from 0.03 to 3.
    """
    import numpy as np

    from nceref import losses

    for _ in range(12):
        n, t = int(rng.integers(3, 20)), float(10 ** rng.uniform(-1.522, 0.477))
        q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in rng.standard_normal((2, n, 6)))
        s, count = q @ k.T, int(rng.integers(1, n))
        ranked = -np.sort(-s[~np.eye(n, dtype=bool)].reshape(n, n - 1))
        rows = np.column_stack([np.diag(s), ranked[:, :count]])
        one = np.logaddexp(0, (ranked[:, 0] - np.diag(s)) / t).mean()
        first = np.zeros(n, dtype=int)
        pairs = [
            (losses.hard_contrastive(q, k, temperature=t, fraction=count / (n - 1)),
             losses.cross_entropy(rows, first, temperature=t)),
            (losses.hard_contrastive(q, k, temperature=t, fraction=1.0), losses.info_nce(q, k, temperature=t)),
            (losses.hard_contrastive(q, k, temperature=t, fraction=0.5 / n), one),
        ]  # fmt: skip
        if not all(np.isclose(a, b, rtol=1e-12, atol=1e-12) for a, b in pairs):
            return False
    return True


def _defaults():
    """The default temperatures of each implementation whose code was read, and how often each was read."""
    from collections import Counter as Count

    from nceref.theory.tables.conventions import default_temperatures

    by_name = {**default_temperatures(), **SCRIPTS}
    return by_name, Count(temperature for temperatures in by_name.values() for temperature in temperatures)


def _defaults_elsewhere():
    """All defaults that were read, the most frequent first; the statement is broken if 0.05 is not one of these."""
    by_name, counts = _defaults()
    ranked = counts.most_common()
    shown = ", ".join(f"{temperature:g} ({count})" for temperature, count in ranked)
    users = ", ".join(name for name, temperatures in by_name.items() if 0.05 in temperatures)
    first = {temperature for temperature, _ in ranked[:2]}
    return Counter(f"defaults, and how often each was read: {shown}; 0.05 in {users}", 0.05 not in first)


def _small_defaults():
    """More than half of the defaults that were read are 0.1 or less, 0.07 and 0.1 the two most frequent; 1 is one."""
    counts = _defaults()[1]
    small = sum(count for temperature, count in counts.items() if temperature <= 0.1)
    return {t for t, _ in counts.most_common(2)} == {0.07, 0.1} and 2 * small > counts.total() and counts[1.0] > 0


def _linear_over_hard_negatives():
    """Source 000's property is missing in the simple loss over the hardest negatives, which is as accurate."""
    from nceref.theory.claims.source_000_loss import accuracies
    from nceref.theory.tables.contrastive_vs_simple import COPIED

    lost = {}
    for dataset in COPIED:
        printed = accuracies(dataset)
        lost[dataset] = max(printed[:4]) - printed[9], max(printed[:4]) - printed[4]
    shown = "; ".join(f"{name} {hard:.2f}, {simple:.2f}" for name, (hard, simple) in lost.items())
    return Counter(
        f"points between the best contrastive loss and the simple one, over the hardest negatives, over all: {shown}",
        all(hard < 1 < 8 < simple for hard, simple in lost.values()),
    )


def _behind_without_hard_negatives():
    """On all four datasets the simple loss is behind the contrastive loss at each of its temperatures."""
    from nceref.theory.claims.source_000_loss import accuracies
    from nceref.theory.tables.contrastive_vs_simple import COPIED

    return all(printed[4] < min(printed[:4]) for printed in map(accuracies, COPIED))


def _evenly_spread_is_lower(rng):
    """Points that add up to 0 are all as good for the simple loss; InfoNCE is lower on a polygon than elsewhere.

    64 points on the circle, spread evenly, at two poles and at random, temperatures from 0.1 to 10.
    """
    import numpy as np

    from nceref import losses
    from nceref.theory.scenarios.sphere import balanced

    polygon, *others = balanced(64, rng)
    held = [np.allclose(losses.simple(x, x), losses.simple(polygon, polygon), rtol=1e-12) for x in others]
    for t in 10 ** rng.uniform(-1, 1, 6):
        best = losses.info_nce(polygon, polygon, temperature=t)
        held += [best < losses.info_nce(x, x, temperature=t) for x in others]
    return len(others) > 1 and all(held)


CHAPTER = Chapter(
    name="source_000_limits",
    title="Source 000: the temperature from 0 to infinity",
    claims=(
        Claim(
            id="WL-11",
            title="the entropy of the relative penalties rises with the temperature",
            source="Wang & Liu 2021",
            place="section 3.2",
            published="As the temperature falls, the entropy of the relative penalties decreases strictly.",
            latex=r"\frac{dH(r)}{d\tau}=\frac{\mathrm{Var}_r(s)}{\tau^3}\ge0,\qquad\log m\le H(r)\le\log K,\quad"
            r" m\ \text{tied hardest}",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="Strictly if at least two negatives differ. It goes from log m, m tied hardest, up to log K.",
            scenario="limits",
            as_published="0 < d(entropy(r), t)",
            counterexample={"s": (0.2, 0.5, 0.5, 0.5), "t": 0.5},
            formula="d(entropy(r), t) == r_var / t**3 and log(ties) <= entropy(r) <= log(K)",
            symbolic=_entropy_and_its_ends,
            numeric=True,
            random=True,
        ),
        Claim(
            id="WL-12",
            title="a lower temperature concentrates on the hardest negatives",
            source="source 000",
            place="last paragraph",
            published="A larger temperature treats all negatives alike, a smaller one turns to the most similar ones.",
            latex=r"\frac{dr_j}{d\tau}=\frac{r_j}{\tau^2}(E_r[s]-s_j),\qquad\frac{dE_r[s]}{d\tau}"
            r"=-\frac{\mathrm{Var}_r(s)}{\tau^2},\qquad1-m\,r_{\max}\le(K-m)\,e^{-g/\tau},"
            r"\quad m\ \text{tied hardest},\ g\ \text{above the next}",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="Where not all negatives are equal: true of the hardest, whose share falls as the temperature "
            "rises, and of all at or below the mean of the negatives, whose shares rise with it. The share of one "
            "above that mean and below the "
            "hardest has a peak, where E_r[s] = s_j: below that temperature it falls with it, however similar the "
            "negative is.",
            scenario="limits",
            as_published="[d(r[j], t) for j in range(K) if mean(s[1:]) < s[j + 1]] <= 0",
            counterexample={"s": (0.0, 0.9, 0.5, -0.8), "t": 1.0},
            formula="[d(r[j], t) for j in range(K)] == [r[j] / t**2 * (r_mean - s[j + 1]) for j in range(K)]"
            " and d(r_mean, t) == -r_var / t**2 and d(max(*r), t) <= 0 and mean(s[1:]) <= r_mean <= max(*s[1:])"
            " and 0 <= [d(r[j], t) for j in range(K) if s[j + 1] <= mean(s[1:])]"
            " and 1 - ties * max(*r) <= others * exp(below / t)",
            symbolic="[d(r[j], t) for j in range(K)] == [r[j] / t**2 * (r_mean - s[j + 1]) for j in range(K)]"
            " and d(r_mean, t) == -r_var / t**2",
            numeric=True,
            random=True,
        ),
        Claim(
            id="WL-13",
            title="the limit at temperature 0 is a triplet loss over the temperature",
            source=SOURCE,
            place="(5); eq. (6)",
            published="The limit of L is the limit of max[s_max - s_+, 0] / tau: a triplet loss with margin 0.",
            latex=r"\lim_{\tau\to0^+}\tau L=\max(\Delta,0),\quad0\le\tau L-\max(\Delta,0)\le\tau\log N;\qquad "
            r"L-\tfrac{\max(\Delta,0)}{\tau}\to\log m,\ \log(1+m),\ 0\ \text{for}\ \Delta>0,=0,<0,"
            r"\quad\Delta=\max_{j\ge1}s_j-s_+,\ m\ \text{tied hardest}",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="It is the limit of tau L. L itself keeps a constant: log m for m tied hardest negatives above "
            "the positive, log(1 + m) level with it; and it goes to 0 if the positive is the most similar.",
            scenario="limits",
            counterexample=_a_constant_is_lost,
            formula="0 <= t * L - max(gap, 0) <= t * log(N) and 0 <= L - max(gap, 0) / t - limit <= rest",
            derivation="tau-zero",
            numeric=True,
            random=True,
        ),
        Claim(
            id="WL-14",
            title="at temperature 0 only negatives above the positive count",
            source="source 000",
            place="(4)",
            published="In the limit, the sum may be restricted to negatives at least as similar as the positive.",
            latex=r"0\le L-L_{(4)}\le\sum_{s_j<s_+}e^{(s_j-s_+)/\tau}\to0,\quad L_{(4)}\ \text{over the}\ s_j\ge s_+",
            expected=Verdict.AGREES,
            scenario="limits",
            formula="0 <= L - L_restricted <= easy",
            symbolic=_restriction_at_zero,
            numeric=True,
            random=True,
        ),
        Claim(
            id="WL-15",
            title="at temperature 0 only the hardest negative is looked at",
            source="source 000",
            place="sentence after (5)",
            published="As the temperature goes to 0, the loss looks at the hardest negative only.",
            latex=r"\tau\frac{\partial L}{\partial s_j}\to\frac1m\ (\Delta>0),\ \frac1{m+1}\ (\Delta=0),\ 0\ (\Delta<0)"
            r"\quad\text{on each of the }m\text{ hardest},\quad\Delta=\max_{j\ge1}s_j-s_+",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="Where a negative is at least as similar as the positive; tied ones share. Once the positive is "
            "the "
            "most similar, no negative gets a gradient: only the relative penalties still concentrate.",
            scenario="limits",
            as_published="abs(1 - on_hardest) <= 1 / 2",
            counterexample={"s": (0.5, 0.25, -0.45, -0.1), "t": 0.01},
            formula="[abs(t * d(L, s[j]) - (share[j] - int(j == 0))) for j in range(N)] <= rest",
            symbolic=_shares_at_zero,
            numeric=True,
            random=True,
        ),
        Claim(
            id="WL-16",
            title="the limit at infinite temperature is linear in the similarities",
            source=SOURCE,
            place="(6); eq. (7)",
            published="The limits of L and of (1-N)/(N tau) s_+ + 1/(N tau) sum of s_k + log N are the same.",
            latex=r"0\le L-\Big[\log N+\frac{\bar s-s_+}\tau\Big]\le\frac{(s_{\max}-s_{\min})^2}{8\tau^2},\qquad "
            r"\Big|L-\log N-\frac{\bar s-s_+}\tau-\frac{\kappa_2}{2\tau^2}-\frac{\kappa_3}{6\tau^3}\Big|"
            r"\le\frac{(s_{\max}-s_{\min})^4}{192\,\tau^4},\quad\bar s=\frac1N\sum_js_j,\ \kappa_n="
            r"\frac1N\sum_j(s_j-\bar s)^n",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="Every line has the limit log N. Meant is an expansion to first order in 1 / tau; what it leaves "
            "out is never negative and at most (s_max - s_min)^2 / (8 tau^2).",
            as_published="L == log(N) + (s_mean - s[0]) / t",
            counterexample={"s": (0.5, 0.25, -0.45, -0.1), "t": 1.0},
            formula="0 <= L - (log(N) + (s_mean - s[0]) / t) <= (s_max - s_min)**2 / (8 * t**2)"
            " and abs(L - log(N) - (s_mean - s[0]) / t - k2 / (2 * t**2) - k3 / (6 * t**3))"
            " <= (s_max - s_min)**4 / (192 * t**4)",
            derivation="tau-infinity",
            numeric=True,
            random=True,
        ),
        Claim(
            id="WL-17",
            title="at temperature (N-1)/N the loss is almost the simple loss",
            source="source 000",
            place="paragraph after (6)",
            published="At tau = (N-1)/N the contrastive loss and the simple loss are almost the same.",
            latex=r"\log N+\frac{\bar s-s_+}{\tau}=\log N+\frac{N-1}{N\tau}\Big(-s_++\frac1{N-1}\sum_{j\ge1}s_j\Big)",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="The linearized loss is (N-1)/(N tau) times the simple loss with lambda = 1/(N-1), plus log N, at "
            "every temperature. Near 1 the loss is not linear: the weights of two negatives differ by exp((s_j - "
            "s_k) / tau).",
            counterexample=_far_from_simple,
            formula="(s_mean - s[0]) / t == K / (N * t) * (sum(s[1:]) / K - s[0])"
            " and 0 <= L - log(N) - K / (N * t) * (sum(s[1:]) / K - s[0]) <= (s_max - s_min)**2 / (8 * t**2)"
            " and r == [r[0] * exp((x - s[1]) / t) for x in s[1:]]",
            derivation="simple-loss",
            numeric=True,
            random=True,
        ),
        Claim(
            id="WL-18",
            title="the hard contrastive loss is the loss over the hardest negatives",
            source="Wang & Liu 2021",
            place="eq. (8), (9)",
            published="Only negatives above a quantile take part; their relative penalties are renormalized.",
            latex=r"L_{\mathrm{hard}}\le L,\qquad r_j=\frac{e^{s_j/\tau}}{\sum_{k\ \text{kept}}e^{s_k/\tau}}"
            r"\ \text{on the kept, else }0",
            given="at least one negative is kept, the most similar ones, of tied ones those that come first",
            expected=Verdict.AGREES,
            scenario="limits",
            formula="L_half <= L and [d(L_half, s[j]) for j in dropped] == 0"
            " and [d(L_half, s[j]) for j in kept]"
            " == [-d(L_half, s[0]) / sum(exp((s[i] - s[j]) / t) for i in kept) for j in kept]",
            numeric=True,
            random=_hardest_of_a_batch,
            no_evidence="symbolic: which negatives are kept depends on the order of the numbers",
        ),
        Claim(
            id="WL-19",
            title="the temperature trades uniformity against tolerance",
            source="Wang & Liu 2021; sources 001, 002",
            place="section 4",
            published="A smaller temperature makes features more uniform and less tolerant of similar samples.",
            latex=r"\text{an empirical statement about trained networks, not about minimizers}",
            expected=Verdict.NOT_REPRODUCIBLE,
            no_evidence="It is about networks trained on images. It does not follow from where the loss is least: the "
            "uniform law is best at every temperature, and so is the simplex of up to D + 1 points. Other numbers of "
            "points may be arranged differently (WI-4).",
        ),
        Claim(
            id="WL-20",
            title="most papers default to a small temperature such as 0.05",
            source="source 000; source 003",
            place="first paragraph; last line",
            published="Most papers use a small temperature, for example 0.05; 0.05 is the common one.",
            latex=r"\tau=0.07\ \text{(MoCo, CLIP, SupCon)},\ 0.1\ \text{(SimCLR)},\ 0.2\ \text{(PaCo)},\ "
            r"0.05\ \text{(sentence-transformers)}",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="Small, yes: most defaults are 0.1 or less. The common ones are 0.07 and 0.1; some are 0.05, "
            "and some are 1 (nceref tables conventions has most of them).",
            counterexample=_defaults_elsewhere,
            given="the defaults in the code that was read",
            numeric=_small_defaults,
            no_evidence="symbolic, property: what authors choose is no mathematics; the defaults were read in their "
            "code.",
        ),
        Claim(
            id="WL-21",
            title="a loss that looks at hard negatives favors a uniform distribution",
            source="source 000; source 002",
            place="end of the section on hard negatives; note on point charges",
            published="Larger gradients for more similar negatives favor features that are uniform on the hypersphere.",
            latex=r"0\le L-\log\big(1+Ke^{(\bar s_--s_+)/\tau}\big)"
            r"\le\frac{(\max_{j\ge1}s_j-\min_{j\ge1}s_j)^2}{8\tau^2},\quad\bar s_-=\frac1K\sum_{j\ge1}s_j;\qquad "
            r"L_{\mathrm{simple}}=-s_++\lambda K\bar s_-",
            expected=Verdict.AGREES,
            scenario="split",
            formula="0 <= L - log(1 + K * exp((mean(s[1:]) - s[0]) / t)) <= (max(*s[1:]) - min(*s[1:]))**2 / (8 * t**2)"
            " and simple == w * K * mean(s[1:]) - s[0]",
            numeric=True,
            random=_evenly_spread_is_lower,
            no_evidence="symbolic: it is an inequality. Of arrangements: without hardness, all that add up to 0 are "
            "minima, two poles as well as the uniform one (WL-5)",
        ),
        Claim(
            id="WL-22",
            title="the attention to hard negatives is crucial",
            source="source 000",
            place="first of the two findings",
            published="That the loss looks for hard negatives by itself is crucial for representations of high "
            "quality.",
            latex=r"A_{\mathrm{simple}}<\min_\tau A_\tau,\qquad\max_\tau A_\tau-A_{\mathrm{hard\ simple}}<1",
            given="the printed accuracies, in percent, of WL-4",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="Hard negatives matter, not who looks for them: the simple loss over all negatives is behind at "
            "every printed temperature, and over the hardest ones, picked beforehand, it is less than a point behind "
            "the "
            "best.",
            counterexample=_linear_over_hard_negatives,
            numeric=_behind_without_hard_negatives,
            no_evidence="symbolic, property: accuracies were measured; it takes the images and the networks.",
        ),
    ),
)
