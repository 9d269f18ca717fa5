"""The report of a verification: verdict, explanation and every judged quantity; as text, JSON, JUnit XML and HTML."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

from nceref.cases.records import Diagnosis
from nceref.errors import NcerefError
from nceref.output.json_text import json_text
from nceref.output.pages import Page
from nceref.output.text import harmless
from nceref.targets.arguments import SUCH_AS
from nceref.targets.frameworks import NAMES
from nceref.verification import page as layout
from nceref.verification.cost import compared
from nceref.verification.page import verdict_of
from nceref.verification.report_data import ReportData, options_in

CONFORMS, DIFFERS, USAGE, BROKEN_CHECKER, TARGET_FAILED, TOO_LITTLE, INCONCLUSIVE = range(7)
"""Exit codes of `nceref verify`."""


class VerificationError(NcerefError):
    """A target does not conform; raised on request only, by `Report.raise_for_status`."""


@dataclass(frozen=True, eq=False)
class Report(ReportData):
    """The outcome of verifying one target.

    Attributes
    ----------
    target, loss : str
        The target that was judged, and the loss that it was compared with.
    verdict : str
        ``conforms``, ``differs``, ``value-only`` (right, but there were no gradients to judge), ``inconclusive``
        (nothing failed, but the bounds are too wide to catch a known bug) or ``error``.
    exit_code : int
        0 conforms, 1 differs, 3 the checker failed its own test, 4 the target could not be run, 5 too little was
        executed, 6 inconclusive.
    reason : str
        The verdict in one sentence.
    diagnosis : tuple of Diagnosis
        Explanations of the difference: the simplest one that fits all cases first, at most three.
    results : tuple of Result
        One for every judged quantity of every case.
    environment : mapping
        Versions, dtype, device, suite, seed and how the arguments were matched.
    repro : str
        A stand-alone script that prints both numbers for a small failing input, or empty.
    settings : mapping
        The conventions that the target was held to.
    terms : mapping
        Parts of the bound of the value by case, if these were asked for.
    scope : Scope
        Scope of the verdict: the cases, sizes and formats that were judged.
    training : mapping
        Effect of a difference on training: a sentence and its numbers; empty where nothing differs.
    search : mapping
        Calls that the search for an explanation took, its limit, and what ended it before its end: ``ended`` is
        ``calls``, ``limit``, ``user``, ``target`` or ``error``, with a sentence. Empty where none was made.
    self_test : tuple of mapping
        Results of the wrong answers that the verifier gave to itself, see `nceref.verification.self_test`.
    command : str
        Command line, or call in Python, that repeats the run; empty where it is not known.
    ranks : tuple of mapping
        Records of each rank of runs on several, see `nceref.diagnosis.ranks.by_rank.RankRecord`.
    seconds : float
        Duration; in JUnit only, so that equal runs have equal JSON.
    costs : tuple of (str, mapping)
        CPU seconds and bytes of a call, of the target and of the older program; in no file, see `seconds`.
    limits : tuple of Diagnosis
        Temperatures below those in use at which the target is not finite, and why, where all else is right.
    """

    @property
    def ok(self) -> bool:
        """Whether the exit code is 0."""
        return self.exit_code == CONFORMS

    def __str__(self) -> str:
        return page_of(self).text()

    def record(self) -> dict[str, Any]:
        """The report as plain data, as it stands in the JSON file."""
        return {
            "target": self.target,
            "loss": self.loss,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "reason": self.reason,
            "settings": _plain(self.settings),
            "diagnosis": [d.record() for d in self.diagnosis],
            "results": [_plain(asdict(r)) for r in self.results],
            "environment": _plain(self.environment),
            "self_test": [dict(trial) for trial in self.self_test],
            "command": self.command,
            "scope": _plain(self.scope.record()),
            **({"limits": [d.record() for d in self.limits]} if self.limits else {}),
            **({"bounds": _plain(self.terms)} if self.terms else {}),
            **({"training": _plain(self.training)} if self.training else {}),
            **({"search": _plain(self.search)} if self.search else {}),
            **({"ranks": _plain(self.ranks)} if self.ranks else {}),
        }

    def to_json(self) -> str:
        """The report as a JSON string; what is not finite is null."""
        return json_text(self.record())

    def to_junit(self) -> str:
        """The report as JUnit XML: one test case for every judged quantity, and a suite for every rank."""
        return junit_of([self])

    def to_html(self) -> str:
        """The report as one HTML document of less than 1 MB that loads nothing."""
        from nceref.verification.document import html_of

        return html_of([self])

    def to_markdown(self) -> str:
        """The page of the report in GitHub Markdown, as for an issue or a pull request."""
        page, about = page_of(self), self.environment
        if self.command:
            page.heading("\nrun it again", style="dim")
            page.print(self.command, wrap=False)
        names = ("nceref", "python", *NAMES, "platform")
        page.print()
        page.print(", ".join(f"{name} {about[name]}" for name in names if about.get(name)), style="dim")
        return page.written("markdown")

    def _repr_html_(self) -> str:
        """The outcome in a few lines, for a notebook."""
        from nceref.verification.document import short_html

        return short_html(self)

    def _repr_mimebundle_(self, **types: Any) -> dict[str, str]:
        """The outcome of `_repr_html_`, and the page of text in place of a representation that has every result."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def raise_for_status(self) -> None:
        """Raise `VerificationError` with the whole page unless the exit code is 0."""
        if not self.ok:
            msg = f"{self.target}: {self.verdict}\n{self}"
            raise VerificationError(msg)


def page_of(report: Report, page: Page | None = None) -> Page:
    """The whole report as a page, which is the given one or a new one."""
    return rest_of(report, verdict_of(report, page))


def rest_of(report: Report, page: Page | None = None, printed: str = "") -> Page:
    """The rest of `page_of`, after the verdict; `printed` is the reason that was printed before, if it was."""
    page = page or Page()
    if printed and report.reason != printed:
        # The sentence went on from somewhere: what stands above is not printed again.
        added = report.reason.removeprefix(printed.partition(SUCH_AS)[0]).lstrip(";, ")
        layout.print_reason(page, f"{added[:1].upper()}{added[1:]}")
    for diagnosis in report.diagnosis:
        layout.print_diagnosis(page, diagnosis)
    for limit in report.limits:
        layout.print_diagnosis(page, limit, "limits: ")
    if words := report.search.get("sentence"):
        page.print(f"\n{words}", style="yellow")
    if words := report.environment.get("undefined", ""):
        page.print(f"\n{words}" if words != report.reason else "")
    layout.print_training(page, report.training)
    if report.results:
        page.print()
        layout.print_results(page, report.results, layout.runs_of(report))
    layout.print_failures(page, report.results, alone=not report.scope.recorded)
    layout.print_terms(page, report.terms)
    if words := compared(report.costs):
        page.print(f"\n{words}")
    if report.verdict in ("conforms", "value-only"):
        page.print()
        for line in report.scope.lines():
            page.print(line)
    return page


def as_of_manifest(report: Report) -> Report:
    """The report of a target of a manifest, which has keys in place of options to intend a difference."""
    return replace(report, diagnosis=tuple(map(_intended_in_manifest, report.diagnosis)))


def _intended_in_manifest(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with how to intend it in a manifest, which has keys in place of options."""
    if diagnosis.intend.startswith(option := "--expected-failures FILE"):
        return replace(diagnosis, intend=diagnosis.intend.replace(option, "expected_failures"))
    given = options_in(diagnosis.intend)
    settings = [text.partition("=") for option, text in given if option == "--set"]
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, _, value in settings)
    keys = {option.removeprefix("--"): json.dumps(text) for option, text in given if option != "--set"}
    lines = [f"set = {{{table}}}"] * bool(table)
    lines += [f"dtypes = [{text}]" if key == "dtype" else f"{key} = {text}" for key, text in keys.items()]
    return replace(diagnosis, intend=" and ".join(lines))


def explanation_of(report: Report, command: str = "") -> str:
    """The explanation of a difference, and the command that prints the whole report; without one, that report.

    `command` is by default the call in Python.
    """
    if not report.diagnosis:
        return f"\n{report}"
    page = Page()
    for diagnosis in report.diagnosis:
        if diagnosis.first:
            layout.print_diagnosis(page, diagnosis)
    page.print(f"\nthe whole report: {command or f'print({report.command})'}", wrap=False)
    return page.text().rstrip("\n")


def _plain(value: Any) -> Any:
    """A value for JSON: arrays as lists, the word for a generated array, null for what is not finite."""
    import math

    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, Mapping):
        return {name: _plain(x) for name, x in value.items()}
    return "given" if value is ... else value


Place = Callable[[str], tuple[str, int]]
"""A function from the id of a result to a file and a line."""


def junit_of(reports: Sequence[Report], places: Sequence[Place] = ()) -> str:
    """Reports as JUnit XML: a suite for each, and one for every rank.

    `places` has a function for each report that says where its results stand, such as in a manifest.
    """
    from xml.etree import ElementTree as ET

    suites = [suite for report, place in zip_longest(reports, places) for suite in _suites(report, place)]
    root = suites[0] if len(suites) == 1 else ET.Element("testsuites")
    root.extend(suites if len(suites) != 1 else ())
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suites(report: Report, place: Place | None) -> Iterator[Any]:
    """One report as JUnit suites: its results, and each rank."""
    from xml.etree import ElementTree as ET

    kinds = [_KINDS.get(r.status, "skipped") for r in report.results]
    # Without a result that fails a run that is not right would look like one that is.
    mute = not report.ok and not {"failure", "error"} & set(kinds)
    counts = {
        "tests": len(kinds) + mute,
        "failures": kinds.count("failure"),
        "errors": kinds.count("error") + mute,
        "skipped": kinds.count("skipped"),
    }
    named = {"name": harmless(f"{report.target} {report.loss}".strip()), "time": f"{report.seconds:.3f}"}
    suite = ET.Element("testsuite", named | _texts(counts))
    properties = ET.SubElement(suite, "properties")
    shown = [("verdict", report.verdict), ("reason", report.reason), ("command", report.command)]
    shown += [("search", str(words))] if (words := report.search.get("sentence")) else []
    for d in (*report.diagnosis, *report.limits):
        parts = [(s.role, f"{d.where} {s}".strip()) for s in d.parts] + [("fix", d.fix)] * bool(d.fix)
        parts += [("intend", d.intend)] * bool(d.intend)
        shown += [(f"{d.id}.{role}", text) for role, text in parts]
    for name, value in [*shown, *report.environment.items()]:
        ET.SubElement(properties, "property", {"name": harmless(name), "value": harmless(str(value))})
    mending = "\n".join(harmless(line) for line in _mending(report)) or None
    cases: list[tuple[str, str, str, str, str]] = [
        (f"{report.loss}.{r.case}", r.id, kind, r.why, r.status) for r, kind in zip(report.results, kinds, strict=True)
    ]
    cases += [(report.loss, "verdict", "error", report.reason, report.verdict)] * mute
    for classname, name, kind, why, status in cases:
        case = ET.SubElement(suite, "testcase", {"classname": harmless(classname), "name": harmless(name)})
        if place is not None:
            file, line = place(name)
            case.attrib |= {"file": harmless(file), "line": str(line)}
        if kind:
            about = ET.SubElement(case, kind, {"message": harmless(why), "type": status})
            about.text = mending if kind != "skipped" else None
    yield suite
    yield from (_suite_of(each, suite.get("name", "")) for each in report.ranks)


_KINDS = {"pass": "", "fail": "failure", "xpass": "failure", "error": "error"}
"""The elements of JUnit by status; it has no word for an unexpected pass, which is a failure."""


def _mending(report: Report) -> Iterator[str]:
    """Lines that are shown with each failure, as viewers of JUnit leave properties out."""
    for d in report.diagnosis:
        yield f"{d.id}: {d.sentence}"
        yield from [f"fix: {d.fix}"] * bool(d.fix)
        yield from [f"{layout.IF_MEANT}: {d.intend}"] * bool(d.intend)
    if words := report.search.get("sentence"):
        yield str(words)
    yield from [f"to repeat: {report.command}"] * bool(report.command)


def _suite_of(rank: Mapping[str, Any], name: str) -> Any:
    """One rank as a JUnit suite of one test case."""
    from xml.etree import ElementTree as ET

    counts = {"tests": 1, "failures": int(not rank["right"])}
    suite = ET.Element("testsuite", {"name": f"{name} {rank['run']} rank {rank['rank']}"} | _texts(counts))
    properties = ET.SubElement(suite, "properties")
    for key in ("world_size", "rank", "cases"):
        ET.SubElement(properties, "property", {"name": key, "value": str(rank[key])})
    named = {"classname": f"{name}.{rank['run']}", "name": f"{rank['run']}/rank-{rank['rank']}"}
    case = ET.SubElement(suite, "testcase", named)
    if not rank["right"]:
        ET.SubElement(case, "failure", {"message": harmless(rank["sentence"]), "type": "fail"})
    return suite


def _texts(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}
