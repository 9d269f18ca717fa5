"""What implementations of a loss differ in: a closed list, one record a convention, and all that is data about it.

What a convention does to a loss beyond a factor is a step of the dense losses (`nceref.diagnosis.dense`), under its
id; the search tries every setting in the order of this list.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.diagnosis.simple_numbers import written


@dataclass(frozen=True, eq=False)
class Convention:
    """One way in which implementations differ.

    Attributes
    ----------
    id : str
        Kebab-case words for what is different.
    axis : str
        Two conventions of one axis exclude each other.
    phrase : str
        Completes "the reference with ...".
    fix : str
        What to change to get the reference; an imperative sentence.
    kind : str
        The losses that it applies to, where these are a kind: ``rows`` of embeddings, ``two inputs`` of them, a
        ``mean`` over rows, a ``softmax``, anchors among their own candidates (``self``), two ``views`` in one matrix.
        The dense form of a loss lists its kinds, and one by one what else applies to it.
    factor : callable or None
        What multiplies the loss, ``factor(temperature, samples)``, on the axis ``factor``; what multiplies the
        similarities, ``factor(temperature, setting)``, on the axis ``temperature``. The temperature is the inverse of
        the scale for losses that have a scale.
    settings : tuple
        What the id leaves open, such as the size of an epsilon: all that the search tries, the most usual first. None
        alone where there is nothing to set.
    describe : callable
        A setting in words.
    threads : tuple of str
        Public threads in which it was reported or discussed, ``owner/repository#number``; pull requests are numbered
        like issues.
    """

    id: str
    axis: str
    phrase: str
    fix: str
    kind: str = ""
    factor: Callable[[Any, Any], Any] | None = None
    settings: tuple[Any, ...] = (None,)
    describe: Callable[[Any], str] = str
    threads: tuple[str, ...] = ()


# The smallest normal numbers, which released losses add to a probability: see `nceref.toml` of the peers.
_TINY = tuple(float(np.finfo(kind).tiny) for kind in (np.float32, np.float64, np.float16))
_EPSILONS = (1e-8, 1e-6, 1e-7, 1e-10, 1e-12, 1e-5, 1e-9, 1e-16, 1e-20, *_TINY)
_SMALL = (1e-8, 1e-6, 1e-12, 1e-5, 1e-7, 1e-10, 1e-4)
_INSIDE_LOG = (
    "the ratio",
    "the denominator",
    "the denominator after a shift by the maximum",
    "the denominator after a shift by the maximum of the candidates",
)
_NARROW = tuple((-1 + gap, 1 - gap) for gap in (1e-7, 1e-6, 1e-4, 1e-3, 1e-8, 1e-5))
# As they stand in public code: -10, -100, -1000 and -10000, and the logarithms of 1e-45 and 1e-9.
_MASKS = (-10.0, -100.0, math.log(1e-45), -1e3, math.log(1e-9), -1e4)
_LEAKS = (*((how, size) for size in _MASKS for how in ("added", "set", "times")), ("cosine", -1.0), ("cosine", 0.0))


def _leak(how: str, size: float) -> str:
    if how == "cosine":
        return f"masked similarities set to {size:g} before the temperature divides"
    return f"masked logits {_LEAKED[how].format(-size if how == 'added' else size)}"


_LEAKED = {"added": "lowered by {:g}", "set": "set to {:g}", "times": "multiplied by {:g}"}


def in_float32(x: Any, which: str = "itself") -> Any:
    """A number, or that of which the logarithm is kept, rounded to float32; its gradient passes."""
    if which == "its logarithm":
        return np.exp(in_float32(np.log(x), "itself"))
    return np.asarray(np.real(x), dtype=np.float32).astype(np.float64)[()] + (x - np.real(x))


def _within(x: Any, ends: Any) -> Any:
    """A number cut at a ceiling, or at both ends of a range; its gradient passes within."""
    low, high = ends if isinstance(ends, tuple) else (-math.inf, ends)
    return np.where(np.real(x) > high, high, np.where(np.real(x) < low, low, x))


def _range(ends: Any) -> str:
    return f"{ends[0]:g} to {ends[1]:.6g}" if isinstance(ends, tuple) else f"ceiling {ends:g}"


_BOTH_DIRECTIONS = "Average both directions: a softmax over the rows of the logits, and one over their columns."


_LISTED = (
    # What becomes of the rows before they meet.
    Convention("rows-not-normalized", "normalization", "rows that are not scaled to length 1",
               "Scale each row of every embedding input to length 1, or set normalize=none if that happens outside.",
               kind="rows",
               threads=("HobbitLong/SupContrast#22", "ssnl/align_uniform#10", "moein-shariatnia/OpenAI-CLIP#16")),
    Convention("rows-normalized", "normalization", "each row scaled to length 1 inside the loss",
               "Leave the rows as they are given, or set normalize=l2.", kind="rows"),
    Convention("first-input-not-normalized", "normalization", "rows of the first input not scaled to length 1",
               "Scale the rows of both inputs.", kind="two inputs"),
    Convention("second-input-not-normalized", "normalization", "rows of the second input not scaled to length 1",
               "Scale the rows of both inputs.", kind="two inputs"),
    Convention("queue-not-normalized", "normalization", "rows of the queue or of the negatives not scaled to length 1",
               "Scale the rows of the queue as well.",
               threads=("dvlab-research/Parametric-Contrastive-Learning#20",)),
    Convention("columns-normalized", "normalization", "columns scaled to length 1 instead of rows",
               "Normalize along the last dimension (dim=-1 or axis=-1).", kind="rows",
               settings=("each", "joint", "the first input", "the second input"),
               threads=("dvlab-research/Parametric-Contrastive-Learning#20",)),
    Convention("matrix-normalized", "normalization", "each input divided by the length of the whole matrix",
               "Normalize row by row (dim=-1 or axis=-1, keepdim).", kind="rows",
               settings=("each", "joint"),
               threads=("tensorflow/similarity#262",)),
    Convention("epsilon-in-norm", "normalization", "a small constant in the length of each row",
               "Take the larger of length and eps (F.normalize does); add nothing to it.", kind="rows",
               settings=tuple((where, size) for size in _SMALL for where in ("added", "under the root")),
               describe=lambda v: f"eps = {v[1]:.6g} {v[0]}"),
    Convention("norm-floored", "normalization", "lengths of rows held above a floor",
               "Divide by the length itself; a floor of 1e-12, as in F.normalize, leaves rows as they are.",
               kind="rows", settings=(1e-3, 1e-4, 1e-2, 1e-5), describe=lambda v: f"floor {v:.6g}"),
    Convention("centers-normalized", "normalization", "class centers scaled to length 1",
               "Leave the centers as they are given."),
    # Temperature and scale.
    Convention("temperature-multiplied", "temperature", "similarities multiplied by the temperature",
               "Divide by the temperature.",
               factor=lambda t, v: t),
    Convention("temperature-exponentiated", "temperature", "similarities multiplied by exp(temperature)",
               "Divide by the temperature itself; if the parameter is a log-scale, pass its exponential.",
               factor=lambda t, v: np.exp(t)),
    Convention("temperature-missing", "temperature", "no temperature at all",
               "Divide the similarities by the temperature before the softmax.",
               factor=lambda t, v: 1.0,
               threads=("HuiSerWang/ContrastMask#4",)),
    Convention("temperature-squared", "temperature", "similarities divided by the temperature twice",
               "Divide by the temperature once.",
               factor=lambda t, v: 1 / (t * t),
               threads=("caiqi/Joint-Contrastive-Learning#1",)),
    Convention("temperature-square-root", "temperature", "similarities divided by the square root of the temperature",
               "Divide by the temperature.",
               factor=lambda t, v: 1 / np.sqrt(t)),
    Convention("temperature-missing-on-positive", "temperature", "no temperature in the numerator",
               "Divide every similarity by the temperature, that of the positive included.",
               settings=("numerator", "everywhere"),
               threads=("HuiSerWang/ContrastMask#4", "RElbers/info-nce-pytorch#17")),
    Convention("temperature-off-on-positive", "temperature", "another temperature for the positive",
               "Divide every similarity by the same temperature.",
               settings=(2.0, 0.5), describe=lambda v: f"{written(v)} times that of the negatives"),
    Convention("temperature-missing-on-negatives", "temperature", "no temperature in the denominator",
               "Divide every similarity by the temperature, those of the denominator included.",
               settings=("denominator", "negatives"),
               threads=("RElbers/info-nce-pytorch#17",)),
    Convention("temperature-ignored", "temperature", "one temperature whatever is passed",
               "Use the temperature that is passed.",
               factor=lambda t, v: 1 / v,
               settings=(0.07, 0.1, 0.5, 0.05, 0.2), describe=lambda v: f"temperature = {v:g}"),
    Convention("temperature-off-by-a-factor", "temperature", "a temperature that is a multiple of what is passed",
               "Check the default and the unit of the temperature.",
               factor=lambda t, v: 1 / (v * t),
               settings=(10.0, 0.1, 2.0, 0.5, 100.0, 0.01), describe=lambda v: f"{written(v)} times the temperature",
               threads=("lightonai/pylate#115", "UKPLab/sentence-transformers#3054")),
    Convention("temperature-after-softmax", "temperature", "the temperature applied to the probability or its log",
               "Divide the similarities by the temperature before the softmax.",
               factor=lambda t, v: 1.0,
               settings=("log p / T", "log(p / T)", "T log p"),
               threads=("drboog/Lafite#25",)),
    Convention("temperature-clamped", "temperature", "the temperature held above a floor",
               "Clamp the parameter after the optimizer's step, not inside the loss.",
               factor=lambda t, v: np.where(np.real(t) < v, 1 / v, 1 / t),
               settings=(0.05, 0.01, 0.07, 0.1, 0.02, 0.001), describe=lambda v: f"floor {v:g}"),
    Convention("epsilon-in-temperature", "temperature", "a small constant added to the temperature",
               "Add nothing to the temperature; it is positive.",
               factor=lambda t, v: 1 / (t + v),
               settings=_SMALL, describe=lambda v: f"eps = {v:g}"),
    Convention("temperature-on-centers", "temperature", "logits of the centers divided by the temperature as well",
               "Divide the similarities of samples only."),
    Convention("scale-divides", "temperature", "similarities divided by the logit scale",
               "Multiply by the logit scale.",
               factor=lambda t, v: t,
               threads=("UKPLab/sentence-transformers#3054",)),
    Convention("scale-exponentiated", "temperature", "similarities multiplied by exp(logit scale)",
               "The reference takes the factor itself: pass log(scale) to the parameter, or drop the exponential.",
               factor=lambda t, v: np.exp(1 / t)),
    Convention("scale-without-exponential", "temperature", "similarities multiplied by the logarithm of the scale",
               "Exponentiate the learned log-scale before it multiplies.",
               factor=lambda t, v: -np.log(t),
               threads=("BAAI-DCAI/M3D#52",)),
    Convention("scale-missing", "temperature", "no logit scale at all", "Multiply the similarities by the scale.",
               factor=lambda t, v: 1.0,
               threads=("huggingface/transformers#13430",)),
    Convention("scale-clamped", "temperature", "the logit scale held within a range",
               "Clamp the parameter after the optimizer's step, not inside the loss.",
               factor=lambda t, v: _within(1 / t, v),
               settings=(100.0, math.log(100), 50.0, 10.0, (1.0, 100.0)), describe=lambda v: _range(v),
               threads=("openai/CLIP#46", "openai/CLIP#530", "LAION-AI/CLAP#57")),
    Convention("temperature-in-float32", "temperature", "the temperature rounded to float32",
               "Keep the parameter in the format of the run: module.double(), or its array in float64.",
               factor=lambda t, v: 1 / in_float32(t, v),
               settings=("itself", "its logarithm"), describe=lambda v: f"rounded: {v}"),
    Convention("scale-in-float32", "temperature", "the logit scale rounded to float32",
               "Keep the parameter in the format of the run: module.double(), or its array in float64.",
               factor=lambda t, v: in_float32(1 / t, v),
               settings=("itself", "its logarithm"), describe=lambda v: f"rounded: {v}"),
    Convention("scalar-in-float32", "scalar", "a scalar rounded to float32",
               "Keep it in the format of the run: a Python float, or an array in float64."),
    Convention("scalar-ignored", "scalar", "one value of a scalar whatever is passed", "Use the value that is passed.",
               describe=lambda v: f"{v[0]} = {v[1]:.9g}"),
    Convention("bias-missing", "bias", "no logit bias", "Add the bias to every logit."),
    Convention("bias-subtracted", "bias", "the logit bias subtracted", "Add the bias."),
    Convention("bias-before-scale", "bias", "the logit bias added before the scale multiplies",
               "Multiply by the scale first, then add the bias."),
    # Who is compared with whom.
    Convention("self-contrast-kept", "denominator", "the self-contrast kept in the denominator",
               "Mask the anchor itself out of its denominator, with -inf in the logits.", kind="self",
               threads=("Lightning-Universe/lightning-bolts#252", "vturrisi/solo-learn#206")),
    Convention("self-contrast-subtracted-as-e", "denominator", "e subtracted in place of the self-contrast",
               "Mask the diagonal; exp(1) is the self-contrast at temperature 1 only.", kind="self",
               threads=("Lightning-Universe/lightning-bolts#609",)),
    Convention("masked-entries-count-one", "denominator", "masked logits set to 0, which count exp(0) = 1 each",
               "Set masked logits to -inf, not to 0.", kind="self",
               threads=("google-research/simclr#20",)),
    Convention("mask-leaks", "denominator", "a finite additive mask that lets masked entries leak",
               "Mask with -inf (masked_fill), not with a finite constant.", kind="self",
               settings=_LEAKS, describe=lambda v: _leak(*v),
               threads=("raminnakhli/Decoupled-Contrastive-Learning#14", "keras-team/keras-rs#206",
                        "tensorflow/recommenders#706")),
    Convention("self-mask-shifted", "denominator", "the self mask beside the diagonal",
               "Put the mask on the diagonal of this rank's block.", kind="self",
               settings=(1, -1),
               threads=("vturrisi/solo-learn#206", "vturrisi/solo-learn#253")),
    Convention("positive-dropped-from-denominator", "denominator", "the positive left out of the denominator",
               "Keep the positive in the denominator; of two views without it, the loss is dcl.",
               threads=("Lightning-Universe/lightning-bolts#252", "leftthomas/SimCLR#27",
                        "KevinMusgrave/pytorch-metric-learning#6")),
    Convention("positive-kept-in-denominator", "denominator", "the positive kept in the denominator",
               "Leave the positive out of the denominator.",
               threads=("Lightning-Universe/lightning-bolts#252", "raminnakhli/Decoupled-Contrastive-Learning#9")),
    Convention("positive-counted-twice", "denominator", "the positive counted twice in the denominator",
               "Let every candidate enter the denominator once.", kind="softmax",
               threads=("modelscope/ms-swift#10068",)),
    Convention("other-positives-dropped", "denominator", "the other positives left out of the denominator",
               "Keep all positives in the denominator: this is a pair-wise NT-Xent, not SupCon.",
               threads=("KevinMusgrave/pytorch-metric-learning#699", "KevinMusgrave/pytorch-metric-learning#608",
                        "UKPLab/sentence-transformers#1862")),
    Convention("cross-view-only", "denominator", "candidates of the other view only",
               "Compare with both views: 2N - 1 candidates, not N.", kind="views",
               threads=("Yunfan-Li/Contrastive-Clustering#15", "torchgeo/torchgeo#1208")),
    Convention("same-view-only", "denominator", "negatives of the anchor's own view only",
               "Compare with both views: 2N - 1 candidates, not N.", kind="views",
               threads=("microsoft/A-CLIP#4",)),
    Convention("queue-dropped", "denominator", "no queue or explicit negatives among the candidates",
               "Append the logits of the queue, or of the hard negatives, to those of the batch.",
               settings=("in-batch", "own key only")),
    Convention("accidental-hits-kept", "denominator", "items with the id of the positive among the negatives",
               "Leave out, for each query, every item that has the id of its own."),
    Convention("guide-ignored", "guide", "candidates that the guide finds too similar among the negatives",
               "Leave out, for each query, the candidates that are above its limit."),
    Convention("guided-by-itself", "guide", "the similarities of the embeddings in the place of the guide's",
               "Compare the rows of the guide to decide who is left out."),
    Convention("guide-asked-about-the-row-itself", "guide", "a row among its own candidates, if the guide lets it",
               "Mask the diagonals of queries with queries and of documents with documents, whatever the guide says: a"
               " row is as similar to itself as can be, and no more than that where the guide's positive is the same."),
    Convention("guide-margin-added", "guide", "the margin added to the limit, not taken off it",
               "Subtract the margin from the guide's similarity of the positive, or compare with a negative margin."),
    Convention("guide-margin-of-signed-similarity", "guide", "a relative margin of the similarity, not of its size",
               "Take the part of |g|: where g is negative, a part of g raises the limit above it.",
               threads=("huggingface/sentence-transformers#3821",)),
    Convention("guide-limit-of-the-candidate", "guide", "each candidate against the limit of its own row",
               "Compare a row of similarities with the limit of that row."),
    Convention("guide-not-normalized", "guide", "the guide's rows at their own lengths",
               "Normalize the rows of the guide before they are compared."),
    Convention("guide-transposed", "guide", "the guide's similarity of query and document the other way round",
               "Take the guide's queries as the rows of the mask, and its documents as the columns."),
    Convention("in-batch-negatives-added", "denominator", "the other keys of the batch among the negatives",
               "With explicit negatives, compare with the own key and the negatives only."),
    Convention("in-batch-negatives-dropped", "denominator", "the other documents of the batch not among the negatives",
               "Compare with the other documents of the batch as well as with the hard negatives."),
    Convention("phantom-candidate", "denominator", "one more candidate with logit 0 in the denominator",
               "Sum over the candidates only; a padding of 0 counts exp(0) = 1.", kind="softmax"),
    Convention("a-negative-dropped", "denominator", "one negative missing from the denominator",
               "Check the range of the candidates at its ends.",
               settings=("last", "first", "next")),
    Convention("denominators-added-as-logs", "denominator", "log-sum-exps of the two views added up",
               "Take one log-sum-exp over both views, not the sum of two.",
               threads=("lightly-ai/lightly#1826", "lightly-ai/lightly#1827")),
    Convention("count-rounded-down", "denominator", "a fraction of the negatives that is rounded down",
               "Round the number of negatives that are kept up."),
    Convention("centers-dropped", "denominator", "no class centers among the candidates",
               "Concatenate the logits of the centers."),
    # Which way.
    Convention("one-direction-only", "direction", "the first direction only",
               _BOTH_DIRECTIONS,
               threads=("tensorflow/similarity#258", "pytorch/pytorch#195380")),
    Convention("other-direction-only", "direction", "the second direction only",
               _BOTH_DIRECTIONS),
    Convention("directions-summed", "direction", "both directions added up, not averaged", "Divide by 2.",
               threads=("Spijkervet/SimCLR#18",)),
    Convention("positive-counted-once", "direction", "the positive once in a denominator that has it from both sides",
               "Leave the positive in both sums, or say with `directions` that one of them is not there."),
    Convention("both-directions-averaged", "direction", "the mean of both directions",
               "Use the rows of queries against keys only, or compare with the symmetric loss."),
    Convention("softmax-over-wrong-axis", "direction", "the softmax over anchors instead of candidates",
               "Take the softmax over the last dimension of an (anchors, candidates) matrix.",
               threads=("YuanGongND/ssast#13", "DonkeyShot21/UNO#4", "leofansq/CPCL#1")),
    # Which are the positives.
    Convention("labels-shifted", "positives", "each positive one place too far", "Check the index of the positive.",
               kind="softmax",
               settings=(1, -1), describe=lambda v: f"by {v:+d}",
               threads=("lightly-ai/lightly#1176", "lightly-ai/lightly#1177")),
    Convention("views-interleaved", "positives", "the two views in one order and their positives in another",
               "Build rows and positives in one order: of [z1; z2], the partner of row i is i + N (mod 2N).",
               kind="views", settings=("positives interleaved", "rows interleaved"),
               threads=("Spijkervet/SimCLR#30", "Spijkervet/SimCLR#37", "UKPLab/sentence-transformers#3453")),
    Convention("anchor-as-positive", "positives", "each anchor as its own positive",
               "Let the label of each row be the place of its other view: (arange(2N) + N) % 2N for [z1; z2], not"
               " arange(2N)."),
    Convention("first-positive-only", "positives", "the first positive only", "Use all positives of an anchor."),
    Convention("self-counted-as-positive", "positives", "the anchor among its own positives",
               "Leave the diagonal out of the mask of positives.",
               threads=("KevinMusgrave/pytorch-metric-learning#141", "KevinMusgrave/pytorch-metric-learning#142")),
    # What the row is made of.
    Convention("sum-inside-log", "row", "the mean over positives inside the logarithm",
               "Average the log-probabilities, or compare with the inside form.",
               threads=("HobbitLong/SupContrast#61", "HobbitLong/SupContrast#149")),
    Convention("sum-outside-log", "row", "the mean over positives outside the logarithm",
               "Average the probabilities, or compare with the outside form.",
               threads=("HobbitLong/SupContrast#61", "HobbitLong/SupContrast#149")),
    Convention("positives-summed-inside-log", "row", "the positives added up inside the logarithm, not averaged",
               "Divide by the number of positives."),
    Convention("positives-not-averaged", "row", "log-probabilities added up over the positives, not averaged",
               "Divide each row by the number of its positives, or set form=sum."),
    Convention("positives-averaged", "row", "log-probabilities averaged over the positives",
               "Do not divide by the number of positives, or set form=mean."),
    Convention("divided-by-one-more", "row", "a division by one more than the number of positives",
               "Leave the anchor out of the count of its positives."),
    Convention("label-smoothing", "row", "smoothed labels", "Set label_smoothing=0.",
               settings=(0.1, 0.05, 0.2, 0.01, 1e-3, 1e-4), describe=lambda v: f"label_smoothing = {v:g}"),
    Convention("softplus-threshold", "row", "a softplus that is x itself for x above a threshold",
               "Pass a threshold of 40 (float64) to the softplus, or use logaddexp(x, 0).",
               settings=(20.0,), describe=lambda v: f"threshold {v:g}"),
    Convention("softmax-applied-twice", "row", "cross-entropy of scores that are probabilities already",
               "Pass logits to the cross-entropy, not probabilities.",
               settings=("with masked entries", "of the candidates")),
    Convention("logarithm-missing", "row", "minus the probability instead of minus its logarithm",
               "Take the logarithm of the probability.", kind="softmax"),
    Convention("log-of-mean", "row", "the logarithm of the mean probability instead of the mean logarithm",
               "Take the logarithm row by row, then the mean.", kind="softmax",
               threads=("pietz/simclr#1",)),
    Convention("epsilon-in-log", "row", "a small constant inside the logarithm",
               "Use log-softmax; add nothing inside a logarithm.", kind="softmax",
               settings=tuple((where, size) for size in _EPSILONS for where in _INSIDE_LOG),
               describe=lambda v: f"eps = {v[1]:g} in {v[0]}",
               threads=("Lightning-Universe/lightning-bolts#681",)),
    Convention("value-saturates", "row", "row losses cut off at a ceiling",
               "Use log-softmax; a clamped probability has no gradient.", kind="softmax",
               settings=_EPSILONS, describe=lambda v: f"-log({v:g}) = {-math.log(v):g}"),
    Convention("similarity-clamped", "row", "similarities cut to a range", "Do not clamp what gets a gradient.",
               settings=((0.0, math.inf), *_NARROW, *((-math.inf, high) for _, high in _NARROW[:3])),
               describe=lambda v: f"to [{v[0]:.10g}, {v[1]:.10g}]"),
    Convention("margin-missing", "margin", "no margin", "Feed the logits with the margin to the cross-entropy.",
               threads=("MccreeZhao/FR-Loss#2",)),
    Convention("margin-on-every-class", "margin", "the margin applied to every class",
               "Apply the margin to the target's logit only.",
               threads=("Confusezius/Revisiting_DML#12",)),
    Convention("margin-added", "margin", "the margin with the other sign", "The margin makes the target harder."),
    Convention("margin-not-scaled", "margin", "the margin subtracted after the scale",
               "Subtract the margin from the cosine, then multiply by the scale."),
    Convention("margin-in-degrees", "margin", "the margin read as degrees", "Pass radians."),
    Convention("margin-multiplied", "margin", "the margin subtracted from the cosine instead of added to the angle",
               "Add the margin to the angle: cos(theta + m)."),
    Convention("logq-missing", "prior", "no correction for how often items are sampled",
               "Subtract the logarithm of the expected count from the logit of each item.",
               threads=("NVIDIA-Merlin/models#1051",)),
    Convention("logq-added", "prior", "the logarithms of the expected counts added",
               "Subtract them: what is sampled often counts less.",
               threads=("tensorflow/recommenders#219", "tensorflow/recommenders#257")),
    Convention("logq-without-log", "prior", "the expected counts in place of their logarithms",
               "Take the logarithm: log m is subtracted."),
    Convention("logq-divided-by-temperature", "prior", "the correction divided by the temperature as well",
               "Divide the similarities by the temperature first, then subtract the logarithm of the expected count."),
    Convention("prior-missing", "prior", "no class prior or noise density", "Add the logarithm of the prior."),
    Convention("prior-subtracted", "prior", "the log-prior with the other sign", "Flip the sign of the log-prior."),
    Convention("prior-without-log", "prior", "the prior itself in place of its logarithm", "Take the logarithm."),
    Convention("prior-divided-by-temperature", "prior", "the log-prior divided by the temperature as well",
               "Divide the scores by the temperature first, then add the log-prior."),
    Convention("noise-ratio-missing", "prior", "the ratio of noise to data left out", "Use the noise ratio.",
               settings=("everywhere", "in the logit", "in the mean")),
    Convention("negatives-ignored", "row", "the positive pairs only", "Include the terms of the negative pairs."),
    Convention("positive-sign-flipped", "row", "the sign of the positive pairs flipped",
               "y = +1 for a pair, -1 otherwise, inside the logarithm of the sigmoid.",
               threads=("mlfoundations/open_clip#476",)),
    Convention("negatives-labeled-zero", "row", "pairs that do not belong together labeled 0 instead of -1",
               "Use labels +1 and -1."),
    Convention("mean-over-dimensions", "row", "squared distances averaged over the coordinates",
               "Sum over the coordinates, then take the mean over rows: no mean squared error."),
    Convention("distance-not-squared", "row", "distances in place of squared distances", "Square the distance."),
    Convention("distance-squared", "row", "squared distances whatever the exponent", "Use the exponent."),
    Convention("diagonal-included", "denominator", "each point paired with itself as well",
               "Leave out the pairs i = i, or set include_diagonal=True."),
    Convention("importance-weights-missing", "weights", "negatives that all count alike",
               "Weight the negatives by exp(concentration * similarity).",
               threads=("joshr17/HCL#1", "joshr17/HCL#5")),
    Convention("correction-missing", "weights", "no correction for false negatives",
               "Subtract the prior's share of the positive from the negatives."),
    Convention("weights-missing", "weights", "positives that all count alike", "Apply the weights of the positives."),
    # How rows become one number.
    Convention("sum-instead-of-mean", "reduction", "the sum instead of the mean",
               "Take the mean over the rows, not their sum.",
               kind="mean"),
    Convention("mean-instead-of-sum", "reduction", "the mean instead of the sum", "Do not divide.", kind="mean"),
    Convention("mean-over-pairs", "reduction", "the mean over positive pairs instead of anchors",
               "Average over the positives of each anchor first, then over the anchors.",
               threads=("KevinMusgrave/pytorch-metric-learning#179", "KevinMusgrave/pytorch-metric-learning#266")),
    Convention("lonely-anchors-counted", "reduction", "anchors without a positive counted as 0 in the mean",
               "Divide by the number of anchors that have a positive, or set no_positive=zero.",
               threads=("HobbitLong/SupContrast#141", "HobbitLong/SupContrast#142")),
    Convention("lonely-anchors-skipped", "reduction", "anchors without a positive left out of the mean",
               "Divide by all anchors, or set no_positive=skip.",
               threads=("KevinMusgrave/pytorch-metric-learning#744",)),
    Convention("mean-over-nonzero-rows", "reduction", "the mean over rows whose loss is not 0",
               "A perfect row counts: divide by the number of anchors.", kind="softmax"),
    Convention("divided-by-n-twice", "reduction", "the mean divided by the number of samples once more",
               "Divide by the number of samples once: by N, and not by N squared.", kind="mean",
               settings=("N", "rows"),
               threads=("google-research/big_vision#115", "sihyun-yu/REPA#21")),
    Convention("last-row-missing", "reduction", "the last row left out", "Check the range of the anchors.",
               kind="mean",
               settings=("divided by the rest", "divided by all")),
    Convention("first-view-only", "reduction", "anchors of the first view only", "Use the rows of both views.",
               kind="views",
               settings=("divided by the rest", "divided by all")),
    # What multiplies or shifts the result.
    Convention("outer-factor-2", "factor", "an outer factor 2", "Divide by 2: the mean over both views or directions.",
               factor=lambda t, n: 2.0,
               threads=("Spijkervet/SimCLR#18",)),
    Convention("outer-factor-half", "factor", "an outer factor 1/2", "Multiply by 2.",
               factor=lambda t, n: 0.5),
    Convention("outer-factor-temperature", "factor", "an outer factor T", "Drop the factor temperature.",
               factor=lambda t, n: t),
    Convention("outer-factor-temperature-squared", "factor", "an outer factor T^2", "Drop the factor temperature^2.",
               factor=lambda t, n: t * t),
    Convention("outer-factor-2-temperature", "factor", "an outer factor 2 T", "Drop the factor 2 * temperature.",
               factor=lambda t, n: 2 * t,
               threads=("facebookresearch/moco-v3#31",)),
    Convention("outer-factor-inverse-temperature", "factor", "an outer factor 1/T", "Drop the factor 1/temperature.",
               factor=lambda t, n: 1 / t),
    Convention("outer-factor-temperature-over-base", "factor", "an outer factor T / 0.07",
               "Set base_temperature equal to the temperature, or drop the factor.",
               factor=lambda t, n: t / 0.07,
               threads=("HobbitLong/SupContrast#1", "HobbitLong/SupContrast#73", "HobbitLong/SupContrast#106")),
    Convention("outer-factor-n", "factor", "an outer factor N", "Divide by the number of samples.",
               factor=lambda t, n: float(n)),
    Convention("outer-factor-constant", "factor", "a constant outer factor",
               "Find the factor, such as 2 or 1/N.",
               describe=lambda v: f"constant = {written(v)}",
               threads=("google-research/simclr#202", "tensorflow/recommenders#561")),
    Convention("log-base-2", "factor", "logarithms to base 2", "Use natural logarithms.",
               factor=lambda t, n: 1 / math.log(2)),
    Convention("log-base-10", "factor", "logarithms to base 10", "Use natural logarithms.",
               factor=lambda t, n: 1 / math.log(10)),
    Convention("sign-flipped", "factor", "the other sign", "Turn the sign of what is returned.",
               factor=lambda t, n: -1.0),
    Convention("offset-log-n", "offset", "log N added or subtracted", "Drop the offset log N."),
    Convention("offset-constant", "offset", "a constant added", "Drop the constant.",
               describe=lambda v: f"constant = {written(v)}"),
    # Where the value is right and the gradient is not.
    Convention("first-input-detached", "gradient", "no gradient to the first input", "Do not detach the first input."),
    Convention("keys-detached", "gradient", "no gradient to the second input, such as the keys",
               "Do not detach the keys, or what is the second input in their place; in moco the keys are constant.",
               threads=("JohnGiorgi/DeCLUTR#212",)),
    Convention("temperature-detached", "gradient", "no gradient to the temperature or scale",
               "Keep the temperature in the graph: no .item(), .detach(), .data, float() or function of math.",
               kind="softmax"),
    Convention("bias-detached", "gradient", "no gradient to the bias", "Keep the bias in the graph."),
    Convention("constants-get-gradient", "gradient", "a gradient to declared constants (queue, keys)",
               "Detach the queue and the momentum keys."),
    Convention("positives-detached", "gradient", "no gradient through the positives",
               "Let the gradient pass through the numerator.", kind="softmax"),
    Convention("denominator-detached", "gradient", "no gradient through the denominator",
               "Let the gradient pass through the log-sum-exp.", kind="softmax"),
    Convention("negatives-detached", "gradient", "no gradient to the rows of the negatives",
               "Do not detach the candidates."),
    Convention("candidates-detached", "gradient", "no gradient to rows in their part as candidates",
               "Do not detach the candidates, and add their part in a backward by hand: every row is an anchor and a"
               " candidate.", kind="self"),
    Convention("other-view-detached", "gradient", "no gradient to the rows of the other view as candidates",
               "Gather the rows of the other view with a gradient."),
    Convention("weights-not-detached", "gradient", "a gradient through weights that are constants",
               "Detach the weights.",
               threads=("lightly-ai/lightly#793",)),
    Convention("weights-detached", "gradient", "no gradient through weights that are not constants",
               "Do not detach the weights."),
    Convention("normalization-detached", "gradient", "no gradient through the lengths of the rows",
               "Do not detach the norm: the gradient must be orthogonal to each row.", kind="rows"),
    Convention("centers-detached", "gradient", "no gradient to the class weights or centers", "Do not detach them."),
    Convention("self-contrast-in-gradient", "gradient", "a gradient through the self-contrast",
               "Mask the diagonal instead of subtracting its value.", kind="self",
               threads=("Lightning-Universe/lightning-bolts#695",)),
    Convention("gradient-clamped", "gradient", "no gradient beyond a clamp", "Clamp parameters outside the graph.",
               settings=(100.0,),
               threads=("openai/CLIP#530", "openai/CLIP#46")),
    Convention("gradient-constant-factor", "gradient-factor", "a gradient that is a constant multiple of the right one",
               "Look for a factor, such as 2 or 1/N, that value and gradient do not share."),
    Convention("gradient-sign-flipped", "gradient-factor", "the gradient with the other sign",
               "Descend: return the gradient of the loss, not of its negative."),
    Convention("gradient-zero", "gradient-factor", "no gradient at all", "Keep the graph: no .item() or NumPy inside."),
    Convention("gradient-radial-only", "gradient-factor", "a gradient that is off along the rows only",
               "Harmless where the rows are normalized before; otherwise look for a detached or extra norm."),
    Convention("gradient-missing-rows", "gradient-factor", "no gradient to some of the rows",
               "Backpropagate through every chunk or process of the batch.",
               threads=("lightly-ai/lightly#1528", "UKPLab/sentence-transformers#3854")),
    Convention("gradient-parts-scaled", "gradient-factor", "parts of the gradient with factors of their own",
               "Look for a term that is added or detached twice, or a weight that one of the two sums has."),
    Convention("gradient-misplaced", "gradient-factor", "the gradient of another input or of other rows",
               "Return for each input its own gradient, in the order of its rows, as it is."),
    Convention("gradient-of-a-variant", "gradient-factor", "the gradient of another loss than the value",
               "Derive the gradient from the formula of the value."),
    Convention("value-right-gradient-wrong", "gradient-factor", "a gradient of something else",
               "The value does not show it: --repro FILE writes a small failing case, with your gradient beside"
               " that of the reference."),
    # Arithmetic.
    Convention("float32-fallback", "arithmetic", "arithmetic in float32", "Do not cast to float32 inside."),
    Convention("tf32-fallback", "arithmetic", "products in TF32 or float16 (10 bits)",
               "Set torch.backends.cuda.matmul.allow_tf32 = False; on a CPU, look for a cast to float16.",
               threads=("goodfire-ai/spd#970",)),
    Convention("half-fallback", "arithmetic", "arithmetic in bfloat16 or float16", "Compute the loss in float32.",
               threads=("UKPLab/sentence-transformers#3893",)),
    Convention("exp-overflows", "arithmetic", "exponentials that overflow",
               "Take logsumexp, which subtracts the row maximum, less the logit of the positive, and softplus in a"
               " sigmoid loss; no log of a quotient.",
               threads=("Lightning-Universe/lightning-bolts#320", "Lightning-Universe/lightning-bolts#811")),
    Convention("exp-underflows", "arithmetic", "exponentials that underflow to log 0",
               "Take log-softmax row by row, with masked entries at -inf before it: no logarithm of what may be 0."
               " Select positives by where, since 0 times -inf is NaN.",
               threads=("HobbitLong/SupContrast#104",)),
    Convention("gradient-not-finite", "arithmetic", "a gradient that is not finite where the value is",
               "Mask before an operation whose derivative is infinite somewhere, such as a root or arccos (where"
               " twice), not after it; take no root of a square.",
               threads=("google-deepmind/optax#946", "google-deepmind/optax#1762", "NVIDIA-NeMo/Automodel#3850")),
    Convention("value-not-finite", "arithmetic", "a value that is not finite",
               "Find the first intermediate that is not finite.",
               threads=("lightly-ai/lightly#1259",)),
    Convention("cancellation", "arithmetic", "a small loss lost to cancellation",
               "Use log1p or softplus of log-sum-exp differences: no 1 - p, no log of a sum near 1."),
    Convention("gradient-loses-digits", "arithmetic", "a gradient that loses more digits than inner products do",
               "Take similarities as inner products of rows: from squared distances of rows of unequal length,"
               " (|x|^2 + |y|^2 - |x - y|^2) / 2, the lengths cancel, and the gradient keeps their roundings."),
    Convention("lonely-anchors-nan", "arithmetic", "NaN from anchors without a positive",
               "Divide by max(count, 1), and give the row 0 or leave it out.",
               threads=("HobbitLong/SupContrast#141", "KevinMusgrave/pytorch-metric-learning#660")),
    # How it is called.
    Convention("upstream-gradient-ignored", "calling", "a gradient that is no multiple of the upstream gradient",
               "Multiply by grad_output, and cut no gradient inside the loss: a loss scaler, a weight or a sum of"
               " losses passes another one than 1."),
    Convention("memory-layout-ignored", "calling", "a program that reads arrays with gaps as if they had none",
               "Use the strides, or make a contiguous copy first."),
    Convention("earlier-calls-kept", "calling", "something kept from an earlier call",
               "Keep nothing between calls but what follows from the sizes of a batch, and keep that for each size."),
    Convention("another-reduction-wrong", "calling", "another reduction that is wrong",
               "Reduce the same rows: the sum is the mean times their number."),
    Convention("no-grad-differs", "calling", "another value within no_grad", "Compute the same value in both."),
    Convention("evaluation-mode-differs", "calling", "another loss in evaluation mode",
               "Leave out what depends on training, such as dropout or a queue that is filled."),
    Convention("compiled-differs", "calling", "another result when it is compiled",
               "Let nothing depend on the Python state while it is traced."),
    Convention("low-precision-differs", "calling", "a result in low precision that rounding does not explain",
               "Compute the loss in float32: disable autocast inside, cast the rows up."),
    Convention("not-repeatable", "calling", "another answer to the same inputs",
               "Look for random numbers, dropout, or a state that calls leave behind; judge it in eval mode."),
    Convention("hardness-missing", "hardness", "no hardness in the logits of the negatives",
               "Add hardness times the similarity, as a constant, to the logits of the negatives that it is for."),
    Convention("hardness-over-temperature", "hardness", "the hardness divided by the temperature as well",
               "Add the hardness after the division: s / T + a s."),
    Convention("hardness-on-every-candidate", "hardness", "the hardness in the logits of all candidates",
               "Leave the positive, and the negatives that the hardness is not for, at s / T."),
    # Which part of the inputs is used.
    Convention("other-setting", "part", "another setting of the loss",
               "Do what the setting says, or verify with the one that you mean."),
    Convention("input-replaced", "part", "something else in the place of an input", "Use the input itself."),
    Convention("inputs-ignored", "part", "one number whatever the inputs are",
               "Return what is computed from the inputs."),
    Convention("rows-ignored", "part", "rows that the value does not depend on",
               "Handle the rows that are left over after the last whole block, and those beyond a fixed size."),
    Convention("features-ignored", "part", "features that the value does not depend on",
               "Sum over the whole last dimension."),
    Convention("unequal-chunks", "part", "means over chunks of the batch, averaged or added",
               "Weigh each chunk by its size, or take one mean over all rows."),
    Convention("computed-in-chunks", "part", "chunks of the batch compared apart",
               "Compare each chunk with all rows of the batch, or gather the rows first."),
    # What several ranks make of one batch.
    Convention("local-candidates-only", "ranks", "the candidates of the own rank only",
               "Gather the rows of all ranks before the similarities, by an autograd function whose backward"
               " all-reduces and takes the rank's own rows.",
               threads=("Lightning-Universe/lightning-bolts#179", "vturrisi/solo-learn#229", "Spijkervet/SimCLR#13")),
    Convention("one-input-not-gathered", "ranks", "candidates of the own rank only, of one of the inputs",
               "Gather both inputs before the similarities, by an autograd function whose backward all-reduces and"
               " takes the rank's own rows."),
    Convention("one-shard-missing", "ranks", "the candidates of all ranks but one",
               "Exchange W - 1 times: a ring of W ranks brings each shard to every rank after range(world_size - 1)"
               " steps, beside the own shard."),
    Convention("own-labels-repeated", "ranks", "the rank's own labels repeated for the rows of all ranks",
               "Gather the labels as the embeddings are; they need no gradient."),
    Convention("weights-of-own-shard", "ranks", "weights that are normalized over the rows of the own rank",
               "Gather the similarities of the positive pairs, and take the softmax of the weights over all of them."),
    Convention("rank-offset-forgotten", "ranks", "the positives or the self mask of rank 0 on every rank",
               "Add the rank's offset, the number of rows on the ranks before it: labels = arange(n) + rank * n, and"
               " the same for the mask of the anchor itself.",
               threads=("vturrisi/solo-learn#206", "lightly-ai/lightly#1176")),
    Convention("shards-reordered", "ranks", "shards in another order than that of the ranks",
               "Give labels, masks and gathered shards one order: shards in that of the ranks, each view by itself,"
               " and the rank's offset, rank * n, added to labels once.",
               threads=("Spijkervet/SimCLR#30", "KevinMusgrave/pytorch-metric-learning#639")),
    Convention("duplicated-rows", "ranks", "rows that a sampler repeated",
               "Drop the repeated rows after the gather, or drop the last incomplete batch (drop_last=True)."),
    Convention("mean-of-means", "ranks-value", "the mean of the ranks' means, whatever their numbers of rows",
               "Divide each rank's sum of rows by the mean number of rows a rank, N / W, not by its own number.",
               threads=("google-research/simclr#202",)),
    Convention("value-times-ranks", "ranks-value", "the value times the number of ranks",
               "Do not multiply the loss by the world size, nor divide by the rank's own number of rows where that of"
               " all is meant; gather with gradient instead.",
               threads=("KevinMusgrave/pytorch-metric-learning#363",)),
    Convention("value-is-a-share", "ranks-value", "each rank's share of the value",
               "Divide a rank's sum of rows by its own number of rows, not by that of all ranks; or declare --value"
               " sum."),
    Convention("gradient-divided-by-ranks", "gather", "the gradient divided by the number of ranks",
               "Gather with a gradient that is summed over the ranks: an autograd function whose backward all-reduces"
               " and takes the rank's own rows. A factor world size corrects the rows alone, and makes that of a"
               " learned scale W times too large.",
               threads=("KevinMusgrave/pytorch-metric-learning#363", "modelscope/ms-swift#10081",
                        "lightly-ai/lightly#1920", "mlfoundations/open_clip#616")),
    Convention("gradient-times-ranks", "gather", "the gradient times the number of ranks",
               "Drop the factor world size, or divide by the number of rows of all ranks: a gather with gradient needs"
               " no other.",
               threads=("KevinMusgrave/pytorch-metric-learning#363",)),
    Convention("cross-rank-terms-missing", "gather", "no gradient between ranks",
               "Gather with a gradient that is summed over the ranks: an autograd function whose backward all-reduces"
               " and takes the rank's own rows.",
               threads=("facebookresearch/vissl#123", "lightly-ai/lightly#1528", "mlfoundations/open_clip#616",
                        "facebookresearch/SLIP#31")),
    Convention("own-shard-detached", "gather", "no gradient to the rank's own rows as candidates",
               "Put the rank's own rows, with their gradient, back into what was gathered: gathered[rank] = rows; or"
               " gather with gradient.",
               threads=("mlfoundations/open_clip#616",)),
    Convention("scalar-not-synchronized", "ranks-scalar", "another factor or share in the gradient of a scalar",
               "Let every rank leave the gradient of its own part of the loss, with the factor of the rows' gradient:"
               " no detach, no all-reduce of the scalar and no factor world size on some ranks or terms only."),
    Convention("one-rank-apart", "ranks-value", "something else on one rank alone",
               "Look for what depends on the rank: a branch such as `if rank == 0`, a slice by rank, a parameter or a"
               " buffer that one rank alone has."),
    Convention("mix-depends-on-ranks", "ranks-scalar", "another weight of a loss that is added",
               "Give both losses the same contract: what one gathers or multiplies, the other must too."),
    # What steps of gradient accumulation make of one batch.
    Convention("step-candidates-only", "ranks", "the candidates of the own step only",
               "Cache the representations of all rows, and let each step backpropagate the gradient of the whole loss"
               " by its own (GradCache). If batches of N/K rows are meant, nceref.transforms.accumulated is the"
               " reference."),
    Convention("mean-of-step-means", "ranks-value", "the mean of the steps' means, whatever their numbers of rows",
               "Divide each step's sum of rows by the mean number of rows a step, N / K, not by its own number."),
    Convention("value-times-steps", "ranks-value", "the value times the number of steps",
               "Divide the loss of each step, and so its gradient, by the number of steps, K."),
    Convention("value-divided-by-steps", "ranks-value", "the value divided by the number of steps",
               "Divide by the number of steps once, in the loss or in the loop; if the loop does not, declare --value"
               " sum --sync sum."),
    Convention("gradient-times-steps", "ranks-scalar", "the gradient times the number of steps",
               "Divide the loss of each step, and so its gradient, by the number of steps, K."),
    Convention("gradient-divided-by-steps", "ranks-scalar", "the gradient divided by the number of steps",
               "Divide by the number of steps once, in the loss or in the loop; if the loop does not, declare --value"
               " sum --sync sum."),
    Convention("scalar-not-accumulated", "ranks-scalar", "another factor or share in the gradient of a scalar",
               "Let every step leave the gradient of its own part of the loss, with the factor of the rows' gradient:"
               " a scalar that every step has is in the gradient of all of them."),
    Convention("one-step-apart", "ranks-value", "something else in one step alone",
               "Look for what depends on the step: a state that the first step meets empty, a branch, a counter."),
    # Where nothing on this list fits.
    Convention("wrong-loss", "unknown", "another loss of the family", "Pass that loss's name, or use its formula."),
    Convention("as-the-reference", "unknown", "nothing different", "Leave out --set, or do what it states."),
    Convention("measured-formula", "unknown", "another formula",
               "Write the reference's terms in the place of those that are marked."),
    Convention("unexplained", "unknown", "something that is not on this list",
               "Look at a small failing input: --repro FILE writes it as a script. `nceref verify`"
               " without --loss says whether it is another loss."),
)  # fmt: skip

CONVENTIONS = {convention.id: convention for convention in _LISTED}
"""Every convention by id, in the order in which the search tries them."""


def of_kind(*kinds: str) -> tuple[str, ...]:
    """Ids of the conventions that apply to losses of these kinds."""
    return tuple(id for id, convention in CONVENTIONS.items() if convention.kind in kinds)


EDGES: Mapping[str, tuple[tuple[str, ...], float]] = {
    "first-input-detached": (("the first input",), 0.0),
    "keys-detached": (("the second input",), 0.0),
    "centers-detached": (("the centers",), 0.0),
    "temperature-detached": (("the temperature",), 0.0),
    "bias-detached": (("the bias",), 0.0),
    "positives-detached": (("the numerator", "the terms of the positives"), 0.0),
    "denominator-detached": (("the denominator",), 0.0),
    "negatives-detached": (("the terms of the negatives", "the rows of the negatives"), 0.0),
    "candidates-detached": (
        (
            "the rows as candidates",
            "the rows as candidates in the denominator",
            "the rows as candidates in the numerator",
        ),
        0.0,
    ),
    "other-view-detached": (("the rows of the other view",), 0.0),
    "weights-not-detached": (("the weights",), 1.0),
    "weights-detached": (("the weights",), 0.0),
    "normalization-detached": (("the lengths of the rows",), 0.0),
}
"""By convention of the gradient the edge that it is about, under the name that a loss has, and the factor there."""
