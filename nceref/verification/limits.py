"""Limits: temperatures below those in use at which a program has no number, while it is right at all others."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from nceref.cases.corpus.files import GIVEN
from nceref.cases.expected_failures import FAILING
from nceref.cases.records import Diagnosis, Result
from nceref.diagnosis.features import temperature_scalar
from nceref.engine.parameters import IN_USE, at_temperature
from nceref.verification.request import Request

_FINITE = ".finite"


def mark_limits(request: Request, results: Sequence[Result], runs: Sequence[Any]) -> list[Result]:
    """The results, with those that show a limit skipped, if nothing else fails.

    A result shows a limit where a number is not finite at a temperature of the corpus below `lowest_temperature`; one
    that the caller chose is in use.
    """
    failing = [r for r in results if r.status in FAILING]
    beyond = set(_cases_beyond(request, runs))
    ordinary = any(r.status == "pass" and r.quantity == f"value{_FINITE}" and _name(r) not in beyond for r in results)
    if not ordinary or not all(r.quantity.endswith(_FINITE) and _name(r) in beyond for r in failing):
        return list(results)
    why = f"not finite {below(request)}"
    return [replace(r, status="skip", why=why) if r in failing else r for r in results]


def lowest_temperature(request: Request) -> float:
    """The lowest temperature at which the values and gradients must be finite."""
    return IN_USE if request.temperatures is None else request.temperatures


def below(request: Request) -> str:
    """The temperatures of limits, in words; without calls their reason is not looked for."""
    return f"below temperature {lowest_temperature(request):g}" + ", see limits" * bool(request.calls)


def limited_cases(results: Sequence[Result]) -> set[str]:
    """The cases that show a limit, from marked results."""
    return {r.case for r in results if r.status == "skip" and r.quantity.endswith(_FINITE)}


def limits_of(request: Request, diagnoses: Sequence[Diagnosis], runs: Sequence[Any]) -> tuple[Diagnosis, ...]:
    """The explanations of numbers that are not finite as limits, with the temperatures that were judged."""
    every = min(at_temperature(*s) for each in runs for o in each.observations if (s := temperature_scalar(o.probe)))
    lowest = lowest_temperature(request)
    scales = {s[0] for each in runs for o in each.observations if (s := temperature_scalar(o.probe))} - {"temperature"}
    which = "".join(f", which are values of {name} of {at_temperature(name, lowest):g} and below" for name in scales)
    judged = f"judged are temperatures of {lowest:g} and above{which}"
    return tuple(
        replace(each.noting(f"{judged}; --temperatures {every:g} judges all"), intend="")
        for each in diagnoses
        if each.first
    )


def _cases_beyond(request: Request, runs: Sequence[Any]) -> Iterator[str]:
    """Cases of the corpus whose temperature is lower than must work; none where the caller chose cases."""
    for each in runs if not request.cases else ():
        for probe in (o.probe for o in each.observations):
            scalar = temperature_scalar(probe)
            if scalar is None or scalar[0] in {*request.settings, *each.fixed} or probe.id.startswith(GIVEN):
                continue
            # Numbers of a format: 0.005 in bfloat16 is less.
            if at_temperature(*scalar) < lowest_temperature(request) * _ROUNDED:
                yield probe.id


_ROUNDED = 1 - 2.0**-7
"""Room for the rounding of a temperature to bfloat16."""


def _name(result: Result) -> str:
    return result.case.rpartition("/")[2]
