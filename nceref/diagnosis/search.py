"""Finds which conventions of the closed list explain what a target returned.

Values first: structures (what happens up to the row losses) of none, one or two options are evaluated on the case that
departs most, and compared with the target up to recognized factors and offsets; what fits there must fit every other
finite case within the bound of the variant. Then the gradients of what is left, see `gradients`.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice, product
from typing import Any

import numpy as np

from nceref.cases.records import Observation
from nceref.diagnosis.case import REDUCED, CaseAnalysis
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.explanation import Explanation, scaled_or_shifted, variant_value
from nceref.diagnosis.features import zero_row
from nceref.diagnosis.gaps import usable
from nceref.diagnosis.gradients import with_gradients
from nceref.diagnosis.options import Option, is_listed, options, usual_numbers
from nceref.diagnosis.solve import solved

Structure = tuple[Option, ...]
NOT_STRUCTURE = frozenset({"reduction", "gradient", "gradient-factor", "factor", "offset"})
MOST = 3
"""Explanations that are returned."""
SURPRISE = {0: 0.0, 1: 8.0, 2: 14.0, 3: 20.0, 4: 26.0}
"""Bits by which a fit must be surprising, by the number of conventions: there are 2^8 single ones, 2^14 pairs."""
BITS_OF_TWO = 10.0
"""Bits that the case that says most must have for two conventions at once to be looked for."""
SEARCHED, MOST_ENTRIES = 8, 5000
"""Cases, and numbers in each, that are searched where sizes that were asked for make all of them large."""
FITTED = 3
"""Cases that must agree where a constant is fitted."""
_OF_ONE = 2
"""Sets of candidates that are one convention, or a constant that is fitted; they come first."""
CONSTANTS = ("outer-factor-constant", "offset-constant")


def explanations(observations: Iterable[Observation], singly: bool = False) -> tuple[Explanation, ...]:
    """Explanations, the simplest first; none where the reference itself fits or nothing does.

    `observations`: all cases of one loss; those that are not finite, or have no reference, are left out. `singly`: no
    two conventions of the value at once. Result: at most three: fewer conventions first, then the order of the closed
    list.
    """
    every = [CaseAnalysis(o) for o in usable(observations) if is_comparable(o)]
    analyses, large = ([a for a in every if a.probe.is_large == size] for size in (False, True))
    if not analyses:
        analyses, large = _smallest(large)
    if not analyses:
        return ()
    valued = [replace(one, of=one.of + len(large)) for one in _values(analyses, singly) if values_hold(one, large)]
    explained = [whole for one in valued for whole in with_gradients(one, [*analyses, *large])]
    # Conventions of gradients are read off them, whatever is listed.
    explained = [one for one in explained if is_listed(one.ids)]
    # What explains the gradients too stands first.
    explained.sort(key=lambda e: (not e.gradient, len(e.options), [o.rank for o in e.options], e.residual))
    return tuple(_different(explained, analyses)[:MOST])


def is_one_convention(observations: Iterable[Observation]) -> bool:
    """Whether one convention, factor or offset of the closed list makes the values of a few cases: it is soon known."""
    analyses = [CaseAnalysis(o) for o in usable(observations) if is_comparable(o)]
    return bool(analyses and _values(analyses, singly=True))


def values_hold(explanation: Explanation, analyses: Sequence[CaseAnalysis]) -> bool:
    """Whether cases that an explanation was not made from have its values."""
    # A constant carries the error of the case that it was read off.
    room = 1 + sum(is_fitted(option) for option in explanation.value_options)
    predicted = ((a, *variant_value(a, explanation.value_options)) for a in analyses)
    return all(a.misfit(value, room * allowed) <= 1 for a, value, allowed in predicted)


def _smallest(large: list[CaseAnalysis]) -> tuple[list[CaseAnalysis], list[CaseAnalysis]]:
    """The cases that a search can look at where all are large, and the others."""
    few = sorted(large, key=lambda a: a.probe.entries)[:SEARCHED]
    few = [a for a in few if a.probe.entries <= MOST_ENTRIES]
    return few, [a for a in large if a not in few]


def _different(explained: list[Explanation], analyses: list[CaseAnalysis]) -> list[Explanation]:
    """One explanation of those that are the same numbers, such as a sum of two directions and twice their mean."""
    kept: list[tuple[Explanation, Any]] = []
    for one in explained:
        values = np.concatenate([variant_value(analysis, one.value_options)[0] for analysis in analyses])
        # Without a convention of the value all are the reference's numbers, and differ in the gradients.
        same = (np.allclose(values, known, rtol=1e-9, atol=0) and one.value_options for _, known in kept)
        if not any(same):
            kept.append((one, values))
    return [one for one, _ in kept]


def is_comparable(observation: Observation) -> bool:
    """Whether every number is there; what a row of zeros becomes at length 1 is a policy of its own.

    `observation`: see `usable`.
    """
    return bool(np.all(np.isfinite(observation.outcome.value))) and not zero_row(observation.probe)


def _values(analyses: list[CaseAnalysis], singly: bool = False) -> list[Explanation]:
    """Explanations of the values alone."""
    departing = [a for a in analyses if a.departs]
    if not departing:
        return [Explanation((), 0, len(analyses), 0.0)]
    # The case that says most comes first, then the others that depart.
    departing.sort(key=lambda a: -a.bits(a.usual))
    ordered = departing + [a for a in analyses if not a.departs]
    for survivors in islice(_candidate_sets(ordered, analyses[0]), _OF_ONE if singly else None):
        survivors = [chosen for chosen in survivors if is_listed(o.id for o in chosen)]
        kept = [e for e in (verified(chosen, ordered) for chosen in survivors) if e]
        if kept:
            return _distinct(kept)
    return []


def _conventions(analyses: Sequence[CaseAnalysis]) -> tuple[list[Option], list[Option]]:
    analysis = analyses[0]
    ids = analysis.form.conventions
    every = list(options(ids))
    # The self-contrast adds to the value what it takes off again, and leaves roundings that may be seen.
    structural = [o for o in every if o.axis not in NOT_STRUCTURE or o.id == "self-contrast-in-gradient"]
    if numbers := list(usual_numbers(analysis.probe)):
        # A bias of 0 is a missing one, which says more.
        structural += [o for o in _telling(analyses[:_COMPARED], [*structural, *numbers]) if o in numbers]
    whole = analysis.probe.reduction == "mean"
    reductions = [o for o in every if o.axis == REDUCED and _sensible(o, analysis, whole)]
    return structural, reductions


_COMPARED = 3
"""Cases on which conventions are compared: on one, a temperature of 1 and half of a given 2 are the same."""


def _telling(cases: Sequence[CaseAnalysis], options: Sequence[Option]) -> list[Option]:
    """The options that change the value of some cases, each in a way of its own."""
    known, kept = {_digits(cases, ())}, []
    for option in options:
        digits = _digits(cases, (option,))
        if digits not in known and not {"nan", "inf", "-inf"} & {*digits}:
            known.add(digits)
            kept.append(option)
    return kept


def _digits(cases: Sequence[CaseAnalysis], structure: Structure) -> tuple[str, ...]:
    return tuple(f"{x:.12g}" for analysis in cases for x in analysis.answer(structure)[0])


def _sensible(option: Option, analysis: CaseAnalysis, whole: bool) -> bool:
    if analysis.probe.reduction == "none":
        return False
    return option.id != ("mean-instead-of-sum" if whole else "sum-instead-of-mean")


def _candidate_sets(analyses: list[CaseAnalysis], same: CaseAnalysis) -> Iterator[Sequence[Structure]]:
    """Candidates that fit the first case, by how many conventions they are; then those with a number of their own.

    `same` is a case that other targets have too, see `_fitting`.
    """
    first = analyses[0]
    both = first, same
    structural, reductions = _conventions(analyses)
    factors = [Option(id) for id in first.factors] + [Option("offset-log-n", name) for name in first.offsets]
    singles: list[Structure] = [(o,) for o in structural]
    yield _fitting(both, [*singles, *((o,) for o in reductions)], [()], factors)
    # A recognized factor goes before a constant that is fitted: the next set is tried only where this one fails.
    yield _fitted(analyses, [()])
    several = any(a.differs_much for a in analyses) and first.bits(first.usual) >= BITS_OF_TWO
    if several:
        # What cancels makes bounds so wide that it would lend itself to any second convention.
        structural = [o for o in structural if o.axis != "gradient"]
        # Two conventions of one axis exclude each other.
        pairs = [(a, b) for a, b in combinations(_usual(structural), 2) if a.axis != b.axis]
        reduced = [(s, o) for s in structural for o in reductions]
        plain: list[Structure] = [*pairs, *reduced]
        outer = [*singles, *((o,) for o in reductions)]
        yield _fitting(both, plain, outer, factors)
        yield _fitted(analyses, [(o,) for o in structural])
        # Rows of a pair are known by now, and a reduction of them is soon made; a sum says more than a factor N.
        few = {*_usual(structural, 2)}
        yield _fitting(both, [(*pair, o) for pair in pairs if few.issuperset(pair) for o in reductions], [], factors)
        yield _fitting(both, [], plain, factors)
    yield _lines(analyses)
    # Solving takes some hundred evaluations for each scalar.
    yield [(option,) for option in solved(analyses)]
    if several:
        threes = _threes(_telling(analyses[:_COMPARED], structural))
        yield _fitting(both, [], threes, [None, *factors])
        outside: list[Structure] = [(o,) for o in (*reductions, *factors)]
        outside += product(reductions, (f for f in factors if f.axis == "factor"))
        known: dict[Any, Any] = {}
        yield from ([(option, *beside) for option in solved(analyses, beside, known)] for beside in outside)


_MOST_OF_THREE = 5_000
"""Sets of three conventions that are tried: each takes about 0.1 ms."""


def _threes(structural: list[Option]) -> list[Structure]:
    """Three conventions of different axes, with as many settings of each as the sets are few enough for."""
    found: list[Structure] = []
    for most in range(1, 5):
        sets = combinations(_usual(structural, most), 3)
        threes: list[Structure] = [three for three in sets if len({o.axis for o in three}) == 3]
        if found and len(threes) > _MOST_OF_THREE:
            break
        found = threes
    return found


def _usual(structural: list[Option], most: int = 4) -> list[Option]:
    """The usual settings of each convention only: pairs are many."""
    count: dict[str, int] = {}
    out = []
    for option in structural:
        # Of a scalar any of the few usual values is as likely.
        count[option.id] = count.get(option.id, 0) + (option.id != "scalar-ignored")
        if count[option.id] <= most:
            out.append(option)
    return out


def _fitting(
    cases: tuple[CaseAnalysis, CaseAnalysis],
    plain: list[Structure],
    outer: list[Structure],
    factors: Sequence[Option | None],
) -> list[Structure]:
    """The structures that fit the first of two cases: `plain` as they are, `outer` with a factor or an offset, or None.

    The second is the same for most targets, so that what the variants are there is known: those that do not fit it,
    and would be dropped for that later, are not computed on the first.
    """
    first, same = cases
    fits: list[Structure] = []
    for structures, outside in ((plain, (None,)), (outer, factors)):
        by_rank = [_sorted(s) for s in structures]
        kept = {s for s, _ in _scaled(same, by_rank, outside, _ROOM)}
        left = [s for s, ranked in zip(structures, by_rank, strict=True) if ranked in kept]
        fits += [s if option is None else (*s, option) for s, option in _scaled(first, left, outside)]
    return fits


_ROOM = 3.0
"""Times what is allowed of two conventions at most, either of which may be fitted, see `verified`."""


def _sorted(options: Structure) -> Structure:
    return tuple(sorted(options, key=lambda o: o.rank))


def _scaled(
    analysis: CaseAnalysis, structures: Sequence[Structure], outside: Sequence[Option | None], room: float = 1.0
) -> list[tuple[Structure, Option | None]]:
    """Structures that fit a case with a factor or an offset, or as they are; each with that, the first's first."""
    answers = {s: analysis.answer(s) for s in structures} if outside else {}
    # Without a mean, one direction has fewer rows than two.
    answers = {s: answer for s, answer in answers.items() if answer[0].shape == analysis.target.shape}
    if not answers:
        return []
    values, allowed = (np.stack(arrays) for arrays in zip(*answers.values(), strict=True))
    known, fits = list(answers), []
    for option in outside:
        scaled, most = (values, allowed) if option is None else scaled_or_shifted(analysis, option, values, allowed)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.all(np.isfinite(scaled) & (np.abs(scaled - analysis.target) <= room * most), axis=-1)
        fits += [(known[k], option) for k in np.flatnonzero(near)]
    return fits


def _fitted(analyses: list[CaseAnalysis], structures: list[Structure]) -> list[Structure]:
    """The structures that fit with a constant factor or offset on three cases, read off the case that fixes it best."""
    if len(analyses) < FITTED:
        return []
    fits = []
    for structure in structures:
        for id in CONSTANTS:
            measured = [_constant(analysis, structure, id) for analysis in analyses[:FITTED]]
            # The ranges of the constant must meet on all three.
            (low, high) = max(r[0] - r[1] for r in measured), min(r[0] + r[1] for r in measured)
            if low <= high:
                measured += [_constant(analysis, structure, id) for analysis in analyses[FITTED:]]
                fits.append((*structure, Option(id, min(measured, key=lambda r: r[1])[0])))
    return fits


def _constant(analysis: CaseAnalysis, structure: Structure, id: str) -> tuple[float, float]:
    """The constant that makes a case fit, and how far it may be off: NaN where none does, anything where all do."""
    value, allowed = analysis.answer(structure)
    largest = int(np.argmax(np.abs(value)))
    v, room = float(value[largest]), 2 * float(allowed[largest])
    if not math.isfinite(v):
        return math.nan, math.inf
    if id == "offset-constant":
        return float(analysis.target[largest]) - v, room
    if v == 0:
        return 0.0, math.inf
    factor = float(analysis.target[largest]) / v
    return factor, room * max(1.0, abs(factor)) / abs(v)


def _lines(analyses: list[CaseAnalysis]) -> list[Structure]:
    """A constant factor and a constant offset at once, through the two cases whose values are farthest apart."""
    whole = [a for a in analyses if a.target.size == 1]
    if len(whole) <= FITTED:
        return []
    low, high = (pick(whole, key=lambda a: float(a.reference[0])) for pick in (min, max))
    apart = float(high.reference[0] - low.reference[0])
    if apart == 0:
        return []
    factor = float(high.target[0] - low.target[0]) / apart
    offset = float(low.target[0]) - factor * float(low.reference[0])
    return [(Option("outer-factor-constant", factor), Option("offset-constant", offset))]


def verified(chosen: Structure, analyses: list[CaseAnalysis]) -> Explanation | None:
    """The explanation, if it fits every case and that is no accident."""
    chosen = _sorted(chosen)
    fitted = sum(is_fitted(o) for o in chosen)
    worst, discriminating, bits = 0.0, 0, []
    for analysis in analyses:
        value, allowed = variant_value(analysis, chosen)
        # A constant that was read off one case carries the error of that case.
        allowed = allowed * (1 + fitted)
        misfit = analysis.misfit(value, allowed)
        if not misfit <= 1:
            return None
        worst = max(worst, misfit)
        discriminating += analysis.discriminates(value, allowed)
        bits.append(analysis.bits(allowed))
    # The case that fixed a constant proves nothing.
    evidence = sum(sorted(bits)[: len(bits) - fitted])
    # A value that differs by what cancels is no evidence; its gradient must be.
    hidden = any(o.axis == "gradient" for o in chosen)
    if not hidden and (discriminating < (FITTED if fitted else 1) or evidence < SURPRISE[len(chosen)]):
        return None
    return Explanation(chosen, discriminating, len(analyses), worst)


def is_fitted(option: Option) -> bool:
    """Whether its setting is read off a case, and is none of the usual ones."""
    if option.id in (*CONSTANTS, "scalar-ignored"):
        return True
    return isinstance(option.value, float | tuple) and option.value not in CONVENTIONS[option.id].settings


def _distinct(explained: list[Explanation]) -> list[Explanation]:
    """One explanation for every set of ids, the one that fits best."""
    explained = sorted(explained, key=lambda e: (len(e.options), [o.rank for o in e.options], e.residual))
    kept: dict[tuple[str, ...], Explanation] = {}
    for one in explained:
        known = kept.get(one.ids)
        if known is None or one.residual < known.residual:
            kept[one.ids] = one
    return list(kept.values())
