"""Draws docs/_static/report.png: the report of the README's example in a browser; `make report-picture`."""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "_static" / "report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SIZE = "1100,700"
_DIFFERS = 1


def example(readme: str) -> tuple[str, str, list[str]]:
    """The file, its content and the words of the command in the first example of the README."""
    program = re.search(r"```python\n(# (\S+\.py)\n.*?)```", readme, re.DOTALL)
    command = re.search(r"^\$ nceref (verify .*)$", readme, re.MULTILINE)
    if not program or not command:
        msg = "README.md must have a block of Python that begins with `# FILE.py`, and a line `$ nceref verify ...`"
        raise SystemExit(msg)
    return program[2], program[1], shlex.split(command[1])


def draw() -> None:
    """Judge the example, and photograph the first screen of its report."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        sys.exit(f"no browser on PATH; looked for {', '.join(BROWSERS)}")
    file, content, command = example((ROOT / "README.md").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / file).write_text(content, encoding="utf-8")
        judged = subprocess.run(
            [sys.executable, "-m", "nceref", *command, "--html", "report.html"],
            cwd=folder, stdout=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if judged.returncode != _DIFFERS:
            sys.exit(f"nceref {shlex.join(command)} ended with {judged.returncode}; the README's example must differ")
        # Within a container the browser has no sandbox of its own.
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--hide-scrollbars",
        ]
        subprocess.run(
            [browser, *options, f"--user-data-dir={folder}/browser", f"--window-size={_SIZE}",
             f"--screenshot={PICTURE}", (Path(folder) / "report.html").as_uri()],
            check=True, stderr=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip


if __name__ == "__main__":
    draw()
