"""Source 002: what the NCE loss is, how it splits into alignment and uniformity, and what the temperature does."""

from nceref.theory.claim import Chapter, Claim, Counter, Repair
from nceref.theory.verdicts import Verdict

SOURCE = "source 002"

# Entropy of von Mises-Fisher laws on the sphere in space by concentration; computed with 50 digits.
ENTROPIES = {1: "2.37943", 5: "1.22794", 20: "-0.15786"}


def _one_shift_separates_them():
    """InfoNCE does not see a constant added to all scores; NCE does, for it learns the normalizer."""
    import numpy as np

    from nceref import losses

    def info_nce(x):
        return losses.cross_entropy(x, np.array([0]), temperature=1.0)

    def nce(x):
        flat = np.zeros(3)
        return losses.nce(x[0, :1], x[0, 1:], data_log_noise=flat[:1], noise_log_noise=flat, noise_ratio=3.0)

    x = np.array([[0.5, 0.25, -0.45, -0.1]])
    values = [loss(x + shift) for loss in (info_nce, nce) for shift in (0.0, 1.0)]
    shown = "scores {}, temperature 1: InfoNCE {:.6f}, with 1 added to all {:.6f}; NCE {:.6f} and {:.6f}".format(
        x[0].tolist(), *values
    )
    apart = min(abs(values[2] - values[0]), abs(values[3] - values[2]))
    return Counter(shown, abs(values[0] - values[1]) < 1e-14 and apart > 0.1)


def _uniform_and_not_separable():
    """Every second corner of a polygon: as uniform as the uniform law, and no line has a label on each side."""
    import numpy as np
    from scipy.optimize import linprog

    from nceref import losses
    from nceref.theory.scenarios.sphere import balanced, least_uniformity

    x, labels = balanced(64, np.random.default_rng(0))[0], np.where(np.arange(64) % 2, 1.0, -1.0)
    value, best = losses.uniformity(x, include_diagonal=True), float(least_uniformity(2))
    line = linprog(np.zeros(3), A_ub=-labels[:, None] * np.c_[x, np.ones(64)], b_ub=-np.ones(64), bounds=(None, None))
    infeasible = line.status == 2  # of linprog: no line satisfies all constraints
    shown = (
        f"64 corners, labels alternating: L_uniform over all ordered pairs {value:.8f}, of the uniform law {best:.8f};"
        f" {'no' if infeasible else 'a'} line separates the labels"
    )
    return Counter(shown, abs(value - best) < 1e-12 and infeasible)


def _entropy_falls_with_concentration():
    """Normalizer, mean and entropy of the law with density ~ exp(k x), x the height: dh/dk = -k Var < 0."""
    import sympy

    k, x = sympy.symbols("kappa x", positive=True)
    total = 2 * sympy.sinh(k) / k
    mean = sympy.diff(sympy.log(total), k)
    entropy = sympy.log(2 * sympy.pi * total) - k * mean
    zeros = (
        sympy.integrate(sympy.exp(k * x), (x, -1, 1)) - total,
        sympy.diff(mean, k) - 1 / k**2 + 1 / sympy.sinh(k) ** 2,
        sympy.diff(entropy, k) + k * sympy.diff(mean, k),
        entropy - sympy.log(2 * sympy.pi * total) - 1 + k * sympy.coth(k),
    )
    vanish = all(sympy.simplify(zero.rewrite(sympy.exp)) == 0 for zero in zeros)
    return vanish and sympy.simplify(sympy.limit(entropy, k, 0) - sympy.log(4 * sympy.pi)) == 0


def _entropies_by_quadrature():
    """Minus the integral of p log p against the closed form, with 50 digits, and five decimals of each."""
    from mpmath import mp, quad

    with mp.workdps(60):
        for k, text in ENTROPIES.items():
            scale = mp.log(k / (4 * mp.pi * mp.sinh(k)))
            integral = quad(lambda x, k=k, c=scale: -2 * mp.pi * mp.exp(c + k * x) * (c + k * x), [-1, 0, 1])
            closed = mp.log(4 * mp.pi * mp.sinh(k) / k) + 1 - k * mp.coth(k)
            if abs(integral - closed) > 1e-48 or not closed < mp.log(4 * mp.pi) or f"{float(closed):.5f}" != text:
                return False
    return True


def _uniform_has_most_entropy(rng):
    """Random densities on 20 bands of equal area: entropy below log 4 pi, which equal ones attain.

    50 densities.
    """
    import numpy as np

    most, area = np.log(4 * np.pi), 4 * np.pi / 20
    densities = np.vstack([np.full(20, 0.05), rng.dirichlet(np.full(20, 0.7), 50)])
    entropies = -np.sum(densities * np.log(np.maximum(densities, 1e-300) / area), axis=1)
    return abs(entropies[0] - most) < 1e-12 and np.all(entropies[1:] < most - 1e-3)


def _collapse():
    """All points equal: chance level, least alignment, most uniformity; with 50 digits, then by program."""
    import numpy as np

    from nceref import losses
    from nceref.theory.statements import DecimalSystem, evaluate

    attained = "L == log(N) and ideal - 1 / t == log(N) and alignment == -1 / t"
    exact = [
        evaluate(attained, "split", {"s": (1.0,) * n, "t": 0.1, "w": 1.0}, DecimalSystem(50)).holds for n in (2, 5, 64)
    ]
    x = np.tile([0.6, 0.8], (64, 1))
    pair = losses.alignment(x, x), losses.uniformity(x)
    return all(exact) and np.allclose([*pair, losses.info_nce(x, x, temperature=0.1)], [0, 0, np.log(64)], atol=1e-13)


def _descended(parts, start):
    """Two views of points in the plane, (2, N, 2), where descent on the sum of these parts of the loss ends."""
    import numpy as np
    from scipy.optimize import minimize

    from nceref import losses

    def loss(flat):
        total, slope, pair = 0.0, np.zeros((2, *start.shape[1:])), flat.reshape(start.shape)
        if "alignment" in parts:
            value, grad = losses.alignment.value_and_grad(*pair)
            total, slope = total + value, slope + np.stack([grad["x"], grad["y"]])
        if "uniformity" in parts:
            value, grad = losses.uniformity.value_and_grad(pair.reshape(-1, 2))
            total, slope = total + value, slope + grad["x"].reshape(start.shape)
        return total, slope.ravel()

    end = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    pair = end.x.reshape(start.shape)
    return pair / np.linalg.norm(pair, axis=2, keepdims=True)


def _pairs_stay_where_they_met():
    """Descent on alignment alone, from six pairs at random in the plane: not all points end in one."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    from nceref import losses

    start = np.random.default_rng(0).standard_normal((2, 6, 2))
    with threadpool_limits(1):
        x = _descended(("alignment",), start)
    aligned, uniform = float(losses.alignment(*x)), float(losses.uniformity(x.reshape(-1, 2)))
    shown = f"alignment {aligned:.1g}, uniformity {uniform:.3f}; of a collapse it is 0"
    shown = f"descent from six random pairs in the plane (seed 0), on alignment alone: {shown}"
    return Counter(shown, aligned < 1e-12 and uniform < -0.5)


def _both_parts_are_needed():
    """A collapse is at log N, at the least alignment and the most uniformity, with 50 digits and by program.

    Six pairs in the plane: what descent on alignment, on uniformity and on both makes of alignment and uniformity.

    Alignment alone leaves pairs where they met, and a collapse as it is; uniformity alone spreads all twelve points and
    tears the pairs apart; both put the pairs on the corners of a hexagon.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    from nceref import losses

    hexagon, twelve = ([np.cos(a), np.sin(a)] for a in (2 * np.pi * np.arange(n) / n for n in (6, 12)))
    paired, spread = (float(losses.uniformity(np.transpose(x))) for x in (np.tile(hexagon, 2), twelve))
    held = []
    with threadpool_limits(1):
        for seed in range(2):
            start = np.random.default_rng(seed).standard_normal((2, 6, 2))
            parts = ("alignment",), ("uniformity",), ("alignment", "uniformity")
            ends = [_descended(chosen, start) for chosen in parts]
            pulled, pushed, both = ((losses.alignment(*x), losses.uniformity(x.reshape(-1, 2))) for x in ends)
            held += [pulled[0] < 1e-12 and pulled[1] > paired + 0.2, pushed[0] > 1 and abs(pushed[1] - spread) < 1e-9]
            held += [both[0] < 1e-12 and abs(both[1] - paired) < 1e-9]
        collapsed = np.tile([0.6, 0.8], (2, 6, 1))
        held += [np.allclose(_descended(("alignment",), collapsed), collapsed, atol=1e-12)]
    return _collapse() and all(held)


CHAPTER = Chapter(
    name="source_002",
    title="Source 002: the NCE loss, alignment and uniformity",
    claims=(
        Claim(
            id="NC-1",
            title="softmax sums to 1; one-hot cross-entropy is minus log-softmax",
            source=SOURCE,
            place="section on what the NCE loss is",
            published="With a one-hot target only the log-softmax of the target is left of the cross-entropy.",
            latex=r"\sum_jP_j=1,\qquad-\sum_jy_j\log P_j=-\log P_{\mathrm{target}},\quad y_j=[j=\mathrm{target}]",
            expected=Verdict.AGREES,
            formula="L == -sum(int(j == 0) * log(P[j]) for j in range(N)) and sum(P) == 1 and 0 <= P",
            derivation="gradients",
            numeric=True,
            random=True,
        ),
        Claim(
            id="NC-2",
            title="the NCE loss and InfoNCE are told apart by a temperature",
            source=SOURCE,
            place="first paragraph; sentence after the InfoNCE formula",
            published="The noise is the negatives, and NCE with a temperature is InfoNCE.",
            latex=r"\frac{\partial L_{\mathrm{InfoNCE}}}{\partial s_j}=\frac{P_j-\delta_{j0}}\tau,\quad\sum_jP_j=1,"
            r"\qquad\frac{\partial L_{\mathrm{NCE}}}{\partial s_j}=\frac{h_j-\delta_{j0}}\tau,\quad "
            r"h=\frac{e^{s/\tau}}{e^{s/\tau}+K}\ \text{for}\ K\ \text{noise samples of density 1}",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="NCE is binary: data against samples of a noise of known density, and a learned normalizer. "
            "InfoNCE is one choice among N candidates and has no normalizer to learn, whatever the temperature.",
            counterexample=_one_shift_separates_them,
            scenario="split",
            formula="d(L, s[0]) == (P[0] - 1) / t and d(L, s[1]) == P[1] / t and sum(P) == 1"
            " and d(nce, s[0]) == (h[0] - 1) / t and d(nce, s[1]) == h[1] / t",
            symbolic=True,
            numeric=True,
            random=True,
        ),
        Claim(
            id="NC-3",
            title="the loss is alignment plus uniformity",
            source=SOURCE,
            place="three-line formula in the section on how it works",
            published="If positives coincide, alignment is about the positive pair only, uniformity about negatives.",
            latex=r"L=-\frac{s_+}\tau+\log\big(e^{s_+/\tau}+S\big),\quad S=\sum_{j\ge1}e^{s_j/\tau},\qquad "
            r"0\le\log\frac{e^{1/\tau}+S}{e^{s_+/\tau}+S}\le\frac{1-s_+}\tau\,\frac{e^{1/\tau}}{e^{1/\tau}+S},"
            r"\qquad 1-Ke^{\Delta/\tau}\le P_+\le e^{-\Delta/\tau},\quad\Delta=\max_{j\ge1}s_j-s_+",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="Unit vectors and perfect alignment; alignment is then the constant -1 / tau. Otherwise the "
            "uniformity term moves with the positive by P_+ / tau: at low temperature nearly as much as alignment "
            "where the positive is the most similar, and hardly at all where a negative is.",
            scenario="split",
            as_published="d(uniformity, s[0]) == 0",
            counterexample={"s": (0.9, 0.25, -0.45, -0.1), "t": 0.07, "w": 1.0},
            formula="L == alignment + uniformity and d(uniformity, s[0]) == P[0] / t"
            " and 0 <= ideal - uniformity <= (1 - s[0]) / t * exp(1 / t) / (exp(1 / t) + others)"
            " and 1 - P[0] <= K * exp((max(*s[1:]) - s[0]) / t) and P[0] <= exp((s[0] - max(*s[1:])) / t)",
            derivation="alignment-uniformity",
            numeric=True,
            random=True,
        ),
        Claim(
            id="NC-4",
            title="uniform features are linearly separable and keep most information",
            source=SOURCE,
            place="sentence before the figure; definition of uniformity",
            published="Uniform features help clustering and linear separation; the more uniform, the more information.",
            latex=r"h(p)=\log|S^{d-1}|-\mathrm{KL}(p\,\|\,u)\le\log|S^{d-1}|,\qquad "
            r"h(\mathrm{vMF}_\kappa)=\log\frac{4\pi\sinh\kappa}\kappa+1-\kappa\coth\kappa\text{ on }S^2",
            given="densities on the sphere, u the uniform one; of von Mises and Fisher in space, kappa > 0",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="Uniformity does not know the labels, and labels may alternate on a uniform set. What holds: the "
            "uniform law has the most entropy on the sphere.",
            counterexample=_uniform_and_not_separable,
            symbolic=_entropy_falls_with_concentration,
            numeric=_entropies_by_quadrature,
            random=_uniform_has_most_entropy,
        ),
        Claim(
            id="NC-5",
            title="without alignment no clusters, without uniformity a collapse",
            source=SOURCE,
            place="section on degenerate solutions",
            published="Both parts are needed: without alignment nothing clusters; without uniformity all inputs easily "
            "get the same representation.",
            latex=r"s_j=1\ \forall j:\quad L=\log N,\quad -\frac{s_+}\tau=-\frac1\tau=\min,\quad "
            r"L_{\mathrm{uniform}}=0=\max;\qquad L_{\mathrm{uniform}}(z_{\pi(1)},\dots,z_{\pi(n)})"
            r"=L_{\mathrm{uniform}}(z_1,\dots,z_n)\ \text{for every permutation}\ \pi",
            given="collapse and descent: a batch of rows of length 1, free points",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="Without alignment nothing pairs up: uniformity does not see who is whose partner. Without "
            "uniformity a collapse is as good as anything and stays one, but nothing leads there: descent on alignment "
            "leaves each pair where its two points met.",
            counterexample=_pairs_stay_where_they_met,
            scenario="split",
            formula="-1 / t <= alignment and ideal - 1 / t <= log(N)",
            numeric=_both_parts_are_needed,
            random=True,
            no_evidence="symbolic: equal similarities are substituted, with 50 digits; that uniformity does not know "
            "who is whose partner is seen where descent on it ends",
        ),
        Claim(
            id="NC-6",
            title="low temperatures look at the hardest negative, high ones at all",
            source=SOURCE,
            place="section on the temperature coefficient",
            published="Near 0 only the hardest negative counts and its gradient grows, at infinity all count alike; "
            "the temperature must not be too small.",
            latex=r"\frac{1-r_{\max}}{r_{\max}}\le(K-1)e^{-g/\tau},\ g\ "
            r"\text{from the hardest negative to the next},\qquad "
            r"\frac{e^{-2/\tau}}K\le r_j\le\frac{e^{2/\tau}}K,\qquad 1-P_+\le Ke^{(\max_js_j-s_+)/\tau}",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="True of the shares among the negatives. The push on a negative, P / tau, grows as the "
            "temperature falls only while it is less than tau below E_P[s], the mean similarity under the softmax "
            "(IS-7). Where the positive is the most similar, gradients vanish. How low it may be is a matter of "
            "experiments (WL-19).",
            scenario="split",
            as_published="d(P[1] / t, t) < 0",
            counterexample={"s": (0.5, 0.25, -0.45, -0.1), "t": 0.05, "w": 1.0},
            formula="(1 - max(*r)) / max(*r) <= len(s[2:]) / exp(lead / t) and exp(-2 / t) / K <= r <= exp(2 / t) / K"
            " and 1 - P[0] <= K * exp((max(*s[1:]) - s[0]) / t)",
            numeric=True,
            random=True,
            no_evidence="symbolic: these are inequalities",
        ),
    ),
)
