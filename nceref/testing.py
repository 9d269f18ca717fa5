"""Conformance as a test: plain assertions, and one pytest case for every target and check.

>>> import numpy as np
>>> import nceref
>>> from nceref.testing import assert_conforms
>>> def squared_distance(x, y):
...     return np.mean(np.sum((x - y) ** 2, axis=1)), {"x": 2 * (x - y) / len(x), "y": 2 * (y - x) / len(x)}
>>> assert_conforms(squared_distance, loss="alignment", normalize="none", suite="quick")
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nceref.engine.arguments import converted
from nceref.errors import InputError
from nceref.output.text import shown
from nceref.verification.report import BROKEN_CHECKER, DIFFERS, TARGET_FAILED
from nceref.verification.verifier import corpus_of, verify


def assert_conforms(target: Any, loss: str | None = None, **options: Any) -> None:
    """Raise AssertionError with the whole report unless the target conforms.

    Parameters
    ----------
    target, loss, **options
        As for `nceref.verify`.

    Raises
    ------
    AssertionError
        If the exit code is not 0.
    """
    report = verify(target, loss, **options)
    if not report.ok:
        raise AssertionError(f"\n{report}")  # noqa: EM102 - the page is the message


@dataclass(frozen=True)
class Target:
    """A loss to be checked, with the arguments of `nceref.verify`.

    Parameters
    ----------
    function : callable or str
        The target.
    loss : str
        Name of the reference.
    name : str
        For the ids of the tests; default: the name of the function.
    options : mapping
        Further arguments of `nceref.verify`.
    """

    function: Any
    loss: str
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words: dict[str, Any] = {"loss": self.loss, "name": self.name}
        for name, value in words.items():
            if not isinstance(value, str):
                msg = f"`{name}` of a Target must be text, got {shown(value)}"
                raise InputError(msg)
        _check_mapping("options", self.options)

    def __str__(self) -> str:
        return self.name or getattr(self.function, "__name__", str(self.function))


@dataclass(frozen=True)
class Check:
    """One case of the corpus, or with an empty `case` the run as a whole; called with a target, it asserts.

    With `ranks` it is the whole run on so many ranks.
    """

    case: str
    suite: str = "standard"
    ranks: int = 0

    def __str__(self) -> str:
        return self.case or (f"{self.ranks}-rank{'s' * (self.ranks > 1)}" if self.ranks else "whole-run")

    def __call__(self, target: Target) -> None:
        """Raise AssertionError unless the target passes."""
        chosen: dict[str, Any] = {"case": [self.case]} if self.case else {}
        chosen |= {"ranks": self.ranks} if self.ranks else {}
        report = verify(target.function, target.loss, **{"suite": self.suite, **target.options, **chosen})
        # A single case may not see every wrong answer of the self-test; all of them together must, in the whole run.
        failing = (DIFFERS, BROKEN_CHECKER, TARGET_FAILED) if self.case else tuple(range(1, 7))
        if report.exit_code in failing:
            raise AssertionError(f"\n{report}")  # noqa: EM102 - the page is the message


def checks(target: Target, suite: str = "standard", ranks: Iterable[int] = ()) -> Iterator[Check]:
    """Every check of a target: one for each case that the reference has an answer for, and one for the whole run.

    Parameters
    ----------
    target : Target
    suite : {"quick", "standard", "full"}
    ranks : iterable of int
        Numbers of ranks: there is one check for each, and no other.

    Yields
    ------
    Check
        In the order of the corpus; the whole run comes last.
    """
    if numbers := tuple(ranks):
        yield from (Check("", suite, count) for count in numbers)
        return
    given: Any = target
    if not isinstance(given, Target):
        msg = f"`target` must be a Target, got {shown(given)}"
        raise InputError(msg)
    settings = {"suite": suite, **target.options}
    for probe in corpus_of(target.function, target.loss, **settings):
        if not probe.skip:
            yield Check(probe.id, suite)
    yield Check("", suite)


def parametrize_with_checks(
    targets: Iterable[Target | tuple[Any, str]],
    *,
    suite: str = "standard",
    ranks: Iterable[int] = (),
    expected_failures: Mapping[str, str] | None = None,
) -> Callable[[Any], Any]:
    """Decorate a test with one parameter set for every target and check.

    The test takes the arguments ``target`` and ``check``, and calls ``check(target)``.

    Parameters
    ----------
    targets : iterable of Target or (callable, loss) pairs
        What is checked.
    suite : {"standard", "quick", "full"}
        How many cases.
    ranks : iterable of int
        Such as ``(1, 2, 3)``: one check for each number of ranks, which runs so many processes.
    expected_failures : mapping, optional
        Check id, such as ``my_loss-designed-0.3``, to the reason why it fails; strict: an unexpected pass fails.

    Returns
    -------
    callable
        A decorator, ``pytest.mark.parametrize`` with readable ids.

    Raises
    ------
    InputError
        For an expected failure that names no check.
    """
    import pytest

    expected: Any = {} if expected_failures is None else expected_failures
    _check_mapping("expected_failures", expected)
    reasons, on_ranks = dict(expected), tuple(ranks)
    parameters = []
    for target in map(_target, converted("targets", targets, tuple, targets)):
        for check in checks(target, suite, on_ranks):
            name = f"{target}-{check}"
            # What is left over at the end names no check.
            reason = reasons.pop(name, None)
            marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            parameters.append(pytest.param(target, check, id=name, marks=marks))
    if reasons:
        msg = f"`expected_failures` names no check: {', '.join(map(shown, reasons))}; see `pytest --collect-only`"
        raise InputError(msg)
    decorator: Callable[[Any], Any] = pytest.mark.parametrize(("target", "check"), parameters)
    return decorator


def _target(given: Any) -> Target:
    if isinstance(given, Target):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        return Target(*given)
    msg = f"`targets` must be Target, or pairs of a callable and the name of a loss, got {shown(given)}"
    raise InputError(msg)


def _check_mapping(name: str, given: Any) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        msg = f"`{name}` must map names to values, got {shown(given)}"
        raise InputError(msg)
