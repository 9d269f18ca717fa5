"""What every writing command leaves if it is killed at any call that may write, or in the middle of a write.

    python tests/output/killed_writers.py FOLDER COMMAND ...

prints for each command how many moments, different leftovers, kills in the middle of a write and refusals there were,
and what was found: nothing, as it should be. What a kill leaves is what is there at that moment; of one command, every
such moment is killed in a fork to see that it is so. In the middle of a write, a fork is ended by the system's limit on
the size of files.
"""

import io
import json
import os
import resource
import shutil
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path

from nceref import cli
from nceref.cli import experiment_page, quadrants, quadrants_pictures
from nceref.experiments import experiment
from nceref.output.files import DRAFT
from nceref.output.pages import Page
from nceref.theory import derivation, figure_files
from nceref.training.quadrants import batch, storage
from nceref.verification import verifier
from nceref.verification.audit import audit
from nceref.verification.manifest import read, write
from nceref.verification.manifest import run as manifest_run
from nceref.verification.manifest.package import Package, PublicCallable
from nceref.verification.manifest.recognize import RecognizedTarget
from nceref.verification.report import Report
from nceref.verification.vectors import compare

COMMANDS = (
    "derive nce-optimum --out made.tex",
    "tables paco-optimum --format csv --out new",
    "figures sphere-force --out new",
    "plot-limits --out new",
    "quadrants --steps 3 --temperature 0.2 --save made.npz --json made.json --out new",
    "quadrants --resume made.npz",
    "experiment long-tail --seeds 1 --json record.json --out new",
    "verify targets.py:loss --loss cross_entropy --json made.json --junit made.xml --repro made.py --html made.html",
    "verify --all --json made.json",
    "equal targets.py:loss targets.py:loss --loss cross_entropy --json made.json",
    "verify --manifest any.toml --markdown made.md --badge made.svg --junit made.xml",
    "init losses --out made.toml --force",
    "vectors export --loss simple --out new",
    "vectors export --loss simple --as test --for numpy --out new --force",
    "vectors compare . targets.py --json made.json --junit made.xml --html made.html --markdown made.md",
)
READERS = {"fspath", "stat", "lstat", "fstat", "scandir", "listdir", "readlink", "access", "getcwd", "isatty", "getpid"}
READERS |= {"read", "readinto", "readable", "seekable", "writable", "tell", "fileno", "urandom", "get_terminal_size"}
"""Calls of the system that change no file."""


def drawing(*what):
    """Bytes in place of a picture, of some length."""
    return repr([str(each)[:20] for each in what]).encode() * 1000


def small():
    """Results that are there and pictures that need no drawing; what writes them is the program itself."""
    study = experiment_page.experiments()["long-tail"]
    values = {setting: {measure.name: (0.5,) for measure in study.measures} for setting in study.settings}
    experiment.run = lambda *arguments, **options: experiment.Results((1000,), values)
    report = Report("targets.py:loss", "cross_entropy", "differs", 1, "it does", repro="print(1)\n" * 2000)
    verifier.verify_with = lambda *target, **options: report
    compare.compare = lambda *files, **options: (report,)
    audit.audit = lambda **options: []
    read.read_manifest = lambda path: read.Manifest(path, ())
    result = manifest_run.ManifestResult(read.ManifestTarget("loss", None), report)
    manifest_run.verify_manifest = lambda *given: (result,)
    right = replace(report, verdict="conforms", exit_code=0)
    recognized = tuple(RecognizedTarget(PublicCallable(f"targets.py:f{i}"), "clip", report=right) for i in range(100))
    write.draft_manifest = lambda *given: write.ManifestDraft(Package("targets.py", (), {}), recognized)
    derivation.render = lambda *arguments: "a proof\n" * 100
    figure_files.drawn_by = lambda command: ("limit-zero",)
    figure_files.fingerprint = lambda data: "1"
    page = Page()
    page.print("a page")
    experiment_page.page_of = lambda *results: page
    experiment_page.figure = figure_files.render = drawing
    quadrants_pictures.render = quadrants_pictures.of_runs = quadrants_pictures.animation = drawing
    quadrants._print = lambda *runs: None
    # Slow, and nothing that can be seen without a power failure.
    os.fsync = lambda descriptor: None


def run(command):
    """Run one command in this process: its exit status and what it says on standard error."""
    err = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(err):
        try:
            cli.main(command.split())
        except SystemExit as end:
            return end.code or 0, err.getvalue()


def writes(function):
    """Whether a built-in function may change a file: of the system, of the module io, or a method of an open file."""
    home = getattr(function, "__self__", None)
    ours = getattr(home, "__name__", "") in ("posix", "_io", "io", "fcntl")
    is_file = isinstance(home, io.FileIO | io.BufferedIOBase) and not isinstance(home, io.BytesIO)
    return (ours or is_file) and function.__name__ not in READERS


def watched(command, at_each):
    """Run a command, with a function called with a number before every call that may write."""
    calls = 0

    def note(frame, event, function):
        nonlocal calls
        if event == "c_call" and writes(function):
            calls += 1
            sys.setprofile(None)
            at_each(calls)
            sys.setprofile(note)

    sys.setprofile(note)
    try:
        return run(command)
    finally:
        sys.setprofile(None)


def forked(action):
    """Run a function in a fork: what it returns, or None if it is killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(action()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        output = stream.read()
    os.waitpid(pid, 0)
    return json.loads(output) if output else None


def killed(command, at):
    """Run a command in a fork that is killed at the call of this number; whether it came so far."""
    return forked(lambda: watched(command, lambda call: call == at and os.kill(os.getpid(), signal.SIGKILL))) is None


def limited(command, size, ending):
    """Run a command in a fork whose files may have this size, and are a signal or an error above it."""

    def action():
        signal.signal(signal.SIGXFSZ, ending)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        return run(command)

    return forked(action)


def is_draft(name):
    return Path(name).name.startswith(".")


def content():
    """Every file of the folder; drafts, whose names are their own, by number."""
    names = sorted(path.as_posix() for path in Path().rglob("*") if path.is_file())
    drafts = iter(range(len(names)))
    numbered = {name: (Path(name).parent / f".{next(drafts)}").as_posix() for name in names if is_draft(name)}
    return {numbered.get(name, name): Path(name).read_bytes() for name in names}


def lay_out(present):
    """Make the folder hold these files and no others."""
    shutil.rmtree("new", ignore_errors=True)
    for path in Path().iterdir():
        path.unlink()
    for name, now in present.items():
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        (path.with_name(DRAFT + path.name[1:]) if is_draft(name) else path).write_bytes(now)


def aged(whole):
    """Files of an older run, which the command may replace."""
    old = {}
    for name, now in whole.items():
        old[name] = now + b"\nold\n"
        if name.endswith("manifest.json"):
            entries = json.loads(now)
            old[name] = json.dumps({key: entry | {"data": "0"} for key, entry in entries.items()}).encode()
        elif name.endswith("MANIFEST.json"):
            # What is no manifest may be somebody's: the command refuses to replace it.
            old[name] = json.dumps(json.loads(now) | {"corpus": "0"}).encode()
        elif name.endswith(".npz"):
            old[name] = saved_run()
    return old


@cache
def saved_run():
    setup = batch.Setup((4,), (0.2,), 300)
    path = Path(".nceref-saved")
    storage.save(path, setup, batch.begin(setup))
    saved = path.read_bytes()
    path.unlink()
    return saved


def damage(present, start, whole):
    """What is wrong with files after a kill: each must be the old one or the new one."""
    drafts = list(filter(is_draft, present))
    yield from (f"{name} is lost" for name in start.keys() - present.keys())
    mixed = (name for name in present.keys() - set(drafts) if present[name] not in (start.get(name), whole.get(name)))
    yield from (f"{name} is neither old nor new" for name in mixed)
    yield from [f"{len(drafts)} drafts"] * (len(drafts) > 1)


def recovery(command, status, whole):
    """What is wrong after the next run."""
    again, err = run(command)
    if again != status:
        yield f"the next run ends with {again}: {err}"
    elif content() != whole:
        yield f"after the next run, not the same: {sorted(content().keys() ^ whole.keys())}"


class Check:
    """Everything about one command, from one start."""

    def __init__(self, command, start):
        self.command, self.start = command, start
        self.moments = self.kills = self.refusals = 0
        self.left = {}
        self.findings = []
        # Once unwatched: what is imported and computed now is not in the way later.
        for go in (run, partial(watched, at_each=self.look)):
            lay_out(start)
            self.status, _ = go(command)
        self.whole = content()

    def look(self, call):
        self.moments += 1
        present = content()
        self.left.setdefault(tuple(sorted(present.items())), call)

    def report(self, when, wrong):
        self.findings += [f"{self.command}, {len(self.start)} old files, {when}: {each}" for each in wrong]

    def leftovers(self):
        for left, call in self.left.items():
            self.report(f"killed at call {call}", damage(dict(left), self.start, self.whole))
            lay_out(dict(left))
            self.report(f"killed at call {call}", recovery(self.command, self.status, self.whole))

    def real_kills(self):
        """That a kill leaves what was there at the moment."""
        for at in range(1, self.moments + 1):
            lay_out(self.start)
            assert killed(self.command, at)
            self.kills += 1
            if tuple(sorted(content().items())) not in self.left:
                self.findings.append(f"{self.command}: killed at call {at}, it leaves something else")

    def middles(self):
        largest = max(map(len, self.whole.values()))
        for size, ending in product((1, largest // 2, largest - 1), (signal.SIG_DFL, signal.SIG_IGN)):
            lay_out(self.start)
            ended = limited(self.command, size, ending)
            when = f"files of {size} bytes, {ending.name}"
            self.report(when, damage(content(), self.start, self.whole))
            if ended is None:
                self.kills += 1
            else:
                self.refusals += 1
                named = ended[0] == 2 and "cannot write" in ended[1] and "file too large; raise" in ended[1]
                self.report(
                    when, [f"it says {ended}"] * (not named) + ["a draft is left"] * any(map(is_draft, content()))
                )
            self.report(when, recovery(self.command, self.status, self.whole))


def check(command):
    """Numbers of moments, leftovers, kills and refusals, and what was present, from both starts."""
    first = {"made.npz": saved_run()} if "--resume" in command else {}
    fresh = Check(command, first)
    checks = (fresh, Check(command, aged(fresh.whole)))
    for each in checks:
        each.leftovers()
        if command == COMMANDS[0]:
            each.real_kills()
    checks[1].middles()
    counts = [[each.moments, len(each.left), each.kills, each.refusals] for each in checks]
    return {
        "counts": [sum(column) for column in zip(*counts, strict=True)],
        "findings": fresh.findings + checks[1].findings,
    }


def main(folder, *commands):
    """Check these commands; prints JSON."""
    small()
    os.chdir(folder)
    sys.stdout.write(json.dumps({command: check(command) for command in commands}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
