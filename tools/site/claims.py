"""The pages of the claims: a table of all of them, and one page for each chapter."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from nceref.cli import claims_page
from nceref.losses import all_losses
from nceref.output.markdown_parts import escaped, markdown_table
from nceref.spec import Loss
from nceref.theory import prove
from nceref.theory.claim import Chapter, Claim
from tools.site.subjects import SUBJECTS
from tools.site.theory import DIGITS


@cache
def _ids() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w`-])(?<!--prove )({'|'.join(prove.claims())})(?![\w-])")


def linked(text: str, folder: str = "../claims/") -> str:
    """Text in Markdown in which the id of a claim leads to it; `folder` is the path to the pages of the claims."""
    return _ids().sub(lambda one: f"[{one[1]}]({folder}{_chapters()[one[1]]}.md#{one[1].lower()})", text)


@cache
def _chapters() -> Mapping[str, str]:
    """The chapter of each claim."""
    return {claim.id: chapter.name for chapter in prove.chapters() for claim in chapter.claims}


@cache
def name_in_words(loss: str) -> re.Pattern[str]:
    """A pattern that finds a loss in text: NT-Xent and "SupCon L_out and L_in" are the names nt_xent and supcon_in."""
    return re.compile(r"\b" + loss.replace("_", r".{0,40}?(?:\bL_)?") + r"\b", re.IGNORECASE)


def index() -> str:
    """Every claim in a line, which a script on the page filters."""
    rows = [
        (
            linked(claim.id, ""),
            escaped(claim.title),
            _few(losses_of(claim)),
            _verdict(claim),
            escaped(claim.source),
            claims_page.marks(claim).strip(),
        )
        for claim in prove.claims().values()
    ]
    table = markdown_table(("claim", "statement", "losses", "verdict", "source", "evidence"), rows)
    return (
        "# All claims\n\n"
        f"{len(rows)} statements of the papers and notes, each with a verdict. "
        "[Three that may surprise](../../claims.md) are a start.\n\n"
        "Evidence is S for symbolic, N for numeric, P for random instances. The losses of a claim are those that it "
        "names, and those whose page refers to it.\n\n"
        "<details><summary>What the sources are</summary>\n\n"
        f"{_list(_sources().values())}\n\n{_numbered()}\n\n</details>\n\n"
        f'<div id="claims"></div>\n\n{table}\n'
    )


def _few(losses: Sequence[str]) -> str:
    """Links to the first losses; the filter finds a row by all of them."""
    shown = ", ".join(f"[{name}](../losses/{name}.md)" for name in losses[:_SHOWN])
    rest = losses[_SHOWN:]
    return shown + (f", {len(rest)} more <span hidden>{' '.join(rest)}</span>" if rest else "")


_SHOWN = 2
"""Losses in a row of the table: with all of them, a row would be as high as the window."""


def _numbered() -> str:
    """The numbers of the notes, which the command line has."""
    names = (f"`--source {number}` is the {name}" for number, name in SUBJECTS.items())
    return f"For `nceref claims`: {', '.join(names)}."


def losses_of(claim: Claim) -> list[str]:
    """The losses that a claim names, and those whose declaration refers to it."""
    words = f"{claim.title}. {claim.published}"
    names = ((name, name_in_words(_NAMED.get(name, name))) for name in all_losses())
    return [name for name, pattern in names if claim.id in _references()[name] or pattern.search(words)]


_NAMED = {"simple": "simple_loss"}
"""Losses whose name is a word of the language too."""


@cache
def _references() -> Mapping[str, frozenset[str]]:
    """The claims to which the declaration of each loss refers."""
    return {
        name: frozenset(_ids().findall(" ".join(_reasons(loss.declaration)))) for name, loss in all_losses().items()
    }


def _reasons(declared: Loss) -> Iterable[str]:
    yield declared.notes
    yield from (each.because for each in declared.expectations)
    yield from (each.statement for each in declared.relations)


def page(chapter: Chapter) -> str:
    """The claims of one chapter in full, below what its sources are."""
    known = _sources()
    used = dict.fromkeys(claim.id.split("-")[0] for claim in chapter.claims)
    about = _list(dict.fromkeys(known[kind] for kind in used))
    return "\n\n".join([f"# {escaped(chapter.title)}", about, *map(_claim, chapter.claims)]) + "\n"


@cache
def _sources() -> Mapping[str, str]:
    """The description of each source, by the prefix of the ids of its statements, from the page of the sources."""
    text = (Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8").partition("## Sources")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([A-Z, ]+) \| ([^|]+) \|$", text, re.MULTILINE)
    return {kind: f"**{name}** ({kinds}): {what}" for name, kinds, what in rows for kind in kinds.split(", ")}


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in dict.fromkeys(lines))


def _claim(claim: Claim) -> str:
    """The page of a claim as the command prints it, with links, and the verdict in its color."""
    text = claims_page.page_of(claim, digits=DIGITS).written("markdown")
    title, _, facts = text.partition("\n\n")
    words = claim.expected.value
    facts = _linked_words(facts).replace(f"- **verdict**: {words}", f"- **verdict**: {_verdict(claim)}", 1)
    parts = [
        f"({claim.id.lower()})=\n#{title.replace(claim.id, f'{claim.id}:', 1)}",
        facts.strip(),
        _scenes().get(claim.id, ""),
        f"```console\n$ nceref claims --prove {claim.id}\n```" if claim.evidence() else "",
    ]
    return "\n\n".join(filter(None, parts))


def _linked_words(text: str) -> str:
    """A page with links from the ids of claims and from derivations, but for what is code or a formula."""
    parts = re.split(r"(```.*?```|`[^`]*`|\$\$.*?\$\$)", text, flags=re.DOTALL)
    topics = re.compile(r"\(nceref derive ([\w-]+)\)")
    return "".join(
        part if i % 2 else topics.sub(r"([\1](../derivations/\1.md))", linked(part, "")) for i, part in enumerate(parts)
    )


@cache
def _scenes() -> Mapping[str, str]:
    """Links to the scenes of the explorer that name a claim, by its id."""
    scene = re.compile(r'^  (\w+): \{\n.*?title: "(.*?)".*?(?:source: "(.*?)"|^  \},)', re.MULTILINE | re.DOTALL)
    return {
        one: f'<a href="../../explorer/index.html#preset={name}">{title}</a>'
        for name, title, source in scene.findall(_PRESETS.read_text(encoding="utf-8"))
        for one in _ids().findall(source)
    }


_PRESETS = Path(__file__).parents[2] / "docs" / "explorer" / "presets.js"


def _verdict(claim: Claim) -> str:
    """The words of a claim's verdict, with a class for the color of their mark."""
    words = claim.expected.value
    return f"[{words}]{{.verdict .{words.replace(' ', '-')}}}"
