"""Source 003, in passing: what crowded features are worth, what section 5 refers to, and how positives are drawn."""

from nceref.theory.claim import Chapter, Claim, Counter, Repair
from nceref.theory.verdicts import Verdict
from nceref.training.quadrants import findings

SOURCE = "source 003"
# Conclusions of section 4 in their order, of which the third is drawn from the first and the fourth from the second;
# section 5 repeats them after two others, and names its own numbers 1 and 4.
SECTION_4 = ("positive most similar", "negative most similar", "high is gentle", "low is sharp")
SECTION_5 = ("contrast", "a moderate temperature", *SECTION_4)
FROM_4, FROM_5 = {"high is gentle": 1, "low is sharp": 2}, {"high is gentle": 1, "low is sharp": 4}


def _before_training():
    from nceref.training.quadrants.samples import draw, encoded
    from nceref.training.quadrants.statistics import of_features

    start = draw(0)
    crowded, samples = of_features(encoded(start.samples, start.W1, start.W2)), of_features(start.samples)
    shown = "seed 0: 1-NN is right for {:.0%} of the untrained features, spread {:.2f} and {:.2f}".format(
        crowded.neighbor_accuracy, *crowded.std
    )
    return Counter(
        f"{shown}, and for {samples.neighbor_accuracy:.0%} of the samples, spread {samples.std[0]:.2f} and "
        f"{samples.std[1]:.2f}",
        crowded.neighbor_accuracy > 0.95 and max(crowded.std) < 0.3 * min(samples.std),
    )


def _another_item():
    """The conclusion that section 5 names, beside the one that its twin in section 4 names, for both that name one."""
    named = {item: (SECTION_5[FROM_5[item] - 1], SECTION_4[FROM_4[item] - 1]) for item in FROM_4}
    shown = "; ".join(
        f"{item!r} is drawn from {five!r} in section 5, from {four!r} in section 4"
        for item, (five, four) in named.items()
    )
    return Counter(shown, named["high is gentle"][0] != named["high is gentle"][1])


def _drawn_twice():
    from nceref.training.quadrants.indices import numbers

    _, anchor, positive, *_ = numbers(0, 10_000).T
    count = int((anchor == positive).sum())
    return Counter(f"seed 0: in {count} of the first 10,000 steps the positive is the anchor", count > 0)


def _one_in_25():
    """Of the 625 pairs 25 are of a sample with itself; over 20 seeds, steps differ from that by chance alone."""
    import numpy as np

    from nceref.training.quadrants.indices import numbers
    from nceref.training.quadrants.samples import PER_CLASS

    pairs = [(a, b) for a in range(PER_CLASS) for b in range(PER_CLASS)]
    exact = sum(a == b for a, b in pairs) * 25 == len(pairs)
    draws = np.concatenate([numbers(seed, 10_000) for seed in range(20)])
    count, mean = (draws[:, 1] == draws[:, 2]).sum(), len(draws) / 25
    return exact and abs(count - mean) < 4 * np.sqrt(mean * 24 / 25)


def _pulls_nothing(rng):
    """The cosine of a feature with itself is 1, and its gradients by both, which are one, add up to 0.

    40 features in the square.
    """
    import numpy as np

    from nceref.training.quadrants.plain import cosine

    features = rng.uniform(0.1, 1, (40, 1, 2)) * rng.choice((-1, 1), (40, 1, 2))
    value, vjp = cosine(features, features)
    by_anchor, by_positive = vjp(np.ones((40, 1)))
    return np.allclose(value, 1, rtol=1e-14) and np.abs(by_anchor + by_positive).max() < 1e-13


def _loss_falls_and_pull_grows():
    """The loss and the pull on the positive of the first table at temperatures 1 and 0.5."""
    import numpy as np

    from nceref import losses

    anchor = np.array([(0.5, 0.25, -0.45, -0.1)]), np.array([0])
    values = [losses.cross_entropy(*anchor, temperature=t) for t in (1.0, 0.5)]
    pulls = [-losses.cross_entropy.anatomy(*anchor, temperature=t).slopes[0, 0] / t for t in (1.0, 0.5)]
    return values[1] < values[0] - 0.2 and pulls[1] > pulls[0] + 0.3


CHAPTER = Chapter(
    name="source_003_toy",
    title="Source 003: crowded features, references, and positives",
    claims=(
        Claim(
            id="QT-14",
            title="crowded features are bad for a classifier",
            source=SOURCE,
            place="section 2, below the features before training",
            published="The features of the untrained encoder are crowded, very bad for a later classifier; the example "
            "is said not to be good, as similar samples are near each other already.",
            latex=r"f=\tanh(Mx),\ \det M\ne0:\qquad x=M^{-1}\mathrm{artanh}\,f",
            given="M can be inverted",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="They are classified as well as the trained ones: 1-NN by cosine is right for "
            f"{findings.BEFORE:.0%} before training and for {findings.AFTER:.0%} after it at 0.05 (means of 32 seeds). "
            "The scale of features decides nothing, and an encoder that can be inverted loses nothing.",
            counterexample=_before_training,
            scenario="encoder",
            formula="[(M[1][1] * log((1 + f[0]) / (1 - f[0])) - M[0][1] * log((1 + f[1]) / (1 - f[1])))"
            " / (2 * (M[0][0] * M[1][1] - M[0][1] * M[1][0])),"
            " (M[0][0] * log((1 + f[1]) / (1 - f[1])) - M[1][0] * log((1 + f[0]) / (1 - f[0])))"
            " / (2 * (M[0][0] * M[1][1] - M[0][1] * M[1][0]))] == [x[0], x[1]]",
            numeric=findings.neighbors_are_as_often_right_untrained,
            random=True,
            no_evidence="symbolic: SymPy does not cancel the logarithms of quotients of exponentials; see QT-8",
        ),
        Claim(
            id="QT-15",
            title="section 5 names the conclusions that it draws from",
            source=SOURCE,
            place="section 5, last two conclusions, from 1 and from 4",
            published="That a high temperature is gentle follows from 1, and that a low one is sharp from 4.",
            latex=r"\frac{dL}{d\tau}=\frac{s_+-E_P[s]}{\tau^2},\qquad \frac d{d\tau}\frac{1-P_+}\tau="
            r"\frac1{\tau^3}\sum_{j\ge1}P_j(E_P[s]-s_j-\tau)",
            expected=Verdict.WRONG,
            repair=Repair.REPLACED,
            repaired="In section 5 the first is 3, not 1: the list has two more items than that of section 4. And how "
            "much a step adjusts is the gradient, which does not follow from whether the loss rises or falls: in the "
            "first table from 1 to 0.5 the loss falls and the pull on the positive grows.",
            counterexample=_another_item,
            formula="d(L, t) == (s[0] - expected) / t**2 and d((1 - P[0]) / t, t)"
            " == sum(p * (expected - x - t) for p, x in zip(P[1:], s[1:])) / t**3",
            numeric=_loss_falls_and_pull_grows,
            random=True,
            no_evidence="symbolic: both derivatives are those of QT-4 and QT-6",
        ),
        Claim(
            id="QT-16",
            title="the positive is another sample of the anchor's class",
            source=SOURCE,
            place="section 2, listing of the training, its comments",
            published="One sample of the class is drawn as the anchor, and one more as its positive.",
            latex=r"\Pr[\text{positive}=\text{anchor}]=\tfrac1{25},\qquad \cos(f,f)=1,\quad \nabla\cos(f,f)=0",
            given="both drawn from the 25 samples of a class, independently; no feature is 0",
            expected=Verdict.IMPRECISE,
            repair=Repair.WORDING,
            repaired="Both are drawn from the same 25 independently: with probability 1/25 they are one sample. Its "
            "cosine is 1 whatever the encoder is, so that step only pushes the negatives away.",
            counterexample=_drawn_twice,
            numeric=_one_in_25,
            random=_pulls_nothing,
            no_evidence="symbolic: all 625 pairs are counted",
        ),
    ),
)
