"""docs/performance.md and its plots, from the JSON of a run; and the tables on the terminal."""

from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.plots import plots
from benchmarks.sheets import BREAK, Sheet, sheets
from nceref.output import files
from nceref.output.markdown import markdown_table

OPENING = """Value and all gradients of a loss, against the same loss in PyTorch eager: one run on one machine, written
by `make bench`, which measures everything anew where you are."""
METHOD = Path(__file__).with_name("method.md")
_COLORS = {"met": "green", "falls short": "red", "out of reach here": "yellow", "agrees": "green", "differs": "red"}


def show(sheet: Sheet, width: int = 80) -> str:
    """One table for the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=sheet.title, title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0),
                  show_header=any(sheet.header))  # fmt: skip
    for number, name in enumerate(sheet.header):
        table.add_column(Text(name), justify="left" if sheet.words or number == 0 else "right", no_wrap=number == 0)
    for line in sheet.lines:
        table.add_row(*(Text(cell, style=_COLORS.get(cell.split(BREAK)[0], "")) for cell in line))
    page = Console(width=width, highlight=False, markup=False)
    with page.capture() as paper:
        page.print(table)
        for note in sheet.notes:
            page.print(note, style="dim")
    return "\n".join(line.rstrip() for line in paper.get().splitlines()) + "\n"


def markdown(sheet: Sheet) -> str:
    """One table for the document."""
    right = [not sheet.words and number > 0 for number in range(len(sheet.header))]
    lines = [[cell.replace(BREAK, "<br>") for cell in line] for line in sheet.lines]
    return "\n\n".join(filter(None, (f"## {sheet.title}", markdown_table(sheet.header, lines, right), *sheet.notes)))


def document(results: dict[str, Any], images: dict[str, str]) -> str:
    """The whole text; `images` are file names by the title of the table that they belong to."""
    made = sheets(results)
    first = [sheet for sheet in made if sheet.title == "Targets"]
    parts = ["# Performance", OPENING]
    if results["quick"]:
        parts.append("A quick run: small sizes, which judge nothing.")
    for sheet in (*first, *(sheet for sheet in made if sheet not in first)):
        parts.append(markdown(sheet))
        if sheet.title in images:
            parts.append(f"![{sheet.title}]({images[sheet.title]})")
    return "\n\n".join([*parts, METHOD.read_text(encoding="utf-8").strip()]) + "\n"


def write(results: dict[str, Any], path: Path) -> None:
    """The document, and its plots beside it; whoever reads them sees the old ones or the new ones."""
    images = {}
    for title, (name, figure) in plots(results).items():
        images[title] = f"{path.stem}-{name}.png"
        drawn = BytesIO()
        figure.savefig(drawn, dpi=120)
        files.replace(path.with_name(images[title]), drawn.getvalue())
    files.replace(path, document(results, images).encode())
