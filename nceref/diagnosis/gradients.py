"""What goes with an explanation of the values: factors on edges of the graph, or the gradient of another variant."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nceref.cases.records import DiagnosisPart
from nceref.diagnosis.case import FACTORS, CaseAnalysis
from nceref.diagnosis.conventions import EDGES
from nceref.diagnosis.departure import named_part
from nceref.diagnosis.explanation import GRADIENT_AXES, Explanation, variant_value
from nceref.diagnosis.features import parts_of_rows, where
from nceref.diagnosis.gaps import listed
from nceref.diagnosis.gradient_edges import MOST, Part, Scene, edge_parts, expression, is_simple, ordinary, telling
from nceref.diagnosis.gradient_fit import (
    EVERY,
    LENGTH,
    OF_VARIANT,
    TRAINED,
    Factor,
    GradientFit,
    JudgedGradient,
    judged_gradients,
    lengths,
)
from nceref.diagnosis.gradient_words import WORDED, in_words, remedies, right_ones
from nceref.diagnosis.misplaced_gradients import is_misplaced, misplaced
from nceref.diagnosis.options import Option, options, usual_numbers
from nceref.diagnosis.simple_numbers import recognized
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.output.limits import of_the_bound
from nceref.output.words import out_of
from nceref.spec import Array, Scalar

EVIDENCE = 8.0
"""Bits by which the fit of a gradient must be surprising, beside those of what was tried."""
CARRIED = 2.0
"""Times the bound: a factor that was read off one case carries the error of that case."""
FAR = 64.0
"""How many bounds a gradient must be off before what it is instead is said."""
WRONG = "value-right-gradient-wrong"
"""What is said of a gradient without a pattern."""
_OTHERS = ("self-contrast-in-gradient", "gradient-clamped", TRAINED)
"""Conventions of the gradient that are no factor on an edge."""
_SETTINGS = 4
"""The usual settings of a convention, of which the gradient may be that."""
_SEVERAL = 3
"""Cases on which a gradient must be in a wrong place: one alone may look like anything."""
_RATIOS = 8
_NEAR, _NEAREST = 0.9, 6
"""Share of the departure that is left of a variant, and how many are looked at, for a factor on one of its edges."""


def with_gradients(explanation: Explanation, analyses: list[CaseAnalysis]) -> list[Explanation]:
    """The explanation with what is done to the gradient on its way back.

    `explanation`: what explains the values; without options where they are those of the reference. `analyses`: all
    finite cases. Result: empty where nothing departs; with ``gradient`` False where the values are explained and the
    gradients are not.
    """
    judged = [one for analysis in analyses for one in judged_gradients(analysis)]
    fit = GradientFit(explanation.options, judged)
    worst = fit.worst()
    # A convention of the gradient shows in the value by what cancels only, so the gradient has to prove it.
    hidden = [o for o in explanation.options if o.axis == "gradient"]
    if hidden:
        visible = tuple(o for o in explanation.options if o not in hidden)
        if worst > 1 or _bits(fit, GradientFit(visible, judged)) < EVIDENCE:
            return []
    if worst <= 1:
        return [replace(explanation, residual=max(explanation.residual, worst))] if explanation.options else []
    own = GradientFit((), judged)
    # The value alone differs: what its conventions do to a gradient is not to be undone.
    if explanation.value_options and own.worst() <= 1 and _bits(own, fit) >= EVIDENCE:
        return [replace(explanation, gradient_words=(_RIGHT,), remedy=_AS_IT_IS, holds=_is_the_reference)]
    base: tuple[Option, ...] = ()
    if explanation.value_options and own.wrong() < fit.wrong():
        # A backward pass by hand may be the reference's but for one input.
        base = (Option(OF_VARIANT, ()),)
        fit = GradientFit((*explanation.options, *base), judged)
    # Of numbers near the end of the range squares are infinite.
    with np.errstate(all="ignore"):
        return list(_Search(explanation, base, fit, analyses).found())


_RIGHT = DiagnosisPart("the gradient is that of the reference, as it should be", role="right")
_AS_IT_IS = "Leave the gradient as it is: it is right."


def _is_the_reference(judged: list[JudgedGradient]) -> bool:
    return GradientFit((), judged).worst() <= 1


def gradients_hold(explanation: Explanation, analyses: list[CaseAnalysis]) -> bool:
    """Whether cases that an explanation was not made from have its gradients."""
    judged = [one for analysis in analyses for one in judged_gradients(analysis)]
    if explanation.holds is not None:
        return explanation.holds(judged)
    return GradientFit(explanation.options, judged).worst(CARRIED) <= _room(explanation.options)


def _room(chosen: Sequence[Option]) -> float:
    """Units of the bound within which the gradients of a variant are those of the target."""
    values = (o.value for o in chosen if o.axis in GRADIENT_AXES and isinstance(o.value, tuple))
    parts = (pair for value in values for pair in value if not isinstance(pair, Option))
    return 1.0 if all(is_simple(factor) for _, factor in parts) else CARRIED


def _bits(fit: GradientFit, plain: GradientFit) -> float:
    """The surprise of a fit, in bits: how far the gradients would be away without it."""
    bits = 0.0
    for one in plain.judged:
        if plain.misfit(one) > 1:
            off = np.abs(fit.expected(one) - plain.expected(one)) / (fit.allowed(one) + 1e-300)
            bits += float(np.log2(max(1.0, np.max(off, initial=0.0))))
    return bits


class _Search:
    """The search for what explains the gradients of all cases.

    `base`: the option of the variant whose gradient is looked at, if that is not the variant of the value. `plain`: the
    gradients with nothing else done to them.
    """

    def __init__(
        self,
        explanation: Explanation,
        base: tuple[Option, ...],
        plain: GradientFit,
        analyses: Sequence[CaseAnalysis],
    ) -> None:
        self.explanation, self.base, self.plain, self.analyses = explanation, base, plain, analyses
        self.misfits = {id(one): plain.misfit(one) for one in plain.judged}
        # The gradients that depart most decide first.
        self.ordered = sorted(plain.judged, key=lambda one: -min(self.misfits[id(one)], 1e300))
        wrong = {id(one.analysis) for one in plain.judged if self.misfits[id(one)] > 1}
        self.failing = [a for a in analyses if id(a) in wrong]
        self.first = (ordinary(self.failing) or self.failing)[0]
        self.scenes = [Scene(plain, analysis) for analysis in telling(ordinary(self.failing))]
        scene = (self.scenes or [Scene(plain, self.first)])[0]
        # Constants have a gradient on the graph, and none in the loss.
        self.usual = {**scene.graph.edges, **scene.usual}
        self.tried = 1

    def found(self) -> Iterator[Explanation]:
        """Explanations, at most two, of the simplest kind that there is; else what is seen input by input."""
        by_input = {name: self._of_input(name) for name in dict.fromkeys(one.name for one in self.plain.judged)}
        kinds: list[Callable[[], Iterator[tuple[Part | Option, ...]]]] = [
            partial(self._alike, by_input),
            partial(self._on_edges, 1),
            self._others,
            partial(self._one_by_one, by_input),
            partial(self._on_edges, 2),
            self._variants_on_edges,
            *(partial(self._on_edges, size) for size in range(3, MOST + 1)),
        ]
        for kind in kinds:
            explained = [one for done in kind() if (one := self._verified(done)) is not None]
            if explained:
                yield from explained[:2]
                return
        yield self._seen(by_input)

    def _verified(self, done: tuple[Part | Option, ...]) -> Explanation | None:
        """The explanation with what is done to the gradient, if all cases have it and that is no accident."""
        self.tried += 1
        done = (*self.base, *done)
        added = self._named(done)
        chosen = (*self.explanation.options, *added)
        fit, room = GradientFit(chosen, self.ordered), _room(added)
        worst = fit.worst(room)
        if worst > room or _bits(fit, self.plain) < EVIDENCE + math.log2(self.tried):
            return None
        if any(o.id == "gradient-clamped" for o in added):
            # It shows in the value too.
            ranked = tuple(sorted(chosen, key=lambda o: o.rank))
            worst = max([worst, *(a.misfit(*variant_value(a, ranked)) for a in self.analyses)])
            if worst > 1:
                return None
        said = in_words(done, self.usual)
        if self.explanation.value_options and not self.base:
            # What it should be is another thing beside another value.
            said = said.replace("what it should be", "that of this value")
        return replace(
            self.explanation,
            options=chosen,
            residual=max(self.explanation.residual, worst / room),
            cases=self.explanation.cases if self.explanation.options else len(self.failing),
            gradient_words=(
                DiagnosisPart(said, self._cases(said, worst / room)),
                *right_ones(self.plain, self.misfits),
            ),
            remedy=remedies(done, self.usual) if any(o.id in WORDED for o in added) else "",
        )

    def _cases(self, said: str, residual: float) -> str:
        """The cases that have what is said of the gradients that depart on any."""
        names = {one.name for one in self.plain.judged if self.misfits[id(one)] > 1}
        count = len({id(one.analysis) for one in self.plain.judged if one.name in names})
        cases, errors = f"on {out_of(count, count, 'case')}", f"errors {of_the_bound(residual)}"
        return f"({cases}, {errors})" if said.endswith("should") else f"{cases} ({errors})"

    # One input at a time.

    def _of_input(self, name: str) -> "Seen | None":
        """The finding on the gradient of one input; None where it is right."""
        judged = [one for one in self.plain.judged if one.name == name]
        failing = [one for one in judged if self.misfits[id(one)] > 1]
        if not failing:
            return None
        cases = _where(failing, judged)
        if judged[0].constant:
            return Seen("is not 0, and it is a constant", cases, Option(TRAINED))
        if not any(np.any(one.got) for one in judged):
            return Seen("is 0", cases, part=(name, Factor(0.0)))
        factor = self._factor(name, judged) or self._rows(name, judged, failing) or self._lengths(name, judged, failing)
        if factor is not None:
            return Seen("", cases, part=(name, factor))
        if (beyond := self._beyond(name, judged, failing)) is not None:
            return beyond
        if all(_missing(self.plain, one) is not None for one in failing):
            return Seen("is 0 in some rows", cases, Option("gradient-missing-rows"), holds=_misses)
        far = [one for one in failing if self.misfits[id(one)] >= FAR]
        if len(far) >= _SEVERAL and (elsewhere := misplaced(self.plain, judged)) is not None:
            return Seen(f"is {elsewhere}", cases, Option("gradient-misplaced"), holds=partial(is_misplaced, elsewhere))
        if far and all(is_radial(self.plain, one) for one in judged):
            cases += ", and normalizing the rows before hides it"
            return Seen("is off along the rows only", cases, Option("gradient-radial-only"), holds=is_radial)
        return Seen("is wrong", cases + _example(self.plain, failing), Option(WRONG), holds=lambda fit, one: True)

    def _factor(self, name: str, judged: Sequence[JudgedGradient]) -> Factor | None:
        """The factor of a whole gradient, read off the cases that know it best."""
        known = []
        for one in judged:
            want = self.plain.expected(one)
            size = float(np.max(np.abs(want) / (self.plain.allowed(one) + 1e-300), initial=0.0))
            square = float(np.sum(want * want))
            if size > 16 and 0 < square < math.inf:
                known.append((size, one.analysis, float(np.sum(one.got * want)) / square))
        known.sort(key=lambda row: -row[0])
        if not known:
            return None
        within = max(10 * math.sqrt(judged[0].analysis.unit), 4 / known[min(len(known), _RATIOS) - 1][0])
        factor = expression([(analysis, ratio) for _, analysis, ratio in known[:_RATIOS]], within)
        return factor if factor and self._is_input(name, factor, judged) else None

    def _rows(self, name: str, judged: Sequence[JudgedGradient], failing: Sequence[JudgedGradient]) -> Factor | None:
        """The factor of a part of the rows that has a name."""
        if failing[0].got.ndim < 1:
            return None
        departing = [_departing(self.plain, one) for one in failing]
        one, off = failing[0], departing[0]
        want, got = (np.ravel(x[off]) for x in (self.plain.expected(one), one.got))
        factor = expression([(one.analysis, float(got @ want) / float(want @ want))], 1e-6) if np.any(want) else None
        if factor is None:
            return None
        # A row whose gradient is nearly 0 departs under no factor.
        by_case = [parts_of_rows(len(off)) for off in departing]
        known = [n for n in by_case[0] if all(np.all(p[n][o]) for p, o in zip(by_case, departing, strict=True))]
        named = (Factor(factor.constant, (), words) for words in known)
        return next((factor for factor in named if self._is_input(name, factor, judged)), None)

    def _lengths(self, name: str, judged: Sequence[JudgedGradient], failing: Sequence[JudgedGradient]) -> Factor | None:
        """A power of the length of each row."""
        one = failing[0]
        x, want = np.asarray(one.analysis.inputs[name]), self.plain.expected(one)
        if x.ndim < 2 or not np.all(np.any(want, axis=-1)) or np.ptp(np.log(lengths(x) + 1e-300)) < 0.1:
            return None
        ratios = np.sum(one.got * want, axis=-1) / np.sum(want * want, axis=-1)
        for power in (1.0, -1.0, 2.0, -2.0):
            constants = ratios / lengths(x) ** power
            if np.ptp(constants) <= 1e-6 * np.max(np.abs(constants)):
                factor = Factor(recognized(np.median(constants))[0], ((LENGTH, power),))
                return factor if self._is_input(name, factor, judged) else None
        return None

    def _beyond(self, name: str, judged: Sequence[JudgedGradient], failing: Sequence[JudgedGradient]) -> "Seen | None":
        """A scalar whose gradient is 0 on one side of a number, as behind a clamp."""
        if any(one.got.ndim or np.any(one.got) for one in failing):
            return None
        zero = [float(one.analysis.inputs[name]) for one in failing]
        kept = [float(one.analysis.inputs[name]) for one in judged if np.any(np.abs(one.got) > self.plain.allowed(one))]
        for side, end, beyond in ((-1, max(zero), "below"), (1, min(zero), "above")):
            if kept and all(side * x < side * end for x in kept):
                words = f"is 0 at {name.replace('_', ' ')} {end:g} and {beyond}"
                holds = partial(_is_beyond, side, max(side * x for x in kept))
                return Seen(words, _where(failing, judged), Option("gradient-clamped"), holds=holds)
        return None

    def _is_input(self, name: str, factor: Factor, judged: Sequence[JudgedGradient]) -> bool:
        """Whether a factor on its whole gradient, or on its rows, is all that is wrong with one input."""
        room = 1.0 if is_simple(factor) else CARRIED
        for one in judged:
            by = np.asarray(factor.of(one.analysis, name))
            by = by.reshape(by.shape + (1,) * (one.got.ndim - by.ndim))
            off = np.abs(one.got - by * self.plain.expected(one))
            if not np.all(off <= room * np.maximum(1.0, np.abs(by)) * self.plain.allowed(one)):
                return False
        return True

    def _alike(self, by_input: Mapping[str, "Seen | None"]) -> Iterator[tuple[Part | Option, ...]]:
        """One factor for all the inputs whose gradient departs."""
        seen = [one for one in by_input.values() if one]
        if all(one.part for one in seen) and len({one.part[1] for one in seen if one.part}) == 1:
            yield tuple(one.part for one in seen if one.part)

    def _one_by_one(self, by_input: Mapping[str, "Seen | None"]) -> Iterator[tuple[Part | Option, ...]]:
        """A factor for each of the inputs whose gradient departs."""
        seen = [one for one in by_input.values() if one]
        if all(one.part for one in seen):
            yield tuple(one.part for one in seen if one.part)

    # Edges, and what is none.

    def _on_edges(self, size: int) -> Iterator[tuple[Part | Option, ...]]:
        yield from edge_parts(self.scenes, size)

    def _others(self) -> Iterator[tuple[Part | Option, ...]]:
        """Options that are no factor on an edge, and gradients of other conventions than those of the value."""
        if not self.failing:
            return
        conventions = self.failing[0].form.conventions
        chosen = list(options(tuple(id for id in _OTHERS if id in conventions)))
        chosen += [Option(TRAINED)] if any(one.constant and np.any(one.got) for one in self.plain.judged) else []
        yield from ((option,) for option in (*chosen, *self._variants()) if self._on_first(option).worst() <= 1)

    def _variants(self) -> Iterator[Option]:
        """Gradients of other conventions than those of the value, the reference's among them."""
        own = {o.id for o in self.explanation.options}
        conventions = options(self.failing[0].form.conventions, _SETTINGS)
        yield from (Option(OF_VARIANT, (o,)) for o in conventions if o.axis not in GRADIENT_AXES and o.id not in own)
        yield from (Option(OF_VARIANT, (o,)) for o in usual_numbers(self.failing[0].probe) if o.id not in own)
        yield from (Option(OF_VARIANT, (Option(id),)) for id in FACTORS if id in self.failing[0].factors)
        if own:
            yield Option(OF_VARIANT, ())

    def _on_first(self, option: Option) -> GradientFit:
        """A convention of the gradient, on one case."""
        self.tried += 1
        judged = [one for one in self.ordered if one.analysis is self.first]
        return GradientFit((*self.explanation.options, *self.base, option), judged)

    def _variants_on_edges(self) -> Iterator[tuple[Part | Option, ...]]:
        """A factor on an edge of a variant that comes near the gradient."""
        near = []
        for option in self._variants() if self.scenes else ():
            fit = self._on_first(option)
            by_name = {one.name: fit.expected(one) for one in fit.judged}
            near.append((self.scenes[0].distance(by_name), option))
        for _, option in sorted((pair for pair in near if pair[0] < _NEAR), key=lambda pair: pair[0])[:_NEAREST]:
            variant = GradientFit((*self.explanation.options, option), self.plain.judged)
            on_it = [Scene(variant, scene.analysis) for scene in self.scenes]
            yield from ((option, *parts) for parts in edge_parts(on_it, 1))

    def _named(self, done: Sequence[Part | Option]) -> tuple[Option, ...]:
        """The conventions of the closed list that stand for what is done to the gradient."""
        parts = [one for one in done if not isinstance(one, Option)]
        whole = {one.name for one in self.plain.judged if not one.constant}
        zeros = {edge for edge, factor in parts if factor == Factor(0.0)}
        if whole <= zeros or EVERY in zeros:
            parts = [(EVERY, Factor(0.0))]
        by_id: dict[str, list[Part]] = {}
        for edge, factor in parts:
            same = self.scenes[0].aliases.get(edge, edge) if self.scenes else edge
            if (id := self._alias(same, factor)) is not None:
                by_id.setdefault(id, []).append((same, factor))
            else:
                by_id.setdefault(self._id(edge, factor), []).append((edge, factor))
        chosen = [Option(id, None if self._is_alias(id, own) else tuple(own)) for id, own in by_id.items()]
        return tuple(sorted((*chosen, *(o for o in done if isinstance(o, Option))), key=lambda o: o.rank))

    def _is_alias(self, id: str, parts: Sequence[Part]) -> bool:
        names, factor = EDGES.get(id, ((), 0.0))
        present = [name for name in names if name in self.usual][:1]
        return [(name, Factor(factor)) for name in present] == list(parts)

    def _alias(self, edge: str, factor: Factor) -> str | None:
        """The convention that a factor on an edge is, if it has a name of its own."""
        known = ((id, names) for id, (names, passes) in EDGES.items() if factor == Factor(passes))
        return next((id for id, names in known if edge in names and id in self.first.form.conventions), None)

    def _id(self, edge: str, factor: Factor) -> str:
        loss = self.first.probe.loss
        inputs = {p.name: p for p in loss.parameters}
        if edge not in inputs and edge != EVERY:
            return "gradient-parts-scaled"
        if factor.rows:
            return "gradient-missing-rows" if factor.constant == 0 else "gradient-parts-scaled"
        if factor.constant == 0:
            return "gradient-zero" if edge == EVERY else _detached(inputs[edge], list(loss.differentiable))
        return "gradient-sign-flipped" if factor == Factor(-1.0) else "gradient-constant-factor"

    # Where nothing explains all of them.

    def _seen(self, by_input: Mapping[str, "Seen | None"]) -> Explanation:
        """An explanation that says what is seen of the gradients, input by input."""
        alike: dict[tuple[str, str], list[str]] = {}
        wrong = {name: one for name, one in by_input.items() if one}
        for name, one in wrong.items():
            text = in_words([one.part], self.usual) if one.part else ""
            alike.setdefault((text.partition(f"of {name} ")[2] or one.words, one.cases), []).append(name)
        words = tuple(DiagnosisPart(f"the gradient of {listed(n)} {text}", cases) for (text, cases), n in alike.items())
        known = {o for one in wrong.values() for o in (self._named([one.part]) if one.part else (one.option,)) if o}
        explained = Option(WRONG) not in known
        # A pattern of some inputs does not explain the others; beside a convention of the value words are enough.
        own = tuple(sorted(known, key=lambda o: o.rank)) if explained else ()
        own = own or (() if self.explanation.value_options else (Option(WRONG),))
        return replace(
            self.explanation,
            options=(*self.explanation.options, *own),
            cases=self.explanation.cases if self.explanation.options else len(self.failing),
            gradient_words=(*words, *right_ones(self.plain, self.misfits)),
            holds=partial(_as_seen, (*self.explanation.options, *self.base), by_input),
            gradient=explained,
        )


@dataclass(frozen=True)
class Seen:
    """A finding on the gradient of one input: a factor on it, or a pattern that other cases have or have not."""

    words: str
    cases: str
    option: Option | None = None
    part: Part | None = None
    holds: "Callable[[GradientFit, JudgedGradient], bool] | None" = None


def _as_seen(chosen: tuple[Option, ...], by_input: Mapping[str, Seen | None], judged: list[JudgedGradient]) -> bool:
    """Whether the gradients of other cases have the patterns, input by input, and are right where there is none."""
    plain = GradientFit(chosen, judged)
    for one in judged:
        seen = by_input.get(one.name)
        if seen is None or seen.part:
            own = () if seen is None or seen.part is None else (Option("gradient-constant-factor", (seen.part,)),)
            if GradientFit((*chosen, *own), [one]).worst(CARRIED) > (_room(own) if own else 1.0):
                return False
        elif seen.holds is not None and plain.misfit(one) > 1 and not seen.holds(plain, one):
            return False
    return True


def _detached(p: object, differentiable: Sequence[str]) -> str:
    """The id of an input that gets no gradient."""
    if isinstance(p, Scalar):
        return "temperature-detached" if p.name in INVERSE_TEMPERATURES else "bias-detached"
    if isinstance(p, Array) and p.like == "center":
        return "centers-detached"
    return "first-input-detached" if isinstance(p, Array) and p.name == differentiable[0] else "keys-detached"


def _where(failing: Sequence[JudgedGradient], judged: Sequence[JudgedGradient]) -> str:
    wrong, every = (list(dict.fromkeys(one.analysis.observation for one in ones)) for ones in (failing, judged))
    return where(wrong, every)


def _example(fit: GradientFit, failing: Sequence[JudgedGradient]) -> str:
    """The size of the error on the first case with one, and the rows that are right on every case."""
    several = [one for one in failing if one.got.ndim == 2 and len(one.got) > 1]
    rows = {named_part(~_departing(fit, one), len(one.got)) for one in several}
    right = f", and right in {rows.pop()} only" if len(rows) == 1 and "" not in rows else ""
    for one in failing:
        want = fit.expected(one)
        size = float(np.max(np.abs(want)))
        if size > float(np.max(fit.allowed(one))):
            share = float(np.max(np.abs(one.got - want))) / size
            of = "its largest entry" if one.got.ndim else "its size"
            return f"{right}, and off by {share:.2g} of {of} on {one.analysis.probe.id}"
    return right


def _departing(fit: GradientFit, one: JudgedGradient) -> np.ndarray:
    """A mask of the rows of a gradient that depart."""
    axes = tuple(range(1, one.got.ndim))
    return np.asarray(np.any(np.abs(one.got - fit.expected(one)) > fit.allowed(one), axis=axes))


def _missing(fit: GradientFit, one: JudgedGradient) -> np.ndarray | None:
    """The rows that are 0 and should not be; None where that is not all that is wrong, or all rows are."""
    if one.got.ndim < 1:
        return None
    off = _departing(fit, one)
    return off if not np.all(off) and not np.any(one.got[off]) else None


def _is_beyond(side: int, end: float, fit: GradientFit, one: JudgedGradient) -> bool:
    """Whether the gradient of a scalar is 0, beyond the last number that has one."""
    return not np.any(one.got) and side * float(one.analysis.inputs[one.name]) > end


def _misses(fit: GradientFit, one: JudgedGradient) -> bool:
    return _missing(fit, one) is not None


def is_radial(fit: GradientFit, one: JudgedGradient) -> bool:
    """Whether the gradient is right but for a multiple of each row; in one dimension every gradient would be."""
    declared = next((p for p in one.analysis.probe.loss.parameters if p.name == one.name), None)
    x = np.asarray(one.analysis.inputs.get(one.name))
    if one.constant or not isinstance(declared, Array) or not declared.embedding or x.ndim < 2 or x.shape[-1] < 2:
        return False
    x = x.reshape(-1, x.shape[-1])
    off, room = (np.reshape(a, x.shape) for a in (one.got - fit.expected(one), fit.allowed(one)))
    square = np.sum(x * x, axis=1, keepdims=True)
    along = np.sum(off * x, axis=1, keepdims=True) * x / np.where(square > 0, square, 1.0)
    # The bound, roundings of the projection, and what errors within the bound add along the row (Cauchy-Schwarz).
    slack = room + 8 * np.finfo(np.float64).eps * np.max(np.abs(off), axis=1, keepdims=True)
    tilt = np.abs(x) * np.linalg.norm(room, axis=1, keepdims=True) / np.sqrt(np.where(square > 0, square, 1.0))
    return bool(np.all(np.abs(off - along) <= 2 * slack + tilt))
