"""Every example in every odd environment: what has to hold, and a driver for all of them in processes of their own.

python -m commands.environments [NAME ...]    in the folder tests; prints the findings and one line of counts

One interpreter is started in each environment; it imports what is heavy, and forks for every example, so that each has
its own process, files and standard streams.
"""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from commands.examples import EXAMPLES, fill, make_small

LATE = {"COLUMNS", "LINES", "FORCE_COLOR", "TTY_COMPATIBLE", "NCEREF_THREADS"}
"""Read when a page is laid out or a pool starts; the others matter on a terminal, or when Python starts."""


@dataclass(frozen=True)
class Environment:
    """Something odd around a command.

    `variables` are set, or not there for None; `output` is what standard output is: a pipe, or closed, full, ended (a
    pipe that nobody reads), or a terminal of so many columns. `closed` lists other closed descriptors. In some
    environments a command may refuse, with status 2 and a message; in a read-only one it must, if it writes a file.
    """

    name: str
    variables: dict[str, str | None] = field(default_factory=dict)
    output: str = "pipe"
    closed: tuple[int, ...] = ()
    may_refuse: bool = False
    read_only: bool = False


def _set(**variables):
    return Environment(" ".join(f"{k}={v if v is None else v[:20]}" for k, v in variables.items()), variables)


_POSIX = {"LC_ALL": "POSIX", "LANG": None, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
_NOWHERE = {"HOME": None, "MPLCONFIGDIR": "/proc/none", "XDG_CONFIG_HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}
ENVIRONMENTS = (
    Environment("nothing odd"),
    *(_set(COLUMNS=x) for x in ("1", "20", "500", "-5", "²", "99999999999", "9" * 5000)),
    _set(COLUMNS="²", LINES="²"),
    _set(NO_COLOR="1"),
    _set(FORCE_COLOR="1", TTY_COMPATIBLE="1"),
    _set(TERM="dumb"),
    _set(TERM=None),
    _set(NCEREF_THREADS="1"),
    Environment("NCEREF_THREADS=0", {"NCEREF_THREADS": "0"}, may_refuse=True),
    Environment("NCEREF_THREADS=x", {"NCEREF_THREADS": "x\x1b[31m"}, may_refuse=True),
    _set(PYTHONIOENCODING="ascii"),
    _set(PYTHONIOENCODING="latin-1"),
    _set(PYTHONIOENCODING="utf-16"),
    _set(LC_ALL="C", LANG="C"),
    Environment("POSIX without UTF-8", _POSIX),
    Environment("no home, no cache", _NOWHERE),
    Environment("no temporary folder", {"TMPDIR": "/nonexistent"}),
    _set(PYTHONWARNINGS="error"),
    _set(PYTHONOPTIMIZE="2"),
    _set(PYTHONSAFEPATH="1"),
    _set(PYTHONDEVMODE="1"),
    Environment("closed standard output", output="closed"),
    Environment("all streams closed", output="closed", closed=(0, 2)),
    Environment("closed standard input", closed=(0,)),
    Environment("closed standard error", closed=(2,)),
    Environment("full disk", output="full"),
    Environment("nobody reads", output="ended"),
    *(Environment(f"terminal of {n} columns", {"TERM": "xterm"}, output=str(n)) for n in (1, 20, 80, 200, 1000)),
    Environment("dumb terminal", {"TERM": "dumb"}, output="80"),
    Environment("terminal without colors", {"TERM": "xterm", "NO_COLOR": "1"}, output="80"),
    Environment("terminal of odd words", {"TERM": "xterm", "COLUMNS": "²", "LINES": "99999999999"}, output="80"),
    Environment("read-only folder", read_only=True),
    Environment(
        "all at once",
        {**_POSIX, **_NOWHERE, "TMPDIR": "/nonexistent", "PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error", "TERM": None}
        | {"COLUMNS": "²", "LINES": "²", "PYTHONSAFEPATH": "1"},
    ),
)
SIGPIPE = 128 + 13


def words_in(environment, example):
    """The words of an example; in a read-only folder, what is written there."""
    words = example.words.split()
    made = ("made", "limits")
    return [f"/proc/none/{w}" if environment.read_only and w.startswith(made) else w for w in words]


def problems(environment, example, status, out, err):
    """What does not hold for a run: sentences.

    Parameters
    ----------
    environment : Environment
    example : Example
    status : int
        128 and the signal, where one has ended it.
    out, err : bytes
    """
    terminal = environment.output.isdecimal()
    # Without colors, the bar of progress still moves the cursor.
    escape = rb"\x1b\[([0-9;]*;)?(3|4|9|10)[0-7]" if "NO_COLOR" in environment.variables else rb"\x1b"
    colored = "NO_COLOR" not in environment.variables and environment.variables.get("TERM") != "dumb"
    expected = _statuses(environment, example)
    if status not in expected:
        yield f"exit status {status}, expected {' or '.join(map(str, sorted(expected)))}"
    for word in (b"Traceback", b"Warning", b"Exception ignored"):
        if word in err or (word in out and terminal):
            yield f"{word.decode()} on standard error"
    if status == 2 and 2 not in environment.closed and not err.strip():
        yield "status 2 without a message"
    if status == 2 and out.strip() and not terminal:
        yield "status 2, and something on standard output"
    if re.search(escape, err + out) and not (terminal and colored):
        yield "an escape sequence"
    if status == example.status and environment.output == "pipe" and example.json == "-":
        yield from _json_problems(out.decode(environment.variables.get("PYTHONIOENCODING") or "utf-8", "replace"))


def _statuses(environment, example):
    # What writes files and nothing else names them on standard error, as what is refused says why.
    files = re.match(r"(derive|figures|plot-limits|tables|vectors export)\b(?!.*--check).* --out ", example.words)
    silent = files or example.status == 2
    if environment.output in ("closed", "full"):
        return {example.status} if silent else {2}
    if environment.output == "ended":
        return {example.status} if silent else {SIGPIPE}
    if environment.read_only and words_in(environment, example) != example.words.split():
        return {2}
    return {example.status, 2} if environment.may_refuse else {example.status}


def _json_problems(text):
    constants = []
    try:
        json.loads(text, parse_constant=constants.append)
    except ValueError as error:
        yield f"no JSON: {error}"
    yield from (f"JSON with {constant}" for constant in constants)


def serve():
    """Within an environment: run the examples that stand on standard input, and write what came of each to a file."""
    environment, results, folder, examples = json.loads(os.environ["NCEREF_JOB"])
    make_small()
    if len(examples) == len(EXAMPLES):
        _import_what_is_heavy()
    os.chdir(folder)
    with Path(results).open("w") as lines:
        for words in examples:
            lines.write(json.dumps(_forked(words, environment)) + "\n")
            lines.flush()


def _import_what_is_heavy():
    import scipy.special  # noqa: F401
    import sympy  # noqa: F401


def _forked(words, output):
    """Status, standard output and standard error of one run in a process of its own."""
    with tempfile.TemporaryFile(dir="/tmp") as out, tempfile.TemporaryFile(dir="/tmp") as err:
        terminal = output.isdecimal()
        process, master = pty.fork() if terminal else (os.fork(), None)
        if process == 0:
            _run(words, output, out.fileno(), err.fileno())
        shown = _read(master) if terminal else b""
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        out.seek(0)
        err.seek(0)
        return (
            128 - status if status < 0 else status,
            (shown or out.read()).decode("latin-1"),
            err.read().decode("latin-1"),
        )


def _run(words, output, out, err):
    from nceref import cli

    if output.isdecimal():
        import fcntl
        import struct
        import termios

        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(output), 0, 0))
    else:
        if output == "pipe":
            os.dup2(out, 1)
        elif output == "ended":
            reader, writer = os.pipe()
            os.close(reader)
            os.dup2(writer, 1)
        if sys.stderr is not None:
            os.dup2(err, 2)
    # As at the end of every program: what is in the buffers is written now.
    code = 1
    try:
        cli.main(words)
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except Exception as error:
            os.write(err, f"Exception ignored: {error}".encode())
            code = 120
    os._exit(code)


def _read(master):
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        # The end, on Linux.
        except OSError:
            return shown
        if not piece:
            return shown
        shown += piece


def results_in(environment, examples, folder):
    """Start an interpreter in an environment, and return status, standard output and error of each example.

    Parameters
    ----------
    environment : Environment
    examples : sequence of Example
    folder : Path
        Theirs, empty.
    """
    fill(folder)
    results = folder / "results"
    job = [environment.output, str(results), str(folder), [words_in(environment, e) for e in examples]]
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])
    variables = {**os.environ, "PYTHONPATH": path, **environment.variables, "NCEREF_JOB": json.dumps(job)}
    started = {k: v for k, v in variables.items() if v is not None}
    closing = [f"{d}{'<' if d == 0 else '>'}&-" for d in environment.closed]
    closing += {"closed": [">&-"], "full": [">/dev/full"]}.get(environment.output, [])
    command = ["sh", "-c", f'exec "$0" -c "from commands.environments import serve; serve()" {" ".join(closing)}']
    process = subprocess.run([*command, sys.executable], env=started, capture_output=True, timeout=1800, check=False)
    lines = results.read_text().splitlines() if results.exists() else []
    assert len(lines) == len(examples), (environment.name, process.stderr.decode(errors="replace"))
    return [(status, out.encode("latin-1"), err.encode("latin-1")) for status, out, err in map(json.loads, lines)]


def main():
    """Run all examples in all environments, or in those whose names hold one of the words."""
    runs, number = 0, 0
    chosen = [e for e in ENVIRONMENTS if not sys.argv[1:] or any(word in e.name for word in sys.argv[1:])]
    for environment in chosen:
        with tempfile.TemporaryDirectory() as folder:
            results = results_in(environment, EXAMPLES, Path(folder))
        for example, result in zip(EXAMPLES, results, strict=True):
            runs += 1
            for problem in problems(environment, example, *result):
                number += 1
                sys.stdout.write(f"[{environment.name}] nceref {example.words}: {problem}\n")
                sys.stdout.write(
                    "".join(f"    {line}\n" for line in result[2].decode(errors="replace").splitlines()[-3:])
                )
        sys.stdout.flush()
    sys.stdout.write(f"{runs} runs in {len(chosen)} environments, {number} findings\n")
    sys.exit(1 if number else 0)


if __name__ == "__main__":
    main()
