"""The output of commands in a process of its own, to be compared with that under other kernels.

python -m commands.machines FOLDER    in the folder tests; prints JSON: by command, exit status, output and files
"""

import json
import os
import re
import sys
from pathlib import Path

from commands.environments import _forked, _import_what_is_heavy
from commands.examples import EXAMPLES, fill, make_small

WHOLE = (
    "tables --format json",
    "tables --format text",
    "tables --format markdown",
    "tables --format csv",
    "tables --format latex",
    "check --json",
    "check alignment uniformity clip",
    "check --certify simple nce uniformity --json",
    "check --certify simple nce",
    "figures limit-zero class-bounds --format svg --out drawn",
    "verify programs.py:right --loss info_nce --dtype float64 --dtype float32 --json -",
    "verify programs.py:right --loss info_nce --suite quick",
    "verify programs.py:doubled --loss info_nce --explain",
    *(f"verify programs.py:{name} --loss info_nce --json -" for name in (
        "doubled", "off", "own_key_twice", "clipped", "half_gradient", "symmetric", "overflows", "temperature_twice",
        "summed", "unnormalized", "hardest_alone",
    )),
)  # fmt: skip
"""Beside the examples, what prints computed numbers: all of them, and reports of twelve programs, one of them right."""
PROGRAMS = """
import numpy as np


def logits(queries, keys, temperature):
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
    return q @ k.T / temperature


def mean_loss(s, weight=0.0):
    top = s.max(axis=1, keepdims=True)
    terms = np.exp(s - top)
    total = terms.sum(axis=1) + weight * np.diag(terms)
    return np.mean(np.log(total) + top[:, 0] - np.diag(s))


def right(queries, keys, temperature):
    return mean_loss(logits(queries, keys, temperature))


def doubled(queries, keys, temperature):
    return 2 * right(queries, keys, temperature)


def off(queries, keys, temperature):
    return right(queries, keys, temperature) + 1e-3


def own_key_twice(queries, keys, temperature):
    return mean_loss(logits(queries, keys, temperature), 1.0)


def clipped(queries, keys, temperature):
    return mean_loss(np.clip(logits(queries, keys, temperature), -5, 5))


def symmetric(queries, keys, temperature):
    s = logits(queries, keys, temperature)
    return (mean_loss(s) + mean_loss(s.T)) / 2


def overflows(queries, keys, temperature):
    terms = np.exp(logits(queries, keys, temperature))
    return -np.mean(np.log(np.diag(terms) / terms.sum(axis=1)))


def temperature_twice(queries, keys, temperature):
    return mean_loss(logits(queries, keys, temperature**2))


def summed(queries, keys, temperature):
    return len(queries) * right(queries, keys, temperature)


def unnormalized(queries, keys, temperature):
    return mean_loss(queries @ keys.T / temperature)


def hardest_alone(queries, keys, temperature):
    s = logits(queries, keys, temperature)
    others = np.where(np.eye(len(s), dtype=bool), -np.inf, s).max(axis=1)
    return np.mean(np.logaddexp(0, others - np.diag(s)))


def half_gradient(queries, keys, temperature):
    s = logits(queries, keys, temperature)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True) - np.eye(len(s))) / len(s) / temperature / 2
    gradients = []
    for own, other, slope in ((queries, keys, p), (keys, queries, p.T)):
        length = np.linalg.norm(own, axis=1, keepdims=True)
        unit = own / length
        g = slope @ (other / np.linalg.norm(other, axis=1, keepdims=True))
        gradients.append((g - unit * (g * unit).sum(axis=1, keepdims=True)) / length)
    return mean_loss(s), {"queries": gradients[0], "keys": gradients[1]}
"""
REPLAYS = ("experiment long", "quadrants")
"""Training repeats rounding: what these print is that of the kernel, which they name."""
TIMES = re.compile(
    r'("(?:seconds|explaining|time)": |\b(?:seconds|time)=")[\d.e-]+|\b[\d.]+ (?:s|ms|seconds)\b'
    r'|(?:CPU seconds|of these to explain) +[\d.]+ +[\d.]+|timestamp="[^"]*"|"functions": "\w{6}"'
)
"""How long it took, when that was, and the kernel that a manifest of figures names."""


def commands():
    """The words of each command whose output is compared."""
    return [w for w in (*WHOLE, *(e.words for e in EXAMPLES)) if not w.startswith(REPLAYS)]


def outputs(folder, chosen):
    """By command its exit status, and by stream and file what it wrote, without times."""
    fill(folder)
    (folder / "programs.py").write_text(PROGRAMS)
    out = {}
    for words in chosen:
        before = {path: path.stat().st_mtime_ns for path in _files(folder)}
        status, *streams = _forked(words.split(), "pipe")
        written = {str(path.relative_to(folder)): path.read_bytes().decode("latin-1") for path in _files(folder)
                   if before.get(path) != path.stat().st_mtime_ns}  # fmt: skip
        texts = {"output": streams[0], "errors": streams[1], **written}
        out[words] = {"status": status, **{name: TIMES.sub(r"\1", text) for name, text in texts.items()}}
    return out


def _files(folder):
    """What lies in a folder; bytecode, which has the time of its source, is no output."""
    return [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]


def main():
    """Run all commands, or those that stand on standard input, in an empty folder."""
    folder = Path(sys.argv[1])
    chosen = json.loads(sys.stdin.read() or "null")
    make_small()
    if not chosen:
        _import_what_is_heavy()
    os.chdir(folder)
    sys.stdout.write(json.dumps(outputs(folder, chosen or commands())))


if __name__ == "__main__":
    main()
