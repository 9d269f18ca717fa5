"""Standard results of other papers about negatives: noise, the hard ones, and those that are positives."""

from nceref.theory.claim import Chapter, Claim, Repair
from nceref.theory.verdicts import Verdict

DERIVED = "derived here; the paper was not read"


def _normalizer_is_learned(rng):
    """Free log-densities of four states: the search ends at the law of the data, which nothing normalized.

    1 to 19 samples of each state, of data and of noise; noise ratios 0.5, 1 and 5.
    """
    import numpy as np
    from scipy.optimize import minimize

    from nceref import losses

    held = []
    for nu in (0.5, 1.0, 5.0):
        data, noise = (np.repeat(np.arange(4), rng.integers(1, 20, 4)) for _ in range(2))
        p, q = (np.log(np.bincount(x) / len(x)) for x in (data, noise))
        given = {"data_log_noise": q[data], "noise_log_noise": q[noise], "noise_ratio": nu}

        def value(f, data=data, noise=noise, given=given):
            loss, g = losses.nce.value_and_grad(f[data], f[noise], **given)
            return loss, np.bincount(data, g["data_logits"]) + np.bincount(noise, g["noise_logits"])

        end = minimize(value, np.zeros(4), jac=True, options={"gtol": 1e-11})
        held += [np.allclose(end.x, p, atol=1e-7), np.isclose(np.exp(end.x).sum(), 1, atol=1e-7)]
    return all(held)


def _hard_negatives():
    """The slope by a negative, with weights that are not constants, for every concentration and prior."""
    import sympy

    beta, prior = sympy.symbols("beta prior", positive=True)
    s = sympy.symbols("s0:4", real=True)
    up, level = (sum(sympy.exp(b * x) for x in s[1:]) for b in (1 + beta, beta))
    mass = 3 * up / level / (1 - prior)
    total = sympy.exp(s[0]) + mass - 3 * prior * sympy.exp(s[0]) / (1 - prior)
    shares = (1 + beta) * sympy.exp((1 + beta) * s[1]) / up - beta * sympy.exp(beta * s[1]) / level
    return sympy.simplify(sympy.diff(sympy.log(total) - s[0], s[1]) - mass / total * shares) == 0


def _two_views(rng, n=6):
    """Two views, from alike to unlike, logits at temperature 0.5, who is partner and who is negative, and e^+."""
    import numpy as np

    z = rng.standard_normal((2 * n, 3))
    z[n:] = z[:n] + np.linspace(0, 3, n)[:, None] * z[n:]
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    logits, rows = z @ z.T / 0.5, np.arange(2 * n)
    partner = rows == (rows[:, None] + n) % (2 * n)
    return z[:n], z[n:], logits, partner, ~(partner | np.eye(2 * n, dtype=bool)), np.exp(logits[partner])


def _clamped(logits, partner, negatives, beta, prior):
    """Estimate of the sum over true negatives, its floor, and the mass before the prior is taken off."""
    import numpy as np

    n, e = negatives[0].sum(), np.exp(logits) * negatives
    mass = n * (e ** (1 + beta)).sum(axis=1) / (negatives * np.exp(beta * logits)).sum(axis=1)
    estimate = (mass - prior * n * np.exp(logits[partner])) / (1 - prior)
    # The floor: n negatives of cosine -1, at temperature 0.5.
    return estimate, n * np.exp(-1 / 0.5), mass / (1 - prior)


def _hcl_as_implemented(rng):
    """Rows and slopes; some negative is attracted; concentration and prior 0 are NT-Xent.

    Four batches of 6 pairs in space, concentrations from 0 to 2, prior 0.3, temperature 0.5.
    """
    import numpy as np

    from nceref import losses

    held, signs = [], set()
    for beta in (0.0, 0.5, 1.0, 2.0):
        z1, z2, logits, partner, negatives, own = _two_views(rng)
        estimate, floor, mass = _clamped(logits, partner, negatives, beta, 0.3)
        seen = losses.hcl.anatomy(z1, z2, temperature=0.5, positive_prior=0.3, concentration=beta)
        powers = [np.exp(b * logits) * negatives for b in (1 + beta, beta)]
        up, level = (x / x.sum(axis=1, keepdims=True) for x in powers)
        total = own + np.maximum(estimate, floor)
        # On the clamp no negative has a slope.
        wanted = np.where(estimate > floor, mass / total, 0)[:, None] * ((1 + beta) * up - beta * level)
        signs |= set(np.sign(wanted[negatives]))
        plain = losses.hcl(z1, z2, temperature=0.5, positive_prior=0.0, concentration=0.0)
        held += [np.allclose(seen.rows, np.log(total / own))]
        held += [np.allclose(12 * seen.slopes[negatives], wanted[negatives])]
        held += [np.allclose(plain, losses.nt_xent(z1, z2, temperature=0.5), rtol=1e-12)]
        held += [_grows_to_the_hardest(logits, partner, negatives)]
    return all(held) and signs >= {-1.0, 1.0}


def _grows_to_the_hardest(logits, partner, negatives):
    """A higher concentration means more mass, up to that of n copies of the hardest negative."""
    import numpy as np

    n = negatives[0].sum()
    top = n * np.exp(np.where(negatives, logits, -np.inf).max(axis=1))
    grown = [_clamped(logits, partner, negatives, b, 0.0)[0] / top for b in (0.0, 0.5, 5.0, 50.0)]
    return bool((np.diff(grown, axis=0) > 0).all() and grown[-1].min() > 0.9 and grown[-1].max() < 1 + 1e-12)


def _debiased_in_expectation(rng):
    """Over all draws of three negatives: without the clamp the mean is that over true negatives; with it, no less.

    20 laws of three states, priors from 0.05 to 0.9.
    """
    from itertools import product

    import numpy as np

    held = []
    for _ in range(20):
        prior, e = rng.uniform(0.05, 0.9), np.exp(rng.uniform(-2, 2, 3))
        same, other = rng.dirichlet(np.ones(3), 2)
        law, draws = prior * same + (1 - prior) * other, np.array(list(product(range(3), repeat=3)))
        chance = law[draws].prod(axis=1)
        estimate = (e[draws].sum(axis=1) - prior * 3 * (same @ e)) / (1 - prior)
        held += [np.isclose(chance @ estimate, 3 * (other @ e), rtol=1e-12)]
        held += [chance @ np.maximum(estimate, 3 * np.exp(-2)) >= chance @ estimate]
    return all(held)


def _rows_of_debiased():
    """Rows of the implementation, on the clamp and off it."""
    import numpy as np

    from nceref import losses

    z1, z2, logits, partner, negatives, own = _two_views(np.random.default_rng(0))
    rows = losses.debiased(z1, z2, temperature=0.5, positive_prior=0.3, reduction="none")
    estimate, floor, _ = _clamped(logits, partner, negatives, 0.0, 0.3)
    clamped = estimate < floor
    return np.allclose(rows, np.log1p(np.maximum(estimate, floor) / own), rtol=1e-12) and 0 < clamped.sum() < 12


MASKED = "sum(exp(x / t) for x in s[1:]) + 1e-45 * (exp(1 / t) + exp(s[0] / t))"

CHAPTER = Chapter(
    name="standard_negatives",
    title="Standard results: noise, decoupled, hard and debiased negatives",
    claims=(
        Claim(
            id="NCE-1",
            title="the optimum of binary NCE is the law of the data, normalized",
            source="Gutmann & Hyvarinen 2010",
            place=DERIVED,
            published="Telling data from noise of known density recovers the density; its normalizer is learned.",
            latex=r"J=E_d\log h+\nu E_n\log(1-h),\quad h=\sigma(\log p_m-\log p_n-\log\nu):\quad "
            r" h^*=\frac{p_d}{p_d+\nu p_n}\iff p_m=p_d",
            given="laws, not samples; p_n > 0 where p_d > 0; the model contains p_d; nu > 0",
            expected=Verdict.AGREES,
            derivation="nce-optimum",
            random=_normalizer_is_learned,
            no_evidence="numeric: the symbolic optimum holds for all densities",
        ),
        Claim(
            id="DCL-1",
            title="InfoNCE is the softplus of the decoupled loss",
            source="Yeh et al. 2022 (DCL)",
            place="a third party's code; " + DERIVED,
            published="The positive in the denominator multiplies the gradient by q_B; DCL is the loss without it.",
            latex=r"L=\log\big(1+e^{L_{DCL}}\big),\quad\nabla L=q_B\nabla L_{DCL},\quad q_B=1-P_+=\sigma(L_{DCL});"
            r"\qquad L_{DCL}\ge\log K-\frac2\tau",
            given="the bound: cosines, -1 <= s_j <= 1",
            expected=Verdict.AGREES,
            formula="L == log(1 + exp(L_dcl)) and 1 - P[0] == 1 / (1 + exp(-L_dcl))"
            " and [d(L, s[j]) for j in (0, 1)] == [(1 - P[0]) * d(L_dcl, s[j]) for j in (0, 1)]"
            " and d(L, t) == (1 - P[0]) * d(L_dcl, t) and log(K) - 2 / t <= L_dcl"
            " and log(sum(exp(-1 / t) for x in s[1:])) - 1 / t == log(K) - 2 / t",
            derivation="dcl-infonce",
            numeric=True,
            random=True,
        ),
        Claim(
            id="DCL-2",
            title="adding log(1e-45) to a logit takes it out of the sum",
            source="raminnakhli/Decoupled-Contrastive-Learning",
            place="loss/dcl.py at 50991ef",
            published="The anchor itself and its positive are masked by adding log(1e-45) = -103.6 to their logits.",
            given="rows of length 1: the bound, and the product of the anchor with itself",
            latex=r"0\le L_{masked}-L_{DCL}=\log\Big(1+10^{-45}\,\frac{e^{1/\tau}+e^{s_+/\tau}}{\sum e^{s_j/\tau}}"
            r"\Big)\le\log\Big(1+\frac{2}{K}10^{-45}e^{2/\tau}\Big)",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="True in float64 of cosines for tau >= 0.03; a smaller one lets them in, below about 0.01 "
            "visibly.",
            as_published=f"log({MASKED}) - s[0] / t == L_dcl",
            counterexample={"s": (0.9, 0.25, -0.45, -0.1), "t": 0.005},
            formula=f"log({MASKED}) - s[0] / t - L_dcl"
            " == log(1 + 1e-45 * (exp(1 / t) + exp(s[0] / t)) / sum(exp(x / t) for x in s[1:]))",
            symbolic=True,
            numeric=True,
            random=f"L_dcl <= log({MASKED}) - s[0] / t <= L_dcl + log(1 + 2e-45 / K * exp(2 / t))",
        ),
        Claim(
            id="HCL-1",
            title="hard negatives by importance weights; their gradient",
            source="Robinson et al. 2021 (HCL)",
            place="image/main.py of the authors; " + DERIVED,
            published="Weights proportional to e^(beta s / tau) make hard negatives count more; beta = 0 is debiased.",
            latex=r"\frac{\partial L}{\partial s_j}=\frac{\tilde N}{D\tau}\big[(1+\beta)r_j^{(1+\beta)}-\beta "
            r"r_j^{(\beta)}\big],\quad\tilde N=\frac N{1-\tau^+}\frac{\sum e^{(1+\beta)s/\tau}}{\sum e^{\beta s/\tau}},"
            r"\quad D=e^{s_+/\tau}+\tilde N-\frac{\tau^+}{1-\tau^+}Ne^{s_+/\tau},"
            r"\quad r^{(b)}=\mathrm{softmax}\frac{bs}\tau\ \text{over the}\ N\ \text{negatives}",
            given="one anchor, off the clamp; beta >= 0, 0 <= tau^+ < 1, tau > 0",
            expected=Verdict.AGREES,
            symbolic=_hard_negatives,
            random=_hcl_as_implemented,
            no_evidence="numeric: the symbolic identity holds off the clamp, batches show both sides of it",
        ),
        Claim(
            id="DEB-1",
            title="debiased negatives have the mean of the true ones",
            source="Chuang et al. 2020 (debiased)",
            place="main.py of the authors; " + DERIVED,
            published="Subtracting the expected share of positives from the mean over all samples removes the bias.",
            latex=r"p=\tau^+p^++(1-\tau^+)p^-\ \Rightarrow\ \frac{E_p e^f-\tau^+E_{p^+}e^f}{1-\tau^+}=E_{p^-}e^f",
            given="laws, not samples: p of all, p^+ of the same class, p^- of others; f any scores; 0 <= tau^+ < 1; "
            "no clamp",
            expected=Verdict.AGREES,
            numeric=_rows_of_debiased,
            random=_debiased_in_expectation,
            no_evidence="symbolic: the identity is the definition of p, solved for p^-",
        ),
    ),
)
