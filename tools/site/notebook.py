"""The example notebook as a page: its cells, with the outputs that are kept in it."""

from collections.abc import Iterator, Mapping
from typing import Any

from tools import notebook


def page() -> str:
    """The notebook in Markdown, and at its end the way to the file."""
    parts = [part for cell in notebook.read()["cells"] for part in _cell(cell)]
    file = "{download}`This notebook <../notebook.ipynb>` runs in Jupyter. A test runs it, and compares the outputs."
    return "\n\n".join([*parts, file]) + "\n"


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    yield from map(_output, cell["outputs"])


def _output(output: Mapping[str, Any]) -> str:
    """The output of a cell as Jupyter shows it: HTML, else Markdown with its formulas, else text."""
    data = {kind: "".join(text) for kind, text in output.get("data", {"text/plain": output.get("text", "")}).items()}
    if "text/html" in data:
        return f":::{{container}} output\n```{{raw}} html\n{data['text/html']}\n```\n:::"
    if "text/markdown" in data:
        return f":::{{container}} output\n{data['text/markdown']}\n:::"
    return f"```text\n{data['text/plain'].rstrip()}\n```"
