"""The page that verifies in the browser, ready to be served: its files, the wheels that it runs and the losses."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from nceref.losses import all_losses

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "docs" / "browser"
DEPENDENCIES = ("array-api-compat",)
"""What nceref imports to judge a loss, beside NumPy, which comes with Pyodide."""


def write(folder: Path) -> None:
    """Write the page and the wheels.

    Parameters
    ----------
    folder : Path
        Made anew.
    """
    write_page(folder)
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--constraint", str(ROOT / "constraints.txt"))
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder / "wheels", ROOT, *DEPENDENCIES],
        check=True,
    )
    _write_contents(folder)


def write_page(folder: Path) -> None:
    """Write the page alone; parameters as for `write`."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder)
    _write_contents(folder)


def _write_contents(folder: Path) -> None:
    """What the page cannot know by itself: names of wheels, and the losses."""
    wheels = sorted(path.name for path in folder.glob("wheels/*.whl"))
    declared = [loss.declaration for loss in all_losses().values()]
    losses = {loss.name: {"summary": loss.summary, "inputs": [p.name for p in loss.parameters]} for loss in declared}
    content = json.dumps({"wheels": wheels, "losses": losses}, indent=1)
    (folder / "contents.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
