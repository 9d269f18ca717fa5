"""Compares stored vectors with what the formulas of this version give."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import numpy as np

from nceref.cases.corpus.corpus import evaluate
from nceref.cases.judge import judge
from nceref.cases.records import Observation, Outcome, Probe
from nceref.engine.distances import PairedDistance
from nceref.exact.certified import Enclosure, NotProvenError, certified
from nceref.losses import get_loss
from nceref.spec import Loss
from nceref.tolerance.forward import finite, logits_error
from nceref.tolerance.implementation import FORMATS
from nceref.tolerance.intervals import WIDE
from nceref.verification.vectors.packed import is_large
from nceref.verification.vectors.proven import bound_of, bounded, enclosed_by_decimals
from nceref.verification.vectors.records import DIGITS_ALLOWED, ERROR, VectorCase, VectorOutput, probe_of


@dataclass(frozen=True)
class CheckedVectors:
    """The vectors of one loss, beside its formula.

    `engine` is what enclosed them, ``arb`` or ``decimal``; `numbers` counts those that were enclosed, which those of
    large cases are not. `wrong` has what contradicts the stored numbers, a sentence each.
    """

    loss: str
    cases: int
    numbers: int
    engine: str
    wrong: tuple[str, ...]


def engine() -> str:
    """The engine at hand: balls where python-flint is installed, else decimals."""
    return "arb" if find_spec("flint") else "decimal"


def check_vectors(loss: str, cases: Sequence[VectorCase], chosen: str = "") -> CheckedVectors:
    """Enclose the outputs of some cases anew, and compare; large cases are compared with the program of the loss.

    `chosen` is the engine, ``arb`` or ``decimal``; default: what is at hand.
    """
    name = chosen or engine()
    small, large = ([case for case in cases if is_large(case) == wanted] for wanted in (False, True))
    # A folder may have one format alone.
    formats = {dtype for case in cases for output in case.outputs.values() for dtype in output.allowed}
    wrong = [sentence for case in small for sentence in _contradictions(case, name)]
    wrong += [sentence for case in large if "float64" in case.formats for sentence in _by_program(case)]
    wrong += [sentence for case in cases for sentence in _bounds(case, formats)]
    count = sum(output.numbers.size for case in small for output in case.outputs.values())
    return CheckedVectors(loss, len(cases), count, name, tuple(wrong))


def check_all(
    cases: Mapping[str, Sequence[Any]], check: Callable[[str, Sequence[Any]], CheckedVectors] = check_vectors
) -> Iterator[CheckedVectors]:
    """Check the cases of several losses, by name, side by side where there are processes; the results are in order.

    `check` is as `check_vectors`; other processes must be able to import it.
    """
    from nceref.engine.processes import in_processes
    from nceref.engine.settings import process_count

    return in_processes(check, cases, cases.values(), processes=min(process_count(), len(cases)))


def _contradictions(case: VectorCase, name: str) -> Iterator[str]:
    """The places where fresh enclosures are not those of the stored numbers."""
    if case.expect == ERROR:
        if not evaluate(get_loss(case.loss).declaration, case.arguments).skip:
            yield f"{case.id}: the loss accepts what it should refuse"
        return
    try:
        fresh = _ENGINES[name](get_loss(case.loss).declaration, case.arguments)
    except NotProvenError as error:
        yield f"{case.id}: {error}"
        return
    for quantity, output in case.outputs.items():
        ones = np.asarray(fresh[quantity], dtype=object)
        pairs = list(zip(ones.flat, output.numbers.flat, strict=True))
        # Decimals have a fixed number of digits: a number that is almost 0 may be wider than its rounding.
        if name == "arb" and not all(one.settled() and float(one) == x for one, x in pairs):
            yield f"{case.id}, {quantity}: the nearest float64 of the formula is not the stored one"
        elif not all(Enclosure(Fraction(x), Fraction(output.radius)).overlaps(one) for one, x in pairs):
            yield f"{case.id}, {quantity}: the formula is farther than {output.radius:g} from the stored number"


_ENGINES: Mapping[str, Callable[[Loss, Mapping[str, Any]], Mapping[str, Any]]] = MappingProxyType(
    {"arb": lambda loss, given: certified(loss, **given), "decimal": enclosed_by_decimals}
)


def _by_program(case: VectorCase) -> Iterator[str]:
    probe = probe_of(case, "float64")
    fresh = evaluate(probe.loss, case.arguments)
    for result in judge(Observation(probe, Outcome(fresh.value, fresh.grads))):
        if result.status != "pass":
            yield f"{case.id}, {result.quantity}: the program of the loss is beyond its bound; {result.why}"


def _bounds(case: VectorCase, formats: Collection[str]) -> Iterator[str]:
    """The places where the allowed errors are not those that this version derives, in some formats."""
    probes = bounded(get_loss(case.loss).declaration, case.arguments) if case.outputs else {}
    for dtype in formats:
        probe = probes.get(dtype)
        for name, output in case.outputs.items():
            room = None if probe is None else bound_of(probe, name)
            if not _as_stored(probe, room, output, output.allowed.get(dtype)):
                yield f"{case.id}, {name}: the errors that the record allows in {dtype} are not those of this version"


def _as_stored(probe: Probe | None, room: Any, output: VectorOutput, stored: Any) -> bool:
    """Whether allowed errors are the bounds and the radius, rounded upward, within the slack."""
    if probe is None or room is None or stored is None:
        return room is None and stored is None
    least, slack = (room if output.rows is None else room[list(output.rows)]) + output.radius, bound_slack(probe)
    return bool(np.all((least * (1 - slack) <= stored) & (stored <= least * (1 + slack + ROUNDED))))


ROUNDED = 1.01 * 10.0 ** (1 - DIGITS_ALLOWED)
"""By how much of itself an error is larger that was rounded upward, and a hundredth of that."""


def bound_slack(probe: Probe) -> float:
    """The share of itself by which a bound may differ between machines.

    A bound is made of sums of products of numbers that are not negative. Each of these is off, relatively, by the
    roundings on the way, by e^(2 ds) where it is a share, ds being the error of a logit in float64, and by ds / s where
    it is a distance s. Ends of an interval are subtracted where its error is at least `WIDE` of the number.
    """
    fmt, spread = FORMATS["float64"].arithmetic(True), 0.0
    for comparison in probe.bound.plan.comparisons:
        s, ds = logits_error(comparison.logits, fmt)
        if isinstance(comparison.logits, PairedDistance):
            ds = ds / np.where(s > 0, s, np.inf)
        spread = max(spread, float(np.max(finite(ds))))
    most = max(np.size(x) for x in probe.inputs.values() if not isinstance(x, str))
    return float(np.expm1(min(4 * spread, 1.0)) + (64 * most + 4 / WIDE) * fmt.u)


def summary(results: Sequence[CheckedVectors]) -> Mapping[str, Any]:
    """All of a check as plain data."""
    from dataclasses import asdict

    return {"losses": [asdict(result) for result in results], "wrong": sum(len(result.wrong) for result in results)}
