"""Fresh calls: inputs that are not in the corpus, on which what explains the corpus can be refuted.

Rows, labels, sizes, lengths and temperatures are others than those of the corpus; arguments that all of its cases share
stay. A run makes `MOST` calls at most.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from nceref.cases.corpus.corpus import evaluate
from nceref.cases.corpus.geometries import PLACES, short
from nceref.cases.corpus.resizing import NO_RESIZING, Resizing
from nceref.cases.parametrization import representable
from nceref.cases.records import Observation, Outcome, Probe
from nceref.cases.rounding import rounded
from nceref.checks.cases import Geometry, arguments
from nceref.engine.parameters import INVERSE_TEMPERATURES, at_temperature
from nceref.errors import NcerefError
from nceref.spec import Array, Labels, Loss
from nceref.targets.search import NoCallsLeft

MOST = 64
"""Calls of one run: a count, since seconds would make the explanation depend on the machine."""
Call = Callable[[Probe], Outcome]
_SEED = 20_011
"""Of the rows; no suite has it."""


@dataclass(frozen=True)
class InputSpec:
    """The inputs of a fresh call: where its rows lie, how many there are, and the temperature.

    Attributes
    ----------
    geometry : str
        A key of `PLACES`, or ``apart``: all rows of the first input opposite to all of the second, or ``turned``:
        partners at every angle.
    temperature : float
    sizes : tuple of int
        N, D, C, M, K, V.
    odd : bool
        Whether lengths of rows differ by a factor of 100, and one class has most of the samples.
    """

    geometry: str
    temperature: float
    sizes: tuple[int, ...]
    odd: bool = False

    @property
    def by_letter(self) -> dict[str, int]:
        """The sizes by the letters of a shape."""
        n, d, c, m, k, v = self.sizes
        return {"N": n, "D": d, "E": d, "C": c, "M": m, "K": k, "V": v}


GENERAL = (
    InputSpec("designed", 0.2, (6, 7, 3, 6, 5, 2)),
    InputSpec("designed", 0.55, (9, 4, 4, 5, 8, 3), odd=True),
    InputSpec("designed", 0.13, (18, 10, 6, 9, 7, 2)),
    InputSpec("aligned", 0.16, (4, 9, 2, 3, 5, 3)),
)
"""On these every explanation is tried: N and D of both parities, N above 16, labels that are not balanced."""
MORE = (
    InputSpec("designed", 0.35, (8, 9, 3, 8, 6, 3)),
    InputSpec("designed", 0.09, (13, 6, 5, 11, 10, 2), odd=True),
    InputSpec("opposed", 0.25, (7, 8, 3, 4, 7, 2)),
    InputSpec("designed", 0.8, (20, 5, 7, 13, 11, 2)),
)
"""For what is looked for again after these calls have refuted the first explanations."""
TELLING = (
    InputSpec("designed", 0.04, (6, 9, 3, 7, 6, 2)),
    InputSpec("aligned", 0.022, (8, 6, 3, 5, 8, 2)),
    InputSpec("opposed", 0.03, (6, 5, 3, 6, 4, 2)),
    InputSpec("designed", 2.5, (10, 7, 4, 8, 9, 3)),
    InputSpec("separated", 0.05, (4, 6, 2, 3, 6, 2)),
    InputSpec("designed", 0.0045, (7, 6, 3, 4, 5, 2)),
    InputSpec("aligned", 0.0015, (5, 8, 2, 4, 6, 2)),
    InputSpec("opposed", 0.0013, (6, 4, 3, 5, 5, 2)),
    InputSpec("antipodal", 0.4, (6, 8, 3, 4, 6, 2)),
    InputSpec("collapsed", 0.45, (7, 5, 3, 6, 8, 2)),
    InputSpec("lonely", 0.24, (8, 5, 3, 6, 5, 2)),
)
"""Out of these come the calls on which two explanations differ most."""


@dataclass(frozen=True)
class Template:
    """All that the cases of a run share: everything but rows, sizes and temperatures.

    Attributes
    ----------
    loss : Loss
    dtype, reduction, algorithm : str
        As for `corpus`.
    arrays : tuple
        Name and number of axes of each array and of each vector of labels that is given.
    constants : tuple
        Name and value of what is the same in all cases.
    ranges : tuple
        Name, smallest and largest value of each scalar that is not.
    forms : tuple
        Name and parametrization of each input that the target holds itself.
    resizing : Resizing
        The sizes that the target takes.
    """

    loss: Loss
    dtype: str
    reduction: str
    algorithm: str
    arrays: tuple[tuple[str, int], ...]
    constants: tuple[tuple[str, Any], ...]
    ranges: tuple[tuple[str, float, float], ...]
    forms: tuple[tuple[str, str], ...] = ()
    resizing: Resizing = NO_RESIZING


def template(probes: Iterable[Probe], algorithm: str = "textbook", resizing: Resizing = NO_RESIZING) -> Template | None:
    """The template of fresh calls like the cases of a run; None without a case.

    `algorithm` and `resizing`: as for `corpus`.
    """
    listed = [p for p in probes if not p.skip]
    if not listed:
        return None
    first = listed[0]
    arrays, constants, ranges = [], [], []
    for name, value in first.inputs.items():
        if isinstance(value, np.ndarray) and value.ndim:
            arrays.append((name, value.ndim))
        elif isinstance(value, float) and len(every := {p.inputs.get(name) for p in listed}) > 1:
            numbers = [float(x) for x in every if isinstance(x, float)]
            ranges.append((name, min(numbers), max(numbers)))
        else:
            constants.append((name, value))
    shared = (tuple(arrays), tuple(constants), tuple(ranges), tuple(sorted(first.forms.items())))
    return Template(first.loss, first.dtype, first.reduction, algorithm, *shared, resizing)


# The same for all targets of a loss: enough for the losses of a score.
@lru_cache(maxsize=1024)
def fresh_probe(like: Template, spec: InputSpec) -> Probe | None:
    """A probe with such inputs; None where the loss has no number there."""
    inputs = fresh_inputs(like, spec)
    return None if inputs is None else judged(like, inputs, f"fresh-{spec.geometry}-{spec.temperature:g}")


def judged(like: Template, inputs: Mapping[str, Any], id: str) -> Probe | None:
    """The probe of given inputs, rounded to the format; None where the loss refuses them.

    `id`: of the probe.
    """
    held, forms = dict(like.constants), dict(like.forms)
    exact = {name: x if name in held else _exact(x, like.dtype, forms.get(name, "")) for name, x in inputs.items()}
    try:
        probe = evaluate(like.loss, exact, like.dtype, like.reduction, like.algorithm, id, forms=forms)
    except NcerefError:
        return None
    return None if probe.skip else probe


def _exact(x: Any, dtype: str, form: str) -> Any:
    """A number that the target can have: of the format, or made of a parameter of the format."""
    return representable(form, x, dtype) if form and isinstance(x, float) else rounded(x, dtype)


def fresh_inputs(like: Template, spec: InputSpec) -> dict[str, Any] | None:
    """Arguments of such inputs; None for a loss that has none."""
    rng = np.random.default_rng([_SEED, *spec.sizes, round(1e4 * spec.temperature)])
    declared = {p.name: p for p in like.loss.parameters}
    if spec.geometry == "lonely" and not any(isinstance(declared[name], Labels) for name, _ in like.arrays):
        return None
    variant = {**dict(like.constants), **{name: _requested(declared[name], axes) for name, axes in like.arrays}}
    rows, _, extra = (_OWN if spec.geometry in _OWN else PLACES)[spec.geometry]
    place = like.resizing.place((rows, {}, extra), spec.by_letter)
    inputs = arguments(like.loss, place, variant, spec.temperature, spec.by_letter, rng, np.float64)
    inputs |= dict(like.constants) | _scalars(like, spec)
    for name, _ in like.arrays:
        inputs[name] = _array(declared[name], inputs[name], spec, rng)
    if dict(like.constants).get("normalize") == "none":
        embeddings = [p.name for p in declared.values() if isinstance(p, Array) and p.embedding and p.name in inputs]
        shrunk = {**inputs, **{name: short(inputs[name]) for name in embeddings}}
        return inputs if judged(like, inputs, "") else shrunk
    return inputs


def _apart(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    side = 1.0 if twin is None else -1.0
    return side * (np.arange(shape[-1]) == 0) + 0.02 * rng.standard_normal(shape)


def _turned(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    # In many dimensions random rows are almost orthogonal: most of each lies in few of them.
    x = 0.3 * rng.standard_normal(shape) + rng.standard_normal((*shape[:-1], 3)) @ rng.standard_normal((3, shape[-1]))
    lengths = rng.uniform(0.5, 2.0, (*shape[:-1], 1))
    if twin is None:
        return lengths * x
    share, sign = rng.random(lengths.shape) ** 0.5, rng.choice((1.0, 1.0, -1.0), lengths.shape)
    own, other = (each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (x, twin))
    return lengths * ((1 - share) * own + share * sign * other)


_OWN: dict[str, Geometry] = {"apart": (_apart, {}, {}), "turned": (_turned, {}, {"centered": True})}


def _requested(p: Any, axes: int) -> Any:
    views = isinstance(p, Array) and p.alternative is not None and len(p.alternative) == axes
    return "views" if views else ...


def _scalars(like: Template, spec: InputSpec) -> dict[str, float]:
    """The temperature of the inputs; other scalars within the range that the corpus has."""
    out = {}
    for place, (name, low, high) in enumerate(like.ranges):
        if name in INVERSE_TEMPERATURES:
            out[name] = at_temperature(name, spec.temperature)
        else:
            share = (0.3 + 0.37 * place + 0.61 * spec.sizes[0]) % 1
            out[name] = round((low + share * (high - low)) * 64) / 64
    return out


def _array(p: Any, x: Any, spec: InputSpec, rng: np.random.Generator) -> Any:
    if isinstance(p, Array) and p.like == "prior":
        prior = 0.5 ** (1.0 + rng.permutation(len(x)))
        return prior + (1 - np.sum(prior)) / len(x)
    if spec.odd and isinstance(p, Labels) and p.name != "target" and len(x) >= 4:
        # Two thirds of one class, at least two of the other.
        other = np.max(x) if np.max(x) != x[0] else np.min(x)
        return rng.permutation(np.where(np.arange(len(x)) < max(2, len(x) // 3), other, x[0]))
    if spec.odd and isinstance(p, Array) and p.embedding:
        return x * 10.0 ** rng.uniform(-1, 1, (*x.shape[:-1], 1))
    return x


@dataclass(eq=False)
class FreshCalls:
    """The target of a run, for calls beyond its corpus; without a target there are none.

    Attributes
    ----------
    call : callable or None
        Runs the target on a probe.
    like : Template or None
    made : int
        Calls so far.
    answered : callable or None
        Gives a probe what the target is held to in place of the loss; None where it is held to the loss itself.
    """

    call: Call | None
    like: Template | None
    made: int = 0
    answered: Callable[[Probe], Probe] | None = None
    _over: bool = False
    _known: dict[InputSpec, Observation | None] = field(default_factory=dict)

    @property
    def possible(self) -> bool:
        """Whether the target can be called once more."""
        return self.call is not None and self.like is not None and self.made < MOST and not self._over

    @property
    def used_up(self) -> bool:
        """Whether all calls of a run have been made."""
        return self.made >= MOST

    def outcome(self, probe: Probe) -> Outcome | None:
        """The outcome of the target on a probe; None when the calls are used up."""
        if not self.possible or self.call is None:
            return None
        self.made += 1
        try:
            outcome = self.call(probe)
        except NoCallsLeft:
            self._over = True
            return None
        # What hangs once costs a timeout each time.
        self._over = outcome.trouble == "hangs"
        return outcome

    def at(self, specs: Iterable[InputSpec]) -> list[Observation]:
        """Answers of the target to some inputs; those with trouble, and without a reference, are left out."""
        return [one for spec in specs if (one := self._at(spec)) is not None]

    def _at(self, spec: InputSpec) -> Observation | None:
        if spec not in self._known:
            probe = fresh_probe(self.like, spec) if self.like is not None else None
            self._known[spec] = self.on(probe) if probe is not None else None
        return self._known[spec]

    def on(self, probe: Probe) -> Observation | None:
        """The observation of a probe; None where there is trouble or a value of another shape."""
        probe = probe if self.answered is None else self.answered(probe)
        outcome = None if probe.skip else self.outcome(probe)
        if outcome is None or outcome.trouble or np.shape(outcome.value) != np.shape(probe.value):
            return None
        return Observation(probe, outcome)

    def probes(self, specs: Iterable[InputSpec]) -> Iterator[tuple[InputSpec, Probe]]:
        """The probes of some inputs that have a reference; nothing is called."""
        for spec in specs:
            probe = fresh_probe(self.like, spec) if self.like is not None and self.possible else None
            if probe is not None:
                yield spec, probe


NO_CALLS = FreshCalls(None, None)
"""For what was observed elsewhere: nothing can be called."""


def fresh_calls(
    call: Call | None,
    observations: Sequence[Observation],
    algorithm: str = "textbook",
    resizing: Resizing = NO_RESIZING,
) -> FreshCalls:
    """Fresh calls that go with the cases of a run.

    `call`: runs the target on a probe. `observations`: of the run. `algorithm` and `resizing`: as for `corpus`.
    """
    return FreshCalls(call, template((o.probe for o in observations), algorithm, resizing))
