"""The lines of the matrix, and what took effect under each: read from NumPy and from the BLAS of a child process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nceref.output.words import counted

ROOT = Path(__file__).parents[2]
LEVELS, KERNEL, THREADS = "NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS"
KERNELS = ("SkylakeX", "Haswell", "Nehalem")
"""Kernels of OpenBLAS: with AVX-512, with AVX2, and with neither."""
COUNTS = (1, 2)
"""Threads of the BLAS."""
ENVIRONMENTS = ("oldest", "newest")
"""Virtual environments, such as .venv-oldest, that `make test-machines` makes."""

STATE = """
import json
import numpy as np
import threadpoolctl
import scipy.linalg.blas

# A kernel that the processor cannot run ends the process here.
x = np.random.default_rng(1).normal(size=(64, 64))
assert np.allclose(x @ x.T, scipy.linalg.blas.dgemm(1.0, x, x, trans_b=True))
blas = [{"kernel": each.get("architecture") or "unknown", "threads": each["num_threads"]}
        for each in threadpoolctl.threadpool_info() if each["internal_api"] == "openblas"]
extensions = np.show_config(mode="dicts").get("SIMD Extensions", {})
print(json.dumps({"numpy": np.__version__, "blas": blas, "baseline": extensions.get("baseline", []),
                  "levels": extensions.get("found", [])}))
"""


@dataclass(frozen=True)
class Line:
    """One line of the matrix: what is set, and what must have taken effect, by key of `STATE`."""

    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    effect: Mapping[str, Any] = field(default_factory=dict)
    python: str = sys.executable

    def started(self, words: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        """A program of this line's Python, run to its end in the root of the clone."""
        own = {**os.environ, **self.variables}
        return subprocess.run([self.python, *words], cwd=ROOT, env=own, text=True, check=False, **options)


@dataclass(frozen=True)
class State:
    """The settings that took effect under a line; with `reason`, why the line cannot be run."""

    effects: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    @property
    def levels(self) -> tuple[str, ...]:
        """The dispatch levels of NumPy that are on, the lowest first."""
        return tuple(self.effects["levels"])

    def __str__(self) -> str:
        if self.reason:
            return f"skipped: {self.reason}"
        levels = " ".join([*self.effects["baseline"], *self.levels]) or "no level"
        blas = sorted({f"{one['kernel']}, {counted(one['threads'], 'thread')}" for one in self.effects["blas"]})
        return f"NumPy {self.effects['numpy']} with {levels}; OpenBLAS {' and '.join(blas) or 'is not there'}"


def state(line: Line) -> State:
    """The settings that take effect under a line, read in a process that it starts."""
    if not Path(line.python).exists():
        return State(reason=f"there is no {line.python}; make test-machines makes it")
    done = line.started(["-c", STATE], capture_output=True)
    if done.returncode < 0:
        return State(reason=f"the process ended by {signal.Signals(-done.returncode).name}: no such instructions here")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["without a message"])[-1]
        return State(reason=f"NumPy does not start: {last}")
    effects = json.loads(done.stdout)
    for key, wanted in line.effect.items():
        if (got := _effect(effects, key)) != wanted:
            return State(effects, f"{key} should be {_shown(wanted)}, and {_shown(got)} took effect")
    return State(effects)


def _effect(effects: Mapping[str, Any], key: str) -> Any:
    """A list of levels, or what all libraries of BLAS have in common."""
    if key == "levels":
        return effects["levels"]
    each = {one[key] for one in effects["blas"]}
    return each.pop() if len(each) == 1 else sorted(each)


def _shown(x: Any) -> str:
    return " ".join(map(str, x)) or "none" if isinstance(x, list) else str(x)


def level_lines() -> Iterator[Line]:
    """The machine as it is, then each dispatch level that its NumPy reports switched off in turn with all above it."""
    as_it_is = Line("as it is")
    yield as_it_is
    here = state(as_it_is)
    # Where NumPy does not start at all, that line says so.
    levels = list(here.levels) if not here.reason else []
    given = os.environ.get(LEVELS, "").replace(",", " ").split()
    for i in reversed(range(len(levels))):
        name = f"NumPy up to {levels[i - 1]}" if i else "NumPy's baseline"
        off = " ".join([*given, *levels[i:]])
        yield Line(name, {LEVELS: off, THREADS: "1"}, {"levels": levels[:i]})


def lines() -> Iterator[Line]:
    """All lines of the matrix."""
    yield from level_lines()
    for kernel in KERNELS:
        yield Line(f"OpenBLAS for {kernel}", {KERNEL: kernel, THREADS: "1"}, {"kernel": kernel})
    for count in COUNTS:
        yield Line(f"BLAS with {counted(count, 'thread')}", {THREADS: str(count)}, {"threads": count})
    programs = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    for age in ENVIRONMENTS:
        yield Line(f"{age} NumPy", {THREADS: "1"}, python=str(ROOT.joinpath(f".venv-{age}", *programs)))


def need_two_levels(ran: Mapping[str, State]) -> None:
    """End the program with a sentence if fewer than two dispatch levels have run, of those that ran by name."""
    levels = {one.levels for one in ran.values()}
    if len(levels) < 2:
        only = " ".join(next(iter(levels), ())) or "the baseline alone"
        sys.exit(
            f"at least two dispatch levels of NumPy must run, and {len(levels)} did ({only}): nothing was compared"
        )
