"""Arguments that several losses share, each with one meaning everywhere."""

import math

from nceref.spec import Array, Choice, Labels, Loss, Scalar

Z1 = Array("z1", ("N", "D"), "Embeddings of the first view, one row a sample.")
Z2 = Array("z2", ("N", "D"), "Embeddings of the second view, row by row of the same samples.")
QUERIES = Array("queries", ("N", "D"), "Anchors.")
KEYS = Array("keys", ("N", "D"), "Key i is the positive of query i.")
DOCUMENTS = Array("documents", ("N", "D"), "Document i is the positive of query i.")
HARD_NEGATIVES = Array(
    "negatives", ("N", "V", "D"), "V hard negatives of each query; None: there are none.", required=False
)
LOGITS = Array("logits", ("N", "C"), "One score for every class.", embedding=False, like="vector")
CLASS_WEIGHTS = Array("class_weights", ("C", "D"), "One weight vector a class.", like="center")
EMBEDDINGS = Array("embeddings", ("N", "D"), "One row a sample.")
VIEWS = Array("embeddings", ("N", "D"), "One row a sample, or V views of each.", alternative=("N", "V", "D"))
QUEUE = Array(
    "queue",
    ("K", "D"),
    "Rows of earlier batches, more candidates; a constant.",
    required=False,
    positional=False,
    constant=True,
)
QUEUE_LABELS = Labels("queue_labels", ("K",), "Labels of the queue.", required=False, positional=False)
ANCHOR_WEIGHTS = Array(
    "anchor_weights",
    ("N",),
    "Weight of each sample's anchors in the sum and the mean; a constant.",
    required=False,
    positional=False,
    constant=True,
    embedding=False,
    low=0.0,
    closed=True,
    like="weights",
)
MASK = Array(
    "mask",
    ("N", "N"),
    "Weight >= 0 of sample j as a positive of sample i, instead of labels; need not be symmetric.",
    required=False,
    positional=False,
    constant=True,
    embedding=False,
    low=0.0,
    closed=True,
    like="mask",
)
TARGET = Labels("target", ("N",), "Class of each row.", classes="C")
LABELS = Labels("labels", ("N",), "Class of each sample; samples of equal label are positives of each other.")

TEMPERATURE = Scalar("temperature", r"\tau", "Divides the similarities.", low=0.0, typical=(0.05, 1.0))
LOGIT_SCALE = Scalar(
    "logit_scale",
    "t",
    "Multiplies the similarities: the factor itself, not its logarithm.",
    low=0.0,
    typical=(1.0, 20.0),
)
SCALE = Scalar("scale", "s", "Multiplies the cosines.", default=64.0, low=0.0, typical=(1.0, 64.0))
INVERSE_TEMPERATURES = {TEMPERATURE.name: -1, LOGIT_SCALE.name: 1, SCALE.name: 1}
"""Exponent of each such scalar in the inverse temperature, the factor on the similarities: -1 divides, 1 multiplies."""
PRIOR = Scalar(
    "positive_prior",
    r"\tau^+",
    "Probability that a negative belongs to the anchor's class.",
    default=0.1,
    low=0.0,
    low_closed=True,
    high=1.0,
    constant=True,
    typical=(0.05, 0.2),
)

NORMALIZE = Choice(
    "normalize", ("l2", "none"), "l2", "Whether each row of every embedding input is scaled to length 1."
)
L2, UNNORMALIZED = {NORMALIZE.name: "l2"}, {NORMALIZE.name: "none"}
"""Hypotheses of properties: rows scaled to length 1, and rows as given."""
NORMALIZED = {"radial_slope_zero": L2, "scale_invariant": L2}
"""Properties of every loss that scales the rows of all its inputs to length 1, which hold only then."""
EQUAL_WEIGHTS = (None, "equal weights")
"""Levels of a mask: none, or one whose weights are 0 or the same, row by row."""
NO_POSITIVE = Choice(
    "no_positive",
    ("error", "skip", "zero"),
    "error",
    "An anchor without a positive: refused, left out of the mean, or counted as 0.",
)
ANCHOR_MODE = Choice("anchor_mode", ("all", "one"), "all", "Anchors are the rows of all views, or of the first only.")


IN_USE = 0.005
"""The lowest temperature that must work: half of 0.01, where CLIP clips it (openai/CLIP#530).

The lowest that was found in use is that of a trained SigLIP, 1/112.33 (mlfoundations/open_clip#746).
"""


def at_temperature(name: str, temperature: float) -> float:
    """The value of a scalar in `INVERSE_TEMPERATURES` at a temperature; its own inverse, so also the way back."""
    return temperature if INVERSE_TEMPERATURES[name] < 0 else 1 / temperature


def judged_temperature(loss: Loss, temperature: float) -> float:
    """The temperature, or the nearest one that the loss is defined for and declares to be judged at.

    At a finite end of the domain it is a quarter inside of it: rounded to a short format, it must not leave it.
    """
    for p in loss.parameters:
        if isinstance(p, Scalar) and p.name in INVERSE_TEMPERATURES:
            low = 1.25 * p.low if p.low > 0 else -math.inf
            x = min(max(at_temperature(p.name, temperature), low), p.high / 1.25)
            temperature = at_temperature(p.name, x) if x != at_temperature(p.name, temperature) else temperature
            return max(temperature, loss.lowest_temperature)
    return temperature
