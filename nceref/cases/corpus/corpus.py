"""The designed corpus: for a loss and its settings, inputs with the right answers and how far from them one may be.

Nothing here is random: the same call gives the same probes, with the same ids, `geometry-temperature`. Inputs are
numbers of the format of the run, and the reference is the exact loss of these numbers.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from nceref.cases.corpus.geometries import BIASES, LARGEST, PLACES, SHARES, SUITES, short, specs, turn_vectors
from nceref.cases.corpus.held import held_bounds
from nceref.cases.corpus.resizing import NO_RESIZING, Resizing
from nceref.cases.parametrization import representable
from nceref.cases.records import Probe
from nceref.cases.rounding import rounded
from nceref.checks.cases import Geometry, arguments
from nceref.engine.arguments import choose_reduction
from nceref.engine.bound_loss import BoundLoss
from nceref.engine.entry_point import entry_point
from nceref.engine.parameters import INVERSE_TEMPERATURES, at_temperature, judged_temperature
from nceref.errors import InputError
from nceref.losses import LossFunction
from nceref.output.text import shown
from nceref.spec import Array, Labels, Loss, Scalar
from nceref.tolerance.implementation import FORMATS, implementation_bounds


def corpus(
    loss: Loss,
    settings: Mapping[str, Any],
    *,
    suite: str = "standard",
    dtype: str = "float64",
    seed: int = 0,
    reduction: str = "mean",
    algorithm: str = "textbook",
    fixed: Mapping[str, float] | None = None,
    forms: Mapping[str, str] | None = None,
    resizing: Resizing | None = None,
    most: int = 0,
    only: Collection[str] = (),
) -> tuple[Probe, ...]:
    """All probes of a suite, in a fixed order, the one that discriminates most first.

    `settings` maps parameter names to a value, to ``...`` for a generated array, or to "views". Parameters that are not
    named are as in the first variant of the loss; naming any array or labels sets aside all of these that the variant
    has. `suite` decides the number of probes, about 30, 60 or 200. `dtype` is the format of the run, to which inputs
    are rounded, and `seed` is that of the generated rows. With the reduction "none" gradients are those of the sum of
    the rows. `algorithm` says which programs the bounds admit, see `implementation_bounds`.

    `fixed` has scalars that can only have one value, because the target was made with it; they are not rounded. `forms`
    has the parametrizations by scalar of a target that holds it: the parameter is rounded there, and not the scalar.
    `resizing` has sizes for all cases, in place of those of the suite. Only the first `most` probes are evaluated; 0:
    all. Or only those with the ids of `only`, as far as there are such; empty: all.

    Arrays in the result are read-only and shared between calls. Raises `InputError` for a suite, format, reduction,
    setting or scalar that does not exist.
    """
    fixed = dict(fixed or {})
    _check(loss, settings, suite, dtype, reduction, fixed)
    arrays = {p.name for p in loss.parameters if isinstance(p, Array | Labels)}
    # An array that is given is generated as well: what matters is that there is one.
    given = {n: ... if n in arrays and x is not None and not isinstance(x, str) else x for n, x in settings.items()}
    by_name = _sorted(fixed), _sorted(forms or {})
    how = (loss, _sorted(given), suite, dtype, seed, reduction, algorithm, *by_name, resizing or NO_RESIZING)
    if only:
        return _chosen_probes(frozenset(only), *how)
    return _first_probes(most, *how) if most else _probes(*how)


# Enough for every loss in two formats, as the score and `nceref verify` without a loss go through them.
@lru_cache(maxsize=64)
def _probes(*how: Any) -> tuple[Probe, ...]:
    return tuple(_evaluated(*how))


@lru_cache(maxsize=64)
def _chosen_probes(only: frozenset[str], *how: Any) -> tuple[Probe, ...]:
    return tuple(_evaluated(*how, only=only))


# A few each: of every loss with every setting of its own.
@lru_cache(maxsize=512)
def _first_probes(most: int, *how: Any) -> tuple[Probe, ...]:
    return tuple(islice(_evaluated(*how), most))


def _evaluated(
    loss: Loss,
    settings: tuple[tuple[str, Any], ...],
    suite: str,
    dtype: str,
    seed: int,
    reduction: str,
    algorithm: str,
    fixed: tuple[tuple[str, float], ...],
    forms: tuple[tuple[str, str], ...] = (),
    resizing: Resizing = NO_RESIZING,
    *,
    only: Collection[str] = (),
) -> Iterator[Probe]:
    made = designed_inputs(loss, dict(settings), suite, dtype, seed, dict(fixed), dict(forms), resizing)
    chosen = ((name, inputs) for name, inputs in made if not only or name in only)
    probes = (evaluate(loss, inputs, dtype, reduction, algorithm, name, forms=dict(forms)) for name, inputs in chosen)
    return (probe for probe in probes if _has_meaning(probe))


def _has_meaning(probe: Probe) -> bool:
    """Whether a probe is judged at all; a batch of one is not where only a policy gives it a value."""
    return bool(probe.loss.single or probe.skip or not probe.id.startswith("single"))


def _sorted(mapping: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(mapping.items(), key=lambda item: item[0]))


def _check(loss: Loss, settings: Any, suite: str, dtype: str, reduction: str, fixed: Mapping[str, float]) -> None:
    if suite not in SUITES:
        msg = f"`suite` must be one of {', '.join(map(repr, SUITES))}, got {shown(suite)}"
        raise InputError(msg)
    if dtype not in FORMATS:
        msg = f"`dtype` must be one of {', '.join(map(repr, FORMATS))}, got {shown(dtype)}"
        raise InputError(msg)
    choose_reduction(loss, reduction)
    scalars = [p.name for p in loss.parameters if isinstance(p, Scalar)]
    for known, given in (([p.name for p in loss.parameters], settings), (scalars, fixed)):
        for name in given:
            if name not in known:
                what = "argument" if given is settings else "scalar"
                msg = f"{loss.name} has no {what} `{name}`; it has {', '.join(f'`{k}`' for k in known)}"
                raise InputError(msg)


def _variant(loss: Loss, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a run: the first variant, with the settings in place of what they name."""
    arrays = {p.name for p in loss.parameters if isinstance(p, Array | Labels)}
    first = dict(loss.variants[0])
    if arrays & set(settings):
        first = {name: value for name, value in first.items() if name not in arrays}
    return {**first, **settings}


def designed_inputs(
    loss: Loss,
    settings: Mapping[str, Any],
    suite: str,
    dtype: str,
    seed: int,
    fixed: Mapping[str, float],
    forms: Mapping[str, str] | None = None,
    resizing: Resizing = NO_RESIZING,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ids and inputs of a suite, without their references; the parameters are those of `corpus`.

    With a fixed temperature, or none at all, every geometry comes once. Inputs are numbers of the format and read-only
    arrays, by argument name.
    """
    hot = [p.name for p in loss.parameters if p.name in INVERSE_TEMPERATURES]
    given = {**settings, **fixed}
    free = [name for name in hot if name not in given]
    seen = set()
    for name, geometry, temperature, sizes in specs(suite):
        if hot and not free:
            temperature = at_temperature(hot[0], given[hot[0]])
        else:
            temperature = judged_temperature(loss, temperature)
        label = f"{name}-{temperature:g}" if hot else name
        variant = _variant(loss, settings)
        if label in seen or not (_applies(loss, geometry, variant, dtype) and resizing.keeps(geometry)):
            continue
        seen.add(label)
        # Without the temperature: a geometry draws the same rows at each of them.
        rng = np.random.default_rng([seed, list(PLACES).index(geometry), len(name)])
        place = resizing.place(_place(loss, geometry, variant), sizes)
        inputs = arguments(loss, place, variant, temperature, sizes, rng, np.float64)
        _complete(loss, inputs, given, len(seen) - 1)
        _spread_labels(loss, place[1].get("C", 0), inputs)
        turn_vectors(loss, geometry, inputs)
        # The first anchor has no positive.
        if geometry == "lonely" and inputs.get("mask") is not None:
            inputs["mask"][0] = 0.0
        if inputs.get("normalize") == "none":
            inputs = _within(loss, inputs)
        made = {key: x if key in fixed else _rounded(x, dtype, (forms or {}).get(key)) for key, x in inputs.items()}
        yield label, {key: _frozen(x) for key, x in {**made, **fixed}.items()}


def _rounded(x: Any, dtype: str, form: str | None) -> Any:
    return representable(form, x, dtype) if form and isinstance(x, float) else rounded(x, dtype)


def _place(loss: Loss, geometry: str, variant: Mapping[str, Any]) -> Geometry:
    """A geometry; where the views of the largest batch are rows of one matrix, it has half as many samples."""
    rows, sizes, extra = PLACES[geometry]
    if geometry == LARGEST and (loss.rows.startswith("(2N") or "views" in variant.values()):
        sizes = {**sizes, "N": sizes["N"] // 2 + 1}
    return rows, sizes, extra


def _spread_labels(loss: Loss, classes: int, inputs: dict[str, Any]) -> None:
    """Other numbers for the same classes, where there are many: in 8 bits some of them are the same."""
    for p in loss.parameters:
        # 8 and the odd number of classes have no common divisor: no two classes become one.
        if classes > 2**8 and classes % 2 and isinstance(p, Labels) and inputs.get(p.name) is not None:
            inputs[p.name] = inputs[p.name] * 8 % classes


def _applies(loss: Loss, geometry: str, variant: Mapping[str, Any], dtype: str) -> bool:
    """Whether samples have classes, and rows a width and a length of their own, if the geometry is about that."""
    if geometry in ("lonely", "one-class"):
        return any(isinstance(p, Labels) and p.name == "labels" for p in loss.parameters)
    if geometry in ("d65", "d513"):
        return any(isinstance(p, Array) and "D" in p.shape for p in loss.parameters)
    if geometry == "extreme":
        # The squares of such lengths are out of the range of float16.
        normalized = any(p.name == "normalize" for p in loss.parameters) and variant.get("normalize", "l2") == "l2"
        return normalized and dtype != "float16"
    return True


def _complete(loss: Loss, inputs: dict[str, Any], given: Mapping[str, Any], number: int) -> None:
    """Scalars that take turns, the first probe at their defaults, and priors that are not all alike."""
    share = SHARES[number % len(SHARES)]
    for p in loss.parameters:
        if isinstance(p, Array) and p.like == "prior" and inputs.get(p.name) is not None:
            inputs[p.name] = _prior(len(inputs[p.name]))
        if not isinstance(p, Scalar):
            continue
        if p.low == -math.inf and not p.constant and p.name not in given:
            inputs[p.name] = BIASES[number % len(BIASES)]
        elif isinstance(p.default, float):
            inputs.setdefault(p.name, p.default)
        if share is not None and p.constant and p.default is not None and p.name not in INVERSE_TEMPERATURES:
            inputs[p.name] = _between(*p.typical, share)
    for name, value in given.items():
        if isinstance(value, float | int) and not isinstance(value, bool):
            inputs[name] = float(value)


def _prior(classes: int) -> Any:
    """Probabilities that are exact in every format, as long as one less than the classes is a power of 2."""
    prior = 0.5 ** np.arange(1.0, classes + 1)
    if classes > 8:
        # Powers of 1/2 would leave the range.
        prior = np.where(np.arange(classes) % 2, 0.25, 0.75) / (classes - 1)
    prior[-1] = 1 - np.sum(prior[:-1])
    return prior


def _between(low: float, high: float, share: float) -> float:
    """A number within a range, of few bits: products with small counts are exact in every format."""
    return round((low + share * (high - low)) * 64) / 64


def _within(loss: Loss, inputs: dict[str, Any]) -> dict[str, Any]:
    """Rows as they are, or shorter than 1 where the loss refuses them otherwise: its products must be cosines."""
    embeddings = [p.name for p in loss.parameters if isinstance(p, Array) and p.embedding and p.name in inputs]
    shrunk = {**inputs, **{name: short(inputs[name]) for name in embeddings}}
    return shrunk if _refusal(loss, inputs) and not _refusal(loss, shrunk) else inputs


def _refusal(loss: Loss, inputs: Mapping[str, Any]) -> str:
    try:
        LossFunction(loss)(**inputs)
    except InputError as error:
        return str(error)
    return ""


def _frozen(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        x = x.copy()
        x.flags.writeable = False
    return x


@entry_point
def evaluate(
    loss: Loss,
    inputs: Mapping[str, Any],
    dtype: str = "float64",
    reduction: str = "mean",
    algorithm: str = "textbook",
    id: str = "given",
    cotangent: Any = None,
    forms: Mapping[str, str] | None = None,
    against: str = "program",
) -> Probe:
    """One probe for given inputs: the reference, and how far a right program may be from it.

    `inputs` are numbers of `dtype`, by argument name; `id` is that of the probe; `reduction` and `algorithm` are those
    of `corpus`. With the reduction "none", `cotangent` is the weight of each row in the gradients, at most 1 in size;
    default: ones. `forms` has the parametrizations by scalar of a target that holds it: the bounds are wider by the
    rounding there. `against` is what a program is compared with, see `implementation_bounds`. The probe has `skip`
    where the reference refuses the inputs, and no gradients on a kink. Raises `InputError` for a reduction that the
    loss does not have.
    """
    choose_reduction(loss, reduction)
    refused = Probe(id, loss, inputs, dtype, reduction, cotangent=cotangent, forms=forms or {})
    try:
        bound = refused.bound
        value, grads = _reference(bound, reduction, cotangent)
        bounds = implementation_bounds(bound, dtype, reduction, algorithm, against)
    except InputError as error:
        return replace(refused, skip=str(error))
    if not np.all(np.isfinite(bounds.value)):
        return replace(refused, skip=f"the loss or its logits, with room for a factor of 2, leave the range of {dtype}")
    eps = 2 * FORMATS[dtype].storage.u
    if loss.jumps_near(bound.arguments, eps):
        return replace(refused, skip=f"the value jumps within rounding of these inputs in {dtype}")
    # Gradients of a 16-bit format are judged up to the resolution of float32. No jump is near: that was asked above.
    finest = min(eps, float(np.finfo(np.float32).eps))
    if any(not kink.jumps and kink.near(bound.arguments, finest) for kink in loss.kinks):
        grads = {}
    grads = {name: _frozen(g) for name, g in grads.items() if np.all(np.isfinite(bounds.grads[name]))}
    probe = replace(refused, value=_frozen(value), grads=grads, bounds=bounds)
    if forms:
        around = lambda given: _reference(replace(refused, inputs=given).bound, reduction, cotangent)  # noqa: E731
        probe = replace(probe, bounds=held_bounds(probe, around))
    # The copy is of the same inputs: what was bound for it need not be bound again.
    vars(probe)["bound"] = bound
    return probe


def _reference(bound: BoundLoss, reduction: str, cotangent: Any) -> tuple[Any, dict[str, Any]]:
    """Value and gradients of the float64 program; of rows, by default the gradients of their sum."""
    evaluation = bound.evaluate(reduction, keep=True)
    if reduction == "none" and cotangent is None:
        cotangent = np.ones_like(evaluation.rows)
    return evaluation.value(reduction), bound.gradients(evaluation, cotangent)
