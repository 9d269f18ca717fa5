"""Conventions in which published implementations of the same loss differ, as read in their code."""

from typing import Any

from nceref.theory.table import Table

COLUMNS = ("peer", "loss", "temperature default", "factor", "normalization", "self pair", "lonely anchor")

NONE_POSSIBLE = "cannot occur: the positive is given with the anchor"
TWO_SETS = "none: anchors and candidates are two sets"

# By column; the default temperature as it is worded, then as numbers: a scale or factor s is a temperature of 1 / s.
PEERS: tuple[tuple[str, str, tuple[Any, ...], str, str, str, str], ...] = (
    (
        "SupContrast",
        "SupCon L_out; NT-Xent without labels",
        ("0.07", 0.07),
        "T / base_temperature, and base_temperature is 0.07; mean over all views of all samples",
        "left to the caller",
        "masked, but after the row maximum was taken over it",
        "its row is 0 and counts in the mean; NaN before pull request 142",
    ),
    (
        "google-research supcon",
        "SupCon L_out and L_in; denominator with all, one or no positives",
        ("1.0", 1.0),
        "T, unless scale_by_temperature is off; one value a sample; with one view it divides by |P| twice",
        "left to the caller, recommended",
        "masked",
        "its row is 0; possible with a single view only",
    ),
    (
        "PaCo and GPaCo",
        "PaCo; GPaCo; balanced softmax with SupCon",
        ("0.2 and 0.07 in the scripts; 1.0 in the class", 0.2, 0.07, 1.0),
        "divided by the row's total weight 1 + alpha K; mean over the batch",
        "features outside the loss; center logits raw or from a normalized layer",
        "masked",
        "cannot occur: the class center is always a positive",
    ),
    (
        "pytorch-metric-learning NTXentLoss",
        "InfoNCE of every positive pair; the pair's other positives are left out of its denominator",
        ("0.07", 0.07),
        "mean over positive pairs, not over anchors",
        "inside",
        "excluded by the list of pairs; also if the same tensor is passed as reference",
        "has no pair and is skipped; a batch without any pair gives 0",
    ),
    (
        "pytorch-metric-learning SupConLoss",
        "SupCon L_out",
        ("0.1", 0.1),
        "mean over the anchors whose loss is above 0",
        "inside",
        "excluded by the list of pairs",
        "dropped from the mean, as is every anchor with loss 0",
    ),
    (
        "pytorch-metric-learning ArcFaceLoss, CosFaceLoss",
        "ArcFace; CosFace",
        ("scale 64 instead; margins 28.6 (degrees) and 0.35", 1 / 64),
        "1",
        "inside, embeddings and class weights",
        "none: samples are compared with classes",
        "cannot occur: every class has a weight",
    ),
    (
        "lightly NTXentLoss, DCLLoss, DCLWLoss",
        "NT-Xent, with a memory bank as an option; DCL; DCLW; alignment and uniformity",
        ("0.5 for NT-Xent, 0.1 for DCL and DCLW", 0.5, 0.1),
        "1, mean over 2N anchors; the value of DCL is wrong before 1.5.21",
        "inside",
        "removed",
        NONE_POSSIBLE,
    ),
    (
        "info-nce-pytorch",
        "InfoNCE in one direction; given negatives replace the other positives",
        ("0.1", 0.1),
        "1; none, sum or mean",
        "inside",
        TWO_SETS,
        NONE_POSSIBLE,
    ),
    (
        "optax ntxent",
        "InfoNCE of every positive pair, own positive and negatives in the denominator",
        ("0.07", 0.07),
        "mean over positive pairs, not over anchors",
        "inside",
        "masked",
        "has no pair; a batch without any pair gives NaN",
    ),
    (
        "open_clip ClipLoss",
        "CLIP",
        ("a learned factor, starting at 1 / 0.07; the loss takes it after the exponential", 0.07),
        "1, half the sum of both directions",
        "left to the caller",
        TWO_SETS,
        NONE_POSSIBLE,
    ),
    (
        "open_clip SigLipLoss",
        "SigLIP",
        ("a learned factor and bias; the tests use 10 and -10",),
        "sum over all pairs, divided by the local batch",
        "left to the caller",
        TWO_SETS,
        NONE_POSSIBLE,
    ),
    (
        "sentence-transformers MultipleNegativesRankingLoss",
        "InfoNCE in one direction or both, with hard negatives if given",
        ("scale 20, which multiplies", 1 / 20),
        "1; half the sum of both directions if symmetric",
        "inside, unless another similarity is chosen",
        "none between anchors and candidates; masked where anchors are compared with anchors",
        NONE_POSSIBLE,
    ),
    (
        "solo-learn, repository",
        "SupCon with the positives summed inside the logarithm, so log |P| below L_in; MoCo",
        ("0.1; 0.2 for MoCo v3", 0.1, 0.2),
        "1; 2T for MoCo v3",
        "inside; outside for MoCo v2+",
        "masked, diagonal of the process's own block",
        "infinite value, NaN gradient",
    ),
    (
        "solo-learn 1.0.2",
        "SupCon L_out; NT-Xent without extra positives",
        ("0.1", 0.1),
        "1",
        "inside",
        "excluded",
        NONE_POSSIBLE,
    ),
    (
        "Inf-CLIP",
        "CLIP in one direction, called twice",
        ("none: scale 1, given after the exponential",),
        "one value for each row (flash) or their mean (ring)",
        "left to the caller",
        TWO_SETS,
        NONE_POSSIBLE,
    ),
    (
        "GradCache",
        "InfoNCE in one direction, hard negatives interleaved with the positives",
        ("none",),
        "1",
        "left to the caller",
        TWO_SETS,
        NONE_POSSIBLE,
    ),
    (
        "raminnakhli DCL, DCLW",
        "DCL; DCLW with a gradient through its weights",
        ("0.1", 0.1),
        "1, one direction",
        "left to the caller",
        "an added log(1e-45), which leaks at low temperature",
        NONE_POSSIBLE,
    ),
    (
        "HCL",
        "HCL; debiased; NT-Xent",
        ("0.5", 0.5),
        "1, mean over 2N anchors",
        "in the model",
        "removed",
        NONE_POSSIBLE,
    ),
    (
        "google-research simclr",
        "NT-Xent",
        ("1.0", 1.0),
        "2: the means of both views are added",
        "inside, unless switched off",
        "lowered by 1e9",
        NONE_POSSIBLE,
    ),
    (
        "tensorflow-similarity SimCLRLoss",
        "NT-Xent",
        ("0.05", 0.05),
        "2: the rows of both views are added",
        "inside",
        "lowered by 1e9",
        NONE_POSSIBLE,
    ),
    (
        "tensorflow-similarity MultiNegativesRankLoss",
        "meant as InfoNCE; adds a candidate with logit 0 and mixes rows",
        ("scale 20, which multiplies", 1 / 20),
        "none fits: the result is an N x N array",
        "left to the caller",
        TWO_SETS,
        NONE_POSSIBLE,
    ),
    (
        "MoCo",
        "MoCo: its own key and a queue of 65536",
        ("0.07", 0.07),
        "1; the caller takes the cross-entropy of the logits",
        "inside",
        TWO_SETS,
        NONE_POSSIBLE,
    ),
    (
        "align_uniform",
        "alignment; uniformity over pairs i < j",
        ("none: t = 2",),
        "1",
        "left to the caller",
        "left out, because i < j",
        NONE_POSSIBLE,
    ),
    (
        "CEBRA infonce",
        "called InfoNCE, but without the positive in the denominator",
        ("1.0, or learned with a lower limit", 1.0),
        "1",
        "left to the caller, not checked",
        TWO_SETS,
        NONE_POSSIBLE,
    ),
)


def rows() -> list[dict[str, Any]]:
    """One row for each implementation."""
    return [{**dict(zip(COLUMNS, peer, strict=True)), "temperature default": peer[2][0]} for peer in PEERS]


def default_temperatures() -> dict[str, tuple[float, ...]]:
    """The default temperatures of each implementation in the table that has one."""
    return {peer: tuple(temperatures) for peer, _, (_, *temperatures), *_ in PEERS if temperatures}


TABLE = Table(
    name="conventions",
    title="What implementations of the same loss do differently",
    source="Read in the source code of each implementation; some were run to confirm it",
    columns=COLUMNS,
    rows=rows,
    note=(
        "T is the temperature, N the number of samples, |P| and K the number of positives of an anchor. Factor: "
        "the value is multiplied by it, after the mean over the anchors. Self pair: the similarity of a sample with "
        "itself. Lonely anchor: an anchor without any positive."
    ),
)
