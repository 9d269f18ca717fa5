"""The page, the record and the files of `nceref experiment`: its table beside the published one, and what follows."""

import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from nceref.experiments.experiment import (
    FIRST_SEED,
    LEVEL,
    PARTLY,
    REVERSED,
    RULE,
    SHOWN,
    UNSEEN,
    Experiment,
    Finding,
    Measure,
    Results,
    half_interval,
    judge,
)
from nceref.output import files
from nceref.output.figure import Figure, render
from nceref.output.json_text import json_text
from nceref.output.pages import GAP, Page, joined
from nceref.registry import discover, pick
from nceref.theory import table_formats
from nceref.theory.table import Table

FIGURES = ("svg", "png")
_ROOM = len("+0.000±0.000")
_COLORS = {SHOWN: "green", PARTLY: "yellow", UNSEEN: "yellow", REVERSED: "red"}


def experiments() -> Mapping[str, Experiment]:
    """Every experiment by name."""
    return discover("nceref.experiments.studies", "EXPERIMENT", Experiment)


def chosen(name: str) -> Experiment:
    """The experiment of this name; an unknown one raises `InputError`."""
    return pick("experiment", name, experiments(), "nceref experiment")


def command(experiment: Experiment, results: Results) -> str:
    """The command that prints these results again."""
    words = ["nceref", "experiment", experiment.name, "--seeds", str(len(results.seeds))]
    first = results.seeds[0]
    return shlex.join(words if first == FIRST_SEED else [*words, "--first-seed", str(first)])


def measured(experiment: Experiment, results: Results) -> list[Table]:
    """The tables: mean over the seeds, and half of its 95 % interval."""
    return [
        _table(experiment, results, title) for title in dict.fromkeys(m.table for m in experiment.measures if m.table)
    ]


def _table(experiment: Experiment, results: Results, title: str) -> Table:
    columns = [m for m in experiment.measures if m.table == title]

    def rows() -> list[dict[str, Any]]:
        return [
            {"loss": name} | {m.name: _with_spread(results.values[name][m.name], m) for m in columns}
            for name in experiment.settings
        ]

    first, *others = results.seeds
    source = f"seeds {first} to {others[-1]}, mean ± half its 95 % interval" if others else f"seed {first} alone"
    source += f"; {command(experiment, results)}"
    return Table(title.partition(":")[0].lower(), title, source, ("loss", *(m.name for m in columns)), rows)


def _with_spread(values: Sequence[float], measure: Measure) -> str:
    # The 0 that is added has a sign: no -0.00.
    mean = f"{round(fmean(values), measure.digits) + 0.0:.{measure.digits}f}"
    return f"{mean}±{half_interval(values):.{measure.digits}f}" if len(values) > 1 else mean


def page_of(experiment: Experiment, results: Results) -> Page:
    """The page of an experiment: its tables, the published one, and the statements that show up."""
    opening, meanings = Page(), Page()
    opening.heading(experiment.title, 1)
    for sentence in experiment.about:
        opening.print(sentence)
    shown = [(m.name, m.meaning) for m in experiment.measures]
    meanings.grid(shown, max(len(name) for name, _ in shown), styles=("", "dim"))
    tables = map(table_formats.page_of, measured(experiment, results))
    published = table_formats.page_of(experiment.published)
    pages = [opening, *tables, meanings, published, _conclusions(experiment, results)]
    if results.made_with:
        ending = Page()
        ending.print(f"Made with {results.made_with}; others round otherwise.", style="dim")
        pages.append(ending)
    return joined(pages)


def _conclusions(experiment: Experiment, results: Results) -> Page:
    page = Page()
    page.heading("Statements, published or not, and whether they show up here")
    page.print(f"{_rule(experiment)}\n", style="dim")
    for statement in experiment.statements:
        _conclude(page, judge(statement, results))
    return page


def _rule(experiment: Experiment) -> str:
    count = sum(len(statement.contrasts) for statement in experiment.statements if statement.margin is None)
    return RULE.format(count=count, chance=count * (1 - LEVEL))


def _conclude(page: Page, finding: Finding) -> None:
    statement, style = finding.statement, _COLORS.get(finding.verdict, "dim")
    page.print(finding.verdict, style=style)
    page.stack([(statement.text,)], indent=GAP)
    contrasts = zip(map(_interval, finding.numbers), map(str, statement.contrasts), strict=True)
    page.grid(list(contrasts), _ROOM, styles=("", "dim"), indent=GAP)
    page.stack([(f"Source: {statement.source}.",)], indent=GAP, styles=("dim",))


def _interval(numbers: tuple[float, float]) -> str:
    mean, half = numbers
    return f"{mean:+.3f}" if math.isnan(half) else f"{mean:+.3f}±{half:.3f}"


def record(experiment: Experiment, results: Results) -> dict[str, Any]:
    """The record of an experiment, ready for JSON: every number of every seed, and the verdicts on the statements."""
    statements = [judge(statement, results) for statement in experiment.statements]
    return {
        "name": experiment.name,
        "title": experiment.title,
        "about": list(experiment.about),
        "command": command(experiment, results),
        "claims": list(experiment.claims),
        "seeds": list(results.seeds),
        **({"made with": results.made_with} if results.made_with else {}),
        "measures": {m.name: m.meaning for m in experiment.measures},
        "values": {name: {m: list(x) for m, x in rows.items()} for name, rows in results.values.items()},
        "class counts": list(results.classes),
        "curves": {name: [[_finite(x) for x in row] for row in rows] for name, rows in results.curves.items()},
        "published": {"source": experiment.published.source, "rows": experiment.published.rows()},
        "figure": experiment.caption,
        "rule": _rule(experiment),
        "statements": [_statement(finding) for finding in statements],
    }


def _statement(finding: Finding) -> dict[str, Any]:
    statement = finding.statement
    contrasts = [
        {"measure": c.measure, "weights": dict(c.weights), "mean": mean, "half of the interval": _finite(half)}
        for c, (mean, half) in zip(statement.contrasts, finding.numbers, strict=True)
    ]
    about = {"text": statement.text, "source": statement.source, "margin": statement.margin}
    return {**about, "contrasts": contrasts, "verdict": finding.verdict}


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def recorded(content: Mapping[str, Any]) -> Results:
    """The results in a record.

    They have NaN where JSON has null.
    """
    values = {name: {m: tuple(x) for m, x in rows.items()} for name, rows in content["values"].items()}
    curves = {
        name: tuple(tuple(math.nan if x is None else x for x in row) for row in rows)
        for name, rows in content["curves"].items()
    }
    counts, made_with = tuple(content["class counts"]), content.get("made with", "")
    return Results(tuple(content["seeds"]), values, counts, curves, made_with)


def to_json(experiment: Experiment, results: Results) -> str:
    """The record as JSON text."""
    return json_text(record(experiment, results))


def figure(experiment: Experiment, results: Results, suffix: str) -> bytes:
    """The figure of a run as SVG or PNG."""
    drawn = Figure(
        name=experiment.name,
        title=experiment.title,
        caption=experiment.caption,
        source=experiment.published.source,
        claims=experiment.claims,
        data=dict,
        draw=lambda canvas, _: experiment.draw(canvas, results),
        height=experiment.height,
        command=command(experiment, results),
    )
    return render(drawn, {}, suffix)


def save(experiment: Experiment, results: Results, out: str | os.PathLike[str]) -> Iterator[Path]:
    """Write the page, the record and the figure into a folder, and yield each file once it is there.

    The folder `out` is created if it does not exist.
    """
    # All are made before the first is written: an error in one leaves no half of a set.
    contents = {"txt": page_of(experiment, results).text().encode(), "json": to_json(experiment, results).encode()}
    contents |= {suffix: figure(experiment, results, suffix) for suffix in FIGURES}
    folder = files.make_folder(out, "--out")
    for suffix, content in contents.items():
        path = folder / f"{experiment.name}.{suffix}"
        files.replace(path, content, "--out")
        yield path
