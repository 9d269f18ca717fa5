"""The dense forms on the inputs of a probe: values under any deviations, and the way back to the inputs."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from nceref import registry
from nceref.cases.records import Probe
from nceref.diagnosis.conventions import EDGES, in_float32
from nceref.diagnosis.dense.batch import DenseBatch, DenseFamily, DenseForm, DenseRows, Deviations
from nceref.diagnosis.dense.program import program_form
from nceref.diagnosis.dense.stages import reduced
from nceref.diagnosis.dense.ways.way import Stage
from nceref.diagnosis.tape import Graph, Variable, edge
from nceref.spec import Loss

FORMULA = "measured-formula"
"""The convention that is set to a formula, which takes the place of the dense form."""


@cache
def form_of(loss: Loss) -> DenseForm:
    """The dense form of a loss, or its own program where it has none."""
    return _members()[loss.name] if is_dense(loss) else program_form(loss)


def is_dense(loss: Loss) -> bool:
    """Whether a loss has a dense form."""
    return loss.name in _members()


@cache
def _members() -> Mapping[str, DenseForm]:
    families = registry.discover("nceref.diagnosis.dense.losses", "DENSE", DenseFamily).values()
    return {loss: form for dense in families for loss, form in dense.losses.items()}


def prepared(probe: Probe) -> dict[str, Any]:
    """The checked inputs of a dense form.

    Result: arguments by name, and ``views``: whether the embeddings have an axis of views.
    """
    given = probe.bound.arguments
    embeddings = given.get("embeddings")
    return {**given, "views": embeddings is not None and embeddings.ndim == 3}


def substituted(inputs: Mapping[str, Any], deviations: Deviations) -> Mapping[str, Any]:
    """The inputs with another number in the place of a scalar that is rounded or ignored; ignored, it has no gradient.

    `deviations`: ``scalar-ignored`` holds the name and the number, ``scalar-in-float32`` the name.
    """
    rounded = deviations.get("scalar-in-float32")
    if rounded is not None:
        return {**inputs, rounded: in_float32(inputs[rounded])}
    if deviations.get("scalar-ignored") is None:
        return inputs
    name, number = deviations["scalar-ignored"]
    return {**inputs, name: number}


def evaluated(form: DenseForm, inputs: Mapping[str, Any], deviations: Deviations) -> DenseRows:
    """Row losses under the deviations.

    `inputs`: what `prepared` made of them. Result: what leaves the range is not finite; nothing is raised.
    """
    with np.errstate(all="ignore"):
        if (formula := deviations.get(FORMULA)) is not None:
            rows: DenseRows = formula.rows(inputs)
            return rows
        return form.rows(form.arrange(substituted(inputs, deviations), deviations), deviations)


def value(probe: Probe, deviations: Deviations) -> Any:
    """Value of the loss of a probe under the deviations; rows under the reduction ``none``.

    Result: detached, without a bound: `CaseAnalysis` has one.
    """
    rows = evaluated(form_of(probe.loss), prepared(probe), deviations)
    with np.errstate(all="ignore"):
        return reduced(rows, deviations, probe.reduction)


def graph_of(
    form: DenseForm,
    inputs: Mapping[str, Any],
    deviations: Deviations,
    names: Sequence[str],
    reduction: str = "mean",
    outer: Callable[[Mapping[str, Any]], Any] | None = None,
) -> Graph:
    """The way from the value under the deviations back to some of the inputs.

    `form`: the dense form of the loss. `inputs`: what `prepared` made of its inputs. `names`: float arrays or scalars.
    `reduction`: under ``none`` it is the sum of the rows. `outer`: ``outer(inputs)``: what multiplies the value.
    """
    leaves = {name: Variable(np.asarray(inputs[name], dtype=np.float64)) for name in names}
    moved = {**inputs, **{name: edge(x, name, "all inputs") for name, x in leaves.items()}}
    with np.errstate(all="ignore"):
        result = reduced(evaluated(form, moved, deviations), deviations, reduction)
        result = np.sum(result) if reduction == "none" else result
        return Graph(result if outer is None else result * outer(moved), tuple(leaves.values()))


def gradients(
    form: DenseForm,
    inputs: Mapping[str, Any],
    deviations: Deviations,
    names: Sequence[str],
    reduction: str = "mean",
    outer: Callable[[Mapping[str, Any]], Any] | None = None,
) -> dict[str, Any]:
    """Gradients by the named inputs, in the shapes of these; parameters as for `graph_of`."""
    graph = graph_of(form, inputs, deviations, names, reduction, outer)
    return dict(zip(names, graph.gradients(factors_of(graph, deviations)), strict=True))


def factors_of(graph: Graph, deviations: Deviations) -> dict[str, float]:
    """The factors on edges that conventions of the gradient are."""
    known = (EDGES[id] for id in deviations if id in EDGES)
    return {name: factor for names, factor in known if (name := next((n for n in names if n in graph.edges), ""))}


_OPTIONS = (
    "normalize", "fallback", "form", "base_temperature", "label_smoothing", "include_diagonal", "candidates",
    "correction", "directions",
)  # fmt: skip


def stages(loss: Loss, inputs: Mapping[str, Any], reduction: str) -> tuple[Stage, ...]:
    """The stages of a loss in their order, with the ways of each; none for a loss that has none stated.

    `inputs`: arguments; options among them choose how the reference does a stage. `reduction`: ``mean``, or another
    one, whose rows are added up.
    """
    options = tuple((name, inputs.get(name)) for name in _OPTIONS)
    given = tuple(name for name, x in inputs.items() if x is not None and name not in _OPTIONS)
    return _stages(loss, options, given, reduction)


@lru_cache(maxsize=32)
def _stages(
    loss: Loss, options: tuple[tuple[str, Any], ...], given: tuple[str, ...], reduction: str
) -> tuple[Stage, ...]:
    made = form_of(loss).stages
    return () if made is None else made({**dict(options), **dict.fromkeys(given, True)}, reduction)


def batches(loss: Loss, inputs: Mapping[str, Any]) -> Sequence[DenseBatch] | None:
    """The batches that the stages of a loss start from, one a direction; None for a loss or an input without stages."""
    form = form_of(loss)
    if form.stages is None:
        return None
    given: dict[str, Any] = {p.name: inputs.get(p.name, getattr(p, "default", None)) for p in loss.parameters}
    given["views"] = np.ndim(given.get("embeddings", 0)) == 3
    made: Sequence[DenseBatch] | None = form.arrange(given, {}) if form.compared is None else form.compared(given)
    return made
