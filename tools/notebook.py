"""Runs a notebook in this process, cell by cell; `python -m tools.notebook` rewrites the outputs of the example."""

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "notebook.ipynb"


def read(path: Path = NOTEBOOK) -> dict[str, Any]:
    """A notebook as plain data."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of each code cell of a notebook: printed text, and the value of its last expression.

    The notebook and its outputs are in the format nbformat 4; the result has one list for each code cell.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [_run("".join(cell["source"]), namespace, number) for number, cell in enumerate(code, 1)]


def _run(source: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree, printed = ast.parse(source), io.StringIO()
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), namespace)
        value = (
            eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace)
            if isinstance(last, ast.Expr)
            else None
        )
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(text)})
    if value is not None:
        data = {kind: _lines(text) for kind, text in _shown(value).items()}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _shown(value: Any) -> dict[str, str]:
    """The forms of a value that Jupyter shows, by type."""
    bundle: dict[str, str] = value._repr_mimebundle_() if hasattr(value, "_repr_mimebundle_") else {}
    return bundle or {"text/plain": repr(value)}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Write the notebook with the outputs of a run."""
    notebook = read()
    outputs = iter(run(notebook))
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            cell |= {"execution_count": number, "outputs": next(outputs)}
    NOTEBOOK.write_text(json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
