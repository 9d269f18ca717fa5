"""Share of one-place changes of the program that `make test` notices.

    python -m benchmarks.mutation [--json FILE] [--against FILE] [--jobs N]

A first pass runs every test file under coverage and keeps which test runs which line. Then each of some places, drawn
by chance from the whole package, is changed in a copy of the tree, and the tests that run it follow, the quick ones
first, until one fails or the limit is reached. A place is drawn by what stands in its line, so that the same ones come
up when files move. This file is also the plugin of pytest that chooses, orders, and watches those tests.
"""

import faulthandler
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory, gettempdir, mkdtemp
from threading import Lock
from typing import Any

import click
import pytest

from benchmarks import RefusedError
from benchmarks.clock import OnProgress
from benchmarks.places import PACKAGE, ROOT, Place, draw

TESTS = "tests"
COUNT, SEED, LIMIT = 200, 0, 30
PATIENCE = 60
"""Seconds beyond three times the usual time of a test, after which it hangs."""
MEMORY = 8 << 30
"""Bytes of addresses that the tests of a change may take."""
TASK, CONTEXT, DATA = "MUTATION_TASK", "MUTATION_TEST", "MUTATION_DATA"

# The plugin of pytest.


def pytest_configure(config: pytest.Config) -> None:
    """Take the task, where there is one."""
    if TASK in os.environ:
        config.pluginmanager.register(Watch(json.loads(Path(os.environ[TASK]).read_text())))


def _cpu() -> float:
    """Seconds that this process and its finished children computed."""
    return sum(os.times()[:4])


class Watch:
    """Chooses and orders the tests, ends those that hang, and writes down what happened."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.seconds: dict[str, float] = task.get("seconds", {})
        self.rank = {name: number for number, name in enumerate(task.get("select", ()))}
        self.limit: float = task.get("limit", float("inf"))
        self.out = Path(task["out"])
        self.done: dict[str, float] = {}
        self.failed: list[str] = []
        self.wait(PATIENCE)  # for the imports
        if self.rank:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def wait(self, usual: float) -> None:
        """End this process unless the next call comes in time; without a selection no test has a usual time yet."""
        if self.rank:
            faulthandler.dump_traceback_later(3 * usual + PATIENCE, exit=True)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep only the selected tests in their order, and before them those that only the change made."""
        if self.rank:
            items[:] = [item for item in items if item.nodeid in self.rank or item.nodeid not in self.seconds]
            items.sort(key=lambda item: self.rank.get(item.nodeid, -1))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Run one test by the clock; coverage, and children of this process get its name."""
        self.out.with_suffix(".now").write_text(item.nodeid)
        self.wait(self.seconds.get(item.nodeid, 0))
        if DATA in os.environ:
            from coverage import Coverage

            os.environ[CONTEXT] = item.nodeid
            Coverage.current().switch_context(item.nodeid)
        start = _cpu()
        result = yield
        self.done[item.nodeid] = round(_cpu() - start, 3)
        if _cpu() > self.limit:
            item.session.shouldstop = "the limit is reached"
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember the failed ones."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write down what happened."""
        stopped = bool(session.shouldstop) and not self.failed
        self.out.write_text(json.dumps({"done": self.done, "failed": self.failed, "stopped": stopped}))
        self.wait(0)


# Which test runs which line.

_RC = """[run]
data_file = ${{{DATA}}}
parallel = true
context = ${{{CONTEXT}-}}
include = {tree}/{PACKAGE}/*
sigterm = true
disable_warnings = no-data-collected, module-not-measured, module-not-imported, already-imported, trace-changed
"""


def run_tests(tree: Path, files: Iterable[str], task: dict[str, Any], **more: str) -> dict[str, Any]:
    """Run some test files of a tree; what `Watch` wrote, the exit status, seconds, and the last test that began."""
    work = Path(mkdtemp(dir=tree.parent))
    task_file, out, now = work / "task.json", work / "out.json", work / "out.now"
    task_file.write_text(json.dumps(task | {"out": str(out)}))
    env = os.environ | {"PYTHONPATH": str(tree), "TMPDIR": str(work), TASK: str(task_file)} | more
    # Those of `make test`: what only a slow one notices passes on every change.
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    command += ["-p", "benchmarks.mutation", *files]
    command += ["-x"] if "limit" in task else []
    with (work / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=tree, env=env, start_new_session=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    _end_group(process.pid)
    result = json.loads(out.read_text()) if out.exists() else {"done": {}, "failed": [], "stopped": False}
    result |= {"status": process.returncode, "written": out.exists(), "cpu": used.ru_utime + used.ru_stime}
    result["now"] = now.read_text() if now.exists() else None
    shutil.rmtree(work, ignore_errors=True)
    return result


def _end_group(number: int) -> None:
    try:
        os.killpg(number, signal.SIGKILL)
    except ProcessLookupError:
        return


def copy(folder: Path) -> Path:
    """A copy of the tree; compiled files are held against the sources, so that none outlives a change."""
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "build", "dist"))
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", PACKAGE]
    subprocess.run(command, cwd=tree, check=True)
    command = [sys.executable, "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)"]
    env = os.environ | {"PYTHONPATH": str(tree)}
    result = subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout
    if not Path(result.strip()).resolve().is_relative_to(tree.resolve()):
        msg = f"the tests of {tree} would import {result.strip()}"
        raise RefusedError(msg)
    return tree


def fingerprint() -> str:
    """A name for the program and its tests as they are."""
    digest = hashlib.sha256()
    for path in sorted(path for name in (PACKAGE, TESTS) for path in (ROOT / name).rglob("*") if path.is_file()):
        if "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def chart(cache: Path, tree: Path, file: str) -> dict[str, Any]:
    """Seconds of the tests in a file, and which failed; what coverage has seen lies beside it."""
    name = file.replace("/", "-")
    kept = cache / f"{name}.json"
    if kept.exists():
        known: dict[str, Any] = json.loads(kept.read_text())
        return known
    work = Path(mkdtemp(dir=tree.parent))
    rules = work / "rules"
    rules.write_text(_RC.format(DATA=DATA, CONTEXT=CONTEXT, tree=tree, PACKAGE=PACKAGE))
    result = run_tests(tree, [file], {}, **{DATA: str(work / "part"), "COVERAGE_PROCESS_START": str(rules)})
    if not result["written"]:
        msg = f"{file} ends with status {result['status']} under coverage"
        raise RefusedError(msg)
    command = [sys.executable, "-m", "coverage", "combine", "-q", f"--data-file={cache / name}.sqlite"]
    subprocess.run([*command, *map(str, work.glob("part*"))], cwd=work, check=True)
    kept.write_text(json.dumps(result | {"tree": str(tree)}))
    return result | {"tree": str(tree)}


class Chart:
    """A chart of the lines that each test runs, and of the time that it takes."""

    def __init__(self, result: dict[str, dict[str, Any]], cache: Path) -> None:
        from coverage import CoverageData

        self.trees = {file: of["tree"] for file, of in result.items()}
        self.data = {file: CoverageData(str(cache / f"{file.replace('/', '-')}.sqlite")) for file in result}
        for data in self.data.values():
            data.read()
        self.seconds = {test: taken for of in result.values() for test, taken in of["done"].items()}
        self.broken = {test for of in result.values() for test in of["failed"]}
        self.lock = Lock()

    def groups(self, place: Place) -> list[dict[str, float]]:
        """Tests with their seconds: those that run the statement, those that run another line of its file, and others.

        Objects that a cache, a fixture, or a module keeps are computed once, whichever test depends on them: hence the
        second ones, and the others, which are all of the test files in which the statement is run.
        """
        direct, near, files = set[str](), set[str](), set[str]()
        first, last = place.around
        for file, data in self.data.items():
            with self.lock:
                lines = data.contexts_by_lineno(f"{self.trees[file]}/{place.path}")
            here = lines.get(place.line) or [t for line in range(first, last + 1) for t in lines.get(line, ())]
            if here:
                direct.update(here)
                near.update(*lines.values())
                files.add(file)
        far = {test for test in self.seconds if _file(test) in files}
        known = ((direct, set()), (near, direct), (far, near | direct))
        return [
            {t: self.seconds[t] for t in sorted(group - before) if t in self.seconds and t not in self.broken}
            for group, before in known
        ]

    def task(self, tests: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
        """The files, and what the plugin gets, of some tests in their order."""
        files = dict.fromkeys(_file(test) for test in tests)
        seconds = {test: taken for test, taken in self.seconds.items() if _file(test) in files}
        return list(files), {"select": tests, "seconds": seconds}

    def false_alarms(self, tree: Path, tests: Sequence[str]) -> set[str]:
        """The tests, of some, that fail where nothing is changed; they do not run again."""
        known = [test for test in tests if test in self.seconds]
        result = run_tests(tree, *self.task(known)) if known else {"written": True, "failed": []}
        if not result["written"]:
            msg = f"without a change, {result['now']} ends with status {result['status']}"
            raise RefusedError(msg)
        self.broken.update(result["failed"])
        return set(result["failed"])


def _file(test: str) -> str:
    return test.split("::")[0]


def by_cost(tests: dict[str, float]) -> list[str]:
    """Quick ones before slow ones, in four classes; in each, file by file."""
    classes = {test: sum(taken > edge for edge in (0.1, 1, 10)) for test, taken in tests.items()}
    whole: dict[tuple[int, str], float] = defaultdict(float)
    for test, taken in tests.items():
        whole[classes[test], _file(test)] += taken
    return sorted(tests, key=lambda t: (classes[t], whole[classes[t], _file(t)], _file(t), tests[t]))


def few(tests: dict[str, float], most: float = 3.0, files: int = 4) -> list[str]:
    """The quickest tests, at most two cases of each, that take together some seconds and lie in some files."""
    out: list[str] = []
    total, cases, among = 0.0, Counter[str](), set[str]()
    for test in sorted(tests, key=lambda t: (tests[t], t)):
        name, file = test.split("[")[0], _file(test)
        if cases[name] == 2 or (file not in among and len(among) == files) or (out and total + tests[test] > most):
            continue
        out.append(test)
        total, cases[name] = total + tests[test], cases[name] + 1
        among.add(file)
    return sorted(out, key=lambda t: (_file(t), tests[t]))


def batches(chart: Chart, place: Place, limit: float) -> tuple[list[list[str]], bool]:
    """The tests in their order, the first few by themselves; and whether some are left out for the limit's sake."""
    groups = chart.groups(place)
    first = few(next((group for group in groups if group), {}))
    rest, total, known = [], 0.0, set(first)
    for test in (test for group in groups for test in by_cost(group) if test not in known):
        if total > 1.5 * limit:
            return [first, rest], True
        rest.append(test)
        total += chart.seconds[test]
    return [tests for tests in (first, rest) if tests], False


# What becomes of a change.

KILLED = ("fails", "import", "hangs", "crashes")
FATES = {
    "fails": "a test fails", "import": "the tests cannot be collected", "hangs": "a test does not end",
    "crashes": "Python crashes", "passes": "all tests pass that run its file",
    "limit": "all tests pass until the limit", "not run": "no test runs the line",
}  # fmt: skip


def fate(result: dict[str, Any]) -> tuple[str, str | None]:
    """The result of some tests, and the test that decided it, if any."""
    if result["failed"]:
        return "fails", result["failed"][0]
    if not result["written"]:
        return ("hangs" if result["status"] == 1 else "crashes" if result["now"] else "import"), result["now"]
    if result["stopped"]:
        return "limit", None
    return ("passes" if result["status"] in (0, 5) else "import"), None


def try_change(chart: Chart, limit: float, cache: Path, tree: Path, place: Place) -> dict[str, Any]:
    """The result of one change, which the cache may know."""
    kept = cache / f"{place.key}-{limit:g}.json"
    if not kept.exists():
        kept.write_text(json.dumps(change(chart, limit, tree, place)))
    known: dict[str, Any] = json.loads(kept.read_text())
    if known["test"] in chart.broken:
        kept.unlink()
        return try_change(chart, limit, cache, tree, place)
    return known


def change(chart: Chart, limit: float, tree: Path, place: Place) -> dict[str, Any]:
    """Change one place in a copy of the tree, and let the tests look for it."""
    file = tree / place.path
    whole, used = file.read_bytes(), 0.0
    runs, cut = batches(chart, place, limit)
    end, test = "passes" if runs else "not run", None
    file.write_bytes(place.changed(whole))
    try:
        for tests in runs:
            files, task = chart.task(tests)
            result = run_tests(tree, files, task | {"limit": limit - used})
            used += result["cpu"]
            end, test = fate(result)
            if end != "passes":
                break
    finally:
        file.write_bytes(whole)
    return {"fate": "limit" if end == "passes" and cut else end, "test": test, "cpu": round(used, 1)}


def described(place: Place) -> dict[str, Any]:
    """The place of a change, and its line before and after."""
    lines = place.changed((ROOT / place.path).read_bytes()).split(b"\n")
    about = {"key": place.key, "file": place.path, "line": place.line, "folder": place.folder, "kind": place.kind}
    return about | {"old": place.text, "new": lines[place.line - 1].decode().strip()}


class Trees:
    """Copies of the tree, each for one process at a time."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.jobs = jobs
        self.free: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            self.free.put(copy(folder / str(number)))

    def map(self, of: Callable[[Path, Any], Any], things: Sequence[Any], on_progress: OnProgress) -> list[Any]:
        """Results of a function that is called with a free tree and each of some things, side by side."""

        def one(numbered: tuple[int, Any]) -> Any:
            on_progress(f"{numbered[0]} of {len(things)}")
            tree = self.free.get()
            try:
                return of(tree, numbered[1])
            finally:
                self.free.put(tree)

        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(one, enumerate(things)))


def measure(count: int, seed: int, limit: float, jobs: int, cache: Path, on_progress: OnProgress) -> dict[str, Any]:
    """Chart the tests, then try_change them for every change; what is known from an earlier run of the same is kept."""
    start, cache = time.monotonic(), cache / fingerprint()
    cache.mkdir(parents=True, exist_ok=True)
    files = [str(path.relative_to(ROOT)) for path in sorted((ROOT / TESTS).rglob("test_*.py"))]
    places = draw(count, seed)
    with TemporaryDirectory() as name:
        trees = Trees(Path(name), jobs)
        charted = trees.map(partial(chart, cache), files, on_progress)
        known = Chart(dict(zip(files, charted, strict=True)), cache)
        alarms: set[str] | None = None
        while alarms is None or alarms:
            answers = trees.map(partial(try_change, known, limit, cache), places, on_progress)
            tests = sorted({answer["test"] for answer in answers if answer["test"]})
            (alarms,) = trees.map(known.false_alarms, [tests], on_progress)
    return {
        "count": count, "seed": seed, "limit": limit, "tests": len(known.seconds), "left_out": sorted(known.broken),
        "wall_seconds": round(time.monotonic() - start), "cpu_seconds": round(sum(of["cpu"] for of in answers)),
        "coverage_cpu_seconds": round(sum(of["cpu"] for of in charted)),
        "changes": [described(place) | answer for place, answer in zip(places, answers, strict=True)],
    }  # fmt: skip


# The command.


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--count", type=click.IntRange(min=1), default=COUNT, show_default=True, help="How many places.")
@click.option("--seed", type=int, default=SEED, show_default=True, help="Which places.")
@click.option("--limit", type=float, default=LIMIT, show_default=True, help="Seconds of computing for each place.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at a time.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Keep what is known so far there.")
@click.option("--json", "data", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there.")
@click.option("--against", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Earlier results.")
def main(
    count: int, seed: int, limit: float, jobs: int, cache: Path | None, data: Path | None, against: Path | None
) -> None:  # fmt: skip
    """Change places of the package, one at a time, and count the changes that the tests notice."""
    from benchmarks.__main__ import progress
    from nceref.output import files

    if find_spec("coverage") is None:
        click.echo("Error: this needs coverage, which is not among the requirements: pip install coverage", err=True)
        sys.exit(2)
    try:
        with progress() as on_progress:
            results = measure(
                count, seed, limit, jobs, cache or Path(gettempdir()) / f"{PACKAGE}-mutation", on_progress
            )
    except RefusedError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    if data is not None:
        files.replace(data, (json.dumps(results, indent=1) + "\n").encode())
    show(results)
    if against is not None:
        compare(json.loads(against.read_text()), results)


def show(results: dict[str, Any]) -> None:
    """Print the table, and the changes that no test notices."""
    from nceref.output.pages import Page

    folders: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for change in results["changes"]:
        folders[change["folder"]].append(change)
        folders["all"].append(change)
    order = sorted(folders, key=lambda name: (name == "all", name))
    columns = (*FATES, "killed")
    lines = [(name, str(len(folders[name])), *(str(_count(folders[name], of)) for of in columns)) for name in order]
    notes = [f"{name}: {meaning}" for name, meaning in FATES.items()]
    notes.append(
        f"seed {results['seed']}, {results['limit']:g} s for each change; {results['tests']} tests, of which "
        f"{len(results['left_out'])} are left out because they fail without a change, under coverage or alone; "
        f"{results['coverage_cpu_seconds']} s of computing for coverage, {results['cpu_seconds']} s for the changes"
    )
    page = Page()
    page.heading("Changes that the tests notice", 1)
    page.table(lines, header=[("", "changes", *columns)], right=[False, *[True] * (1 + len(columns))])
    for note in notes:
        page.print(note)
    click.echo(page.text(width=100), nl=False)
    for change in results["changes"]:
        if change["fate"] not in KILLED:
            _show(change)


def _count(changes: Sequence[dict[str, Any]], fate: str) -> int:
    return sum(change["fate"] in (KILLED if fate == "killed" else (fate,)) for change in changes)


def _show(change: dict[str, Any]) -> None:
    click.echo(f"{change['file']}:{change['line']} {change['kind']}, {change['fate']}")
    click.echo(f"  - {change['old']}\n  + {change['new']}")


def compare(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Print how many changes both results know, and those that the tests noticed and now do not."""
    old = {change["key"]: change for change in before["changes"]}
    common = [(old[change["key"]], change) for change in after["changes"] if change["key"] in old]
    counts = (_count([pair[side] for pair in common], "killed") for side in (0, 1))
    lost = [new for past, new in common if past["fate"] in KILLED and new["fate"] not in KILLED]
    click.echo("\nOf {} changes known to both, killed: {} before, {} now; no longer noticed: {}".format(
        len(common), *counts, len(lost)))  # fmt: skip
    for change in lost:
        _show(change)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.mutation")
