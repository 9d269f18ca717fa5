"""Exact values and gradients of every loss on every case, kept in a file: what the tests judge programs by.

Computing them takes minutes, reading them milliseconds. Each entry has a checksum of what it was computed from: the
text of the formula, with all that it names in the package, and the inputs of the case. An entry whose checksum differs
is refused; `make test` computes one of each loss anew, `make references-check` all.

    python tests/checks/frozen_references.py check    compute all anew, compare
    python tests/checks/frozen_references.py write    compute those that are missing or stale, write the file
"""

import hashlib
import inspect
import io
import random
import sys
import token
import tokenize
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

import click
import numpy as np

from nceref import exact, get_loss, registry
from nceref.checks import run
from nceref.checks.cases import GEOMETRIES, SIZES, cases
from nceref.output import files
from nceref.tolerance import close

FILE = Path(__file__).parents[1] / "data" / "references.npz"
WRITE = "make references"
GEOMETRIES_USED = tuple(name for name in GEOMETRIES if name not in ("many", "mixed", "pair"))
SIZES_USED = {**SIZES, "M": 4, "K": 4}
WARM = 0.07
"""Below this temperature, mpmath takes minutes for one entry, and balls take seconds."""


class StaleReferenceError(AssertionError):
    """An entry is missing, or was computed from another formula or from other inputs."""


@cache
def all_cases():
    """Cases by key, ``nt_xent/random-0-0.3``, in the order of the file."""
    declarations = [get_loss(name).declaration for name in registry.names("nceref.family")]
    return {
        f"{loss.name}/{case.name}": (loss, case)
        for loss in declarations
        for case in cases(loss, GEOMETRIES_USED, sizes=SIZES_USED)
    }


def frozen(loss, case):
    """The exact value of a case and, off the kinks, its gradients, by name.

    Raises
    ------
    StaleReferenceError
        If the formula of the loss or the inputs of the case are not those of the entry.
    """
    key = f"{loss.name}/{case.name}"
    stored, numbers = entries().get(key, (None, None))
    if stored != checksum(loss, case):
        state = "missing" if stored is None else "stale: the formula or the inputs of the case have changed"
        msg = f"the frozen reference {key} is {state}; if that is meant, run `{WRITE}`, which rewrites {FILE.name}"
        raise StaleReferenceError(msg)
    return unpacked(loss, case, numbers)


def checksum(loss, case):
    """Of all that a reference is computed from, but for the machinery that evaluates a formula."""
    digest = hashlib.sha256(statement(loss).encode())
    for name, x in sorted(case.inputs.items()):
        is_array = isinstance(x, np.ndarray)
        digest.update(f"{name} {(x.dtype.str, x.shape) if is_array else x!r}".encode())
        digest.update(np.ascontiguousarray(x).tobytes() if is_array else b"")
    return digest.hexdigest()[:16].encode()


def statement(loss):
    """What a loss says, as text: its formula, and how rows become a value."""
    parts = sources(loss.formula) | sources(exact.reduce_rows)
    gradients = loss.differentiable
    return "\n".join([*(parts[name] for name in sorted(parts)), repr((loss.has_rows, loss.mean_over, gradients))])


@cache
def _source(function):
    return text_without_comments(inspect.getsource(function))


def sources(function, seen=None):
    """Sources of a function and of every function and constant of the package that it names, by name."""
    seen = {} if seen is None else seen
    seen[f"{function.__module__}.{function.__qualname__}"] = _source(function)
    for name in sorted(names_in(function.__code__) & function.__globals__.keys()):
        x = function.__globals__[name]
        if isinstance(x, FunctionType) and x.__module__.startswith("nceref."):
            if f"{x.__module__}.{x.__qualname__}" not in seen:
                sources(x, seen)
        elif isinstance(x, bool | int | float | str | tuple | dict):
            seen[f"{function.__module__}.{name}"] = repr(x)
    return seen


def names_in(code):
    """Global names and attributes in a piece of code and in all that is nested in it."""
    nested = (names_in(x) for x in code.co_consts if isinstance(x, CodeType))
    return set(code.co_names).union(*nested)


def text_without_comments(source):
    """The tokens of a source but for comments, docstrings and line breaks, so that their edits are free."""
    lines, line, depth = [], [], 0
    for t in tokenize.generate_tokens(io.StringIO(source).readline):
        if t.type == token.NEWLINE:
            is_docstring = len(line) == 1 and line[0].type == token.STRING
            lines += [] if is_docstring else [depth * "    " + " ".join(part.string for part in line)]
            line = []
        elif t.type not in {token.COMMENT, token.NL, token.INDENT, token.DEDENT}:
            line.append(t)
        depth += (t.type == token.INDENT) - (t.type == token.DEDENT)
    return "\n".join(lines)


def unpacked(loss, case, numbers):
    """Numbers of an entry by name, in the shapes of the inputs."""
    if len(numbers) == 1:
        return {"value": float(numbers[0])}
    names = [name for name in loss.differentiable if case.inputs.get(name) is not None]
    shapes = [np.shape(case.inputs[name]) for name in names]
    ends = np.cumsum([1, *(int(np.prod(shape)) for shape in shapes)])
    parts = np.split(numbers, ends)
    grads = {name: part.reshape(shape) for name, shape, part in zip(names, shapes, parts[1:-1], strict=True)}
    return {"value": float(numbers[0]), **grads}


def computed(key):
    """The numbers of an entry, computed from the formula."""
    reference = run.reference(*all_cases()[key])
    return np.concatenate([np.ravel(reference.pop("value")), *map(np.ravel, reference.values())])


@cache
def entries(path=FILE):
    """Checksum and numbers of every entry of a file."""
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as data:
        numbers = np.split(data["numbers"], np.cumsum(data["counts"])[:-1])
        return {key.decode(): (c, x) for key, c, x in zip(data["keys"], data["checksums"], numbers, strict=True)}


def packed(stored):
    """The bytes of a file; equal entries give equal bytes."""
    out = io.BytesIO()
    np.savez(
        out,
        keys=np.array([key.encode() for key in stored]),
        checksums=np.array([c for c, _ in stored.values()]),
        counts=np.array([len(x) for _, x in stored.values()]),
        numbers=np.concatenate([x for _, x in stored.values()]),
    )
    return out.getvalue()


def sampled():
    """The key of one warm entry of every loss; others for every other content of the file."""
    chance = random.Random(hashlib.sha256(FILE.read_bytes() if FILE.exists() else b"").digest())
    by_loss = {}
    for key, (loss, case) in all_cases().items():
        if case.temperature >= WARM:
            by_loss.setdefault(loss.name, []).append(key)
    return [chance.choice(keys) for keys in by_loss.values()]


def agrees(key, numbers):
    """Whether an entry has these numbers; both are right to 30 digits, and only then rounded."""
    stored = entries().get(key, (None, np.array([])))[1]
    return close(stored, numbers, ulps=1)


def in_parallel(keys):
    """Each key with its numbers, on all cores; dear ones side by side in the list go to different workers."""
    with ProcessPoolExecutor() as pool:
        yield from zip(keys, pool.map(computed, keys, chunksize=4), strict=True)


def check():
    """Keys of the entries that are stale, belong to no case, or differ from what their formula gives."""
    wrong = [key for key, numbers in in_parallel(list(all_cases())) if not agrees(key, numbers)]
    stale = [key for key, case in all_cases().items() if entries().get(key, (None,))[0] != checksum(*case)]
    return sorted({*wrong, *stale, *(entries().keys() - all_cases().keys())})


def write():
    """Compute what is missing or stale, write the file; how many entries were computed."""
    sums = {key: checksum(*case) for key, case in all_cases().items()}
    kept = {key: x for key, (c, x) in entries().items() if c == sums.get(key)}
    fresh = dict(in_parallel([key for key in sums if key not in kept]))
    files.replace(FILE, packed({key: (c, kept[key] if key in kept else fresh[key]) for key, c in sums.items()}))
    return len(fresh)


def main(command):
    """Run one of the two commands; returns the exit status."""
    if command == "write":
        click.echo(f"{write()} references computed, {len(all_cases())} in {FILE}")
        return 0
    wrong = check()
    for key in wrong:
        click.echo(f"{key} is stale, or is not what its formula gives")
    click.echo(f"{len(all_cases()) - len(wrong)} of {len(all_cases())} frozen references are what their formulas give")
    if wrong:
        click.echo(f"`{WRITE}` computes the stale ones; to compute all, delete {FILE} first")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
