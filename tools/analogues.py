"""Content of the tables and figures of the long-tail experiments, from their records: `python -m tools.analogues`."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from nceref.experiments.experiment import half_interval
from nceref.experiments.tail import ALL, NORM, PROBED, SLOPE, TAIL
from nceref.output import files
from nceref.output.json_text import json_object, json_text
from nceref.theory import analogues

RECORDS = Path(__file__).parents[1] / "docs" / "experiments"
MEASURES = (SLOPE, NORM, PROBED, ALL, TAIL)
DIGITS = 6
"""Significant digits that are stored: a last bit may differ between releases of NumPy and SciPy."""


def content() -> dict[str, Any]:
    """The command, the pulls by class, and every measure with half its interval, for each experiment."""
    return {name: _of_record(name) for name in analogues.NAMES}


def _of_record(name: str) -> dict[str, Any]:
    path = RECORDS / f"{name}.json"
    record = json_object(path, files.read_text(path))
    return {
        "command": record["command"],
        "class counts": record["class counts"],
        "pulls": {loss: _relative(runs) for loss, runs in record["curves"].items()},
        "measures": {loss: _intervals(values) for loss, values in record["values"].items()},
    }


def _relative(runs: list[list[float | None]]) -> list[float]:
    """Mean over seeds of the pull of an anchor of a class over the mean of all classes; none may be missing."""
    means = [fmean(x for x in run if x is not None) for run in runs]
    by_class = ([x / mean for x, mean in zip(column, means, strict=True) if x is not None]
                for column in zip(*runs, strict=True))  # fmt: skip
    return [_rounded(fmean(column)) for column in by_class]


def _intervals(values: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {
        measure: [_rounded(fmean(values[measure])), _rounded(half_interval(values[measure]))] for measure in MEASURES
    }


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


if __name__ == "__main__":
    files.replace(analogues.PATH, json_text(content()).encode())
