"""From calls of a target to the formula that they follow: one pattern at several designs, and what its numbers are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nceref.diagnosis.probe.calls import Calls, random_rows
from nceref.diagnosis.probe.design import Design, Similarity, design, similarities, tried
from nceref.diagnosis.probe.expressions import Expression, divided, expression_of
from nceref.diagnosis.probe.model import Model, fitted, solved
from nceref.diagnosis.probe.pattern import (
    REFINEMENTS,
    SINGLE,
    Arrangement,
    Formula,
    Key,
    belongs_together,
    own_weights,
    pattern,
    plain,
    symbols,
    tied,
)
from nceref.diagnosis.probe.structure import Structure
from nceref.engine.parameters import INVERSE_TEMPERATURES, at_temperature
from nceref.spec import Loss, Scalar

SIZES = (
    {"N": 5, "D": 16, "E": 16, "C": 3, "M": 3, "K": 4, "V": 2},
    {"N": 6, "D": 9, "E": 9, "C": 4, "M": 5, "K": 3, "V": 3},
    {"N": 4, "D": 11, "E": 11, "C": 3, "M": 4, "K": 6, "V": 4},
    {"N": 7, "D": 8, "E": 8, "C": 5, "M": 6, "K": 5, "V": 2},
    {"N": 8, "D": 10, "E": 10, "C": 4, "M": 2, "K": 7, "V": 3},
)
"""In the first, rows are long enough for any similarities."""
TEMPERATURES = (0.5, 0.6, 0.43, 0.7, 0.54)
SHARES = (0.5, 0.2, 0.8, 0.35, 0.65)
"""Where in their typical range other scalars are."""
LENGTHS = (0.6, 1.6)
_BIASES = (-5.0, -10.0, 5.0)
_STARTS = (1.0, 2.0, -1.0, 0.25, 0.5)


def designs(loss: Loss, settings: Mapping[str, Any]) -> list[Design]:
    """Designs of several sizes and scalars; none where the loss has no similarities of rows."""
    out = []
    for number, (sizes, temperature, share) in enumerate(zip(SIZES, TEMPERATURES, SHARES, strict=True)):
        made = design(loss, settings, sizes, scalars(loss, temperature, share), number)
        if made is not None:
            out.append(made)
    return out


def scalars(loss: Loss, temperature: float, share: float) -> dict[str, float]:
    """Values of the scalars of a loss: the temperature, and the others at a share of their typical range."""
    out = {}
    for p in loss.parameters:
        # At 0 such a one is switched off.
        if not isinstance(p, Scalar) or p.default is None or (p.constant and p.default == 0):
            continue
        low, high = p.typical
        out[p.name] = low + share * (high - low)
        if p.name in INVERSE_TEMPERATURES:
            out[p.name] = at_temperature(p.name, temperature)
        elif not p.constant:
            out[p.name] = share - 0.4
    return {name: round(x * 64) / 64 for name, x in out.items()}


@dataclass(frozen=True, eq=False)
class Fit:
    """The numbers of a pattern at one design, and how far each may be off."""

    design: Design
    model: Model
    names: Mapping[str, list[Key]]
    off: Mapping[str, Any]


def formula_of(
    calls: Calls,
    made: list[Design],
    links: Structure,
    refinement: str | None = None,
    like: Similarity | None = None,
) -> Formula | None:
    """The formula of a target, as it follows from its calls; it has not been tried on fresh ones.

    `made`: of `designs`. `links`: of the first of them. `refinement`: the only one that is tried, of `REFINEMENTS`;
    default: all, the simplest first. `like`: the first that is tried. Raises `NoNumber` if the target gives none.
    """
    rng = np.random.default_rng(0)
    drawn = [_drawn(calls, one, rng) for one in made]
    drawn[0] = np.concatenate([links.xs, drawn[0][0]]), np.concatenate([links.y, drawn[0][1]])
    best = None
    for how, shape in _candidates(made[0], links, refinement, like):
        fits = _fits(calls, made, drawn, how, shape, 2 if how in (like, tried(made[0])[0]) else 1)
        formula = _formula(how, shape, fits) if fits else None
        if formula is not None and (best is None or formula.size < best.size):
            best = formula
        # Squared distances of unit rows are cosines, but for an offset.
        if best is not None and (best.how is like or len(best.terms["offset", ()]) < 2):
            break
    return best


def _drawn(calls: Calls, design: Design, rng: Any) -> tuple[Any, Any]:
    xs = calls.rows([random_rows(design, int(design.symbols.get("D", 0)), rng, LENGTHS) for _ in range(40)])
    return xs, calls.values(design, xs)


def _candidates(
    design: Design, links: Structure, only: str | None, like: Similarity | None
) -> Iterator[tuple[Similarity, Arrangement]]:
    """Candidates: the most usual similarity with ever more kinds of pairs, then others with the fewest."""
    patterns: dict[int, Arrangement] = {}
    for refinement in REFINEMENTS if only is None else (only,):
        shape = pattern(design, links, refinement)
        # Kinds that tell nothing apart here are none.
        if shape is not None:
            patterns.setdefault(tied(design, shape, 1.0)[0].free.size, shape)
    # What is curved may be linear in another similarity.
    linear = [replace(shape, single=frozenset()) for shape in list(patterns.values())[:1] if shape.single]
    usual, *others = sorted(tried(design), key=lambda how: how is not like)
    yield from ((usual, shape) for shape in (*linear, *patterns.values()))
    yield from ((how, shape) for how in others for shape in (*linear, *list(patterns.values())[:1]))


def _fits(calls: Calls, made: list[Design], drawn: Any, how: Similarity, shape: Arrangement, chances: int) -> list[Fit]:
    """The fit at every design; none if one of them has none, or if the first ones, as many as `chances`, have none."""
    problems: dict[int, _Problem] = {}

    def problem(k: int) -> _Problem:
        if k not in problems:
            problems[k] = _Problem(calls, made[k], drawn[k], how, shape)
        return problems[k]

    first = next((fit for k in (1, 0)[:chances] if (fit := problem(k).fit()) is not None), None)
    fits: list[Fit] = []
    for k in range(len(made)) if first is not None else ():
        # What fits elsewhere is a good start, and is tried first.
        fit = problem(k).fit(first) or problem(k).fit()
        if fit is None:
            return []
        fits.append(fit)
    return fits


class _Problem:
    """The fit of a pattern to the calls at one design."""

    def __init__(self, calls: Calls, design: Design, drawn: Any, how: Similarity, shape: Arrangement) -> None:
        xs, y = drawn
        self.design, self.y, self.room = design, y, calls.noise(y)
        self.s = similarities(how, design, xs)
        self.start, self.names = tied(design, shape, scale_of(design))
        # Random calls stand at the end, and they say more than designed ones.
        self.some = slice(max(0, len(y) - 80), None)

    def fit(self, like: Fit | None = None) -> Fit | None:
        """The fit, or None; `like` is one at another design to start from."""
        if not np.all(np.isfinite(self.s)):
            return None
        for start in self._starts(like):
            s, y = self.s[self.some], self.y[self.some]
            model, residual = fitted(solved(start, s, y), s, y, self.room, 14 if like is None else 40)
            if residual <= self.room and np.max(np.abs(model.value(self.s) - self.y)) <= self.room:
                return Fit(self.design, model, self.names, _uncertainty(model, self.s, self.room))
        return None

    def _starts(self, like: Fit | None) -> Iterator[Model]:
        numbers = self.start.numbers
        if like is not None:
            here = {kind: x.copy() for kind, x in numbers.items()}
            ratio = scale_of(self.design) / scale_of(like.design)
            for kind in ("d", "c", "b"):
                known = {plain(key): x for key, x in zip(like.names[kind], like.model.numbers[kind], strict=True)}
                for k, key in enumerate(self.names[kind]):
                    if plain(key) in known and not self.start.fixed[kind][k]:
                        here[kind][k] = known[plain(key)] * (ratio if kind == "b" else 1.0)
            yield from (self.start.with_numbers({**here, "b": k * here["b"]}) for k in (1.0, 0.8, 1.3))
            return
        for power in _STARTS if self.names["b"] else _STARTS[:1]:
            yield self.start.with_numbers({**numbers, "b": power * numbers["b"]})
        # A bias of every logit moves the weights of both kinds of pairs apart.
        if any(key[0] == SINGLE for key in self.names["c"]):
            signs = np.array([-1.0 if belongs_together(key) else 1.0 for key in self.names["c"]])
            yield from (self.start.with_numbers({**numbers, "c": np.exp(bias * signs)}) for bias in _BIASES)


def scale_of(design: Design) -> float:
    """The inverse temperature of a design; 1 without one."""
    known = [n for n in INVERSE_TEMPERATURES if n in design.inputs]
    return float(design.inputs[known[0]]) ** INVERSE_TEMPERATURES[known[0]] if known else 1.0


def _uncertainty(model: Model, s: Any, room: float) -> dict[str, Any]:
    """The largest error of each number if values are off by the room."""
    _, columns = model.jacobian(s)
    size = np.linalg.norm(columns, axis=0) + 1e-300
    inverse = np.linalg.pinv(columns / size, rcond=1e-13)
    spread = np.linalg.norm(inverse, axis=1) / size * room
    off, start = {}, 0
    for kind in ("offset", "A", "B", "d", "c", "b"):
        free = ~model.fixed[kind]
        off[kind] = np.zeros(free.size)
        off[kind][free] = spread[start : start + int(np.sum(free))]
        start += int(np.sum(free))
    return off


def _formula(how: Similarity, shape: Arrangement, fits: list[Fit]) -> Formula | None:
    terms: dict[tuple[str, Key], Expression] = {}
    wanted: dict[tuple[str, Key], list[tuple[float, float, Mapping[str, float]]]] = {}
    for fit in fits:
        for kind, keys in fit.names.items():
            for k, key in enumerate(keys):
                where = {**fit.design.quantities, **symbols(key)}
                entry = (float(fit.model.numbers[kind][k]), float(fit.off[kind][k]), where)
                wanted.setdefault((kind, plain(key)), []).append(entry)
    for name, entries in wanted.items():
        expression = expression_of(*zip(*entries, strict=True))
        if expression is None:
            return None
        terms[name] = expression
    written: list[Formula] = []
    for own in (False, True):
        offsets = [
            (float(f.model.numbers["offset"][0]) + (own_weights(f.model, f.names) if own else 0.0),
             float(f.off["offset"][0]) + 1e-12, f.design.quantities) for f in fits
        ]  # fmt: skip
        expression = expression_of(*zip(*offsets, strict=True))
        if expression is not None:
            written.append(Formula(how, shape, {**terms, ("offset", ()): expression}, own))
    return min(map(_with_unit_positive, written), key=lambda one: one.size, default=None)


def _with_unit_positive(formula: Formula) -> Formula:
    """A weight that the numerator has as well, divided out of both."""
    units = {key[0]: x for (kind, key), x in formula.terms.items() if kind == "c" and key[2] is True}
    if not formula.own or any(len(x) != 1 or any(n in ("n", "P") for n, _ in x[0].factors) for x in units.values()):
        return formula
    terms = {
        (kind, key): divided(x, units[key[0]]) if kind in ("c", "d") and key[0] in units else x
        for (kind, key), x in formula.terms.items()
    }
    return Formula(formula.how, formula.pattern, terms)
