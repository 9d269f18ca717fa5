"""Hostile targets, what becomes of each (`tests/data/hostile.jsonl`), and what holds for all of them."""

import ast
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from nceref.verification.report import page_of
from nceref.verification.verifier import verify_with

FOLDER = Path(__file__).parent / "hostile"
RIGHT = f"{FOLDER / 'answer.py'}:right"
CASE = {"loss": "alignment", "normalize": "none", "suite": "quick", "case": "designed"}
CONFORMS, DIFFERS, DISTRUST, FAILS = 0, 1, 3, 4
AGREES = (CONFORMS, "value and gradients agree on the only case")
ANY = (None, "")
HANGS = (FAILS, "does not return within")
PATIENT = 60.0
"""Seconds in which a busy machine answers for sure; nothing waits that long."""


_ROWS = map(json.loads, (FOLDER.parents[1] / "data" / "hostile.jsonl").read_text(encoding="utf-8").splitlines())
OUTCOMES = {row["target"]: (row["exit"], row["reason"]) for row in _ROWS}
"""Target to exit status and a part of the sentence; with no status, only that it is contained."""
ENDED = {kind.removeprefix("ended.py:"): x for kind, x in OUTCOMES.items() if kind.startswith("ended.py:")}
IMPORTED = {Path(kind).stem: x for kind, x in OUTCOMES.items() if kind.startswith("at_import/")}
"""Files that do it while they are imported."""
CALLED = {kind: x for kind, x in OUTCOMES.items() if not kind.startswith(("ended.py:", "at_import/"))}


def kinds_in(file):
    """The targets of a file: what is public in it and defined there."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    for node in tree.body:
        names = [t.id for t in node.targets if isinstance(t, ast.Name)] if isinstance(node, ast.Assign) else []
        names += [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        yield from (f"{file}:{name}" for name in names if not name.startswith("_") and not name.isupper())


def is_printable(text, longest=20_000):
    """Also where a system collects it as a log, and takes some lines for commands."""
    commands = re.search(r"^\s*::|##\w*\[", text, re.MULTILINE)
    return not commands and len(text) < longest and all(c.isprintable() or c in "\n\t" for c in text)


def check(target, expected, **options):
    """Verify a target: there is a report, it says what is expected, and it can be shown."""
    report = verify_with(target, **CASE, **options)
    status, words = expected
    assert status in (None, report.exit_code), report.reason
    assert words in report.reason
    assert is_printable(page_of(report).text(width=80))
    assert is_printable(report.to_json())
    assert is_printable(report.to_junit())
    assert json.loads(report.to_json())["exit_code"] == report.exit_code
    ET.fromstring(report.to_junit())
    return report
