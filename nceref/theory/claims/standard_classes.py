"""Standard results of other papers about classes: priors, margins, and the arrangement with the least loss."""

from nceref.theory.claim import Chapter, Claim, Counter, Repair
from nceref.theory.verdicts import Verdict

DERIVED = "derived here; the paper was not read"
SIMPLEX = "Graf et al. 2021"


def _least(loss, *arrays, **arguments):
    """Value at a local minimum by the float arrays, and these arrays there, rows of length 1."""
    import numpy as np
    from scipy.optimize import minimize

    shapes = [x.shape for x in arrays]
    names = [p.name for p in loss.parameters][: len(arrays)]

    def at(flat):
        parts = np.split(flat, np.cumsum([np.prod(shape) for shape in shapes])[:-1])
        return [x.reshape(shape) for x, shape in zip(parts, shapes, strict=True)]

    def value(flat):
        at_end, grad = loss.value_and_grad(*at(flat), **arguments)
        return at_end, np.concatenate([grad[name].ravel() for name in names])

    start = np.concatenate([x.ravel() for x in arrays])
    options = {"ftol": 1e-13, "gtol": 1e-8, "maxiter": 3000}
    end = minimize(value, start, jac=True, method="L-BFGS-B", options=options)
    return end.fun, [x / np.linalg.norm(x, axis=1, keepdims=True) for x in at(end.x)]


def _arranged(counts, temperature, dim, seed=0):
    """Least supervised contrastive loss of classes of these sizes, and the cosines between the samples there."""
    import numpy as np

    from nceref import losses

    labels = np.repeat(np.arange(len(counts)), counts)
    start = np.random.default_rng(seed).standard_normal((len(labels), dim))
    value, (z,) = _least(losses.supcon_out, start, labels=labels, temperature=temperature)
    return value, z @ z.T, labels


def _floor(classes, samples, temperature):
    """Every row of classes that collapsed to the corners of a simplex."""
    from math import exp, log

    apart = (classes - 1) * samples * exp(-classes / ((classes - 1) * temperature))
    return log(samples - 1 + apart)


def _simplex_is_reached():
    """From a random start, where there is room for a simplex; with less room the loss stays above."""
    import numpy as np

    held = []
    for classes, samples, dim, temperature in ((4, 3, 3, 0.5), (10, 5, 16, 0.2)):
        value, cosines, labels = _arranged([samples] * classes, temperature, dim)
        same = labels[:, None] == labels
        held += [abs(value - _floor(classes, samples, temperature)) < 1e-10]
        held += [np.allclose(cosines, np.where(same, 1, -1 / (classes - 1)), atol=1e-4)]
    return all(held) and _arranged([2] * 10, 0.4, 2)[0] > _floor(10, 2, 0.4) + 0.5


def _value_on_the_simplex():
    """Classes on the corners of a simplex: one row of the loss is the floor."""
    import sympy

    classes, samples, t = sympy.symbols("K l tau", positive=True)
    apart = (classes - 1) * samples
    row = (samples - 1) * sympy.exp(1 / t) + apart * sympy.exp(-1 / ((classes - 1) * t))
    floor = samples - 1 + apart * sympy.exp(-classes / ((classes - 1) * t))
    return sympy.simplify(sympy.powsimp(sympy.expand(row * sympy.exp(-1 / t)) - sympy.expand(floor))) == 0


def _simplex(classes):
    """Corners with cosines -1 / (classes - 1), in as many dimensions as there are classes."""
    import numpy as np

    return (np.eye(classes) - 1 / classes) / np.sqrt(1 - 1 / classes)


def _never_below_the_floor(rng):
    """Random batches, of classes that may be compact, at random temperatures; the simplex itself is at the floor.

    40 batches: 2 to 5 classes of 2 to 4 samples, temperatures from 0.05 to 10.
    """
    import numpy as np

    from nceref import losses

    held = []
    for _ in range(40):
        classes, samples, t = rng.integers(2, 6), rng.integers(2, 5), 10 ** rng.uniform(-1.3, 1)
        labels, floor = np.repeat(np.arange(classes), samples), _floor(classes, samples, t)
        corners = _simplex(classes)[labels]
        drawn = corners + 10 ** rng.uniform(-3, 1) * rng.standard_normal(corners.shape)
        held += [losses.supcon_out(drawn, labels, temperature=t) > floor - 1e-13]
        held += [np.isclose(losses.supcon_out(corners, labels, temperature=t), floor, rtol=1e-10, atol=1e-13)]
    return all(held)


def _simplex_at_every_temperature():
    """Four classes of three samples in space: a search ends at a simplex at 0.2 and at 1."""
    import numpy as np

    cosines = [_arranged((3, 3, 3, 3), temperature, 3)[1][::3, ::3] for temperature in (0.2, 1.0)]
    return all(np.allclose(c, np.where(np.eye(4), 1, -1 / 3), atol=1e-4) for c in cosines)


def _best_arrangements_move():
    """One class of 20, three of 2: the cosine of small ones. Five of 3, without room for a simplex: the lowest two."""
    import numpy as np

    pairs = np.triu_indices(5, 1)
    small = {t: _arranged((20, 2, 2, 2), t, 3)[1][20, 22] for t in (0.1, 0.5, 1.0)}
    lowest = {t: np.sort(_arranged((3,) * 5, t, 3)[1][::3, ::3][pairs])[:2] for t in (0.1, 0.2)}
    unbalanced = ", ".join(f"{cosine:.3f} at {t}" for t, cosine in small.items())
    crowded = ", ".join("{:.3f} and {:.3f} at {}".format(*cosines, t) for t, cosines in lowest.items())
    return Counter(
        f"classes of 20, 2, 2 and 2 in space: cosine of small ones {unbalanced}, of a simplex -0.333;"
        f" five classes of 3: lowest cosines {crowded}",
        -0.3 < small[0.1] < small[0.5] - 0.2 < small[1.0] - 0.4 and lowest[0.1][1] < -0.9 < -0.6 < lowest[0.2][1],
    )


def _product_of_norms():
    """Features of length 1 and class weights of length 3: the search ends at the bound."""
    import numpy as np

    from nceref import losses

    rng, labels = np.random.default_rng(0), np.repeat(np.arange(5), 3)
    drawn = rng.standard_normal((15, 6)), rng.standard_normal((5, 6))
    value, _ = _least(losses.arcface, *drawn, target=labels, margin=0.0, scale=3.0)
    return 0 <= value - np.log(1 + 4 * np.exp(-3 * 5 / 4)) < 1e-9


def _balanced_cross_entropy(rng):
    """Never below the bound with balanced labels, at it on the simplex; with one label only, below it.

    40 batches: 2 to 5 classes of 3 samples, scales from 0.1 to 20.
    """
    import numpy as np

    from nceref import losses

    held = []
    for _ in range(40):
        classes, scale = rng.integers(2, 6), rng.uniform(0.1, 20)
        bound = np.log1p((classes - 1) * np.exp(-scale * classes / (classes - 1)))
        w, labels = _simplex(classes), np.repeat(np.arange(classes), 3)
        z = w[labels] + 10 ** rng.uniform(-3, 1) * rng.standard_normal((3 * classes, classes))
        moved = w + 10 ** rng.uniform(-3, 1) * rng.standard_normal(w.shape)
        given = {"margin": 0.0, "scale": scale}
        held += [losses.arcface(z, moved, labels, **given) > bound - 1e-13]
        held += [np.isclose(losses.arcface(w[labels], w, labels, **given), bound, rtol=1e-10, atol=1e-13)]
        # With two classes this is the simplex again, which is at the bound and not below it.
        alone = np.where(np.arange(classes)[:, None] == 0, w[0], -w[0])
        held += [classes == 2 or losses.arcface(w[:1], alone, labels[:1], **given) < bound]
    return all(held)


def _arcface_as_implemented(rng):
    """Without a margin InfoNCE over class weights at 1 / s; with one, the slope, and no explosion at angle 0.

    40 samples and 4 classes in space; margins 0 and 0.5, scale 8.
    """
    import numpy as np

    from nceref import losses

    x, w, y = rng.standard_normal((40, 3)), rng.standard_normal((4, 3)), rng.integers(0, 4, 40)
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, w)]
    cosines = unit[0] @ unit[1].T
    plain = losses.arcface(x, w, y, margin=0.0, scale=8.0), losses.cross_entropy(cosines, y, temperature=1 / 8)
    theta = np.arccos(cosines[np.arange(40), y])
    rows, slopes = (getattr(losses.arcface.anatomy(x, w, y, margin=0.5, scale=8.0), k) for k in ("rows", "slopes"))
    own = (np.exp(-rows) - 1) * np.sin(theta + 0.5) / np.sin(theta)
    # Nearly at angle 0, where sin(theta) is the divisor of the slope. Of the angles drawn, some plus 0.5 pass pi.
    near = unit[1][y] + 1e-7 * unit[0]
    _, grad = losses.arcface.value_and_grad(near, w, y, margin=0.5, scale=8.0, reduction="sum")
    bounded = np.linalg.norm(grad["embeddings"], axis=1).max() <= 2 * 8.0
    right = np.allclose(40 * slopes[np.arange(40), y], own, rtol=1e-8)
    return np.isclose(*plain, rtol=1e-12) and right and bounded and theta.max() > np.pi - 0.5


CHAPTER = Chapter(
    name="standard_classes",
    title="Standard results: classes, margins and the arrangement with the least loss",
    claims=(
        Claim(
            id="BS-1",
            title="balanced softmax: counts or frequencies, one gradient",
            source="Ren et al. 2020 (balanced softmax)",
            place="loss of the authors' code; gradient derived here",
            published="The code adds the log of the class counts to the logits; frequencies would do as well.",
            latex=r"\hat p_k=\frac{n_ke^{\eta_k}}{\sum_ln_le^{\eta_l}},\quad\frac{\partial L}{\partial\eta_k}="
            r"\hat p_k-1[k=y],\quad\sum_kn_k\frac{\partial L}{\partial n_k}=0",
            expected=Verdict.AGREES,
            scenario="classes",
            formula="[d(L_counts, cosines[k]) for k in range(C)]"
            " == [scale * (P_counts[k] - int(k == 0)) for k in range(C)]"
            " and [counts[k] * d(L_counts, counts[k]) for k in range(C)]"
            " == [P_counts[k] - int(k == 0) for k in range(C)]"
            " and sum(P_counts) == 1",
            derivation="balanced-softmax",
            symbolic="[counts[k] * d(L_counts, counts[k]) for k in range(C)]"
            " == [P_counts[k] - int(k == 0) for k in range(C)] and sum(P_counts) == 1",
            numeric=True,
            random=True,
        ),
        Claim(
            id="ARC-1",
            title="a margin on the angle: gradient, and InfoNCE without it",
            source="source 002 and Deng et al. 2019 (ArcFace)",
            place="section with ArcFace, a figure; " + DERIVED,
            published="Softmax losses of face recognition and contrastive losses have the same aim.",
            latex=r"\frac{\partial L}{\partial\cos\theta_y}=(p_y-1)\,s\,\frac{\sin(\theta_y+m)}{\sin\theta_y}:\ "
            r"\text{of the wrong sign for}\ \theta_y>\pi-m;\qquad m=0:\ \text{InfoNCE},\ \tau=1/s",
            expected=Verdict.AGREES,
            scenario="classes",
            formula="d(L_margin, cosines[0]) == (P_margin[0] - 1) * scale * sin(theta + margin) / sin(theta)"
            " and [d(L_margin, cosines[k]) for k in range(1, C)] == [scale * p for p in P_margin[1:]]"
            " and 0 <= -d(L_margin, cosines[0]) * (pi - margin - theta)",
            symbolic="d(L_margin, cosines[0]) == (P_margin[0] - 1) * scale * sin(theta + margin) / sin(theta)"
            " and [d(L_margin, cosines[k]) for k in range(1, C)] == [scale * p for p in P_margin[1:]]",
            numeric=True,
            random=_arcface_as_implemented,
        ),
        Claim(
            id="GR-1",
            title="balanced SupCon is least on a simplex of collapsed classes",
            source=SIMPLEX,
            place="minimum of the supervised contrastive loss; value derived here",
            published="With balanced classes, the loss is least if and only if classes collapse to a simplex.",
            latex=r"\min L=\log\Big(l-1+(b-l)\,e^{-\frac{K}{(K-1)\tau}}\Big),\quad b=Kl",
            given="a batch of rows of length 1 in d >= K - 1 dimensions, l >= 2 of each of K >= 2 classes; tau > 0",
            expected=Verdict.AGREES,
            symbolic=_value_on_the_simplex,
            numeric=_simplex_is_reached,
            random=_never_below_the_floor,
        ),
        Claim(
            id="GR-2",
            title="the best arrangement does not depend on the temperature",
            source=SIMPLEX,
            place="minimum of the supervised contrastive loss",
            published="The optimal arrangement is a simplex, whatever the temperature.",
            latex=r"\arg\min L=\text{simplex for all}\ \tau\ \text{if}\ n_1=\dots=n_K,\ d\ge K-1",
            given="rows of length 1 in d >= K - 1 dimensions, l >= 2 of each of K >= 2 classes; tau > 0",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="True of balanced classes with room for a simplex, K <= d + 1. Without the room it may depend on "
            "it, as five classes in space do, and as in WI-4; so it may of unbalanced classes: in the example, small "
            "ones approach each other as it rises.",
            counterexample=_best_arrangements_move,
            numeric=_simplex_at_every_temperature,
            random=_never_below_the_floor,
            no_evidence="symbolic: the value on the simplex, for every temperature, is in GR-1",
        ),
        Claim(
            id="GR-3",
            title="lower bound of cross-entropy at fixed norms",
            source=SIMPLEX,
            place="minimum of cross-entropy; balanced classes",
            published="With features and class weights of fixed length, cross-entropy is least on a simplex.",
            latex=r"L\ge\log\Big(1+(K-1)\,e^{-\frac{K}{K-1}\rho r}\Big),\quad\Vert z\Vert=\rho,\ \Vert w_k\Vert=r",
            given="a batch with as many samples z of each of K >= 2 classes, class weights w_k; all lengths fixed",
            expected=Verdict.AGREES,
            numeric=_product_of_norms,
            random=_balanced_cross_entropy,
            no_evidence="symbolic: on the simplex the logits are rho r and -rho r / (K - 1), which is the bound",
        ),
    ),
)
