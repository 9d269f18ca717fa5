"""docs/performance.md and its plots, from the JSON of a run."""

from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.plots import plots
from benchmarks.tables import tables
from nceref.output import files
from nceref.theory.table_formats import markdown

OPENING = """Value and all gradients of a loss, against the same loss in PyTorch eager: one run on one machine, written
by `make bench`, which measures everything anew where you are."""
METHOD = Path(__file__).with_name("method.md")


def document(results: dict[str, Any], images: dict[str, str]) -> str:
    """The whole text; `images` are file names by the title of the table that they belong to."""
    made = tables(results)
    first = [table for table in made if table.title == "Targets"]
    parts = ["# Performance", OPENING]
    if results["quick"]:
        parts.append("A quick run: small sizes, which judge nothing.")
    for table in (*first, *(table for table in made if table not in first)):
        parts.append(markdown(table).rstrip())
        if table.title in images:
            parts.append(f"![{table.title}]({images[table.title]})")
    return "\n\n".join([*parts, METHOD.read_text(encoding="utf-8").strip()]) + "\n"


def write(results: dict[str, Any], path: Path) -> None:
    """The document, and its plots beside it; whoever reads them sees the old ones or the new ones."""
    images = {}
    for title, (name, figure) in plots(results).items():
        images[title] = f"{path.stem}-{name}.png"
        drawn = BytesIO()
        figure.savefig(drawn, dpi=120)
        files.replace(path.with_name(images[title]), drawn.getvalue())
    files.write_text(path, document(results, images))
