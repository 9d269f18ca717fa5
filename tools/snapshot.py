"""Verdicts, ids, exit codes and counts of the verifier, compared with stored ones.

``python -m tools.snapshot`` judges the programs of the catalogues that NumPy runs, ``packages`` the released packages
that are installed, ``--share 31`` one in 31, ``--write`` stores what it measured. Facts stand in
``tests/data/snapshot.jsonl`` and sentences in ``tests/data/snapshot-sentences.jsonl``, so that a change of words is a
change of the second file alone. Outcomes of hostile targets stand in ``tests/data/hostile.jsonl``, which their tests
compare.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import click

from mutants.bug import Program, target
from mutants.score import intended, jobs, programs
from nceref.engine.processes import in_processes
from nceref.engine.settings import process_count
from nceref.verification.audit.audit import FILE, SUITE, in_format, released
from nceref.verification.manifest.expected_failures import listed
from nceref.verification.manifest.read import Manifest, ManifestTarget
from nceref.verification.manifest.run import left_out, verify_manifest
from nceref.verification.report import Report
from nceref.verification.verifier import verify

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
FACTS, SENTENCES = DATA / "snapshot.jsonl", DATA / "snapshot-sentences.jsonl"
IN_A_GROUP = 8

_PROGRAMS = (
    "nt-xent-own-logit-kept",
    "nt-xent-positive-detached",
    "clip-one-way",
    "moco-not-normalized",
    "supcon-positives-added-up",
    "siglip-mean-over-all-pairs",
    "info-nce-mean-of-the-mean",
)
_OPTIONS: tuple[dict[str, Any], ...] = (
    {"dtype": ("float64", "float32")},
    {"suite": "standard"},
    {"seed": 7},
    {"shape": "16,8"},
    {"multiple_of": 8},
    {"algorithm": "log1p"},
    {"calls": 0},
    {"calls": 60},
    {"explain": True, "seed": 3},
    {"expected_failures": {"*/value": "known", "*/grad:*": "known"}},
)
"""Options of `nceref.verify` that change what is judged or how far a search goes, tried on each of the programs."""


_CATALOGUES = ("known", "independent", "gradients")


def _of(catalogue: str) -> dict[str, Program]:
    """Programs of a catalogue that NumPy runs."""
    return {name: one for name, one in programs(catalogue).items() if one.framework in ("", "numpy")}


@cache
def _programs() -> dict[str, tuple[str, dict[str, Any]]]:
    """Calls of `nceref.verify` by name: the id of a program, and options."""
    formats = {
        f"{name} {dtype}": (name, {"dtype": dtype, "suite": "quick"})
        for catalogue in _CATALOGUES
        for name, dtype in jobs([one.id for one in _of(catalogue).values()], catalogue=catalogue)
    }
    options = {
        f"{name} {json.dumps(given)}": (name, {"suite": "quick", **given}) for name in _PROGRAMS for given in _OPTIONS
    }
    return formats | options


def _of_program(name: str) -> Report:
    id, options = _programs()[name]
    program = next(known[id] for known in map(_of, _CATALOGUES) if id in known)
    # As the score does: a search may only use what the author meant.
    return verify(target(program), program.loss, framework="numpy", **{**options, **intended(program)})


@cache
def _packages() -> dict[str, ManifestTarget]:
    """Targets of the manifest of released packages by name, each once a format."""
    return {
        f"{entry.name} {dtype}": in_format(entry, entry.table.get("suite", SUITE), dtype)
        for entry in released().targets
        for dtype in listed(entry.table["dtypes"])
    }


def _of_package(name: str) -> Report:
    entry = _packages()[name]
    (result,) = verify_manifest(Manifest(FILE, (entry,)))
    return result.report


KINDS: dict[str, tuple[Callable[[], Mapping[str, Any]], Callable[[str], Report]]] = {
    "programs": (_programs, _of_program),
    "packages": (_packages, _of_package),
}
"""Calls by name, and the report of each."""


def measured(kind: str, names: list[str]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Facts and sentences of some calls."""
    return [_measured(name, KINDS[kind][1](name)) for name in names]


def _measured(name: str, report: Report) -> tuple[dict[str, Any], dict[str, Any]]:
    counts = Counter(f"{result.quantity} {result.status}" for result in report.results)
    facts = {
        "call": name,
        "verdict": report.verdict,
        "exit": report.exit_code,
        "ids": [one.id for one in report.diagnosis],
        **({"limits": [one.id for one in report.limits]} if report.limits else {}),
        "counts": dict(sorted(counts.items())),
    }
    sentences = {
        "call": name,
        "reason": report.reason,
        "diagnoses": [[one.sentence, one.fix, one.intend] for one in (*report.diagnosis, *report.limits)],
        "training": report.training.get("sentence", ""),
    }
    return facts, sentences


def measure(kind: str, names: list[str], processes: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Facts and sentences in the order of the names, from several processes."""
    groups = [names[i : i + IN_A_GROUP] for i in range(0, len(names), IN_A_GROUP)]
    yield from chain.from_iterable(in_processes(partial(measured, kind), groups, processes=processes))


def stored(path: Path) -> dict[str, dict[str, Any]]:
    """The lines of a file by call."""
    return {line["call"]: line for line in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


def differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Lines that say what of a call is no longer what was stored."""
    for key in before | now:
        if before.get(key) != now.get(key):
            yield f"{now['call']}: {key}\n  stored   {before.get(key)}\n  measured {now.get(key)}"


@click.command(help=__doc__)
@click.argument("kind", type=click.Choice(tuple(KINDS)), default="programs")
@click.option("--share", type=click.IntRange(1), default=1, help="Compare one call in so many.")
@click.option("--sentences", is_flag=True, help="Compare the sentences as well.")
@click.option("--write", is_flag=True, help="Store what is measured.")
def main(kind: str, share: int, sentences: bool, write: bool) -> None:
    """Measure, then store or compare."""
    known = {kind: list(calls()) for kind, (calls, _) in KINDS.items()}
    missing = left_out(Manifest(FILE, tuple(_packages().values()))) if kind == "packages" else {}
    for sentence in missing.values():
        click.echo(sentence)
    names = [name for name in known[kind] if name.rpartition(" ")[0] not in missing][::share]
    both = list(measure(kind, names, process_count()))
    if write:
        for path, lines in zip((FACTS, SENTENCES), zip(*both, strict=True), strict=True):
            rows = stored(path) | {line["call"]: line for line in lines}
            ordered = [rows[name] for name in chain(*known.values()) if name in rows]
            path.write_text("".join(json.dumps(row) + "\n" for row in ordered), encoding="utf-8")
        return
    facts, words = stored(FACTS), stored(SENTENCES)
    changed = [line for one, _ in both for line in differences(facts.get(one["call"], {}), one)]
    changed += [line for _, one in both if sentences for line in differences(words.get(one["call"], {}), one)]
    changed += [f"{name}: stored, but no call any more" for name in facts.keys() - {*chain(*known.values())}]
    for line in changed:
        click.echo(line)
    click.echo(f"{len(both)} calls compared, {len(changed)} differences")
    raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
