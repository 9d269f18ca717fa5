"""Every loss as parts, each done as in the reference first, and its inputs as what the parts work on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from nceref import registry
from nceref.diagnosis.probe.parts import heads, logits, means, pairs, rows, similarities
from nceref.diagnosis.probe.parts.work import LossPart, Work
from nceref.engine.parameters import INVERSE_TEMPERATURES

Inputs = Mapping[str, Any]
_OPTIONS = ("normalize", "fallback", "form", "base_temperature", "label_smoothing", "include_diagonal")


@dataclass(frozen=True, eq=False)
class PartedLoss:
    """A loss as parts.

    Attributes
    ----------
    works : callable
        ``works(inputs)``: what the parts work on, one a direction; None for inputs that have no such parts.
    parts : callable
        ``parts(inputs, reduction)``: the parts; of the inputs, options have their values, and arrays are only there or
        not.
    """

    works: Callable[[Inputs], list[Work] | None]
    parts: Callable[[Inputs, str], tuple[LossPart, ...]]


@dataclass(frozen=True, eq=False)
class PartedFamily:
    """Losses of one kind of batch, as parts."""

    name: str
    losses: Mapping[str, PartedLoss]


@cache
def _members() -> Mapping[str, PartedLoss]:
    families = registry.discover("nceref.diagnosis.probe.losses", "PARTED", PartedFamily).values()
    return {loss: one for family in families for loss, one in family.losses.items()}


def works(name: str, inputs: Inputs) -> list[Work] | None:
    """What the parts of a loss work on, one a direction; None for a loss or an input that has no such parts.

    `name`: the loss. `inputs`: its arguments.
    """
    return _members()[name].works(inputs) if name in _members() else None


def parts(name: str, inputs: Inputs, reduction: str) -> tuple[LossPart, ...]:
    """The parts of a loss in their order.

    `inputs`: arguments; options among them choose how the reference does a part. `reduction`: ``mean``, or another one,
    whose rows are added up.
    """
    options = tuple((k, inputs.get(k)) for k in _OPTIONS)
    return _made(name, options, tuple(k for k, x in inputs.items() if x is not None and k not in _OPTIONS), reduction)


@lru_cache(maxsize=32)
def _made(
    name: str, options: tuple[tuple[str, Any], ...], given: tuple[str, ...], reduction: str
) -> tuple[LossPart, ...]:
    return _members()[name].parts({**dict(options), **dict.fromkeys(given, True)}, reduction)


def _scalars(inputs: Inputs) -> dict[str, float]:
    out = {k: float(x) for k, x in inputs.items() if isinstance(x, float | int) and not isinstance(x, bool)}
    sharp = [float(inputs[k]) ** INVERSE_TEMPERATURES[k] for k in INVERSE_TEMPERATURES if k in inputs]
    return {**out, "sharp": sharp[0] if sharp else 1.0}


def work(
    inputs: Inputs, blocks: Sequence[Any], anchors: Any, candidates: Any, positives: Any, inside: Any, **more: Any
) -> Work:
    """A work; what is not given is as of losses without labels, whose anchors are no candidates.

    `blocks` and `anchors` and `candidates` and `positives` and `inside` and `**more`: as of `Work`.
    """
    n, m = positives.shape
    usual = {
        "own": np.zeros((n, m), dtype=bool), "view": np.zeros((n, m), dtype=bool),
        "labels": np.arange(n), "kinds": np.arange(m), "samples": n,
    }  # fmt: skip
    return Work(_scalars(inputs), blocks, anchors, candidates, positives=positives, inside=inside, **{**usual, **more})


def compared(names: tuple[str, ...], inputs: Inputs) -> tuple[LossPart, ...]:
    """The parts up to similarities of the rows of these inputs."""
    raw = inputs.get("normalize") == "none"
    return (
        LossPart("rows of inputs", "rows: ", rows.ways(names, raw)),
        LossPart("similarities", "s_ij = ", similarities.ways()),
    )


def mean_part(reduction: str) -> LossPart:
    """The last part."""
    return LossPart("mean", "L = ", means.ways(sums=reduction != "mean"))


def warm(w: Work) -> Any:
    """Similarities over the temperature, in the denominator and in the numerator."""
    x = w["similarities"] * w.sharp
    return x, x


def tempered(inputs: Inputs) -> LossPart:
    """The logits of losses without a margin."""
    text = "t s_ij" if inputs.get("logit_scale") is not None else "s_ij/T"
    return LossPart("logits", "l_ij = ", logits.tempered_ways(warm, text))


@dataclass(frozen=True)
class Texts:
    """Who the positives of the reference are, and who is in its denominator."""

    positives: str
    candidates: str


def softmaxed(
    first: Sequence[LossPart], logit: LossPart, texts: Texts, base: str, reduction: str, factor: Any = None
) -> tuple[LossPart, ...]:
    """The parts of a loss whose rows are logarithms of a softmax.

    `first`: up to the similarities. `base`: of `heads.BASES`. `factor`: what multiplies every row.
    """
    return (
        *first,
        logit,
        LossPart("positives", "P(i): ", pairs.positives(texts.positives)),
        LossPart("denominator", "Z_i over ", pairs.denominators(texts.candidates)),
        *heads.parts(base, factor),
        mean_part(reduction),
    )


def paired(
    names: tuple[str, ...], texts: Texts, inputs: Inputs, reduction: str, base: str = "mean", factor: Any = None
) -> tuple[LossPart, ...]:
    """As `softmaxed`, from similarities of the rows of these inputs over a temperature."""
    return softmaxed(compared(names, inputs), tempered(inputs), texts, base, reduction, factor)
