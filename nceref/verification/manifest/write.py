"""A manifest of the losses of a package, written for a maintainer to go through: what was measured is a comment."""

import json
import os
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nceref import __version__
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.output.pages import GAP, Page
from nceref.output.text import printable
from nceref.output.words import counted, out_of
from nceref.targets.runner import child_runner
from nceref.verification.loss_search import SUITE, UNEXPLAINED
from nceref.verification.manifest.counts import count_checks
from nceref.verification.manifest.package import Package, read_package
from nceref.verification.manifest.recognize import (
    DTYPES,
    KEYS,
    LONELY,
    RecognizedTarget,
    explanation_of,
    policies,
    recognize,
    what_differs,
)
from nceref.verification.request import positive

_WIDTH = 118
_LOADING = 120.0
"""Seconds for a target to be loaded once its module was imported."""


@dataclass(frozen=True, eq=False)
class ManifestDraft:
    """A package, and what of it is a loss."""

    package: Package
    targets: tuple[RecognizedTarget, ...]

    @property
    def recognized(self) -> list[RecognizedTarget]:
        """The callables that get a table."""
        return [each for each in self.targets if each.loss]

    @property
    def others(self) -> list[RecognizedTarget]:
        """The callables that get none."""
        return [each for each in self.targets if not each.loss]


def draft_manifest(
    name: str, timeout: float = 60.0, isolate: bool = False, on_progress: Callable[..., Any] | None = None
) -> ManifestDraft:
    """Import a package in a process of its own, and find out which of its callables are losses.

    `name` is of `package_name`, `timeout` in seconds for the import of a module and for one call, `isolate` as for
    `nceref.verify`. `on_progress` is called with each `RecognizedTarget`, and with their number as ``total=``. Raises
    `InputError` for a `timeout` that is no time, `TargetError` if the package cannot be imported or has nothing that
    can be called, and with `isolate` `UnavailableError` where the system has no means for it.
    """
    positive("timeout", timeout)
    child = child_runner(None, "cpu", timeout, _LOADING, isolate)
    try:
        package = read_package(name, child)
        targets = []
        for each in package.callables:
            targets.append(recognize(each, child, timeout=timeout, isolate=isolate))
            if on_progress is not None:
                on_progress(targets[-1], total=len(package.callables))
    finally:
        child.stop()
    return ManifestDraft(package, tuple(targets))


def manifest_text(draft: ManifestDraft, folder: str | os.PathLike[str] = "") -> str:
    """The manifest as TOML; files are named from the folder where it will stand."""
    package = printable(draft.package.name)
    lines = _comment(
        f"Losses of {package}, recognized by nceref {__version__}: the comment above a table is what was measured. "
        "`nceref verify` judges all of them, `pytest --nceref` makes tests of them. A run that makes fewer `checks` of "
        "a target is no success; `nceref verify --update-checks` writes these numbers, also where there are none yet."
    )
    if not package.endswith(".py"):
        lines += _comment(f"{package} is imported from the working folder, or as it is installed.")
    lines += ["", "[defaults]", f"suite = {_value(SUITE)}", f"dtypes = {_value(DTYPES)}"]
    for name, target in _names(draft.recognized).items():
        lines += ["", *_above(target), "[[target]]", *_keys(name, target, Path(folder)), *_suggested(target)]
    others = [(each.callable.text, each.reason, each.nearest) for each in draft.others]
    failed = [(text, reason, "") for text, reason in draft.package.failed.items()]
    for title, listed in (("Not recognized", others), ("Not imported", failed)):
        rows = [line for each in listed for line in _unlisted(*each)]
        lines += ["", f"# {title}:", *rows] if rows else []
    return "\n".join(lines) + "\n"


def _unlisted(text: str, reason: str, nearest: str) -> Iterator[str]:
    """The lines of a callable without a table: the reason, and the command that judges it on a line of its own."""
    yield from _comment(f"- {printable(text)}: {reason}{':' * bool(nearest)}", "#   ")
    if nearest:
        yield f"#   {printable(nearest, 2000)}"


def _names(targets: Sequence[RecognizedTarget]) -> dict[str, RecognizedTarget]:
    """Targets by name; of several with one name, with the module before it."""
    counts = Counter(each.callable.name for each in targets)
    several = {each: each.callable.text.rpartition(":")[0].removesuffix(".py").replace("/", ".") for each in targets}
    return {
        (f"{several[each]}.{each.callable.name}" if counts[each.callable.name] > 1 else each.callable.name): each
        for each in targets
    }


def _above(target: RecognizedTarget) -> list[str]:
    report = target.report
    assert report is not None
    listed = ", ".join(f"{n} = {_value(x)}" for n, x in _settings(target).items())
    settings = f" with {listed}" * bool(listed)
    if report.ok:
        text = f"It is {target.loss}{settings}: {report.reason}."
        text += f" With these inputs {' and '.join(target.also)} is the same." if target.also else ""
        if (tried := policies(target.loss)) and LONELY not in target.options:
            is_none = " and ".join(f"{LONELY} = {_value(policy)}" for policy in tried)
            text += f" An anchor without a positive is not judged: {is_none} both fail there."
    else:
        explanation = explanation_of(report)
        dtype = str(report.environment.get("dtype", ""))
        # Of several formats the reason says itself what is wrong in each.
        left = " and ".join(each for each in DTYPES if each != dtype)
        where = "" if "," in dtype else f", in {dtype} ({left} was not tried)"
        text = f"It differs from {target.loss}{settings}{where}: {report.reason}."
        if explanation:
            text += f" {explanation.id} explains that: {explanation.sentence}."
        elif what_differs(report) == UNEXPLAINED:
            text += " Nothing explains that."
        text += f" Fix: {explanation.fix}" if explanation and explanation.fix else ""
        text += f" The next nearest is {target.second}." if target.second else ""
    if target.meant:
        text += f" Its name says {target.meant}, which it is not."
    return _comment(text)


def _settings(target: RecognizedTarget) -> dict[str, Any]:
    """The content of `set`."""
    return {key: x for key, x in target.options.items() if key not in KEYS}


def _keys(name: str, target: RecognizedTarget, folder: Path) -> Iterator[str]:
    place, _, last = target.callable.text.rpartition(":")
    if place.endswith(".py"):
        place = os.path.relpath(place, folder)
    values: dict[str, Any] = {"name": name, "target": f"{place}:{last}", "loss": target.loss}
    values |= {key: x for key, x in target.options.items() if key in KEYS}
    values |= {"set": settings} if (settings := _settings(target)) else {}
    # Of one that is to be mended, or decided on, the numbers are not those that it will have.
    values |= {"checks": count_checks(target.report.results)} if target.report and target.report.ok else {}
    yield from (f"{key} = {_value(x)}" for key, x in values.items())


def _suggested(target: RecognizedTarget) -> Iterator[str]:
    """Lines to write where a difference is meant, or is not fixed yet."""
    assert target.report is not None
    if target.report.ok:
        return
    if target.intended:
        yield "# If the difference is meant, with this it is right on all cases:"
        yield f"# set = {_value({**_settings(target), **target.intended})}"
    yield "# Until it is fixed, this keeps it in sight:"
    explanation, differs = explanation_of(target.report), what_differs(target.report)
    beside = "not explained yet" if differs == UNEXPLAINED else differs
    phrases = [CONVENTIONS[id].phrase for id in explanation.id.split("+")] if explanation else [beside]
    failing = [result.id for result in target.report.results if result.status in ("fail", "error")]
    # What fails now, on any case: another quantity that fails later is no expected failure.
    ids = dict.fromkeys(f"*/{id.partition('/')[2]}" if "/" in id else id for id in failing)
    failure = {"id": [*ids], "reason": " and ".join(phrases), "strict": "some"}
    yield f"# expected_failures = [{_value(failure)}]"


def _comment(text: str, further: str = "# ") -> list[str]:
    line = printable(text, 2000)
    return textwrap.wrap(line, _WIDTH, initial_indent="# ", subsequent_indent=further, break_on_hyphens=False)


def _value(value: Any) -> str:
    """A value as TOML.

    >>> _value({"queue": ..., "strict": False, "shape": (8, 16)})
    '{queue = "given", strict = false, shape = [8, 16]}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_value(x)}" for key, x in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if value is ...:
        return '"given"'
    # Of JSON's text, TOML does not take one letter as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def page_of(draft: ManifestDraft, written: str = "") -> Page:
    """The page of what was recognized, in a line each, and what was not.

    `written`: the file that has the reasons of what was not; without one they are listed.
    """
    page = Page()
    count = out_of(len(draft.recognized), len(draft.targets), "callable")
    page.heading(f"{printable(draft.package.name)}: {count} recognized as losses", 1)
    width = max((len(each.callable.name) for each in draft.recognized), default=0)
    page.grid(map(_row, draft.recognized), width, styles=("bold", ""), indent=GAP)
    near = [each for each in draft.others if each.nearest]
    rest = {each.callable.text: each.reason for each in draft.others if each not in near} | draft.package.failed
    if written and (draft.others or rest):
        parts = [f"{counted(len(draft.others), 'other is', 'others are')} not"] if draft.others else []
        if draft.package.failed:
            parts.append(f"{counted(len(draft.package.failed), 'module')} cannot be imported")
        page.print(f"{', '.join(parts)}; {printable(written)} has the reasons", style="dim")
    else:
        page.stack([(f"{printable(text)}: {reason}",) for text, reason in rest.items()], styles=("dim",), indent=GAP)
    for each in near:
        page.print(f"{printable(each.callable.text)}: {each.reason}:", style="dim")
        page.print(f"  {printable(each.nearest, 2000)}", wrap=False)
    return page


def _row(target: RecognizedTarget) -> tuple[str, str]:
    report = target.report
    assert report is not None
    loss = ", ".join([target.loss, *(f"{n} = {_value(x)}" for n, x in _settings(target).items())])
    outcome = report.verdict if report.ok else f"{report.verdict}, {what_differs(report)}"
    return target.callable.name, f"{loss}: {outcome}{f'; its name says {target.meant}' * bool(target.meant)}"
