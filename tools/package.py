"""Weighs a built wheel, and tries it as users have it: `python -m tools.package weigh|try dist/NAME.whl`.

To be tried, it is installed into an environment of its own, away from the clone: with the packages alone that losses,
`nceref verify` and `nceref vectors compare` need, with pytest besides, and then with all that it depends on.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nceref

ROOT = Path(nceref.__file__).parents[1]
VECTORS = "nceref/verification/vectors/data/"
MOST = 2_000_000
"""Bytes of a wheel without the reference vectors."""
LIGHT = ("numpy", "array-api-compat", "click")
"""Packages that losses, `nceref verify`, `nceref vectors compare` and the plugin of pytest need."""
MANIFEST = """
[[target]]
target = "mine.py:doubled"
loss = "info_nce"
suite = "quick"
"""
LOSS = """
import numpy as np


def doubled(q, k, tau):
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k))
    s = q @ k.T / tau
    top = s.max(axis=1, keepdims=True)
    return 2 * np.mean(np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - np.diag(s))
"""
LIGHT_COMMANDS = (
    ("nceref --version", 0, f"nceref {nceref.__version__}"),
    ("nceref losses", 0, "nt_xent"),
    ("nceref vectors list info_nce", 0, "info_nce"),
    ("nceref mutants", 0, "info_nce"),
    ("nceref mutants score", 2, ""),
    ("nceref verify mine.py:doubled --loss info_nce --suite quick --html report.html", 1, "outer-factor-2"),
)
"""Commands, the exit status of each, and what it prints."""
PLUGIN_COMMANDS = (("pytest --nceref", 1, "outer-factor-2"),)
"""Those of the plugin, which pytest loads."""
ALL_COMMANDS = (
    ("nceref tables --list", 0, "hardness"),
    ("nceref derive tau-zero", 0, "tau"),
    ("nceref prove IS-3", 0, "IS-3"),
    ("nceref check alignment", 0, "alignment"),
    ("nceref figures temperature-easy-hard --out figures", 0, ""),
)


def weight(wheel: Path) -> tuple[int, int]:
    """Bytes of a wheel, and of it the compressed reference vectors."""
    with zipfile.ZipFile(wheel) as archive:
        vectors = sum(one.compress_size for one in archive.infolist() if one.filename.startswith(VECTORS))
    return wheel.stat().st_size, vectors


def differing(wheel: Path, package: Path = ROOT / "nceref") -> list[str]:
    """Files that the wheel lacks of the package, or has beside it and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(packed ^ {path.relative_to(package.parent).as_posix() for path in files})


def weigh(wheel: Path) -> None:
    """Print what it weighs; exit with a sentence where that is too much, or where files are missing."""
    whole, vectors = weight(wheel)
    print(f"{wheel.name}: {whole / 1e6:.2f} MB, {(whole - vectors) / 1e6:.2f} MB without reference vectors")  # noqa: T201
    if whole - vectors > MOST:
        sys.exit(f"without reference vectors the wheel must be below {MOST / 1e6:.0f} MB")
    if names := differing(wheel):
        sys.exit(f"the wheel and the folder of the package differ in {', '.join(names)}")


def attempt(wheel: Path) -> None:
    """Install it and run commands of it; exit with what they print where one does not what it should."""
    with tempfile.TemporaryDirectory() as folder:
        _try(wheel.resolve(), Path(folder))


def _try(wheel: Path, folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
    programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
    (folder / "mine.py").write_text(LOSS, encoding="utf-8")
    (folder / "nceref.toml").write_text(MANIFEST, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for packages, commands in (
        ((*LIGHT,), ()),
        (("--no-deps", wheel), LIGHT_COMMANDS),
        (("pytest",), PLUGIN_COMMANDS),
        ((wheel,), ALL_COMMANDS),
    ):
        subprocess.run([*pip, "-c", ROOT / "constraints.txt", *packages], cwd=folder, env=environment, check=True)
        for words, status, printed in commands:
            ended = subprocess.run(
                [programs / words.split()[0], *words.split()[1:]],
                cwd=folder, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if ended.returncode != status or printed not in ended.stdout:
                sys.exit(f"{words}: exit status {ended.returncode}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
            print(f"{words}: exit status {status}")  # noqa: T201
        if commands is LIGHT_COMMANDS:
            _judge_vectors(programs / "python", folder, environment)


def _judge_vectors(python: Path, folder: Path, environment: dict[str, str]) -> None:
    """Answer the reference vectors of the wheel by its losses, and judge the answers as `vectors compare` does."""
    program: list[str | Path] = [python, ROOT / "tools" / "machines" / "vectors.py", "outputs.jsonl"]
    ended = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    reports = [json.loads(line) for line in ended.stdout.splitlines()]
    wrong = [report for report in reports if report["exit"]]
    if ended.returncode or wrong or not reports:
        sys.exit(f"reference vectors: exit status {ended.returncode}\n{wrong}\n{ended.stderr[-2000:]}")
    print(f"reference vectors: {len(reports)} reports, all with exit status 0")  # noqa: T201


if __name__ == "__main__":
    {"weigh": weigh, "try": attempt}[sys.argv[1]](Path(sys.argv[2]))
