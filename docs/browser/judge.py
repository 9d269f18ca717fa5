"""Judges what was pasted, within the browser: source code in, plain data out as JSON."""

import ast
import builtins
import contextlib
import io
import json
import sys
from pathlib import Path

from nceref.errors import NcerefError
from nceref.verification.verifier import verify_with

FILE = Path("pasted.py")
PRINTED = 4000
# Two versions of a file within a second would share what is compiled.
sys.dont_write_bytecode = True


class Printed(io.StringIO):
    """The beginning of what is printed."""

    def write(self, text):
        """Keep what there is room for."""
        super().write(text[: max(PRINTED - self.tell(), 0)])
        return len(text)


def functions(source):
    """Names of functions and classes, or the sentence that says where the text is no Python."""
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        line = (error.text or "").strip()
        return [], f"This is no Python: {error.msg}, line {error.lineno}" + f": {line}" * bool(line), error.lineno
    except (ValueError, RecursionError, MemoryError) as error:
        return [], f"This is no Python: {error or type(error).__name__}", None
    return [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)], "", None


def printed(source):
    """What is printed while it is loaded; that it fails is said by the report."""
    out = Printed()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(BaseException):
        exec(builtins.compile(source, FILE.name, "exec"), {"__name__": FILE.stem})
    return out.getvalue()


def judge(source, name, loss, suite, say):
    """Verdict, what is printed, and the report; or the error that stands for them."""
    names, why, line = functions(source)
    if why:
        return json.dumps({"error": why, "line": line})
    if not (name or names):
        return json.dumps({"error": "There is no function in it: paste one that begins with def.", "line": None})
    FILE.write_text(source, encoding="utf-8")
    done = 0

    def count(result, total=None):
        nonlocal done
        done += 1
        say(f"Case {done} of {total}")
        return result

    text = printed(source)
    try:
        report = verify_with(f"{FILE}:{name or names[-1]}", loss, on_progress=count, suite=suite)
    except NcerefError as error:
        return json.dumps({"error": str(error), "line": None, "printed": text})
    first = [{"id": d.id, "lead": d.lead.text, "fix": d.fix} for d in report.diagnosis if d.first]
    answer = {"verdict": report.verdict, "reason": report.reason, "printed": text, "explanations": first}
    return json.dumps({**answer, "html": report.to_html(), "json": report.to_json()})
