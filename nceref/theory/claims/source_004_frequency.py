"""Source 004, in passing: gradients of frequent classes, and the pull on samples of the same class."""

from nceref.theory.claim import Chapter, Claim, Counter, Repair
from nceref.theory.verdicts import Verdict

COUNTS = (18, 12, 6)


def _gradients(embeddings, form, temperature):
    """Mean L1 norm of an anchor's gradient by its logits, class by class, from the most frequent on."""
    import numpy as np

    from nceref import losses

    labels = np.repeat(np.arange(len(COUNTS)), COUNTS)
    slopes = losses.supcon_out.anatomy(embeddings, labels, form=form, temperature=temperature).slopes
    # The loss is a mean over the rows, of which each has its share of the gradient.
    return np.bincount(labels, len(labels) * np.abs(slopes).sum(axis=1)) / COUNTS


def _by_count_of_positives():
    """All similarities equal, K positives of A candidates: 2 K (1 - K / A) for the sum, 2 (1 - K / A) for the mean."""
    import sympy

    positives, candidates = sympy.symbols("K A", positive=True)
    p = 1 / candidates
    total = positives * (1 - positives * p) + (candidates - positives) * positives * p
    rises = sympy.solve(sympy.diff(total, positives), positives) == [candidates / 2]
    falls = sympy.simplify(sympy.diff(total / positives, positives) + 2 / candidates) == 0
    return sympy.simplify(total - 2 * positives * (1 - positives * p)) == 0 and rises and falls


def _of_equal_rows():
    """The implementation on embeddings that are all alike: the two formulas, class by class."""
    import numpy as np

    alike, candidates = np.tile([0.6, 0.8], (sum(COUNTS), 1)), sum(COUNTS) - 1
    positives = np.array(COUNTS) - 1
    mean = 2 * (1 - positives / candidates)
    return all(
        np.allclose(_gradients(alike, form, 0.5), expected, rtol=1e-12)
        for form, expected in (("sum", positives * mean), ("mean", mean))
    )


def _before_training(rng):
    """Random embeddings in 16 to 64 dimensions: the sum has larger gradients for frequent classes, the mean smaller.

    12 batches of 36, temperatures from 0.2 to 3.
    """
    import numpy as np

    for _ in range(12):
        drawn, t = rng.standard_normal((sum(COUNTS), rng.integers(16, 65))), 10 ** rng.uniform(-0.698, 0.477)
        total, mean = (_gradients(drawn, form, t) for form in ("sum", "mean"))
        if not (np.all(np.diff(total) < 0) and np.all(np.diff(mean) > 0)):
            return False
    return True


def _the_mean_turns_it_round():
    import numpy as np

    drawn = np.random.default_rng(0).standard_normal((sum(COUNTS), 32))
    total, mean = (_gradients(drawn, form, 0.2) for form in ("sum", "mean"))
    shown = "; ".join(
        f"{name} " + ", ".join(f"{x:.3g}" for x in sizes) for name, sizes in (("sum", total), ("mean", mean))
    )
    given = f"normal embeddings (seed 0) of {COUNTS} samples in 32 dimensions, temperature 0.2"
    return Counter(f"{given}, gradient by class: {shown}", mean[0] < mean[-1])


CHAPTER = Chapter(
    name="source_004_frequency",
    title="Source 004: gradients and class frequency",
    claims=(
        Claim(
            id="PC-20",
            title="the mean gradient of a class falls with its frequency",
            source="source 004",
            place="second paragraph, on the figure PaCoF2",
            published="In training, the mean gradient of each class falls markedly with the frequency of the class.",
            latex=r"P=\tfrac1A:\quad \Big\lVert\tau\frac{\partial L_i}{\partial s}\Big\rVert_1=2K\Big(1-\frac KA\Big)"
            r"\ \text{for the sum, rising up to}\ K=\tfrac A2;\qquad 2\Big(1-\frac KA\Big)\ "
            r"\text{for the mean, falling}",
            given="one anchor of a batch, mean by class; equal similarities, or embeddings before training",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="True of the printed sum over the positives: of two classes of a batch the rarer one has the "
            "smaller gradient, before training if their sizes clearly differ. The mean over the positives turns it "
            "round. So it is in training too: nceref experiment long-tail.",
            counterexample=_the_mean_turns_it_round,
            symbolic=_by_count_of_positives,
            numeric=_of_equal_rows,
            random=_before_training,
        ),
        Claim(
            id="PC-21",
            title="PaCo pulls samples of a class together more, hard ones above all",
            source="source 004",
            place="first sentence",
            published="PaCo adaptively strengthens the force that gathers samples of the same class, and so the "
            "learning of hard examples.",
            latex=r"-\frac{\partial L_i}{\partial l_+}=\alpha-Wp_+\le\alpha,\qquad "
            r"-\frac{\partial L_{supcon}}{\partial l_+}=1-\frac{Kp_+}{P_{supcon}}\le1,\qquad W=1+\alpha K",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="The pull on a positive is larger the less probable it is, and rises as features gather at the "
            "centers (PC-15). But it is alpha at most, where supervised contrast pulls with up to 1: on a positive "
            "whose share among the samples is near 0, about alpha times as much. What is learned of hard examples "
            "takes experiments.",
            scenario="paco",
            as_published="1 - K * P_positives[0] / p_supcon <= alpha - W * P_positives[0]",
            counterexample={"alpha": 0.05, "center": (1.5, 0.25), "positives": (-3.0, 1.0), "negatives": (0.5, -0.25)},
            formula="[-d(L, positives[j]) for j in range(K)] == [alpha - W * x for x in P_positives] <= alpha"
            " and [-d(L_supcon, positives[j]) for j in range(K)] == [1 - K * x / p_supcon for x in P_positives] <= 1"
            " and [d(alpha - W * P_positives[j], positives[j]) for j in range(K)] == [W * x * (x - 1) for x in "
            "P_positives]",
            symbolic="[-d(L, positives[j]) for j in range(K)] == [alpha - W * x for x in P_positives]"
            " and [-d(L_supcon, positives[j]) for j in range(K)] == [1 - K * x / p_supcon for x in P_positives]",
            numeric=True,
            random=True,
        ),
    ),
)
