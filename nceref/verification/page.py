"""Pieces of text that `nceref verify` prints: explanations, a line for each quantity, failures, cases, conventions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from nceref.cases.expected_failures import FAILING
from nceref.cases.judge import of_bound
from nceref.cases.records import RANDOM_WALK, Diagnosis, Probe, Result
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.output.pages import GAP, Entry, Page
from nceref.output.words import out_of
from nceref.verification.report_data import ReportData
from nceref.verification.several_runs import training_lines

EFFECT, IF_MEANT = "effect on training", "if you mean it"
"""Words before the effect of a difference, and before the options under which there is no difference."""
SHOWN = 4
"""Failures that are shown one by one; the JSON report has all."""
_ALWAYS = ("quantity", "passed", "failed", "error / bound")
_FAR = 0.25
"""Part of the bound above which an error that passes counts as near, so that its right bits are shown."""


def verdict_of(report: ReportData, page: Page | None = None, anchor: str = "") -> Page:
    """The first part of `page_of`: what was judged, and the verdict."""
    page = page or Page()
    held_to = report.environment.get("against", report.loss)
    page.heading(f"{report.target} against {held_to}" if held_to else report.target, 1, anchor=anchor)
    if circumstances := ", ".join(_circumstances(report)):
        page.print(circumstances, style="dim")
    for key in ("reference", "containment"):
        if words := report.environment.get(key):
            page.print(words, style="dim")
    print_reason(page, f"{report.verdict.upper()}: {report.reason}", style=COLORS[report.verdict])
    return page


def print_reason(page: Page, text: str, style: str = "") -> None:
    """A sentence; options at its end stand in a line of their own, to be copied."""
    words, _, options = text.rpartition(": --")
    if not words or "; " in options:
        page.print(f"\n{text}", style=style)
    else:
        page.print(f"\n{words}:", style=style)
        page.print(f"  --{options}", wrap=False)


COLORS = {
    "conforms": "bold green",
    "value-only": "bold green",
    "differs": "bold red",
    "error": "bold red",
    "inconclusive": "bold yellow",
}


def runs_of(report: ReportData) -> list[str]:
    """Dtypes of the run, or with ranks or steps the prefixes of the ids of results, one for each run."""
    if not report.shared_by:
        return str(report.environment.get("dtype", "")).split(", ")
    return list(dict.fromkeys(r.case.partition("/")[0] for r in report.results if "/" in r.case))


def _circumstances(report: ReportData) -> Iterator[str]:
    about = report.environment
    words = {**about, "framework": f"recorded in {about['recorded']}"} if about.get("recorded") else about
    yield from (str(words[key]) for key in ("framework", "dtype", "device") if words.get(key))
    if about.get("isolation"):
        yield f"isolated by {about['isolation']}"
    if report.shared_by:
        yield f"value={about['value']}, sync={about['sync']} over {report.shared_by}"
    if about.get("suite"):
        yield f"suite {about['suite']}"
    yield from (f"{name}={'given' if value is ... else value}" for name, value in report.settings.items())
    if about.get("arguments"):
        yield f"called with {about['arguments']}"


def print_diagnosis(page: Page, diagnosis: Diagnosis, before: str = "") -> None:
    """An explanation: its id after a word, its sentence, the fix, where it was reported, and how to intend it."""
    page.heading(f"\n{before}{diagnosis.id}")
    page.grid([(diagnosis.sentence,)] if diagnosis.sentence else [], indent=GAP)
    print_facts(page, facts_of(diagnosis))
    if diagnosis.intend:
        page.grid([(f"{IF_MEANT}: {diagnosis.intend}",)], indent=GAP)


def facts_of(diagnosis: Diagnosis) -> dict[str, tuple[str, str]]:
    """The facts below the sentence of an explanation, each with its style, by its name."""
    threads = [(each, "link") for each in diagnosis.threads]
    return {
        "yours": (diagnosis.formula, "code formula"),
        "reference": (diagnosis.reference, "code formula"),
        "fix": (diagnosis.fix, ""),
        "reported in": (Entry(*[span for each in threads for span in ((", ", ""), each)][1:]), ""),
    }


def print_facts(page: Page, facts: Mapping[str, tuple[str, str]]) -> None:
    """Print texts beside their names, those that are not empty."""
    given = {label: each for label, each in facts.items() if each[0]}
    width = max(map(len, given), default=0)
    for label, (text, style) in given.items():
        page.grid([(label, text)], width, styles=("", style), indent=GAP)


def print_training(page: Page, training: Mapping[str, Any]) -> None:
    """Print the effect of a difference on training, `Report.training`; nothing if it is empty."""
    if training:
        page.heading(f"\n{EFFECT}")
        page.grid([(line,) for line in training_lines(training)], indent=GAP)


def print_results(page: Page, results: Sequence[Result], dtypes: Sequence[str]) -> None:
    """Print a line for each quantity; with several dtypes, a column for each."""
    if len(dtypes) > 1:
        _print_side_by_side(page, results, dtypes)
    else:
        _print_table(page, results)


def _print_side_by_side(page: Page, results: Sequence[Result], dtypes: Sequence[str]) -> None:
    """A column for each dtype: how many fail or pass, and the largest error in units of the bound."""
    lines = [("quantity", *dtypes)]
    for name, group in by_quantity(results):
        own = [[r for r in group if r.id.startswith(f"{dtype}/")] for dtype in dtypes]
        # An expected failure that is out of date is of no format.
        if any(own):
            lines.append((name, *map(_summary, own)))
    page.table(lines[1:], header=lines[:1])
    page.print("numbers: the largest error in units of its bound", style="dim")
    for reason, names in skips(results):
        page.print(f"skipped {', '.join(names)}: {reason}", style="dim")


def _summary(group: Sequence[Result]) -> str:
    _, passed, failed, held, skipped, worst, _ = _line("", group) if group else ("",) * 7
    counts = {"failed": failed, "expected": held, "passed": passed, "skipped": skipped}
    count = next((f"{n} {word}" for word, n in counts.items() if n not in ("", "0")), "")
    return f"{count}, {worst}" if worst else count


def _print_table(page: Page, results: Sequence[Result]) -> None:
    header: tuple[str, ...] = ("quantity", "passed", "failed", "expected", "skipped", "error / bound", "fewest bits")
    lines = [_line(name, group) for name, group in by_quantity(results)]
    # A column without a number says nothing; how many pass and fail always does.
    shown = [k for k, title in enumerate(header) if title in _ALWAYS or any(line[k] for line in lines)]
    lines = [tuple(line[k] for k in shown) for line in (header, *lines)]
    page.table(lines[1:], header=lines[:1], right=[False, *[True] * (len(shown) - 1)])
    for reason, names in skips(results):
        page.print(f"skipped {', '.join(names)}: {reason}", style="dim")


def by_quantity(results: Iterable[Result]) -> Iterator[tuple[str, list[Result]]]:
    """The results grouped by quantity, in order of appearance; all that is not a number forms groups of its own."""
    # Reversed, so that the first place of a quantity is the one that stays.
    order = {name: place for place, name in reversed(list(enumerate(r.quantity for r in results)))}
    for name, group in groupby(sorted(results, key=lambda r: order[r.quantity]), key=lambda r: r.quantity):
        members = list(group)
        # That everything is finite goes without saying.
        if not name.endswith(".finite") or any(r.status != "pass" for r in members):
            yield name, members


def _line(name: str, group: Sequence[Result]) -> tuple[str, ...]:
    failed = sum(r.status in ("fail", "error") for r in group)
    passed = sum(r.status in ("pass", "xpass") for r in group)
    held = sum(r.status == "xfail" for r in group)
    measured_results = [r for r in group if r.status != "xfail"]
    ratios = [ratio for r in measured_results if (ratio := of_bound(r)) is not None]
    # Right bits say something where an error is near its bound or beyond; rows that cancel have none within it.
    near = (r for r in measured_results if r.status != "pass" or (of_bound(r) or 0.0) > _FAR)
    bits = [r.bits for r in near if r.bits is not None]
    # What passes is a limit: an error is below this part of its bound.
    below = "< " if ratios and 0 < max(ratios) <= 1 else ""
    measured = (f"{below}{max(ratios):.2g}" if ratios else "", f"{min(bits):.0f}" if bits else "")
    counts = (str(n or "") for n in (failed, held, len(group) - passed - failed - held))
    return name, str(passed), *counts, *measured


def skips(results: Iterable[Result]) -> Iterator[tuple[str, list[str]]]:
    """Reasons for skipping with the cases, or with the quantity where all cases share it."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    results = _printed_once(list(results))
    every = Counter(r.quantity for r in results)
    skipped = Counter((r.why, r.quantity) for r in results if r.status == "skip")
    for r in results:
        # What is not finite stands among the failures.
        if r.status == "skip" and not r.why.startswith("not finite"):
            run, _, case = r.case.rpartition("/")
            by_reason.setdefault(r.why, {}).setdefault(case if r.quantity == "value" else r.quantity, []).append(run)
    for reason, runs in by_reason.items():
        # The run, such as 2-ranks, stands before it only where another one has another reason.
        apart = {name for other, names in by_reason.items() if other != reason for name in names}
        named = (f"{run}/{name}" if run and name in apart else name for name in runs for run in runs[name])
        # A gradient that is judged on the other cases is not skipped as a whole.
        counts = {(skipped[reason, name], every[name]) for name in runs if name in every}
        of = [f"on {out_of(*each, 'case')}" for each in counts if len(counts) == 1 and each[0] < each[1]]
        yield " ".join([*of, reason]), list(dict.fromkeys(named))


def _printed_once(results: list[Result]) -> list[Result]:
    """The results, with one text of all that a target prints: it may print its value on every case."""
    texts = {r.why: None for r in results if r.quantity == "behavior.prints"}
    if len(texts) < 2:
        return results
    why = f"{next(iter(texts))}, and other text on other cases"
    return [replace(r, why=why) if r.quantity == "behavior.prints" else r for r in results]


def print_failures(page: Page, results: Sequence[Result], alone: bool = True) -> None:
    """Print the first failures, those that concern the whole run before those of a case.

    `results` are all of a run. `alone` says whether a case can be run alone.
    """
    failures = sorted((r for r in results if r.status in FAILING), key=lambda r: bool(r.case))
    if not failures:
        return
    # Cases that fail in the same words are one finding.
    alike: dict[str, list[Result]] = {}
    for r in failures:
        alike.setdefault(f"{r.quantity} {_measured(r)}", []).append(r)
    page.heading("\nfirst failures" if len(alike) > SHOWN else "\nfailures", style="dim")
    shown = list(alike.values())[:SHOWN]
    for group in shown:
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        page.heading(f"{group[0].id}{more}", 3)
        page.grid([(_measured(group[0]),)], indent=GAP)
    rest = len(failures) - sum(map(len, shown))
    if rest:
        page.print(f"and {rest} more", style="dim")
    case = next((r.case.rpartition("/")[2] for r in failures if r.case), "")
    if case and alone and len({r.case.rpartition("/")[2] for r in results if r.case}) > 1:
        page.print(f"\nOne case alone: --case {case}", style="dim")


def print_terms(page: Page, terms: Mapping[str, Mapping[str, float]]) -> None:
    """Print the parts of each case's bound, unless there are none: `terms` maps a case to the part of each stage."""
    if terms:
        page.heading("\nwhat the bound of the value is made of", style="dim")
    for case, parts in terms.items():
        stages = {name: size for name, size in parts.items() if name != RANDOM_WALK}
        made = ", ".join(f"{name} {size:.2g}" for name, size in stages.items())
        page.grid([(case, made + _beside(sum(stages.values()), parts))], max(map(len, terms)), styles=("bold", ""))


def _beside(worst: float, parts: Mapping[str, float]) -> str:
    """The probabilistic bound beside the worst case, where there is one."""
    if RANDOM_WALK not in parts:
        return ""
    from nceref.tolerance.random_walk import FAILURE

    return (
        f"; {worst:.2g} in the worst case, by which it is judged, {parts[RANDOM_WALK]:.2g} with probability"
        f" {1 - FAILURE:g} if roundings are random"
    )


def _measured(r: Result) -> str:
    ratio = of_bound(r)
    if ratio is None or r.bits is None:
        return r.why
    bits = f"{r.bits:.0f} bit{' is' if round(r.bits) == 1 else 's are'} right"
    return f"{r.why}; error {r.error:.2g}, bound {r.bound:.2g}, {bits}"


def cases(probes: Sequence[Probe]) -> Page:
    """List the cases of a corpus: id, sizes, scalars, and why a case is skipped."""
    page = Page()
    label = max((len(probe.id) for probe in probes), default=0)
    page.grid([(probe.id, _about(probe)) for probe in probes], label, styles=("bold", ""))
    judged = sum(not probe.skip for probe in probes)
    page.print(f"\ncases that are judged: {judged}, skipped: {len(probes) - judged}")
    return page


def conventions() -> Page:
    """List the conventions by axis, each as what completes "the reference with ..."."""
    page = Page()
    label = max(map(len, CONVENTIONS))
    for axis, group in groupby(sorted(CONVENTIONS.values(), key=lambda c: c.axis), key=lambda c: c.axis):
        page.heading(axis, style="dim")
        page.grid([(c.id, c.phrase) for c in group], label, styles=("bold", ""), indent=GAP)
    page.print(
        "\nOne is intended with --set AXIS=ID, as in --set factor=outer-factor-2, or with what it is set to,"
        " as in --set temperature=temperature-clamped=0.01."
    )
    return page


def _about(probe: Probe) -> str:
    shapes = [f"{name} {x.shape}" for name, x in probe.inputs.items() if hasattr(x, "shape")]
    scalars = [f"{name}={x:.6g}" for name, x in probe.inputs.items() if isinstance(x, float)]
    return ", ".join([*shapes, *scalars]) + (f"; skipped: {probe.skip}" if probe.skip else "")
