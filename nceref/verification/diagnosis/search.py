"""Finds which conventions of the closed list explain what a target returned.

Values first: structures (what happens up to the row losses) of none, one or two options are evaluated on the case that
departs most, and compared with the target up to recognized factors and offsets; what fits there must fit every other
finite case within the bound of the variant. Then the gradients of what is left, see `slopes`.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from nceref.verification.diagnosis.case import REDUCED, CaseAnalysis
from nceref.verification.diagnosis.features import zero_row
from nceref.verification.diagnosis.gaps import usable
from nceref.verification.diagnosis.options import Option, options
from nceref.verification.records import Observation

NOT_STRUCTURE = frozenset({"reduction", "gradient", "gradient-factor", "factor", "offset"})
MOST = 3
"""Readings that are returned."""
SURPRISE = {0: 0.0, 1: 8.0, 2: 14.0, 3: 20.0}
"""Bits by which a fit must be surprising, by the number of conventions: there are 2^8 single ones, 2^14 pairs."""
SHARP = 10.0
"""Bits that the most telling case must have for two conventions at once to be looked for."""
FITTED = 3
"""Cases that must agree where a constant is fitted."""
CONSTANTS = ("outer-factor-constant", "offset-constant")


@dataclass(frozen=True)
class Reading:
    """One explanation of what was observed.

    Attributes
    ----------
    ids : tuple of str
        Conventions, values first, then gradients.
    cases, of : int
        Cases on which it can be told from the reference, and it fits; finite cases, all of which it fits.
    residual : float
        Largest distance, in units of the bound of the variant.
    quantities : tuple of str
        What was compared: ``value``, ``grad.NAME``.
    gradient : bool
        Whether it explains the gradients too.
    detail : str
        What the conventions are set to, such as ``eps = 1e-08``, or empty.
    options : tuple of Option
        The same as data.
    """

    ids: tuple[str, ...]
    cases: int
    of: int
    residual: float
    quantities: tuple[str, ...] = ("value",)
    gradient: bool = True
    detail: str = ""
    options: tuple[Option, ...] = ()


def readings(observations: Iterable[Observation]) -> tuple[Reading, ...]:
    """Explanations, the simplest first; none where the reference itself fits or nothing does.

    Parameters
    ----------
    observations : iterable of Observation
        All cases of one loss; those that are not finite, or have no reference, are left out.

    Returns
    -------
    tuple of Reading
        At most three: fewer conventions first, then the order of the closed list.
    """
    from nceref.verification.diagnosis.slopes import with_gradients

    analyses = [CaseAnalysis(o) for o in usable(observations) if _telling(o)]
    if not analyses:
        return ()
    found = _values(analyses)
    explained = [r for reading in found for r in with_gradients(reading, analyses)]
    explained.sort(key=lambda r: (not r.gradient, len(r.ids), [o.rank for o in r.options], r.residual))
    return tuple(_different(explained, analyses)[:MOST])


def _different(found: list[Reading], analyses: list[CaseAnalysis]) -> list[Reading]:
    """One reading of those that are the same numbers, such as a sum of two directions and twice their mean."""
    kept: list[tuple[Reading, Any]] = []
    for reading in found:
        own = [o for o in reading.options if o.axis not in ("gradient", "gradient-factor")]
        values = np.concatenate([answer(analysis, tuple(own))[0] for analysis in analyses])
        same = (np.allclose(values, known, rtol=1e-9, atol=0) and own for _, known in kept)
        if not any(same):
            kept.append((reading, values))
    return [reading for reading, _ in kept]


def _telling(observation: Observation) -> bool:
    """Whether every number is there; what a row of zeros becomes at length 1 is a policy of its own."""
    return bool(np.all(np.isfinite(observation.outcome.value))) and not zero_row(observation.probe)


def _values(analyses: list[CaseAnalysis]) -> list[Reading]:
    """Readings of the values alone."""
    departing = [b for b in analyses if b.departs]
    if not departing:
        return [Reading((), 0, len(analyses), 0.0)]
    # The case that says most comes first, then the others that depart.
    departing.sort(key=lambda b: -b.bits(b.usual))
    ordered = departing + [b for b in analyses if not b.departs]
    for survivors in _candidate_sets(ordered):
        kept = [r for r in (_verified(chosen, ordered) for chosen in survivors) if r]
        if kept:
            return _distinct(kept)
    return []


def _conventions(analysis: CaseAnalysis) -> tuple[list[Option], list[Option]]:
    ids = analysis.form.conventions
    every = list(options(ids))
    structural = [o for o in every if o.axis not in NOT_STRUCTURE or o.id == "self-contrast-in-gradient"]
    whole = analysis.probe.reduction == "mean"
    reductions = [o for o in every if o.axis == REDUCED and _sensible(o, analysis, whole)]
    return structural, reductions


def _sensible(option: Option, analysis: CaseAnalysis, whole: bool) -> bool:
    if analysis.probe.reduction == "none":
        return False
    return option.id != ("mean-instead-of-sum" if whole else "sum-instead-of-mean")


def _candidate_sets(analyses: list[CaseAnalysis]) -> Iterator[list[tuple[Option, ...]]]:
    """Candidates that fit the first case, by how many conventions they are."""
    first = analyses[0]
    structural, reductions = _conventions(first)
    factors = [Option(id) for id in first.factors] + [Option("offset-log-n", name) for name in first.offsets]
    singles: list[tuple[Option, ...]] = [(o,) for o in structural]
    yield _fitting(first, [*singles, *((o,) for o in reductions)], [()], factors)
    yield _fitted(analyses, [()])
    if not any(analysis.differs_much for analysis in analyses) or first.bits(first.usual) < SHARP:
        return
    # What cancels makes bounds so wide that it would lend itself to any second convention.
    structural = [o for o in structural if o.axis != "gradient"]
    few = _few(structural)
    pairs = [(a, b) for a, b in combinations(few, 2) if a.axis != b.axis]
    reduced = [(s, o) for s in structural for o in reductions]
    plain: list[tuple[Option, ...]] = [*pairs, *reduced]
    outer = [*singles, *((o,) for o in reductions)]
    yield _fitting(first, plain, outer, factors)
    yield _fitted(analyses, [(o,) for o in structural])
    yield _fitting(first, [], plain, factors)


def _few(structural: list[Option], most: int = 4) -> list[Option]:
    """The usual settings of each convention only: pairs are many."""
    seen: dict[str, int] = {}
    out = []
    for option in structural:
        seen[option.id] = seen.get(option.id, 0) + 1
        if seen[option.id] <= most:
            out.append(option)
    return out


def _fitting(
    analysis: CaseAnalysis, plain: list[tuple[Option, ...]], outer: list[tuple[Option, ...]], factors: list[Option]
) -> list[tuple[Option, ...]]:
    """Those that fit one case: `plain` as they are, `outer` with a factor or an offset."""
    found = [s for s in plain if analysis.misfit(*analysis.answer(s)) <= 1]
    # Without a mean, one direction has fewer rows than two.
    outer = [s for s in outer if analysis.answer(s)[0].shape == analysis.target.shape]
    if not outer or not factors:
        return found
    answers = [analysis.answer(s) for s in outer]
    values, allowed = (np.stack([a[k] for a in answers]) for k in range(2))
    for option in factors:
        scaled, room = shifted(analysis, option, values, allowed)
        with np.errstate(invalid="ignore"):
            fits = np.all(np.abs(scaled - analysis.target) <= room, axis=-1)
        found += [(*outer[k], option) for k in np.flatnonzero(fits)]
    return found


def shifted(analysis: CaseAnalysis, option: Option, value: Any, allowed: Any) -> tuple[Any, Any]:
    """A value and what is allowed, with a factor or an offset."""
    if option.axis == "offset":
        offset = analysis.offsets[option.value] if option.id == "offset-log-n" else option.value
        return value + offset, allowed + 4 * analysis.unit * abs(offset)
    factor = option.value if option.id == "outer-factor-constant" else analysis.factors.get(option.id, math.nan)
    return value * factor, abs(factor) * allowed + 4 * analysis.unit * np.abs(value * factor)


def answer(analysis: CaseAnalysis, chosen: tuple[Option, ...]) -> tuple[Any, Any]:
    """Value of a variant with its factor or offset, and what is allowed."""
    outside = [o for o in chosen if o.axis in ("factor", "offset")]
    found = analysis.answer(tuple(o for o in chosen if o not in outside))
    for option in outside:
        found = shifted(analysis, option, *found)
    return found


def _fitted(analyses: list[CaseAnalysis], structures: list[tuple[Option, ...]]) -> list[tuple[Option, ...]]:
    """Those that fit with a constant factor or offset on three cases, read off the case that fixes it best."""
    if len(analyses) < FITTED:
        return []
    found = []
    for structure in structures:
        for id in CONSTANTS:
            read = [_constant(analysis, structure, id) for analysis in analyses[:FITTED]]
            (low, high) = max(r[0] - r[1] for r in read), min(r[0] + r[1] for r in read)
            if low <= high:
                read += [_constant(analysis, structure, id) for analysis in analyses[FITTED:]]
                found.append((*structure, Option(id, min(read, key=lambda r: r[1])[0])))
    return found


def _constant(analysis: CaseAnalysis, structure: tuple[Option, ...], id: str) -> tuple[float, float]:
    """The constant that makes a case fit, and how far it may be off: NaN where none does, anything where all do."""
    value, allowed = analysis.answer(structure)
    place = int(np.argmax(np.abs(value)))
    v, room = float(value[place]), 2 * float(allowed[place])
    if not math.isfinite(v):
        return math.nan, math.inf
    if id == "offset-constant":
        return float(analysis.target[place]) - v, room
    if v == 0:
        return 0.0, math.inf
    factor = float(analysis.target[place]) / v
    return factor, room * max(1.0, abs(factor)) / abs(v)


def _verified(chosen: tuple[Option, ...], analyses: list[CaseAnalysis]) -> Reading | None:
    """The reading, if it fits every case and that is no accident."""
    chosen = tuple(sorted(chosen, key=lambda o: o.rank))
    fitted = next((o for o in chosen if o.id in CONSTANTS), None)
    worst, telling, bits = 0.0, 0, []
    for analysis in analyses:
        value, allowed = answer(analysis, chosen)
        # A constant that was read off one case carries the error of that case.
        allowed = allowed if fitted is None else 2 * allowed
        misfit = analysis.misfit(value, allowed)
        if not misfit <= 1:
            return None
        worst = max(worst, misfit)
        telling += analysis.discriminates(value, allowed)
        bits.append(analysis.bits(allowed))
    # The case that fixed a constant proves nothing.
    evidence = sum(bits) if fitted is None else sum(bits) - max(bits)
    # A value that differs by what cancels is no evidence; its gradient must be.
    hidden = any(o.axis == "gradient" for o in chosen)
    if not hidden and (telling < (FITTED if fitted else 1) or evidence < SURPRISE[len(chosen)]):
        return None
    return Reading(
        tuple(o.id for o in chosen), telling, len(analyses), worst, detail=_detail(chosen), options=chosen
    )  # fmt: skip


def _detail(chosen: tuple[Option, ...]) -> str:
    told = [f"constant = {o.value:.6g}" if o.id.endswith("-constant") else o.told for o in chosen]
    return ", ".join(t for t in told if t)


def _distinct(found: list[Reading]) -> list[Reading]:
    """One reading for every set of ids, the one that fits best."""
    found = sorted(found, key=lambda r: (len(r.ids), [o.rank for o in r.options], r.residual))
    kept: dict[tuple[str, ...], Reading] = {}
    for reading in found:
        known = kept.get(reading.ids)
        if known is None or reading.residual < known.residual:
            kept[reading.ids] = reading
    return list(kept.values())
