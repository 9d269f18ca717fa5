"""Tests the package on each Python that it is declared for: `python -m tools.pythons [PYTHON...]`, `make test-pythons`.

Each gets an environment of its own, `.venv-3.12`, with the pinned packages, and runs `TESTS`. A version that is not
there is left out, with a sentence.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = (
    "tests/engine", "tests/family", "tests/exact", "tests/tolerance", "tests/output", "tests/targets",
    "tests/verification/manifest", "tests/verification/test_verifier.py", "tests/verification/vectors",
    "tests/cli/test_main.py", "tests/cli/test_verify.py", "tests/test_testing.py", "tests/test_dependencies.py",
    "tests/test_registry.py",
)  # fmt: skip
"""Tests that may depend on the interpreter: arithmetic, processes, imports and signatures of targets, command line."""


def version_of(program: str | Path) -> str:
    """The version of a Python, such as ``3.12``; empty if it does not run, as the shim of a version manager may not."""
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-I", "-c", script], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 and re.fullmatch(r"\d\.\d+\s*", done.stdout) else ""


def interpreters(given: Iterable[str] = ()) -> dict[str, str]:
    """Paths of an interpreter for each version that there is: of those given, else from the folders of PATH.

    `given` has paths of interpreters that are not on PATH. Raises `ValueError` for a path that is no Python of a
    declared version.
    """
    out = {}
    for program in given:
        version = version_of(program)
        if version not in VERSIONS:
            msg = f"{program} must be a Python of {', '.join(VERSIONS)}, got {version or 'nothing that runs'}"
            raise ValueError(msg)
        out[version] = program
    for version in VERSIONS:
        runs = (path for path in _on_path(f"python{version}") if version_of(path) == version)
        if version not in out and (path := next(runs, None)):
            out[version] = path
    return out


def _on_path(name: str) -> Iterator[str]:
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder and (path := shutil.which(name, path=folder)):
            yield path


def _test(version: str, python: str) -> int:
    environment = ROOT / f".venv-{version}"
    subprocess.run([python, "-m", "venv", "--clear", environment], check=True)
    own = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [str(own), "-m", "pip", "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, "-c", ROOT / "constraints.txt", "--editable", f"{ROOT}[test]"], check=True)
    words = [str(own), "-m", "pytest", "-m", "not slow", "-n", "2", "--dist", "loadfile", *TESTS]
    return subprocess.run(words, cwd=ROOT, check=False).returncode


def main(given: Iterable[str]) -> None:
    """Test each version that there is, and exit with 1 if one fails, or if there is none."""
    try:
        present = interpreters(given)
    except ValueError as error:
        sys.exit(str(error))
    failed = []
    for version in VERSIONS:
        if version not in present:
            print(f"==> python{version} is not on PATH: left out", flush=True)  # noqa: T201
            continue
        print(f"==> Python {version}: {present[version]}", flush=True)  # noqa: T201
        failed += [version] * bool(_test(version, present[version]))
    if failed or not present:
        sys.exit(f"failed: Python {', '.join(failed)}" if failed else f"no Python of {', '.join(VERSIONS)} is there")
    print(f"==> passed: Python {', '.join(version for version in VERSIONS if version in present)}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
