"""Compares stored vectors with what the formulas of this version give."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np

from nceref.checks.certify import DIGITS
from nceref.engine.arguments import bind
from nceref.errors import InputError
from nceref.exact.certified import Enclosure, NotProvenError, certified
from nceref.exact.decimal_intervals import decimal_along
from nceref.losses import get_loss
from nceref.verification.corpus.corpus import evaluate
from nceref.verification.judge import judge
from nceref.verification.records import Observation, Outcome
from nceref.verification.vectors.packed import is_large
from nceref.verification.vectors.records import ERROR, VectorCase, VectorOutput, probe_of


@dataclass(frozen=True)
class CheckedVectors:
    """The vectors of one loss, beside its formula.

    Attributes
    ----------
    loss : str
    cases, numbers : int
        How many there are; numbers are those of the outputs.
    engine : str
        What enclosed them: ``arb``, or ``decimal``, which looks at each value and at one derivative of each case.
    wrong : tuple of str
        What contradicts the stored numbers, a sentence each.
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

    Parameters
    ----------
    loss : str
    cases : sequence of VectorCase
    chosen : {"", "arb", "decimal"}
        The engine; default: what is at hand.

    Returns
    -------
    CheckedVectors
    """
    name = chosen or engine()
    small, large = ([case for case in cases if is_large(case) == wanted] for wanted in (False, True))
    compare = _by_balls if name == "arb" else _by_decimals
    wrong = [sentence for case in small for sentence in (*compare(case), *_bounds(case))]
    wrong += [sentence for case in large for sentence in _by_program(case)]
    count = sum(output.numbers.size for case in cases for output in case.outputs.values())
    return CheckedVectors(loss, len(cases), count, name, tuple(wrong))


def check_all(cases: Mapping[str, Sequence[VectorCase]]) -> Iterator[CheckedVectors]:
    """Check the cases of several losses, side by side where there are processes.

    Parameters
    ----------
    cases : mapping
        Name of a loss to its cases.

    Yields
    ------
    CheckedVectors
        In order.
    """
    from nceref.engine.settings import process_count

    workers = min(process_count(), len(cases))
    if workers == 1:
        yield from (check_vectors(loss, each) for loss, each in cases.items())
        return
    # Missing where no process can be started.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # A fresh interpreter for each worker: a fork of a process with threads, such as a progress bar's, may hang.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(check_vectors, cases, cases.values())


def _by_balls(case: VectorCase) -> Iterator[str]:
    if case.expect == ERROR:
        yield from _refused(case)
        return
    try:
        fresh = certified(get_loss(case.loss).declaration, **case.arguments)
    except NotProvenError as error:
        yield f"{case.id}: {error}"
        return
    for name, output in case.outputs.items():
        ones = np.asarray(fresh[name], dtype=object)
        pairs = list(zip(ones.flat, output.numbers.flat, strict=True))
        if ones.shape != output.shape or not all(one.settled() and float(one) == x for one, x in pairs):
            yield f"{case.id}, {name}: the nearest float64 of the formula is not the stored one"
        elif not all(_ball(x, output).overlaps(one) for one, x in pairs):
            yield f"{case.id}, {name}: the formula is farther than {output.radius:g} from the stored number"


def _ball(x: float, output: VectorOutput) -> Enclosure:
    return Enclosure(Fraction(x), Fraction(output.radius))


def _by_decimals(case: VectorCase) -> Iterator[str]:
    if case.expect == ERROR:
        yield from _refused(case)
        return
    declared = get_loss(case.loss).declaration
    steps = {name: _steps(output) for name, output in case.outputs.items() if name != "value"}
    direction = {name.removeprefix("grad."): x for name, x in steps.items()}
    value, slope = decimal_along(declared, bind(declared, (), case.arguments), DIGITS, direction)
    along = _along(case.outputs, steps)
    if not _ball(float(case.outputs["value"].numbers), case.outputs["value"]).overlaps(value):
        yield f"{case.id}: the formula's value is not the stored one"
    if not along.overlaps(slope):
        yield f"{case.id}: the derivative along (1, -2, 3, ...) of the formula is not that of the stored gradient"


def _by_program(case: VectorCase) -> Iterator[str]:
    probe = probe_of(case, "float64")
    fresh = evaluate(probe.loss, case.arguments)
    for result in judge(Observation(probe, Outcome(fresh.value, fresh.grads))):
        if result.status != "pass":
            yield f"{case.id}, {result.quantity}: the program of the loss is beyond its bound; {result.why}"


def _along(outputs: Mapping[str, VectorOutput], steps: Mapping[str, Any]) -> Enclosure:
    """The derivative along a direction that the stored gradients give."""
    middle = radius = Fraction(0)
    for name, step in steps.items():
        for x, n in zip(outputs[name].numbers.flat, step.flat, strict=True):
            middle += Fraction(float(x)) * int(n)
            radius += Fraction(outputs[name].radius) * abs(int(n))
    return Enclosure(middle, radius)


def _steps(output: VectorOutput) -> Any:
    """A direction with no two neighbors alike: 1, -2, 3, -4, 5, -1, 2, ..."""
    place = np.arange(output.numbers.size)
    return ((place % 5 + 1) * np.where(place % 2, -1, 1)).reshape(output.shape)


def _refused(case: VectorCase) -> Iterator[str]:
    if not probe_of(case, "float64").skip:
        yield f"{case.id}: the loss accepts what it should refuse"


def _bounds(case: VectorCase) -> Iterator[str]:
    """Where the allowed errors are not those of this version."""
    for dtype in case.formats if case.outputs else ():
        try:
            probe_of(case, dtype)
        except InputError as error:
            yield str(error)


def summary(results: Sequence[CheckedVectors]) -> Mapping[str, Any]:
    """All of a check as plain data."""
    from dataclasses import asdict

    return {"losses": [asdict(result) for result in results], "wrong": sum(len(result.wrong) for result in results)}
