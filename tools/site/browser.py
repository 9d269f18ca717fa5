"""The page that verifies in the browser, ready to be served: files, the wheels that it runs, losses, examples."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from nceref.losses import all_losses

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "docs" / "browser"
EXAMPLES = SOURCE / "examples"
DEPENDENCIES = ("array-api-compat",)
"""Packages that nceref imports to judge a loss, beside NumPy, which comes with Pyodide."""
PYODIDE = "NCEREF_PYODIDE"
"""The environment variable that names a folder with a release of Pyodide, to be served from the site."""
_SERVED = ("pyodide*", "python_stdlib.zip", "numpy-*.whl")
"""Files of a release of Pyodide that the page needs, of hundreds of packages."""


def write(folder: Path) -> None:
    """Write the page and the wheels into a new folder."""
    write_page(folder)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--constraint", str(ROOT / "constraints.txt"))
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder / "wheels", ROOT, *DEPENDENCIES],
        check=True,
    )
    _write_contents(folder)
    if release := os.environ.get(PYODIDE):
        write_pyodide(Path(release), folder)


def write_pyodide(release: Path, folder: Path) -> None:
    """Copy Python and NumPy from a release of Pyodide to the site; a release without either ends the build."""
    (folder / "pyodide").mkdir()
    for pattern in _SERVED:
        if not (files := list(release.glob(pattern))):
            sys.exit(f"{PYODIDE} must name a folder with a release of Pyodide; {release} has no {pattern}")
        for file in files:
            shutil.copy(file, folder / "pyodide")
    (folder / "pyodide.js").write_text('export const PYODIDE = "pyodide/";\n', encoding="utf-8")


def write_page(folder: Path) -> None:
    """Write the page alone; parameters as for `write`."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns(EXAMPLES.name))
    _write_contents(folder)


def _write_contents(folder: Path) -> None:
    """Write the facts that the page cannot know by itself: names of wheels, and the losses."""
    wheels = sorted(path.name for path in folder.glob("wheels/*.whl"))
    declared = [loss.declaration for loss in all_losses().values()]
    losses = {loss.name: {"summary": loss.summary, "inputs": [p.name for p in loss.parameters]} for loss in declared}
    content = json.dumps({"wheels": wheels, "losses": losses, "examples": examples()}, indent=1)
    (folder / "contents.json").write_text(content, encoding="utf-8")


def examples() -> list[dict[str, str]]:
    """Broken losses to choose from, each with its ``title``, ``loss`` and ``source``; that of SimCLR comes first.

    The first line of a file says what is wrong, and its name which loss it should be.
    """
    files = sorted(EXAMPLES.glob("*.py"), key=lambda path: (path.stem != "nt_xent", path.stem))
    parts = [(path.stem, *path.read_text(encoding="utf-8").split("\n", 1)) for path in files]
    return [{"title": title.removeprefix("# "), "loss": loss, "source": source} for loss, title, source in parts]


if __name__ == "__main__":
    write(Path(sys.argv[1]))
