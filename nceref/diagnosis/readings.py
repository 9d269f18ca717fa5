"""Readings of a target by the reference itself, on a part of the inputs, on other inputs, or with other means.

A reading is an explanation only if it predicts every case and fresh calls that were made for it; what was measured
beside that is a remark.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, permutations
from typing import Any

import numpy as np

from nceref.cases.corpus.corpus import evaluate
from nceref.cases.records import Diagnosis, DiagnosisPart, Observation, Probe
from nceref.diagnosis.dependence import is_wrong, shortened, size_of
from nceref.diagnosis.fresh import FreshCalls, InputSpec, Template, judged
from nceref.diagnosis.gaps import diagnosis, usable
from nceref.output.words import out_of
from nceref.spec import Array, Choice, Labels

Predicted = tuple[float, float]
"""A value, and how far a target may be from it."""
CHUNKS = (2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256)
MOST = 200
"""Samples of a case on which readings are tried: each takes several evaluations of the reference."""
_SURPRISE = 16.0
"""How many times what is allowed the reference must be off on some case."""
_SPECS = (InputSpec("designed", 0.25, (23, 11, 6, 9, 7, 2)), InputSpec("designed", 0.3, (10, 5, 4, 6, 7, 2)))


@dataclass(frozen=True)
class ReferenceReading:
    """A reading of the inputs that a target may compute the reference of.

    Attributes
    ----------
    id, words : str
        Convention, and the rest of "the value is ...".
    predicts : callable
        The value at a probe; None where the reading has none.
    sizes : tuple of int
        Numbers of samples at which fresh calls would show it.
    limit : str
        Where it is the reference, or empty.
    intend : str
        Options of `nceref verify` under which it is the reference, or empty.
    """

    id: str
    words: str
    predicts: Callable[[Probe], Predicted | None]
    sizes: tuple[int, ...] = ()
    limit: str = ""
    intend: str = ""

    def fits(self, observation: Observation) -> bool:
        """Whether a target has this value."""
        there = self.predicts(observation.probe)
        return there is not None and abs(float(observation.outcome.value) - there[0]) <= there[1]

    def holds(self, observations: Sequence[Observation]) -> bool:
        """Whether other cases of at most `MOST` samples have this value."""
        small = [o for o in usable(observations) if size_of(o.probe, "N") <= MOST]
        return any(map(is_wrong, small)) and all(self.fits(o) for o in small if np.all(np.isfinite(o.outcome.value)))


Readings = Callable[[Template, Probe], Iterable[ReferenceReading]]


def reading_of(seen: Sequence[Observation], calls: FreshCalls, readings: Readings) -> Diagnosis | None:
    """The first of some readings that predicts all cases, and fresh calls.

    `seen`: of the corpus, with finite answers.
    """
    like = calls.like
    small = sorted((o for o in seen if size_of(o.probe, "N") <= MOST), key=lambda o: size_of(o.probe, "N"))
    wrong = [o for o in small if is_wrong(o)]
    if like is None or like.reduction != "mean" or not wrong:
        return None
    # The most telling case first: all others are looked at only where it fits.
    ordered = [*wrong, *(o for o in small if o not in wrong)]
    for one in readings(like, wrong[0].probe):
        if all(one.fits(o) for o in ordered) and _surprises(one, wrong):
            made = [o for o in calls.at([*_SPECS, *(_of_size(n) for n in one.sizes)]) if np.isfinite(o.outcome.value)]
            if any(map(is_wrong, made)) and all(one.fits(o) for o in made):
                cases, fresh = (out_of(len(x), len(x), what) for x, what in ((small, "case"), (made, "fresh call")))
                reading = DiagnosisPart(f"the value is {one.words}", f"on {cases} and {fresh}", "computes")
                found = diagnosis(one.id, reading, predicts=one.holds).noting(one.limit)
                return replace(found, intend=one.intend)
    return None


def _of_size(samples: int) -> InputSpec:
    return InputSpec("designed", 0.3, (samples, 4, 4, 6, 7, 2))


def _surprises(reading: ReferenceReading, wrong: Sequence[Observation]) -> bool:
    for observation in wrong:
        value, allowed = reading.predicts(observation.probe) or (math.nan, 1.0)
        if abs(value - float(observation.probe.value)) > _SURPRISE * allowed:
            return True
    return False


def value_of(probe: Probe | None) -> Predicted | None:
    """The reference's value with its bound.

    Result: none without a number.
    """
    if probe is None or probe.bounds is None or np.ndim(probe.value):
        return None
    return float(probe.value), 2 * float(np.max(probe.bounds.value))


def _in_chunks(like: Template, smallest: int) -> Iterator[ReferenceReading]:
    """Means over chunks of the batch: of its rows, or of batches of their own."""
    for chunk in (c for c in CHUNKS if c <= max(smallest - 1, 1)):
        limit, sizes = f"right for N <= {chunk}", (chunk + 1, 2 * chunk + max(1, chunk // 2))
        for how, words in _HOWS.items():
            if like.loss.has_rows:
                what = f"{words.format(what=f'the means over chunks of {chunk} rows')}"
                yield ReferenceReading("unequal-chunks", what, partial(_of_rows, like, chunk, how), sizes, limit)
        for how, words in _HOWS.items():
            what = words.format(what=f"the losses of chunks of {chunk} samples, each compared with its own only")
            yield ReferenceReading("computed-in-chunks", what, partial(_of_parts, like, chunk, how), sizes, limit)


_HOWS = {"mean": "the mean of {what}", "weighted": "the mean of {what}, by their sizes", "sum": "the sum of {what}"}


def _combined(how: str, values: Sequence[float], sizes: Sequence[int]) -> float:
    if how == "sum":
        return float(np.sum(values))
    return float(np.average(values, weights=sizes if how == "weighted" else None))


def _of_rows(like: Template, chunk: int, how: str, probe: Probe) -> Predicted | None:
    if how == "weighted":
        return None
    plain = value_of(probe)
    n = size_of(probe, "N")
    if n <= chunk or plain is None:
        return plain
    rows = _rows(like, probe)
    if rows.bounds is None or np.size(rows.value) % n:
        return None
    by_sample = np.mean(np.reshape(rows.value, (-1, n)), axis=0)
    parts = [by_sample[start : start + chunk] for start in range(0, n, chunk)]
    value = _combined(how, [float(np.mean(part)) for part in parts], [len(part) for part in parts])
    room = float(np.max(rows.bounds.value)) * (len(parts) if how == "sum" else 1)
    return value, 2 * (room + plain[1])


@lru_cache(maxsize=64)
def _rows(like: Template, probe: Probe) -> Probe:
    return evaluate(like.loss, probe.inputs, like.dtype, "none", like.algorithm, "rows", forms=probe.forms)


@lru_cache(maxsize=256)
def _part(like: Template, start: int, chunk: int, probe: Probe) -> Predicted | None:
    return value_of(judged(like, shortened(probe, "N", slice(start, start + chunk)), "part"))


def _of_parts(like: Template, chunk: int, how: str, probe: Probe) -> Predicted | None:
    plain = value_of(probe)
    n = size_of(probe, "N")
    if n <= chunk or plain is None:
        return plain
    starts = range(0, n, chunk)
    parts = [_part(like, k, chunk, probe) for k in starts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    value = _combined(how, [v for v, _ in known], [min(chunk, n - k) for k in starts])
    room = max(bound for _, bound in known) * (len(known) if how == "sum" else 1)
    return value, room + plain[1]


Change = Callable[[Probe], dict[str, Any]]


def others(like: Template, probe: Probe) -> Iterable[ReferenceReading]:
    """The reference over chunks, or with something else in the place of an input."""
    return chain(_in_chunks(like, size_of(probe, "N")), _substituted(like, probe))


def settings(like: Template, probe: Probe) -> Iterator[ReferenceReading]:
    """The reference with another choice of one of its settings."""
    for p in (p for p in probe.loss.parameters if isinstance(p, Choice)):
        for option in (x for x in p.options if x != probe.inputs.get(p.name, p.default)):
            what, intend = f"that of the reference with {p.name}={option!r}", f"--set {p.name}={option}"
            predicts = partial(_with, like, partial(_chosen, p.name, option))
            yield ReferenceReading("other-setting", what, predicts, intend=intend)


def _chosen(name: str, option: Any, probe: Probe) -> dict[str, Any]:
    return {name: option}


def _substituted(like: Template, probe: Probe) -> Iterator[ReferenceReading]:
    """The reference with something else in the place of an input."""
    for words, change in _changes(probe):
        what = f"that of the reference with {words}"
        yield ReferenceReading("input-replaced", what, partial(_with, like, change))


def _with(like: Template, change: Change, probe: Probe) -> Predicted | None:
    plain, there = value_of(probe), value_of(judged(like, {**probe.inputs, **change(probe)}, "substituted"))
    return None if plain is None or there is None else (there[0], there[1] + plain[1])


def _changes(probe: Probe) -> Iterator[tuple[str, Change]]:
    declared = {p.name: p for p in probe.loss.parameters if isinstance(probe.inputs.get(p.name), np.ndarray)}
    rows = [name for name, p in declared.items() if isinstance(p, Array) and p.embedding]
    for name, other in permutations(rows, 2):
        shape, there = np.shape(probe.inputs[name]), np.shape(probe.inputs[other])
        if shape == there:
            yield f"`{other}` in the place of `{name}`", partial(_other, name, other)
            if rows.index(name) < rows.index(other):
                yield f"`{name}` and `{other}` exchanged", partial(_exchanged, name, other)
        if len(shape) == 3 and there == (shape[0], shape[2]):
            yield f"`{other}` in the place of the last of each sample's `{name}`", partial(_last_other, name, other)
    for name, p in declared.items():
        for words, f in _ORDERS.items():
            if isinstance(p, Array | Labels) and (np.ndim(probe.inputs[name]) == 1 or "sorted" not in words):
                yield words.format(f"`{name}`"), partial(_reordered, name, f)
        if isinstance(p, Labels) and p.classes is None:
            yield f"a label of its own for each row in `{name}`", partial(_reordered, name, lambda x: np.arange(len(x)))
        elif isinstance(p, Array) and not p.embedding and p.like not in ("mask", "center"):
            yield f"all entries of `{name}` equal", partial(_reordered, name, lambda x: np.full_like(x, np.mean(x)))
            for label in (q.name for q in declared.values() if isinstance(q, Labels)):
                for words, f in _COUNTS.items():
                    yield f"{words.format(f'`{label}`')} as `{name}`", partial(_counted, name, label, f)
    if len(rows) > 1:
        yield _HALVED.format(" and ".join(f"`{name}`" for name in rows)), partial(_halved, rows)


_HALVED = "the first half of {}, twice"
_ORDERS: dict[str, Callable[[Any], Any]] = {
    "{} in the opposite order": lambda x: x[::-1],
    "{} sorted, the largest first": lambda x: -np.sort(-x),
    "{} sorted, the smallest first": np.sort,
    _HALVED: lambda x: x[np.arange(len(x)) % ((len(x) + 1) // 2)],
}
_COUNTS: dict[str, Callable[[Any], Any]] = {
    "the counts in {}": lambda x: x,
    "the counts in {}, 1 at least,": lambda x: np.maximum(x, 1),
    "the counts in {} plus 1": lambda x: x + 1,
}


def _other(name: str, other: str, probe: Probe) -> dict[str, Any]:
    return {name: probe.inputs[other]}


def _last_other(name: str, other: str, probe: Probe) -> dict[str, Any]:
    own, last = probe.inputs[name], probe.inputs[other]
    return {name: np.concatenate([own[:, :-1], last[:, None]], axis=1)}


def _exchanged(name: str, other: str, probe: Probe) -> dict[str, Any]:
    return {name: probe.inputs[other], other: probe.inputs[name]}


def _reordered(name: str, change: Callable[[Any], Any], probe: Probe) -> dict[str, Any]:
    return {name: change(np.asarray(probe.inputs[name]))}


def _counted(name: str, label: str, change: Callable[[Any], Any], probe: Probe) -> dict[str, Any]:
    x = np.asarray(probe.inputs[name])
    counts = np.bincount(np.asarray(probe.inputs[label]), minlength=x.size)[: x.size]
    return {name: np.reshape(change(counts), x.shape).astype(x.dtype)}


def _halved(names: Sequence[str], probe: Probe) -> dict[str, Any]:
    halve = _ORDERS[_HALVED]
    return {name: halve(np.asarray(probe.inputs[name])) for name in names}
