"""A failure in one line: which explanation, what is off, by how much, and where."""

from collections.abc import Sequence

from nceref.cases.corpus.clauses import clause_of
from nceref.cases.records import Result
from nceref.verification.report import Report


def failure_line(report: Report, failing: Sequence[Result] = ()) -> str:
    """The first failing result in words, or without any the reason of the verdict.

    `failing`: of the report, those that the line is about. Result: such as ``outer-factor-2: value off by 100 % at T =
    0.3``.
    """
    if not failing:
        return f"{_name(report, '')}: {report.reason}"
    first = failing[0]
    runs = {r.case.rpartition("/")[0] for r in report.results} - {""}
    of_run = f" in {first.case.rpartition('/')[0]}" if len(runs) > 1 else ""
    return f"{_name(report, first.quantity)}: {_what(first)}{_where(first)}{of_run}"


def _name(report: Report, quantity: str) -> str:
    """The explanation; without one the behavior that fails, or the verdict."""
    behavior = quantity.removeprefix("behavior.") if quantity.startswith("behavior.") else ""
    return next((d.id for d in report.diagnosis), behavior or report.verdict)


def _what(result: Result) -> str:
    kind, _, name = result.quantity.removesuffix(".finite").partition(".")
    what = {"grad": f"gradient of {name}", "value": "value"}.get(kind, "")
    if not what or result.status == "xpass":
        return f"{result.quantity}: {result.why}" if what else result.why
    if result.error is None or result.quantity.endswith(".finite"):
        return f"{what}: {result.why}"
    if not result.size:
        return f"{what} off by {result.error:.2g}, where it must be 0,"
    return f"{what} off by {percent(result.error / result.size)}"


def percent(share: float) -> str:
    """A share in percent, to two digits.

    >>> percent(0.0061), percent(1.0), percent(31.4), percent(3e-9)
    ('0.61 %', '100 %', '3,140 %', '3.0e-07 %')
    """
    number = 100 * share
    if not 1e-3 <= number < 1e6:
        return f"{number:.1e} %"
    return f"{number:,.0f} %" if number >= 99.5 else f"{number:.2g} %"


def _where(result: Result) -> str:
    if not result.case:
        return ""
    case = result.case.rpartition("/")[2]
    temperature = clause_of(case)[2]
    return f" on {case}" if temperature is None else f" at T = {temperature:g}"
