"""The page of a loss, from its declaration and from what the rest of the package says of it."""

import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mutants.bug import Program, bugs
from mutants.source import source
from nceref.checks.expect import COUNTS, ExpectedReadings, Reading, expected_readings, option
from nceref.checks.settings import statement
from nceref.checks.situations import Sizes
from nceref.cli import losses_page
from nceref.cli.losses_page import call
from nceref.losses import LossFunction
from nceref.output.markdown_parts import escaped, markdown_table
from nceref.spec import Array, Choice, Scalar
from nceref.theory.tables import conventions
from tools.site import gradients, released
from tools.site.claims import linked, name_in_words

DOORS = {
    "NumPy": "from nceref import losses",
    "PyTorch": "import nceref.torch",
    "JAX": "import nceref.jax",
}
"""The import line by which a program of each framework gets the losses."""
Rows = Sequence[tuple[str, ...]]
COLUMNS = 88
"""Columns of a program on a page, so that it fits beside the lists of links."""


def page(loss: LossFunction) -> str:
    """The page of one loss, with all that is known about it."""
    declared = loss.declaration
    shown = {title: linked(each.written("markdown")).strip() for title, each in losses_page.sections(loss).items()}
    sections = {
        "": f"{escaped(declared.summary)}\n\n$$\n{declared.latex}\n$$\n\n{escaped(declared.notes)}",
        "Check your implementation": _check(loss),
        "Call": f"{_calls(loss)}\n\n{shown['Inputs']}",
        "Value": _value(loss),
        "Gradient": f"{gradients.section(loss, shown['Gradient'])}\n\n{shown.get('Kinks', '')}",
        "Expected values": _readings(loss),
        "Properties": shown["Properties"],
        "Relations": _list((f"[{r.other}]({r.other}.md)", statement(r.statement, r.given)) for r in declared.relations),
        "What implementations do differently": _conventions(loss),
        "Released implementations": released.section(loss),
        "Known bugs": _bugs(loss),
        "Sources": shown["Sources"],
    }
    parts = [f"## {title}\n\n{text}" if title else text for title, text in sections.items() if text.strip()]
    return "\n\n".join([f"# {loss.name}", *parts]) + "\n"


def _list(entries: Iterable[tuple[str, str]]) -> str:
    """Names, which may be links, with what is said of them."""
    lines = ((f"**{name}**: " if name else "") + linked(escaped(text)) for name, text in entries)
    return "\n".join(f"- {line}" for line in lines)


def _table(header: Sequence[str], rows: Rows, right: Sequence[bool] = ()) -> str:
    return markdown_table(header, rows, right) if rows else ""


def _check(loss: LossFunction) -> str:
    return (
        f"```console\n$ nceref verify my_losses.py:my_loss --loss {loss.name}\n```\n\n"
        "This compares the value and the gradients of your NumPy, PyTorch or JAX function with this loss, and names "
        "the bug. [Checking an implementation](../../verify.md) has the options."
    )


def _calls(loss: LossFunction) -> str:
    """The same call in each framework, as a list that becomes tabs."""
    return "{.tabs}\n" + "\n".join(
        f"- {name}\n\n" + textwrap.indent(f"```python\n{door}\n\n{_call(loss, door.split()[-1])}\n```\n", "  ")
        for name, door in DOORS.items()
    )


def _call(loss: LossFunction, module: str) -> str:
    # PyTorch and JAX ask for gradients in their own way.
    written = call(loss) if module == "losses" else call(loss).replace(", compute=True", "")
    return "\n".join(textwrap.wrap(f"{module}.{written}", 72, subsequent_indent="    ", break_on_hyphens=False))


def _value(loss: LossFunction) -> str:
    declared = loss.declaration
    shape = f"has the shape {escaped(declared.rows)}" if declared.rows else "is refused"
    unit = f"in {declared.unit}" if declared.unit else "a plain number"
    return f"{escaped(declared.sign)}, {unit}. The result of `reduction='none'` {shape}."


def _readings(loss: LossFunction) -> str:
    """The table of readings declared for chance, collapse, optimum and bounds, at sizes of an example."""
    if not loss.declaration.expectations:
        return ""
    expected = expected_readings(loss.name, _example(loss))
    shown = [
        (r.situation, _number(r), f"`{r.formula}`" if r.formula else "", linked(escaped(r.reason)))
        for r in expected.readings
    ]
    return (
        f"For {_settings(expected)}; {expected.conventions}.\n\n"
        f"{_table(('situation', 'value', 'formula', 'why'), shown, right=(False, True, False, False))}\n\n"
        f"```console\n$ {_command(loss, expected)}\n```\n\nThis prints the table for the sizes of your run. With "
        "`--value` it also says what the value of your loss means."
    )


def _example(loss: LossFunction) -> Mapping[str, float]:
    """Sizes and scalars that the readings depend on: of an ordinary batch."""
    scalars = {p.name: p for p in loss.parameters if isinstance(p, Scalar)}
    usual: dict[str, float] = {name: example for name, (_, _, example) in COUNTS.items()}
    usual |= {name: p.typical[0] if p.default is ... else p.default for name, p in scalars.items()}
    choices = {p.name: p.default for p in loss.parameters if isinstance(p, Choice)}
    sizes = Sizes({**usual, **choices}, scaled="logit_scale" in scalars)
    for expectation in loss.declaration.expectations:
        expectation.at(sizes)
    embeds = any(isinstance(p, Array) and p.embedding for p in loss.parameters)
    read = {*sizes.read, *(("n", "dim") if embeds else ())} - {"positives"}
    return {name: usual[name] for name in usual if name in read}


def _settings(expected: ExpectedReadings) -> str:
    settings = [f"{name} = {value}" for name, value in expected.settings.items() if value is not None]
    return ", ".join(f"`{text}`" for text in settings) or "every size"


def _command(loss: LossFunction, expected: ExpectedReadings) -> str:
    given = {k: v for k, v in expected.settings.items() if v is not None and k not in expected.defaults}
    return " ".join([f"nceref expect --loss {loss.name}", *(option(name, value) for name, value in given.items())])


def _number(reading: Reading) -> str:
    if reading.value is None:
        return "no value"
    return f"{reading.value:.7g}" if reading.exact else f"{reading.value:.4g} ± {reading.error:.1g}"


def _conventions(loss: LossFunction) -> str:
    """The rows of the table of conventions that name this loss."""
    rows = [row for row in conventions.rows() if name_in_words(loss.name).search(row["loss"])]
    columns = [column for column in conventions.COLUMNS if column != "loss"]
    table = _table(columns, [tuple(escaped(str(row[column])) for column in columns) for row in rows])
    return f"{table}\n\n[All of them](../../conventions.md), with what the columns mean." if rows else ""


def _bugs(loss: LossFunction) -> str:
    """Every wrong program of the catalogue, with its code folded away."""
    programs = [program for program in bugs().values() if program.loss == loss.name]
    return "\n\n".join(map(_bug, programs, _laid_out(map(source, programs))))


def _bug(program: Program, code: str) -> str:
    repository, _, number = program.thread.partition("#")
    link = f"[{program.thread}](https://github.com/{repository}/issues/{number})" if number else escaped(program.seen)
    seen = f" Seen in {link}." if link else ""
    return (
        f"**{program.id}.** {escaped(program.sentence)}{seen}\n\n"
        f"<details><summary>Code of {program.id}</summary>\n\n"
        f"```python\n{code}\n```\n\n</details>"
    )


def _laid_out(codes: Iterable[str]) -> list[str]:
    """Programs in lines of the width of a page."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, code in enumerate(codes):
            paths.append(Path(folder) / f"{number}.py")
            paths[-1].write_text(code, encoding="utf-8")
        if paths:
            command = [sys.executable, "-m", "ruff", "format", "--quiet", "--isolated", "--line-length", str(COLUMNS)]
            subprocess.run([*command, folder], check=True)
        return [path.read_text(encoding="utf-8").strip() for path in paths]
