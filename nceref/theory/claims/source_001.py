"""Source 001: what the temperature does to a softmax, to a loss that is right, and to one that is wrong."""

from nceref.theory.claim import Chapter, Claim, Counter, Repair
from nceref.theory.verdicts import Verdict

SOURCE = "source 001"


def _listing_without_temperature():
    import numpy as np

    from nceref import losses

    logits, target = np.array([[1.0, 2.0, 3.0]]), np.array([2])
    as_printed = losses.cross_entropy(logits, target, temperature=1.0)
    meant = losses.cross_entropy(logits, target, temperature=0.5)
    return Counter(
        f"criterion(x, y) is {as_printed:.4f} at every temperature; the printed 0.1429 is criterion(x / 0.5, y) ="
        f" {meant:.4f}",
        f"{as_printed:.4f}" != "0.1429" == f"{meant:.4f}",
    )


def _outputs_of_the_listing():
    """The outputs of classes 1 and 0 at the three temperatures of the listing, and the statement broken at 0.5."""
    import numpy as np

    from nceref import losses
    from nceref.theory.statements import DecimalSystem, evaluate

    seen = [
        losses.cross_entropy.anatomy(np.array([[1.0, 2.0, 3.0]]), np.array([2]), temperature=t).probabilities[0]
        for t in (1, 0.5, 0.1)
    ]
    apart = [float(p[1] - p[0]) for p in seen]
    claim = next(one for one in CHAPTER.claims if one.id == "IS-6")
    held = evaluate(claim.as_published, claim.scenario, {"s": (3.0, 2.0, 1.0), "t": 0.5}, DecimalSystem(50)).holds
    shown = "classes 1 and 0 of the listing differ by {:.4f}, {:.4f} and {:.2g} at temperatures 1, 0.5 and 0.1"
    return Counter(shown.format(*apart), not held and apart == sorted(apart, reverse=True))


def _one_turn_at_most(rng):
    """The loss falls, then rises, as the temperature goes down, or does one of both: never more than one turn.

    60 instances of an anchor, each at 60 temperatures from 0.02 to 50.
    """
    import numpy as np

    from nceref.theory.statements import scenario

    temperatures = np.geomspace(0.02, 50, 60)
    for _ in range(60):
        s = np.array(scenario("anchor").draw(rng)["s"])
        p = np.exp((s - s.max()) / temperatures[:, None])
        slope = s[0] - (p / p.sum(axis=1, keepdims=True)) @ s
        signs = np.sign(np.where(np.abs(slope) < 1e-12, 0.0, slope))
        signs = signs[signs != 0]
        if np.count_nonzero(np.diff(signs)) > 1 or np.any(np.diff(signs) < 0):
            return False
    return True


CHAPTER = Chapter(
    name="source_001",
    title="Source 001: the temperature in a cross-entropy",
    claims=(
        Claim(
            id="IS-1",
            title="the MoCo form and the general form are one function",
            source=SOURCE,
            place="both formulas of the section on the background",
            published="L_q with K + 1 keys is the same loss as the one with the positive written apart.",
            latex=r"-\log\frac{e^{q\cdot k_+/\tau}}{\sum_{i=0}^{K}e^{q\cdot k_i/\tau}}"
            r"=-\log\frac{e^{s_+/\tau}}{\sum_{j\ge1}e^{s_j/\tau}+e^{s_+/\tau}}",
            expected=Verdict.AGREES,
            formula="-log(exp(s[0] / t) / sum(exp(x / t) for x in s))"
            " == -log(exp(s[0] / t) / (sum(exp(x / t) for x in s[1:]) + exp(s[0] / t)))"
            " and L == -log(P[0])",
            symbolic=True,
            numeric=True,
            random=True,
        ),
        Claim(
            id="IS-2",
            title="softmax and cross-entropy of [1, 2, 3], class 2",
            source=SOURCE,
            place="listing in the section on the intuition of the temperature",
            published="criterion(x, y) prints 0.4076, 0.1429 and 4.5418e-05 at temperatures 1, 0.5 and 0.1.",
            latex=r"L(\tau)=\log\textstyle\sum_k e^{x_k/\tau}-x_2/\tau,\quad x=(1,2,3)",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="The losses are those of criterion(x / t, y); as printed, the code gives 0.4076 three times. "
            "4.5418e-05 is the float32 value; the loss is 4.5401e-05.",
            counterexample=_listing_without_temperature,
            table="temperature-cross-entropy",
            cells={Verdict.PRINTED_DIGITS: 11, Verdict.FLOAT32_ARTIFACT: 1},
            formula="L == log(sum(exp(x / t) for x in s)) - s[0] / t",
            derivation="gradients",
            numeric=True,
            random=True,
        ),
        Claim(
            id="IS-3",
            title="the same with class 0, left to the reader",
            source=SOURCE,
            place="sentence after the listing",
            published="The source asks to try class 0 and prints no number.",
            latex=r"L(\tau)=\log\textstyle\sum_k e^{x_k/\tau}-x_0/\tau:\ 2.4076,\ 4.1429,\ 20.0000",
            expected=Verdict.AGREES,
            formula="L == -log(P[0])",
            numeric=True,
            random=True,
            no_evidence="symbolic: see IS-2, which holds for every class",
        ),
        Claim(
            id="IS-4",
            title="classified right: a lower temperature, a lower loss",
            source=SOURCE,
            place="conclusion after the listing",
            published="When the result is right, the loss falls with the temperature.",
            latex=r"s_+\ge s_j\ \forall j\ \Rightarrow\ \frac{dL}{d\tau}=\frac{s_+-E_P[s]}{\tau^2}\ge0",
            expected=Verdict.AGREES,
            formula="d(L, t) == (s[0] - expected) / t**2 and min(0, d(L, t)) * max(0, -gap) == 0",
            derivation="gradients",
            numeric=True,
            random=True,
        ),
        Claim(
            id="IS-5",
            title="classified wrong: a lower temperature, a higher loss",
            source=SOURCE,
            place="conclusion after the listing",
            published="When the result is wrong, the loss rises as the temperature falls.",
            latex=r"\frac{dL}{d\tau}=\frac{s_+-E_P[s]}{\tau^2};\quad "
            r"\bar s<s_+<s_{\max}:\ L\text{ has a minimum where } E_P[s]=s_+,\ L(\tau^*)=H(P)",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="It rises at every temperature only if the positive lies at or below the mean similarity. "
            "Between mean and maximum the loss first falls, then rises, with one minimum where E_P[s] = s_+.",
            as_published="d(L, t) < 0",
            counterexample={"s": (0.25, 0.5, -0.45, -0.1), "t": 1.0},
            formula="d(L, t) == (s[0] - expected) / t**2",
            derivation="gradients",
            numeric=True,
            random=_one_turn_at_most,
        ),
        Claim(
            id="IS-6",
            title="a lower temperature makes the softmax outputs differ more",
            source=SOURCE,
            place="conclusion after the listing",
            published="The smaller the temperature, the larger the differences between the softmax outputs.",
            latex=r"\frac{dH(P)}{d\tau}=\frac{\mathrm{Var}_P(s)}{\tau^3}\ge0,\qquad"
            r"\frac{d}{d\tau}(P_{\max}-P_j)\le0,\qquad\tau\log\frac{P_j}{P_k}=s_j-s_k",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="True of the largest output against each other one, of ratios, and of the entropy. The "
            "difference of "
            "two that are not the largest goes to 0 with the temperature, as it does in the listing.",
            as_published="[d(max(P[j], P[k]) - min(P[j], P[k]), t) for j in range(N) for k in range(j)] <= 0",
            counterexample=_outputs_of_the_listing,
            formula="d(entropy(P), t) == sum(p * (x - expected)**2 for p, x in zip(P, s)) / t**3"
            " and 0 <= d(entropy(P), t) and [d(max(*P) - P[j], t) for j in range(N)]"
            " == [(max(*P) * (expected - s_max) - p * (expected - x)) / t**2 for p, x in zip(P, s)] <= 0"
            " and [t * log(p / P[0]) for p in P] == [x - s[0] for x in s]",
            numeric=True,
            random=True,
            no_evidence="symbolic: the identity is proved symbolically in WL-11, for the negatives alone",
        ),
        Claim(
            id="IS-7",
            title="at temperature 1 a hard negative is hardly punished",
            source=SOURCE,
            place="section on the temperature in contrastive learning",
            published="Without a temperature the loss of a hard negative is small; one below 1 makes it larger.",
            latex=r"\frac{d}{d\tau}\frac{P_j}{\tau}=\frac{P_j}{\tau^3}(E_P[s]-s_j-\tau),\quad\frac{d}{d\tau}"
            r"\frac{P_j}{\tau}<0\ \text{ if } s_j\ge E_P[s]",
            expected=Verdict.CONDITIONAL,
            repair=Repair.CONDITION,
            repaired="At any temperature, a slightly smaller one makes the gradient larger of every negative at or "
            "above E_P[s] there: at all temperatures of one that no candidate exceeds. The loss itself may be smaller "
            "below 1.",
            as_published="L < log(sum(exp(2 * x) for x in s)) - 2 * s[0]",
            counterexample={"s": (0.25, 0.5, -0.45, -0.1), "t": 1.0},
            formula="[d(P[j] / t, t) for j in range(N)] == [P[j] / t**3 * (expected - s[j] - t) for j in range(N)]"
            " and [d(P[j] / t, t) for j in range(1, N) if expected <= s[j]] < 0",
            symbolic="[d(P[j] / t, t) for j in range(N)] == [P[j] / t**3 * (expected - s[j] - t) for j in range(N)]",
            numeric=True,
            random=True,
        ),
        Claim(
            id="IS-8",
            title="each image is its own class; uniformity against tolerance",
            source=SOURCE,
            place="first and last section",
            published="Each image is a class of its own; the temperature trades uniformity against tolerance.",
            latex=r"\text{a choice of model, and an empirical statement (see WL-19)}",
            expected=Verdict.NOT_REPRODUCIBLE,
            no_evidence="It is about trained networks on images; the source gives no number.",
        ),
        Claim(
            id="IS-9",
            title="all features are to be as far apart as possible",
            source=SOURCE,
            place="section on the temperature in contrastive learning, first conclusion",
            published="Contrastive learning trains a network such that all feature vectors are as far apart as "
            "possible.",
            latex=r"\frac{\partial L}{\partial s_+}=-\sum_{j\ge1}\frac{\partial L}{\partial s_j}\le0,\qquad"
            r"\frac{\partial L}{\partial s_j}\ge0\quad(j\ge1)",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="Those of different images. The two of one image are to meet, and are pulled together by as much "
            "as "
            "all others are pushed away; and false negatives are to stay near (WL-19).",
            as_published="0 <= [d(L, s[j]) for j in range(N)]",
            counterexample={"s": (0.25, 0.5, -0.45, -0.1), "t": 1.0},
            formula="d(L, s[0]) == -sum(d(L, s[j]) for j in range(1, N)) and d(L, s[0]) <= 0"
            " and 0 <= [d(L, s[j]) for j in range(1, N)]",
            derivation="gradients",
            numeric=True,
            random=True,
        ),
    ),
)
