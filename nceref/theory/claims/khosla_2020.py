"""Khosla et al. 2020: the supervised contrastive loss, its gradient, its code and its floor."""

from nceref.theory.claim import Chapter, Claim, Counter, Repair, Value
from nceref.theory.verdicts import Verdict

SOURCE = "Khosla et al. 2020"

BY_POSITIVES = "69.3, 76.6, 78.0, 78.4, 78.3, 78.5"
ACCURACIES = {
    "ImageNet: L_out, L_in": "78.7, 67.4",
    "CIFAR-10: SimCLR, cross-entropy, max-margin, SupCon": "93.6, 95.0, 92.4, 96.0",
    "CIFAR-100: the same": "70.7, 75.3, 70.5, 76.5",
    "ImageNet: the same": "70.2, 78.2, 78.0, 78.7",
    "ImageNet: at most 1, 3, 5, 7, 9, 13 positives": BY_POSITIVES,
    "ImageNet: N-pairs": "57.4",
    "best temperature of ResNet-50": "0.1",
}


def authors_code(features, labels, temperature, dtype="float64", base=0.07):
    """Rows of the SupConLoss listing in source 002, step by step, with contrast_mode 'all'; features (N, V, D)."""
    import numpy as np

    rows = np.concatenate(np.moveaxis(features.astype(dtype), 1, 0))
    temperature, base = np.array([temperature, base], dtype)
    names, others = np.tile(labels, features.shape[1]), 1 - np.eye(len(rows), dtype=dtype)
    # A quotient 0 / 0 and a logarithm of 0 are results here: the counterexample counts the NaN.
    with np.errstate(all="ignore"):
        logits = rows @ rows.T / temperature
        logits = logits - logits.max(axis=1, keepdims=True)
        mask = (names[:, None] == names).astype(dtype) * others
        log_p = logits - np.log((np.exp(logits) * others).sum(axis=1, keepdims=True))
        return -(temperature / base) * (mask * log_p).sum(axis=1) / mask.sum(axis=1)


def _code_is_the_scaled_formula(rng):
    """In float64, for rows not of length 1; 1 / (2 N_y - 1) makes the mean of the sum; without labels: NT-Xent.

    4 to 8 samples in two views and 5 dimensions, two classes; temperatures from 0.3 to 3.
    """
    import numpy as np

    from nceref import losses

    z, t = rng.standard_normal((int(rng.integers(4, 9)), 2, 5)), 10 ** rng.uniform(-0.522, 0.477)
    y = rng.permutation(np.arange(len(z)) % 2)
    given = {"temperature": t, "normalize": "none"}
    mean, total = (losses.supcon_out(z, y, form=form, reduction="none", **given) for form in ("mean", "sum"))
    factor = np.tile(2 * (y[:, None] == y).sum(axis=1) - 1, 2)
    alone = losses.supcon_out(z, **given), losses.nt_xent(z[:, 0], z[:, 1], **given)
    pairs = (total / factor, mean), (authors_code(z, y, t), t / 0.07 * mean), alone
    return all(np.allclose(*pair, rtol=1e-11) for pair in pairs)


def _underflow_below_150_bits():
    """float32 rounds e^x to 0 below the half of its smallest number, 2^-150: x = -150 log 2 = -103.97.

    Four rows of length 10, products with other rows at most 50: right at 0.6, where those are 83 below the maximum, and
    NaN at 0.4, where they are 125 below.
    """
    import numpy as np

    edge = np.float32(-150 * np.log(2))
    at_the_edge = np.exp(edge + np.float32(0.1)) > 0 == np.exp(edge - np.float32(0.1))
    rows, labels = 10 * np.array([[[1, 0]], [[0.5, 0.75**0.5]], [[-0.5, 0.75**0.5]], [[-1, 0]]]), np.array([0, 0, 1, 1])
    right, none = (authors_code(rows, labels, t, "float32") for t in (0.6, 0.4))
    close = np.allclose(right, authors_code(rows, labels, 0.6, "float64"), rtol=1e-4, atol=1e-4)
    return bool(at_the_edge and close and np.isnan(none).all())


def _code_gives_nan():
    import numpy as np

    from nceref import losses

    alone = authors_code(np.array([[[1, 0]], [[0, 1]], [[0.6, 0.8]], [[0.8, 0.6]]]), np.array([0, 1, 1, 2]), 0.07)
    z, y = np.array([[[1, 0], [0.28, 0.96]], [[0.28, -0.96], [-1, 0]]]), np.array([0, 1])
    single, double = (authors_code(z, y, 0.005, kind) for kind in ("float32", "float64"))
    loss = 0.005 / 0.07 * losses.supcon_out(z.astype("float32"), y, temperature=0.005)
    return Counter(
        f"labels 0, 1, 1, 2 with one view: {np.isnan(alone).sum()} of 4 rows are NaN; two views of two samples,"
        f" {z[0].tolist()} and {z[1].tolist()}, at temperature 0.005 in float32: {np.isnan(single).sum()} of 4 are,"
        f" and the mean should be {loss:.5g}",
        np.isnan(alone).tolist() == [True, False, False, True]
        and bool(np.isnan(single).all() and np.isclose(double.mean(), loss, rtol=1e-5)),
    )


def _chain_of_the_supplement():
    from math import exp, log1p

    far, near = ((log1p(exp(u)), exp(u), 1 + u) for u in (-12.0, 0.0))
    first, second = (", ".join(f"{x:.4g}" for x in values) for values in (far, near))
    shown = f"log(1 + e^u), e^u, 1 + u are {first} at u = -12 and {second} at u = 0"
    return Counter(shown, far[2] < 0 < far[0] and near[1] > 1.4 * near[0])


def _softplus_near_zero():
    """The series of log(1 + e^u) at 0: log 2 + u/2 + u^2/8, without a cubic term."""
    import sympy

    u = sympy.Symbol("u", real=True)
    return sympy.series(sympy.log(1 + sympy.exp(u)), u, 0, 4).removeO() == sympy.log(2) + u / 2 + u**2 / 8


def _accuracy_falls_once():
    seven, nine = map(float, BY_POSITIVES.split(",")[3:5])
    return Counter(f"{seven} with at most 7 positives, {nine} with at most 9", nine < seven)


def _floor_of_a_batch(rng):
    """No batch is below, the simplex is at it, and descent from a random batch ends there.

    20 batches: 2 to 5 classes of 2 to 4 samples, temperatures from 0.1 to 5.
    """
    import numpy as np
    from scipy.optimize import minimize

    from nceref import losses

    def floor(classes, each, t):
        return np.log(each - 1 + (classes - 1) * each * np.exp(-classes / ((classes - 1) * t)))

    def descent(x):
        value, grads = losses.supcon_out.value_and_grad(x.reshape(12, 3), np.arange(12) % 4, temperature=0.5)
        return value, grads["embeddings"].ravel()

    for _ in range(20):
        classes, each, t = int(rng.integers(2, 6)), int(rng.integers(2, 5)), 10 ** rng.uniform(-1, 0.698)
        z, y = np.tile(np.eye(classes) - 1 / classes, (each, 1)), np.tile(np.arange(classes), each)
        simplex, other = (losses.supcon_out(x, y, temperature=t) for x in (z, rng.standard_normal(z.shape)))
        if not (np.isclose(simplex, floor(classes, each, t), rtol=1e-11) and simplex < other):
            return False
    end = minimize(descent, rng.standard_normal(36), jac=True, method="L-BFGS-B", options={"ftol": 1e-15})
    return abs(end.fun - floor(4, 3, 0.5)) < 1e-8


def _simplex_by_substitution():
    """Cosines 1 within a class and -1 / (C - 1) between classes, put into the loss of one anchor."""
    import sympy

    c, n, t = sympy.symbols("C l tau", positive=True)
    total = (n - 1) * sympy.exp(1 / t) + (c - 1) * n * sympy.exp(-1 / ((c - 1) * t))
    floor = n - 1 + (c - 1) * n * sympy.exp(-c / ((c - 1) * t))
    return sympy.simplify(total * sympy.exp(-1 / t) - floor) == 0


def _gradient(loss, target, tangent=True):
    """The gradient as a statement: `target` is what a positive's probability tends to; by w, or else by z itself."""
    v, scale = ("(v[k] - x * z[k])", "(t * norm)") if tangent else ("v[k]", "t")
    return (
        f"[d({loss}, w[k]) for k in range(D)]"
        f" == [(sum({v} * (p - {target}) for v, x, p, q in zip(z_p, s_p, P_p, X_in))"
        f" + sum({v} * p for v, x, p in zip(z_n, s_n, P_n))) / {scale} for k in range(D)]"
    )


CHAPTER = Chapter(
    name="khosla_2020",
    title="Khosla et al. 2020: supervised contrastive learning",
    claims=(
        Claim(
            id="SC-1",
            title="the supervised contrastive loss, mean over the positives",
            source=SOURCE,
            place="eq. (2); source 002, section on supervised learning, with 2 N_y - 1 positives",
            published="Each positive is set against all others, and -log of its softmax is averaged over the "
            "positives; with two views and N_y images of the label there are 2 N_y - 1.",
            latex=r"L_i^{out}=\frac{-1}{|P(i)|}\sum_{p\in P(i)}"
            r"\log\frac{e^{z_i\cdot z_p/\tau}}{\sum_{a\ne i}e^{z_i\cdot z_a/\tau}},\quad |P(i)|=2N_{\tilde y_i}-1",
            expected=Verdict.AGREES,
            formula="L_out == -sum(log(exp(x / t) / (sum(exp(y / t) for y in s_p) + sum(exp(y / t) for y in s_n)))"
            " for x in s_p) / K",
            scenario="positives",
            derivation="supcon-in-out",
            numeric=True,
            random=_code_is_the_scaled_formula,
        ),
        Claim(
            id="SC-2",
            title="the code computes the formula",
            source="source 002",
            place="listing of SupConLoss, the first version of the authors' repository",
            published="The listing is offered as the formula of the loss; normalization must be added.",
            latex=r"\text{code}_i=\frac{\tau}{\tau_0}L_i^{out},\ \tau_0=0.07,\quad\text{if }|P(i)|>0"
            r"\text{ and }\frac{\max_as_{ia}-\max_{a\ne i}s_{ia}}{\tau}<126\log2=87.34\text{ in float32},\ "
            r"1022\log2=708.40\text{ in float64}",
            given="a row of the loss, s_ia the products of the rows as given, a = i included in the first maximum",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="It computes tau / 0.07 times the loss of the rows as given, where every anchor has a positive: "
            "the gradient does not scale as 1 / tau. In float32, a candidate must also be within 87.34 tau of the row "
            "maximum, the anchor's own product included (708.40 tau in float64): below the normal numbers exponentials "
            "lose digits, and from 103.97 tau on (745.13 tau) all are 0 and the loss is NaN.",
            counterexample=_code_gives_nan,
            numeric=_underflow_below_150_bits,
            random=_code_is_the_scaled_formula,
            no_evidence="symbolic: it is about what a program does, and what float32 does to it",
        ),
        Claim(
            id="SC-3",
            title="L_in is at most L_out",
            source=SOURCE,
            place="section 3.2.2",
            published="Jensen's inequality gives L_in <= L_out.",
            latex=r"0\le L_i^{out}-L_i^{in}=-\frac1{|P|}\sum_p\log\big(|P|X^{in}_{ip}\big)\le\frac{d^2}{8\tau^2},\quad "
            r"d=\max_ps_{ip}-\min_ps_{ip}:\ \text{equal if and only if all}\ s_{ip}\ \text{are}",
            expected=Verdict.AGREES,
            formula="L_in <= L_out == L_in - sum(log(K * x) for x in X_in) / K <= L_in + range_p**2 / (8 * t**2)",
            scenario="positives",
            derivation="supcon-in-out",
            numeric=True,
            random=True,
        ),
        Claim(
            id="SC-4",
            title="the gradient by the anchor",
            source=SOURCE,
            place="eq. (4)-(6); supplement, eq. (9)-(18), of one row by its anchor",
            published="Each positive is weighted by P - X and each negative by P; X is 1/|P| for L_out and the softmax "
            "over the positives for L_in, which is 1/|P| if all positives are equal. Normalization projects.",
            latex=r"\frac{\partial L_i}{\partial w_i}=\frac{1}{\tau\lVert w_i\rVert}(I-z_iz_i^\top)\Big\{"
            r"\sum_pz_p(P_{ip}-X_{ip})+\sum_nz_nP_{in}\Big\},\quad X^{out}_{ip}=\frac1{|P(i)|},\quad "
            r"X^{in}_{ip}=\frac{e^{s_{ip}/\tau}}{\sum_{p'}e^{s_{ip'}/\tau}}",
            expected=Verdict.AGREES,
            formula=_gradient("L_out", "1 / K")
            + " and "
            + _gradient("L_in", "q")
            + " and max(*X_in) == min(*X_in) * exp(range_p / t)",
            scenario="positives",
            symbolic=_gradient("L_out", "1 / K", tangent=False) + " and " + _gradient("L_in", "q", tangent=False),
            numeric=True,
            random=True,
        ),
        Claim(
            id="SC-5",
            title="more positives enlarge the response to a hard positive",
            source=SOURCE,
            place="supplement, section 7, eq. (21)-(24)",
            published="The response of L_in and L_out to a hard positive grows with the number of negatives, that of "
            "L_out also with the number of positives, as it is proportional to sum e^s - |P|.",
            latex=r"\frac1{|P|}-\frac{e_p}S,\ e_p=e^{s_{ip}/\tau}:\quad\text{another positive of weight }x"
            r"\text{ raises it}\iff e_p\,x\,|P|(|P|+1)>S(S+x),\quad S=\sum_ae^{s_{ia}/\tau}",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="Eq. (24) keeps the numerator of |1/S - 1/|P|| alone. Of a positive that is pulled, e_p / S < "
            "1 / |P|, more negatives raise the response; one more positive of weight x raises 1 / |P| - e_p / S if and "
            "only if e_p x |P| (|P| + 1) > S (S + x).",
            as_published="abs(e_p[0] / (total - e_p[K - 1]) - 1 / (K - 1)) < abs(P_p[0] - 1 / K)",
            counterexample={
                "w": (1.0, 0.0),
                "positives": ((0.0, 1.0), (3.0, 4.0)),
                "negatives": ((0.0, 1.0),) * 4,
                "t": 0.1,
            },
            formula="[sum((a - x * b)**2 for a, b in zip(v, z)) for v, x in zip(z_p, s_p)] == [1 - x**2 for x in s_p]"
            " and [x - p for x, p in zip(X_in, P_p)] == [x * sum(P_n) for x in X_in]"
            " and 1 / (K + 1) - e_p[0] / (total + max(*e_p)) - (1 / K - e_p[0] / total)"
            " == (e_p[0] * max(*e_p) * K * (K + 1) - total * (total + max(*e_p)))"
            " / (K * (K + 1) * total * (total + max(*e_p)))",
            scenario="positives",
            symbolic="[x - p for x, p in zip(X_in, P_p)] == [x * sum(P_n) for x in X_in]",
            numeric=True,
            random=True,
        ),
        Claim(
            id="SC-6",
            title="the triplet loss is the case of one positive and one negative",
            source=SOURCE,
            place="supplement, section 8",
            published="If z_a z_p is far above z_a z_n, log(1 + e^u) is e^u, is 1 + u: a triplet loss, margin 2 tau.",
            latex=r"u=\frac{s_n-s_p}\tau:\quad\log2+\frac u2\le\log(1+e^u)\le\log2+\frac u2+\frac{u^2}8,\qquad "
            r"\max(s_n-s_p,0)\le\tau\log(1+e^u)\le\max(s_n-s_p,0)+\tau\log2",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="The first step needs u = (s_n - s_p) / tau far below 0, the second u near 0. Near 0 the loss is"
            " log 2 + u/2, which has the form of a triplet loss without a hinge, with margin 4 tau log 2; as the"
            " temperature goes to 0, tau times the loss becomes the hinge max(s_n - s_p, 0), with margin 0.",
            counterexample=_chain_of_the_supplement,
            formula="sum((a - b)**2 for a, b in zip(z, z_n[0])) - sum((a - b)**2 for a, b in zip(z, z_p[0]))"
            " == -2 * gap"
            " and log(2) + gap / (2 * t) <= log(1 + exp(gap / t)) <= log(2) + gap / (2 * t) + gap**2 / (8 * t**2)"
            " and max(gap, 0) <= t * log(1 + exp(gap / t)) <= max(gap, 0) + t * log(2)",
            scenario="positives",
            symbolic=_softplus_near_zero,
            numeric=True,
            random=True,
        ),
        Claim(
            id="SC-7",
            title="accuracies, and a steady benefit of more positives",
            source=SOURCE,
            place="Tables 1, 2 and 5; supplement, sections 9 to 11",
            published="SupCon is ahead on CIFAR and ImageNet, L_out of L_in; more positives help steadily; the best "
            "temperature of ResNet-50 is 0.1.",
            latex=r"\text{top-1 accuracies, measured}",
            expected=Verdict.NOT_REPRODUCIBLE,
            repair=Repair.WORDING,
            repaired="By the paper's own table the benefit is not steady: it falls once, from 7 to 9 positives.",
            counterexample=_accuracy_falls_once,
            values=tuple(Value(what, x, None, expected=Verdict.NOT_REPRODUCIBLE) for what, x in ACCURACIES.items()),
            total="1637.8",
            no_evidence="It takes ImageNet and trained networks.",
        ),
        Claim(
            id="SC-8",
            title="the lowest loss of a balanced batch",
            source="derived here",
            place="for eq. (2); Graf et al. 2021 state the optimum, their text was not read",
            published="In the optimum of a balanced batch, classes collapse to the corners of a regular simplex.",
            latex=r"\min\frac1b\sum_iL_i=\log\big(l-1+(b-l)e^{-C/((C-1)\tau)}\big),\quad b=Cl,\ D\ge C-1",
            given="the minimum: b rows of length 1, l >= 2 of each of C >= 2 classes, in D >= C - 1 dimensions",
            expected=Verdict.AGREES,
            formula="0 <= L_out - log(K + len(s_n) * exp((mean(s_n) - mean(s_p)) / t))"
            " <= max(range_p, range_n)**2 / (8 * t**2)",
            scenario="positives",
            symbolic=_simplex_by_substitution,
            numeric=True,
            random=_floor_of_a_batch,
        ),
    ),
)
