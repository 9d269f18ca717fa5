"""The pages of the claims: a table of all of them, and one page for each chapter."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from nceref.cli.claims_page import marks, meanings, record
from nceref.output.markdown import escaped, markdown_table
from nceref.theory import derivation, prove
from nceref.theory.claim import Chapter, Claim


@cache
def _ids() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w`-])({'|'.join(prove.claims())})(?![\w-])")


def linked(text: str, folder: str = "../claims/") -> str:
    """Words in Markdown in which the id of a claim leads to it.

    Parameters
    ----------
    text : str
    folder : str
        Where the pages of the claims are, from the page that shows the words.

    Returns
    -------
    str
    """
    return _ids().sub(lambda one: f"[{one[1]}]({folder}{_chapters()[one[1]]}.md#{one[1].lower()})", text)


@cache
def _chapters() -> Mapping[str, str]:
    """The chapter of each claim."""
    return {claim.id: chapter.name for chapter in prove.chapters() for claim in chapter.claims}


def index() -> str:
    """Every claim in a line, which a script on the page filters."""
    rows = [
        (linked(claim.id, ""), escaped(claim.title), _verdict(claim), escaped(claim.source), marks(claim).strip())
        for claim in prove.claims().values()
    ]
    table = markdown_table(("claim", "statement", "verdict", "source", "evidence"), rows)
    return (
        "# All claims\n\n"
        f"{len(rows)} statements of the sources, each with a verdict that is derived from its evidence. "
        "[What the sources say](../../claims.md) has those that may surprise.\n\n"
        "Evidence: S with symbols, N with 50 digits, P on random instances.\n\n"
        f'<div id="claims"></div>\n\n{table}\n'
    )


def page(chapter: Chapter) -> str:
    """The claims of one chapter in full."""
    return "\n\n".join([f"# {escaped(chapter.title)}", *map(_claim, chapter.claims)]) + "\n"


def _claim(claim: Claim) -> str:
    facts = record(claim)
    lines = {
        "Verdict": _verdict(claim) + (f" (it needs {claim.repair})" if claim.repaired else ""),
        "Source": escaped(f"{claim.source}, {claim.place}"),
        "Published": escaped(claim.published),
        "Holds": escaped(claim.repaired),
        "Given": escaped(facts["given"]),
        "Against it": escaped(facts["counterexample"]),
        "Derived in": _derivation(claim),
        "Missing evidence": escaped(claim.no_evidence),
    }
    said = "\n".join(f"{name}\n: {linked(text, '')}\n" for name, text in lines.items() if text)
    evidence = "\n".join(f"- **{kind}**: {escaped(how)}" for kind, how in facts["carried out"].items())
    command = f"```console\n$ nceref prove {claim.id}\n```"
    parts = [
        f"({claim.id.lower()})=\n## {claim.id}: {escaped(claim.title)}",
        said,
        f"$$\n{claim.latex}\n$$" if claim.latex else "",
        f"Evidence:\n\n{evidence}\n\n{command}" if evidence else "",
        _formula(claim),
        _numbers(claim, facts),
    ]
    return "\n\n".join(filter(None, parts))


def _verdict(claim: Claim) -> str:
    """Its words, with a class for the color of their mark."""
    words = claim.expected.value
    return f"[{words}]{{.verdict .{words.replace(' ', '-')}}}"


def _derivation(claim: Claim) -> str:
    if not claim.derivation:
        return ""
    return f"[{escaped(derivation.get(claim.derivation).title)}](../derivations/{claim.derivation}.md)"


def _formula(claim: Claim) -> str:
    """The statement that is run, with the meaning of its names."""
    if not claim.formula:
        return ""
    names = "\n".join(f"- `{name}`: {escaped(words)}" for name, words in meanings(claim))
    return f"The statement as it is run:\n\n```text\n{claim.formula}\n```\n\n{names}"


def _numbers(claim: Claim, facts: Mapping[str, Any]) -> str:
    """Published numbers beside computed ones; those of a table have a page of their own."""
    own = len(facts["cells"]) - len(claim.values)
    rows = [
        (escaped(value.what), value.published, computed or "-", cell)
        for value, computed, cell in zip(claim.values, facts["computed"][own:], facts["cells"][own:], strict=True)
    ]
    table = markdown_table(("number", "published", "computed", "verdict"), rows) if rows else ""
    seen = f"Its {own} numbers in a table are on [the page of the tables](../tables.md)." if own else ""
    return "\n\n".join(filter(None, (table, seen)))
