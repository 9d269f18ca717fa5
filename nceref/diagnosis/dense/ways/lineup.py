"""The stages of losses in their order, each done as in the reference first."""

from collections.abc import Mapping, Sequence
from typing import Any

from nceref.diagnosis.dense.batch import DenseBatch
from nceref.diagnosis.dense.ways import heads, logits, means, pairs, rows, similarities
from nceref.diagnosis.dense.ways.way import Stage

Inputs = Mapping[str, Any]


def compared(names: tuple[str, ...], inputs: Inputs) -> tuple[Stage, ...]:
    """The stages up to similarities of the rows of these inputs."""
    raw = inputs.get("normalize") == "none"
    return (
        Stage("rows of inputs", "rows: ", rows.ways(names, raw)),
        Stage("similarities", "s_ij = ", similarities.ways()),
    )


def mean_stage(reduction: str) -> Stage:
    """The last stage."""
    return Stage("mean", "L = ", means.ways(sums=reduction != "mean"))


def over_temperature(w: DenseBatch) -> Any:
    """Similarities over the temperature, in the denominator and in the numerator."""
    x = w["similarities"] * w.scale
    return x, x


def tempered_stage(inputs: Inputs) -> Stage:
    """The logits of losses without a margin."""
    text = "t s_ij" if inputs.get("logit_scale") is not None else "s_ij/T"
    return Stage("logits", "l_ij = ", logits.tempered_ways(over_temperature, text))


def softmaxed(
    first: Sequence[Stage],
    logit: Stage,
    positives: str | Stage,
    candidates: str,
    reduction: str,
    base: str = "mean",
    factor: Any = None,
) -> tuple[Stage, ...]:
    """The stages of a loss whose rows are logarithms of a softmax.

    `first`: up to the similarities. `positives` and `candidates`: who the positives of the reference are, and who is in
    its denominator. `base`: of `heads.BASES`. `factor`: what multiplies every row.
    """
    return (
        *first,
        logit,
        pairs.positives_stage(positives) if isinstance(positives, str) else positives,
        pairs.denominator_stage(candidates),
        *heads.stages(base, factor),
        mean_stage(reduction),
    )


def paired(
    names: tuple[str, ...], positives: str, candidates: str, inputs: Inputs, reduction: str, **head: Any
) -> tuple[Stage, ...]:
    """A line-up as of `softmaxed`, from similarities of the rows of these inputs over a temperature."""
    return softmaxed(compared(names, inputs), tempered_stage(inputs), positives, candidates, reduction, **head)
