"""The pages of `nceref losses`, its records, and the table of losses in docs/losses.md."""

import inspect
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nceref.engine.arguments import domain
from nceref.losses import LossFunction, all_losses, default_of, describe, signature
from nceref.output.markdown_parts import markdown_table, markers, update_part
from nceref.output.pages import GAP, Page, with_spaces
from nceref.spec import Array, Choice, Labels, Parameter, Scalar

BEGIN, END = markers("losses")

_KINDS = {Array: "float array", Labels: "int array", Scalar: "float", Choice: "choice"}


def overview(losses: Iterable[LossFunction]) -> Page:
    """List losses: name, a sentence, and the works it was read in."""
    page = Page()
    shown = list(losses)
    label = max(len(loss.name) for loss in shown)
    for loss in shown:
        works = ", ".join(dict.fromkeys(source.work for source in loss.sources))
        page.grid([(loss.name, loss.declaration.summary)], label, styles=("bold", ""))
        page.grid([("", works)], label, styles=("", "dim"))
    return page


def page_of(loss: LossFunction) -> Page:
    """The page of a loss, with all of its declaration."""
    page = Page()
    page.heading(loss.name, 1)
    page.print(loss.declaration.summary)
    for title, section in sections(loss).items():
        page.heading(f"\n{title}")
        page.add(section)
    return page


def sections(loss: LossFunction) -> Mapping[str, Page]:
    """The sections of the page that are not empty, by title."""
    from nceref.checks.settings import statement

    declared = loss.declaration
    texts: Mapping[str, Sequence[tuple[str, str]]] = {
        "Inputs": [(p.name, f"{describe(p)}. {p.meaning}") for p in loss.parameters],
        "Rows of reduction='none'": _lines(declared.rows or "None: the loss is one number for the whole set."),
        "Gradient": _lines(declared.gradient),
        "Sign": _lines(declared.sign),
        "Properties": properties(loss),
        "Relations": [
            (relation.other, statement(relation.statement, relation.given)) for relation in declared.relations
        ],
        "Kinks": [(kink.name, f"where {kink.where}; taken there: {kink.subgradient}") for kink in declared.kinks],
        "Notes": _lines(declared.notes),
        "Released as": _lines(", ".join(declared.known_as)),
        "Sources": [("-", " ".join(str(source).split())) for source in loss.sources],
    }
    formula = Page()
    # A terminal has no room for both.
    formula.formula(declared.latex, lambda _: declared.text, layout=lambda _: Page())
    formula.add(_section(_lines(declared.text), "code"))
    opening = {"Formula": formula, "Call": _section(_lines(_called(loss)), "code")}
    return opening | {
        title: _section(rows, "code" if title == "Gradient" else "") for title, rows in texts.items() if rows
    }


def _section(rows: Sequence[tuple[str, str]], style: str = "") -> Page:
    """Names with a text each, or texts alone."""
    page, label = Page(), max(len(name) for name, _ in rows)
    page.grid(rows, label, styles=("", style), indent=GAP if label else 0)
    return page


def properties(loss: LossFunction) -> list[tuple[str, str]]:
    """The properties by name, each with its settings; and that none is claimed on kinks, whose cases no check has."""
    from nceref.checks.properties import PROPERTIES
    from nceref.checks.settings import statement

    declared = loss.declaration
    lines = [
        (with_spaces(name), statement(PROPERTIES[name].statement, declared.properties[name]))
        for name in sorted(loss.properties)
    ]
    return [*lines, ("on the kinks", "No property is claimed there.")] if declared.kinks else lines


def _lines(text: str) -> list[tuple[str, str]]:
    """The lines of a formula, one for each of its parts, between which two spaces stand."""
    return [("", part) for part in re.split(r"(?<=[,;]) {2,}", text) if part]


def _called(loss: LossFunction) -> str:
    """The call as it is written in Python; a loss of one's own has no name in the package."""
    own = loss.address != loss.name
    return call(loss).replace(loss.name, f'get_loss("{loss.address}")', 1) if own else f"losses.{call(loss)}"


def call(loss: LossFunction, *, every: bool = True) -> str:
    """A loss with its arguments as they are written, those with a default only if `every`."""
    shown = signature(loss.declaration)
    kept = [p for p in shown.parameters.values() if every or p.default is p.empty]
    return f"{loss.name}{shown.replace(parameters=kept)}"


def record(loss: LossFunction) -> dict[str, Any]:
    """The declaration of a loss, ready for JSON."""
    from nceref.checks.settings import in_words

    declared = loss.declaration
    return {
        "name": loss.name,
        "summary": declared.summary,
        "formula": declared.text,
        "latex": loss.latex,
        "gradient": declared.gradient,
        "inputs": [_input(p) for p in loss.parameters],
        "rows": declared.rows or None,
        "sign": declared.sign,
        "properties": sorted(loss.properties),
        "hypotheses": {name: in_words(given) for name, given in sorted(declared.properties.items()) if given},
        "relations": [
            {"other": r.other, "kind": r.kind, "statement": r.statement, "hypothesis": in_words(r.given)}
            for r in declared.relations
        ],
        "kinks": [{"name": k.name, "where": k.where, "subgradient": k.subgradient} for k in declared.kinks],
        "notes": declared.notes,
        "sources": [{"work": s.work, "place": s.place.strip(), "read": s.read} for s in loss.sources],
    }


def _input(p: Parameter) -> dict[str, Any]:
    """One argument; `default` is there only where there is one."""
    out: dict[str, Any] = {"name": p.name, "kind": _KINDS[type(p)], "meaning": p.meaning}
    if isinstance(p, Array | Labels):
        alternative = p.alternative if isinstance(p, Array) else None
        out["shapes"] = [list(shape) for shape in (p.shape, alternative) if shape]
    if isinstance(p, Array | Scalar):
        out["gradient"] = not p.constant
    if isinstance(p, Scalar):
        out |= {"symbol": p.symbol, "domain": domain(p), "typical": list(p.typical)}
    if isinstance(p, Choice):
        out["options"] = list(p.options)
    default = default_of(p)
    return out if default is inspect.Parameter.empty else {**out, "default": default}


def losses_table() -> str:
    """Table of all losses in GitHub Markdown, without the markers around it."""
    rows = [
        (
            f"`{call(loss, every=False)}`",
            loss.declaration.summary,
            "; ".join(dict.fromkeys(s.work for s in loss.sources)),
        )
        for loss in all_losses().values()
    ]
    return markdown_table(("Loss", "What it compares", "Read in"), rows)


def update_table(path: str | os.PathLike[str]) -> bool:
    """Write the table of losses between its markers in the file at `path`.

    Returns whether the file changed. Raises `InputError` if the markers are not there, once each and in order.
    """
    return update_part(path, "losses", losses_table())
