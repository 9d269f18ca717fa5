"""What a difference does to training: errors of value and gradient at ordinary temperatures, and of the optimum."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from nceref.cases.judge import constants
from nceref.cases.records import Observation, Probe
from nceref.diagnosis.features import temperature_scalar
from nceref.diagnosis.fresh import GENERAL, FreshCalls, InputSpec, Template, fresh_probe, judged
from nceref.diagnosis.gaps import VALUE, Gap, gaps, listed, usable
from nceref.engine.parameters import at_temperature
from nceref.errors import NcerefError
from nceref.output.limits import stable
from nceref.output.words import counted
from nceref.spec import Array, Loss

ORDINARY = (0.07, 1.0)
"""Temperatures that losses are trained at."""
_PARALLEL = 0.05
"""Degrees: less is no difference of direction that training would show."""
_STEPS = 100
"""Of the descent; where it takes more, it depends on the roundings of a processor, and so would the minimum."""
_STARTS = (InputSpec("designed", 0.7, (6, 7, 3, 6, 5, 2)), InputSpec("designed", 0.4, (8, 16, 4, 6, 5, 2)))
"""Where descents begin: at low temperatures every gradient vanishes near an optimum, that of another loss too."""
_AT_REST, _MOVES = 1e-3, 0.02
"""Of the gradient at the start: what is left of another loss's gradient where it is at rest as well, and where not."""
_REFERENCE_AT_REST = 1e-5
_UNSEEN = 1e-4
"""A relative error of the gradient that is far below its noise in training."""
_BESIDE, _STEP, _AWAY = 3, 1e-3, -1e-3
"""Points beside the minimum, their distance relative to the entries of the rows, and the cosine between the way to a
point and the change of the gradient from which on a step against the gradient leads away."""


@dataclass(frozen=True)
class Severity:
    """The effect of a difference on training.

    Attributes
    ----------
    calls : int
        Inputs that it was measured on.
    temperatures : tuple of float or None
        The lowest and the highest.
    value_error : tuple of float or None
        Relative, the smallest and the largest; None where no value can be compared.
    gradient_error : tuple of float or None
        Relative to the length of the right gradient.
    angle : tuple of float or None
        Between both gradients, in degrees.
    length : tuple of float or None
        Of the gradient, as a multiple of the right one.
    along_rows : float
        The largest part of the gradient along the rows, relative to the right gradient, which has none; it only
        rescales the rows, and the rest is compared without it.
    at_optimum : float or None
        Of the gradient at a minimum of the reference, as a share of that where the descent to it began.
    optimum_temperature : float or None
        The temperature at which that is measured; None for a loss without one.
    leaves_optimum : bool
        Whether a step against the gradient beside that minimum leads away from it.
    scalar : str
        The temperature, or one over the scale that a loss has in its place, in words.
    times : mapping
        The smallest and the largest multiple of the right one that the gradient of a scalar is, where it has its sign.
    right : tuple of str
        ``value`` and ``gradient`` where these are within their bounds.
    not_finite : tuple of int
        On how many inputs at these temperatures the value is no number, and of how many; all else is of other inputs.
    gradients_lost : int
        On how many of these other inputs a gradient of the embeddings is no number.
    arrays, scalars : mapping
        What the gradient of each input is: ``right``, ``zero``, ``wrong``, or ``lost`` where it is no number.
    rest_right : bool
        Whether the gradient of the arrays is right but for its part along the rows.
    constants : mapping
        The constants that get a gradient, and whether each is an embedding.
    elsewhere : tuple of int
        On how many cases of the corpus with several samples a gradient is wrong, by more than training hides, and on
        how many the value or a gradient is no number.
    """

    calls: int
    temperatures: tuple[float, float] | None
    value_error: tuple[float, float] | None
    gradient_error: tuple[float, float] | None
    angle: tuple[float, float] | None
    length: tuple[float, float] | None
    along_rows: float
    at_optimum: float | None
    right: tuple[str, ...]
    not_finite: tuple[int, int] = (0, 0)
    gradients_lost: int = 0
    arrays: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, str] = field(default_factory=dict)
    rest_right: bool = False
    constants: Mapping[str, bool] = field(default_factory=dict)
    elsewhere: tuple[int, int] = (0, 0)
    optimum_temperature: float | None = None
    leaves_optimum: bool = False
    times: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    scalar: str = "temperature"

    @property
    def sentence(self) -> str:
        """All of it in words."""
        lost, tried = self.not_finite
        lead = (
            f"on {lost} of {counted(tried, 'input')} the value is NaN or infinite, which ends training; "
            if lost
            else ""
        )
        where = f" at {self.scalar} {_range(self.temperatures, 2)}" if self.temperatures else ""
        parts = [self._value(), *self._gradient(), *self._optimum(), *self._others(), *self._elsewhere()]
        return f"{lead}on {counted(self.calls, 'input')}{where} {'; '.join(parts)}"

    def _value(self) -> str:
        if VALUE in self.right:
            return "the value is right"
        return f"the value is off by {_shares(self.value_error)}" if self.value_error else "the value is 0"

    def _gradient(self) -> Iterator[str]:
        """The gradient of the embeddings."""
        zero, others = _split(self.arrays, "zero")
        untrained = (
            [f"the gradient of {listed(zero)} is 0, so that this loss does not train {_it(zero)}"] if zero else []
        )
        if self.gradients_lost:
            yield f"the gradient is NaN or infinite on {self.gradients_lost} of them, which ends training"
        elif self.angle is None or self.length is None:
            yield "there is no gradient to compare"
        elif max(self.length) == 0:
            yield "the gradient of the embeddings is 0, so that nothing is trained"
        elif {*self.arrays.values()} <= {"right", "zero"}:
            yield from self._right(others)
            yield from untrained
        else:
            yield from self._wrong()
            yield from untrained

    def _right(self, names: Sequence[str]) -> Iterator[str]:
        whole = "gradient" in self.right and not self.constants
        same = f", so that training is the same{' on such inputs' if any(self.elsewhere) else ''}"
        yield f"the gradient{'' if whole else f' of {listed(names)}'} is right" + same * (
            whole and not self.not_finite[0]
        )

    def _wrong(self) -> Iterator[str]:
        assert self.angle is not None
        assert self.length is not None
        whole = "the gradient"
        if self.along_rows > _UNSEEN:
            yield (
                f"a part of the gradient, up to {_share(self.along_rows)} as long as the right one,"
                " only rescales the embeddings"
            )
            whole = "the rest"
            if self.rest_right:
                yield "the rest is right"
                return
        same = _times(self.length, 3) == _SAME
        if self.gradient_error is not None and self._is_unseen():
            such = " on such inputs" if self.elsewhere[0] else ""
            yield f"{whole} is off by {_shares(self.gradient_error)}, which training does not show{such}"
        elif self.angle[1] <= _PARALLEL and same and self.gradient_error is not None:
            yield f"{whole} is off by {_shares(self.gradient_error)}"
        elif self.angle[1] <= _PARALLEL:
            constant = self.length[1] <= self.length[0] * 1.001
            change = "only the learning rate changes" if constant else "its length depends on the input"
            yield f"{whole} has the right direction and {_times(self.length, 3)}: {change}"
        elif self.angle[0] >= 180 - _PARALLEL:
            yield f"{whole} points the other way, with {_times(self.length, 3)}"
        else:
            angle = _range(self.angle, 2) if self.angle[0] > _PARALLEL else f"up to {_digits(self.angle[1], 2)}"
            yield f"{whole} is {angle} degrees off the right direction, with {_times(self.length, 2)}"

    def _optimum(self) -> Iterator[str]:
        if self.gradients_lost or self.at_optimum is None or self.angle is None or self.rest_right:
            return
        if self._is_unseen():
            return
        share = _share(self.at_optimum)
        where = f" at {self.scalar} {self.optimum_temperature:.3g}" if self.optimum_temperature else ""
        if self.at_optimum > _MOVES:
            yield (
                f"the optimum moves: at a minimum of the reference{where} your gradient is still {share} of that at the"
                " start"
            )
        # Where it points away somewhere, a minimum may be a maximum.
        elif self.at_optimum < _AT_REST and _PARALLEL < self.angle[1] < 90:
            moves, away = (
                ("the optimum moves: ", ", but it is none of yours: beside it your gradient leads away")
                if self.leaves_optimum
                else ("", "")
            )
            yield (
                f"{moves}at a minimum of the reference{where} your gradient is nearly 0 too, {share} of that at the"
                f" start{away}"
            )

    def _is_unseen(self) -> bool:
        return (self.gradient_error or (0, 0))[1] < _UNSEEN

    def _others(self) -> Iterator[str]:
        """Learned scalars, and constants that get a gradient."""
        by_kind = {kind: _split(self.scalars, kind)[0] for kind in ("zero", "lost", "wrong")}
        if names := by_kind["zero"]:
            subject = listed(name.replace("_", " ") for name in names)
            verb, its = (
                ("never learns", "its gradient is") if len(names) == 1 else ("never learn", "their gradients are")
            )
            yield f"the {subject} {verb}: {its} 0"
        if names := by_kind["lost"]:
            yield (
                f"the gradient of {listed(names)} is NaN or infinite, which ends training where {_it(names)} is learned"
            )
        # What training does not show is not said.
        seen = {name for name in by_kind["wrong"] if _range(self.times.get(name), 2) != "1"}
        if names := [name for name in by_kind["wrong"] if name in seen or {*self.arrays.values()} <= {"right"}]:
            for name in (name for name in names if name in self.times):
                yield f"the gradient of {name} has the right sign and is {_range(self.times[name], 2)} times as large"
            if names := [name for name in names if name not in self.times]:
                learns = "it learns" if len(names) == 1 else "they learn"
                yield f"the gradient of {listed(names)} is wrong, so that {learns} something else"
        for embedding, what in ((True, "their encoder"), (False, "what computes them")):
            if names := [name for name, is_embedding in self.constants.items() if is_embedding is embedding]:
                what = what.replace("their", "its").replace("them", "it") if len(names) == 1 else what
                yield f"{listed(names)} should be constant, and the gradient changes {what}"

    def _elsewhere(self) -> Iterator[str]:
        wrong, lost = self.elsewhere
        # Where it is wrong on these inputs too, that was said.
        said = self.along_rows > _UNSEEN or not self._is_unseen()
        if wrong and ("gradient" in self.right or ("wrong" in self.arrays.values() and not said)):
            yield f"on {counted(wrong, 'tested case')} the gradient is off by more than {_share(_UNSEEN)} of its length"
        if lost and not (self.not_finite[0] or self.gradients_lost or "lost" in self.scalars.values()):
            yield (
                f"on {counted(lost, 'tested case')} the value or the gradient is NaN or infinite,"
                " which would end training"
            )

    def record(self) -> dict[str, Any]:
        """The effect as plain data; numbers have nine decimals, since what is less is rounding of the reference."""
        return {"sentence": self.sentence, **{name: _rounded(x) for name, x in asdict(self).items()}}


def _split(kinds: Mapping[str, str], wanted: str) -> tuple[list[str], list[str]]:
    """Names of one kind, and the others."""
    own = [name for name, kind in kinds.items() if kind == wanted]
    return own, [name for name in kinds if name not in own]


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _rounded(x: Any) -> Any:
    if isinstance(x, tuple | list):
        return [_rounded(one) for one in x]
    if isinstance(x, Mapping):
        return {name: _rounded(one) for name, one in x.items()}
    return round(stable(x), 9) + 0.0 if isinstance(x, float) and math.isfinite(x) else x


def _share(x: float) -> str:
    return f"{x:.2g}" if x < _UNSEEN else f"{_digits(100 * x, 2)} %"


def _digits(x: float, most: int) -> str:
    """A number with so many digits, and without an exponent where people write it out."""
    return f"{x:,.0f}" if 10 ** (most - 1) <= x < 1e6 else f"{x:.{most}g}"


def _shares(ends: tuple[float, float]) -> str:
    # Both in one unit.
    low, high = map(_share, ends) if ends[1] < _UNSEEN else (f"{_digits(100 * end, 2)} %" for end in ends)
    return low if low == high else f"{low} to {high}" if ends[0] > 1e-9 else f"up to {high}"


_SAME = "the same length"


def _times(ends: tuple[float, float], most: int) -> str:
    """A length as a multiple of the right one."""
    times = _range(ends, most)
    return _SAME if times == "1" else f"{times} times the length"


def _range(ends: tuple[float, float] | None, most: int) -> str:
    if ends is None:
        return ""
    low, high = (_digits(end, most) for end in ends)
    return low if low == high else f"{low} to {high}"


def severity(observations: Sequence[Observation], calls: FreshCalls) -> Severity | None:
    """Measure what a difference does to training.

    `observations`: of the corpus; they serve where the target cannot be called. Result: none where the target gives no
    number at an ordinary temperature, or nothing departs there.
    """
    every = [o for o in usable([*calls.at(GENERAL), *observations]) if _several(o.probe)]
    ordinary = [o for o in every if _is_ordinary(o.probe)]
    # Fresh calls have ordinary rows: cases of the corpus are extreme ones.
    tried = [o for o in ordinary if o.probe.id.startswith("fresh-")] or ordinary
    lost = sum(not _is_number(o) for o in tried)
    seen = next(filter(None, ([o for o in several if _is_number(o)] for several in (tried, ordinary, every))), [])
    if not seen:
        return None
    both = [gaps(o)[VALUE] for o in seen]
    values = [_size(gap.got - gap.want) / _size(gap.want) for gap in both if _size(gap.want) > 0]
    pairs = [pair for o in seen if (pair := _gradients(o)) is not None]
    angles, lengths, errors = _compared(pairs)
    along = [float(radial / size) for _, want, _, radial in pairs if (size := float(np.linalg.norm(want))) > 0]
    at_optimum, temperature, leaves = _at_optimum(calls) if pairs else _NO_OPTIMUM
    return Severity(
        len(seen),
        _temperatures(seen),
        _ends(values),
        _ends(errors),
        _ends(angles),
        _ends(lengths),
        max(along, default=0.0),
        at_optimum,
        tuple(_right(seen, pairs)),
        (lost, len(tried)),
        sum(any(not gap.finite for name, gap in gaps(o).items() if name in _arrays(o)) for o in seen),
        _kinds(seen, lambda name: name in _arrays(seen[0])),
        _kinds(seen, lambda name: name not in _arrays(seen[0])),
        bool(pairs) and all(_is_right(pair) for pair in pairs),
        _trained_constants(seen),
        _elsewhere([o for o in usable(observations) if _several(o.probe)]),
        temperature,
        leaves,
        _multiples(seen),
        _scalar(seen[0]),
    )


def _kinds(seen: Sequence[Observation], is_meant: Callable[[str], bool]) -> dict[str, str]:
    """The kind of each input's gradient over all of these."""
    return {name: _kind(each) for name, each in _gradients_of(seen, is_meant).items()}


def _gradients_of(seen: Sequence[Observation], is_meant: Callable[[str], bool]) -> dict[str, list[Gap]]:
    """The gradients by some of the inputs on all of these, by name."""
    by_name: dict[str, list[Gap]] = {}
    for o in seen:
        for name, gap in gaps(o).items():
            if name != VALUE and is_meant(name):
                by_name.setdefault(name, []).append(gap)
    return by_name


def _kind(each: Sequence[Gap]) -> str:
    if not all(gap.finite for gap in each):
        return "lost"
    if all(gap.right for gap in each):
        return "right"
    return "wrong" if any(np.any(gap.got) for gap in each) else "zero"


def _multiples(seen: Sequence[Observation]) -> dict[str, tuple[float, float]]:
    """Gradients of scalars as multiples of the right ones, of those that have the right sign on all of these."""
    out = {}
    for name, each in _gradients_of(seen, lambda name: name not in _arrays(seen[0])).items():
        pairs = [(float(np.sum(gap.got)), float(np.sum(gap.want))) for gap in each if gap.want.size == 1]
        if len(pairs) == len(each) and all(got * want > 0 for got, want in pairs):
            ratios = [got / want for got, want in pairs]
            out[name] = min(ratios), max(ratios)
    return out


def _is_right(pair: tuple[Any, Any, float, float]) -> bool:
    """Whether a gradient is right but for its part along the rows, from which roundings of the projection remain."""
    got, want, room, radial = pair
    rounding = 8 * np.finfo(np.float64).eps * (float(np.linalg.norm(want)) + radial)
    return bool(np.linalg.norm(got - want) <= room + rounding)


def _trained_constants(seen: Sequence[Observation]) -> dict[str, bool]:
    """Constants that get a gradient, and whether each is an embedding."""
    loss = seen[0].probe.loss
    touched = {n for o in seen for n in constants(o.probe) if n in o.outcome.grads and np.any(o.outcome.grads[n])}
    return {p.name: p.embedding for p in loss.parameters if isinstance(p, Array) and p.name in touched}


def _elsewhere(observations: Sequence[Observation]) -> tuple[int, int]:
    """Cases with a gradient that is visibly wrong, and cases without a number."""
    every = [gaps(o) for o in observations]
    wrong = sum(any(_is_visible(gap) for name, gap in each.items() if name != VALUE) for each in every)
    return wrong, sum(any(not gap.finite for gap in each.values()) for each in every)


def _is_visible(gap: Gap) -> bool:
    return gap.finite and not gap.right and _size(gap.got - gap.want) > _UNSEEN * _size(gap.want)


def _is_number(observation: Observation) -> bool:
    return bool(np.all(np.isfinite(observation.outcome.value)))


def _right(seen: Sequence[Observation], pairs: Sequence[Any]) -> Iterator[str]:
    if all(gaps(o)[VALUE].right for o in seen):
        yield VALUE
    if pairs and all(gap.right for o in seen for name, gap in gaps(o).items() if name != VALUE):
        yield "gradient"


def _size(x: Any) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def _ends(numbers: Sequence[float]) -> tuple[float, float] | None:
    return (min(numbers), max(numbers)) if numbers else None


def _several(probe: Probe) -> bool:
    """Whether there is more than one sample: a batch of one is trained by nobody."""
    return all(
        len(probe.inputs[p.name]) > 1
        for p in probe.loss.parameters
        if isinstance(p, Array) and p.embedding and isinstance(probe.inputs.get(p.name), np.ndarray)
    )


def _is_ordinary(probe: Probe) -> bool:
    scalar = temperature_scalar(probe)
    return scalar is None or ORDINARY[0] <= at_temperature(*scalar) <= ORDINARY[1]


def _temperatures(seen: Sequence[Observation]) -> tuple[float, float] | None:
    return _ends([at_temperature(*scalar) for o in seen if (scalar := temperature_scalar(o.probe))])


def _scalar(observation: Observation) -> str:
    """The temperature in words, or what stands for it."""
    name = (temperature_scalar(observation.probe) or ("temperature", 0.0))[0]
    return name if name == "temperature" else f"1/{name}"


def _arrays(observation: Observation) -> dict[str, Array]:
    return {p.name: p for p in _trained(observation.probe.loss)}


def _trained(loss: Loss) -> Iterator[Array]:
    """The arrays that a loss has a gradient for."""
    return (p for p in loss.parameters if isinstance(p, Array) and not p.constant)


def _gradients(observation: Observation) -> tuple[Any, Any, float, float] | None:
    """Both gradients of the embeddings as one vector each, and the bound of its length; None without one.

    Where the right gradient is orthogonal to each row, without the part along the rows, whose length is the last.
    """
    arrays = _arrays(observation)
    both = [gap for name, gap in gaps(observation).items() if name in arrays and gap.finite]
    if not both:
        return None
    got, radial = [], []
    for gap in both:
        x = np.asarray(observation.probe.inputs[gap.quantity], dtype=np.float64)
        along = _along(x, gap.got) if arrays[gap.quantity].embedding and _is_orthogonal(x, gap) else 0.0 * gap.got
        got.append(np.ravel(gap.got - along))
        radial.append(np.ravel(along))
    want, room = (np.concatenate([np.ravel(getattr(g, what)) for g in both]) for what in ("want", "bound"))
    return np.concatenate(got), want, float(np.linalg.norm(room)), float(np.linalg.norm(np.concatenate(radial)))


def _along(x: Any, g: Any) -> Any:
    """The part of a gradient along each row."""
    square = np.sum(x * x, axis=-1, keepdims=True)
    return np.sum(x * g, axis=-1, keepdims=True) * x / np.where(square > 0, square, 1.0)


def _is_orthogonal(x: Any, gap: Gap) -> bool:
    size = np.linalg.norm(gap.want)
    return bool(x.ndim > 1 and x.shape[-1] > 1 and np.linalg.norm(_along(x, gap.want)) <= 1e-6 * size)


def _compared(pairs: Sequence[tuple[Any, Any, float, float]]) -> tuple[list[float], list[float], list[float]]:
    """Angles in degrees, quotients of lengths, and relative errors, where the right gradient is more than its bound."""
    angles, lengths, errors = [], [], []
    for got, want, room, _ in pairs:
        size, right = float(np.linalg.norm(got)), float(np.linalg.norm(want))
        if right <= 10 * room:
            continue
        lengths.append(size / right)
        errors.append(float(np.linalg.norm(got - want)) / right)
        if size > 0:
            # Exact for small angles, unlike the arc cosine.
            a, b = got / size, want / right
            angle = 2 * math.atan2(float(np.linalg.norm(a - b)), float(np.linalg.norm(a + b)))
            angles.append(math.degrees(angle))
        else:
            angles.append(0.0)
    return angles, lengths, errors


_NO_OPTIMUM: tuple[float | None, float | None, bool] = (None, None, False)


def _at_optimum(calls: FreshCalls) -> tuple[float | None, float | None, bool]:
    """The target's gradient at a minimum of the reference, as a share of its gradient at the start of the descent.

    Then the temperature, and whether a step against the gradient beside the minimum leads away from it. Of two minima
    that where the share is larger.
    """
    found = [one for start in _STARTS if (one := _at_minimum(calls, start))[0] is not None]
    return max(found, key=lambda one: one[0] or 0.0, default=_NO_OPTIMUM)


def _at_minimum(calls: FreshCalls, spec: InputSpec) -> tuple[float | None, float | None, bool]:
    """The same at the minimum that descent from some inputs comes to."""
    path = minimum(calls.like, spec) if calls.like is not None and calls.possible else None
    if path is None:
        return _NO_OPTIMUM
    start, end = (calls.on(probe) for probe in path)
    first = _gradients(start) if start is not None else None
    last = _gradients(end) if end is not None else None
    # A gradient that is nothing but roundings is no smaller at the end.
    if first is None or last is None or np.linalg.norm(first[0]) <= first[2]:
        return _NO_OPTIMUM
    share = float(np.linalg.norm(last[0]) / np.linalg.norm(first[0]))
    scalar = temperature_scalar(path[0])
    temperature = None if scalar is None else at_temperature(*scalar)
    return share, temperature, share < _AT_REST and _leaves(calls, path[1], last[0])


def _leaves(calls: FreshCalls, end: Probe, at_rest: Any) -> bool:
    """Whether the gradient turns along some way from a minimum of the reference, as at a saddle or a maximum."""
    rng = np.random.default_rng(0)
    assert calls.like is not None
    rows = {p.name: np.asarray(end.inputs[p.name]) for p in _trained(end.loss) if p.name in end.grads}
    for _ in range(_BESIDE):
        ways = {n: _STEP * np.sqrt(np.mean(x * x)) * rng.standard_normal(x.shape) for n, x in rows.items()}
        beside = judged(calls.like, {**end.inputs, **{n: x + ways[n] for n, x in rows.items()}}, "beside")
        observed = calls.on(beside) if beside is not None else None
        pair = _gradients(observed) if observed is not None else None
        if observed is None or pair is None or pair[0].shape != at_rest.shape:
            continue
        way = np.concatenate([np.ravel(ways[name]) for name in gaps(observed) if name in ways])
        change = pair[0] - at_rest
        if change @ way < _AWAY * np.linalg.norm(change) * np.linalg.norm(way):
            return True
    return False


@lru_cache(maxsize=64)
def minimum(like: Template, spec: InputSpec) -> tuple[Probe, Probe] | None:
    """A fresh probe, and where descent from it comes to rest; None where it does not, such as at infinity."""
    start = fresh_probe(like, spec)
    if start is None or not start.grads:
        return None
    scalar = temperature_scalar(start)
    if scalar is not None and at_temperature(*scalar) < spec.temperature / 2:
        return None
    names = [p.name for p in _trained(like.loss) if p.name in start.grads]
    inputs, g = dict(start.inputs), {name: np.asarray(start.grads[name]) for name in names}
    first = _length(g)
    step = 0.1 / first if first > 0 else 0.0
    for _ in range(_STEPS):
        moved = {**inputs, **{name: inputs[name] - step * g[name] for name in names}}
        there = _slope(like, moved, names)
        if there is None:
            return None
        # Barzilai and Borwein's step, from the last difference of gradients.
        along = sum(float(np.sum((moved[n] - inputs[n]) * (there[n] - g[n]))) for n in names)
        square = sum(float(np.sum((moved[n] - inputs[n]) ** 2)) for n in names)
        step = min(square / along, 1e3) if along > 0 else 2 * step
        inputs, g = moved, there
        if _length(g) < 0.1 * _REFERENCE_AT_REST * first:
            break
    if _length(g) > _REFERENCE_AT_REST * first:
        return None
    # Descent has made the rows longer, which another loss may feel.
    scaled = {**inputs, **{name: _as_long(inputs[name], start.inputs[name]) for name in names}}
    there = _slope(like, scaled, names)
    at_rest = there is not None and _length(there) <= _REFERENCE_AT_REST * first
    end = judged(like, scaled if at_rest else inputs, "minimum")
    return None if end is None else (start, end)


def _as_long(x: Any, other: Any) -> Any:
    """Rows scaled to the lengths of others."""
    return x * (np.linalg.norm(other, axis=-1, keepdims=True) / np.linalg.norm(x, axis=-1, keepdims=True))


def _length(g: Mapping[str, Any]) -> float:
    return math.sqrt(sum(float(np.sum(x * x)) for x in g.values()))


def _slope(like: Template, inputs: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any] | None:
    from nceref.engine.bound_loss import bound_loss

    try:
        bound = bound_loss(like.loss, (), inputs)
        evaluation = bound.evaluate(like.reduction, keep=True)
        ones = np.ones_like(evaluation.rows) if like.reduction == "none" else None
        grads = bound.gradients(evaluation, ones)
    except NcerefError:
        return None
    out = {name: np.asarray(grads[name], dtype=np.float64) for name in names}
    return out if all(np.all(np.isfinite(x)) for x in out.values()) else None
