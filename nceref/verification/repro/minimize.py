"""The smallest input on which a target fails: batches of one to four rows with entries such as 1, -1, 0 and 2."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from typing import Any

import numpy as np

from nceref.cases.corpus.corpus import designed_inputs, evaluate
from nceref.cases.records import Observation, Outcome, Probe
from nceref.cases.rounding import rounded
from nceref.diagnosis.features import temperature_scalar
from nceref.diagnosis.gaps import VALUE, gaps, not_finite
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.output.words import counted
from nceref.spec import Array, Labels, Loss, Scalar
from nceref.targets.search import NoCallsLeft, Search

ENTRIES = (1.0, -1.0, 0.0, 2.0, 0.5)
"""Entries of a small input, the simplest first."""
SIZES = tuple(
    {"N": n, "D": d, "E": d, "C": 2, "M": min(n, 2), "K": min(n, 2), "V": 2}
    for n, d in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2))
)
"""Sizes that are tried, in order; some labelled losses need two classes of two samples to have a gradient."""
PLAIN = {"counts": (1.0, 3.0), "prior": (0.25, 0.75), "weights": (1.0, 2.0)}
"""Entries of arrays that are no rows, in turns."""

ROWS = ("embedding", "center", "vector")
"""Arrays whose entries are tried."""

MOST = 400
"""Inputs that are tried."""
RunTarget = Callable[[Probe], Outcome]


def smallest(
    loss: Loss,
    settings: Mapping[str, Any],
    run: RunTarget,
    *,
    dtype: str = "float64",
    reduction: str = "mean",
    algorithm: str = "textbook",
    first: Sequence[Observation] = (),
    most: int = MOST,
    search: Search | None = None,
) -> tuple[Probe, Outcome] | None:
    """Search for a small failing input, in a fixed order; where nothing that small fails, the smallest of `first`.

    `settings` are those of the corpus, with the scalars that the target has fixed: those keep their values. `run` runs
    the target on a probe. `dtype`, `reduction` and `algorithm` are those of the corpus. `first` are failing cases of
    the corpus: they show which arguments are given, which other temperatures to try, and whether a wrong value is
    looked for or, where their values are right, a wrong gradient. At most `most` inputs are tried: a count, since with
    seconds the result would depend on the machine; `search` is told if that has ended it. The result fails beyond its
    bound, and so not by rounding.
    """
    known = list(first)
    template = known[0].probe if known else _template(loss, settings, dtype, reduction)
    if template is None:
        return None
    by_value = not known or any(_fails(o, True) for o in known)
    tried = 0
    # What fails on large cases only is not looked for on four rows.
    large = bool(known) and all(o.probe.is_large for o in known)
    for inputs in () if large else _distinct(_candidates(template, known, settings)):
        probe = evaluate(loss, inputs, dtype, reduction, algorithm, f"small-{tried}", forms=template.forms)
        if probe.skip or probe.bounds is None:
            continue
        if tried == most:
            if search is not None:
                search.end("limit", f"was cut after {counted(most, 'call')} of the target, its limit")
            break
        tried += 1
        try:
            observation = Observation(probe, run(probe))
        except NoCallsLeft:
            break
        if _fails(observation, by_value):
            return probe, observation.outcome
        # What hangs once costs a timeout each time.
        if observation.outcome.trouble == "hangs":
            break
    rest = sorted((o for o in known if _fails(o, by_value)), key=lambda o: _size(o.probe))
    return (rest[0].probe, rest[0].outcome) if rest else None


def _distinct(candidates: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen = set()
    for inputs in candidates:
        # Small arrays only, which `repr` shows in full.
        key = repr(inputs)
        if key not in seen:
            seen.add(key)
            yield inputs


def _template(loss: Loss, settings: Mapping[str, Any], dtype: str, reduction: str) -> Probe | None:
    """The first case of the corpus that is judged: it shows which arguments are given."""
    cases = designed_inputs(loss, settings, "quick", dtype, 0, {})
    probes = (evaluate(loss, inputs, dtype, reduction, id=id) for id, inputs in cases)
    return next((probe for probe in probes if not probe.skip), None)


def _fails(observation: Observation, by_value: bool) -> bool:
    """Whether the value, or else anything, is beyond its bound."""
    outcome = observation.outcome
    if outcome.trouble or outcome.value is None or np.shape(outcome.value) != np.shape(observation.probe.value):
        return False
    by_quantity = gaps(observation)
    if by_value or not by_quantity[VALUE].right:
        return not by_quantity[VALUE].right
    return bool(not_finite(observation)) or any(not gap.right for gap in by_quantity.values())


def _size(probe: Probe) -> int:
    return sum(int(np.size(x)) for x in probe.inputs.values() if isinstance(x, np.ndarray))


def _candidates(template: Probe, known: Sequence[Observation], settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Small inputs in the order in which they are tried: temperature 1 and 1/2, then those of the failing cases."""
    given = temperature_scalar(template)
    if given is None or settings.get(given[0]) is not None:
        return chain.from_iterable(_of_size(template, sizes, [{}], settings) for sizes in SIZES)
    name, sign = given[0], INVERSE_TEMPERATURES[given[0]]
    usual = [1.0, 2.0**sign]
    failing = {h[1] for h in (temperature_scalar(o.probe) for o in known) if h} - set(usual)
    # The coldest first: there most fails.
    later = sorted(failing, reverse=sign > 0)
    groups = [(SIZES, usual), (SIZES[1:], later)]
    # What fails in the cold only is not looked for elsewhere first.
    if failing and max(t**-sign for t in failing) < _COLD:
        groups.reverse()
    return chain.from_iterable(
        _of_size(template, size, [{name: t} for t in temperatures], settings)
        for sizes, temperatures in groups
        for size in sizes
        if temperatures
    )


_COLD = 0.05
"""Temperature below which numbers leave the range of a format; a wrong formula shows above it as well."""


def _of_size(
    template: Probe,
    sizes: Mapping[str, int],
    temperatures: Sequence[Mapping[str, float]],
    settings: Mapping[str, Any],
    most: int = 24,
) -> Iterator[dict[str, Any]]:
    """Inputs of one size, the plain ones first, at most that many for each labeling."""
    start = _plain(template, sizes, settings)
    free = [p for p in template.loss.parameters if isinstance(p, Array) and p.name in start and p.like in ROWS]
    shapes = {p.name: _shape(p, template, sizes) for p in free}
    labels = [p for p in template.loss.parameters if isinstance(p, Labels) and p.name in start]
    each = islice(product(*(_labelings(p, sizes) for p in labels)), 6)
    labelings = [dict(zip((p.name for p in labels), labeling, strict=True)) for labeling in each]
    parts = product(_fillings(shapes), labelings, temperatures)
    made = ({**start, **filled, **labeling, **hot} for filled, labeling, hot in parts)
    return islice(made, most * len(labelings))


def _plain(template: Probe, sizes: Mapping[str, int], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The given arguments at other sizes; arrays that are no rows get plain entries, a bias and such are 1."""
    out: dict[str, Any] = {}
    for p in template.loss.parameters:
        value = template.inputs.get(p.name)
        if value is None:
            continue
        if isinstance(p, Array):
            shape = _shape(p, template, sizes)
            value = _next(shape[0]) if p.like == "mask" else np.resize(np.array(PLAIN.get(p.like, (1.0,))), shape)
        elif isinstance(p, Labels):
            value = np.zeros(sizes[p.shape[0]], dtype=np.int64)
        elif (
            isinstance(p, Scalar)
            and not p.constant
            and p.name not in {*INVERSE_TEMPERATURES, *settings}
            and p.low < 1 < p.high
        ):
            value = 1.0
        out[p.name] = rounded(value, template.dtype)
    return out


def _next(n: int) -> Any:
    """A mask in which each sample has the next one as its positive."""
    return np.roll(np.eye(n), 1, axis=1) * (1 - np.eye(n))


def _shape(p: Array, template: Probe, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape at these sizes, with views where the template has them."""
    views = p.alternative is not None and np.ndim(template.inputs[p.name]) == len(p.alternative)
    letters = p.alternative if views and p.alternative else p.shape
    return tuple(sizes[letter] for letter in letters)


def _labelings(p: Labels, sizes: Mapping[str, int]) -> Iterator[Any]:
    """All labelings, those with few labels first; labels that are no classes name groups, each of which comes once."""
    n = sizes[p.shape[0]]
    count = sizes[p.classes] if p.classes else n
    for labels in product(range(count), repeat=n):
        # Each grouping once: other names of the same groups are the same input.
        fresh = all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels))
        if p.classes or fresh:
            yield np.array(labels, dtype=np.int64)


def _fillings(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[dict[str, Any]]:
    """Entries for all arrays: every combination of four where there are few entries, else a fixed sample."""
    counts = {name: int(np.prod(shape)) for name, shape in shapes.items()}
    for flat in _entries(sum(counts.values())):
        ends = np.cumsum(list(counts.values()))
        parts = np.split(np.array(flat), ends[:-1])
        yield {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}


def _entries(count: int) -> Iterable[Sequence[float]]:
    if count <= 4:
        every = product(range(4), repeat=count)
        return [[ENTRIES[i] for i in place] for place in sorted(every, key=lambda place: (sum(place), place))]
    # Few distinct draws look alike by chance: entries of 0 and 1 alone first, then all.
    rng = np.random.default_rng(count)
    draws = [rng.integers(0, high, count) for high in (2, 3, 4, 5) for _ in range(16)]
    return [[ENTRIES[i] for i in draw] for draw in draws]
