"""Conformance as a test: plain assertions, and about ten pytest cases for a target.

>>> import numpy as np
>>> import nceref
>>> from nceref.testing import assert_conforms
>>> def squared_distance(x, y):
...     return np.mean(np.sum((x - y) ** 2, axis=1)), {"x": 2 * (x - y) / len(x), "y": 2 * (y - x) / len(x)}
>>> assert_conforms(squared_distance, loss="alignment", normalize="none", suite="quick")
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from nceref.engine.arguments import converted
from nceref.errors import InputError, NcerefError
from nceref.output.text import shown
from nceref.verification.conformance.check import Check, ExpectedOutcome, checks
from nceref.verification.conformance.expected import ExpectedFailures, Reasons, UnmatchedEntry, expected_failures_of
from nceref.verification.conformance.failure_line import failure_line
from nceref.verification.conformance.group import CheckGroup, grouped
from nceref.verification.conformance.target import Target, former_name, unique_names
from nceref.verification.verifier import verify

__all__ = ["Check", "Target", "assert_conforms", "checks", "parametrize_with_checks"]


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
    __tracebackhide__ = True
    report = verify(target, loss, **options)
    if not report.ok:
        raise AssertionError(f"{failure_line(report)}\n\n{report}")  # noqa: EM102 - the page is the message


def parametrize_with_checks(
    targets: Iterable[Target | tuple[Any, str]],
    *,
    suite: str = "standard",
    ranks: Iterable[int] = (),
    expected_failures: Reasons | None = None,
) -> Callable[[Any], Any]:
    """Decorate a test with about ten parameter sets for every target.

    The test takes the arguments ``target`` and ``check``, and calls ``check(target)``. The checks of a target are its
    value, each gradient, identities, ways of calling, and the run as a whole; each is about all cases. Each target is
    verified once in a session, by the first of its checks that runs; under pytest-xdist once in each worker, and with
    ``--dist loadgroup`` in one. A target that cannot be loaded has one check, which says why, and so has an expected
    failure that names no check: the others run. For a test of each case parametrize with `checks` of a target.

    Parameters
    ----------
    targets : iterable of Target or (callable, loss) pairs
        What is checked. Of several with one name, those after the first get a number.
    suite : {"standard", "quick", "full"}
        How many cases.
    ranks : iterable of int
        Such as ``(1, 2, 3)``: one check for each number of ranks, which runs so many processes.
    expected_failures : mapping, iterable of str or callable, optional
        Check id to the reason why it fails; patterns without reasons; or a function of target and `Check` that returns
        a reason or None. ``my_loss-designed-0.3-value`` is the value of a case, ``my_loss-value`` that of any case, of
        which one must fail; ``*`` stands for any letters. Strict: an unexpected pass fails. The id of a case, such as
        ``my_loss-designed-0.3``, is about all of its checks, one of which must fail. The whole run passes where nothing
        else fails.

    Returns
    -------
    callable
        A decorator, ``pytest.mark.parametrize`` with readable ids.

    Raises
    ------
    InputError
        For arguments of another kind.
    """
    import pytest

    expected, on_ranks = expected_failures_of(expected_failures), tuple(ranks)
    by_name = unique_names(map(_target, converted("targets", targets, tuple, targets)))
    parameters, unloaded = [], []
    for name, target in by_name.items():
        names = (name, *({former_name(target)} - by_name.keys()))
        try:
            own = list(checks(target, suite, on_ranks))
        except NcerefError:
            # The whole run says why.
            own = [Check("", suite)]
            unloaded += [f"{each}-" for each in names]
        marks = _group(name)
        for check in _with_expectations(target, own, expected, names):
            parameters.append(pytest.param(target, check, id=f"{name}-{check}", marks=marks))
    for entry in expected.unmatched():
        # No check of a target that cannot be loaded is there to be named.
        if not entry.startswith(tuple(unloaded)):
            unmatched = UnmatchedEntry(entry)
            parameters.append(pytest.param(next(iter(by_name.values()), None), unmatched, id=str(unmatched)))
    decorator: Callable[[Any], Any] = pytest.mark.parametrize(("target", "check"), parameters)
    return decorator


def _with_expectations(
    target: Target, own: Sequence[Check], expected: ExpectedFailures, names: tuple[str, ...]
) -> Iterator[CheckGroup | Check]:
    """The tests of a target, each with what is expected of it; the whole run comes last."""
    runs = [replace(each, expectation=ExpectedOutcome(*expected.reason(target, each, names)))
            for each in own if each.is_whole_run]  # fmt: skip
    whole, members, held = runs[-1].expectation.reason, [], set()
    for check in (each for each in own if not each.is_whole_run):
        reason, of_case = expected.reason(target, check, names)
        # They were a part of the whole run before they had ids: what is expected of that may be one of them.
        reason, strict = reason or whole * (not check.case), bool(check.case) or expected.names_exactly(check, names)
        members.append(replace(check, expectation=ExpectedOutcome(reason, of_case, strict=strict)))
        held |= {(check.case, check.quantity)} if reason else set()
    for group in grouped(members, names[0]):
        if reason := expected.reason_of_group(group, names):
            held |= {(check.case, check.quantity) for check in group.members}
        yield replace(group, reason=reason)
    for run in runs:
        yield replace(run, expectation=replace(run.expectation, held=frozenset(held)))


def _group(name: str) -> list[Any]:
    """The mark by which pytest-xdist runs all checks of a target in one worker; none where it is not in use."""
    import warnings

    import pytest

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return [pytest.mark.xdist_group(name)]
        except (pytest.PytestUnknownMarkWarning, pytest.fail.Exception):
            return []


def _target(given: Any) -> Target:
    if isinstance(given, Target):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        return Target(*given)
    msg = f"`targets` must be Target, or pairs of a callable and the name of a loss, got {shown(given)}"
    raise InputError(msg)
