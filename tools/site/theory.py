"""The pages of derivations and of published tables."""

from nceref.output.markdown_parts import escaped
from nceref.registry import discover
from nceref.theory import derivation, table_formats
from nceref.theory.derivation import Derivation
from nceref.theory.table import Table

DIGITS = 6
"""Significant digits of a computed number on the site; the verdicts are those of all digits."""


def derivations() -> str:
    """The list of topics."""
    topics = (f"- [{escaped(one.title)}]({name}.md)" for name, one in derivation.topics().items())
    return (
        "# Derivations\n\nEvery step is proved before it is printed, for every number of candidates; formulas of "
        "losses are compared at small sizes. `nceref derive TOPIC` prints one as text or LaTeX.\n\n"
        + "\n".join(topics)
        + "\n"
    )


def derived(topic: Derivation) -> str:
    """One derivation; raises for a step that does not follow."""
    return f"{derivation.render(topic, 'markdown')}\n```console\n$ nceref derive {topic.name}\n```\n"


def tables() -> str:
    """The published tables beside recomputed numbers; those without a published number are elsewhere."""
    every = table_formats.published_first(discover("nceref.theory.tables", "TABLE", Table).values())
    own_page = ("conventions", "losses")
    shown = [
        f"({table.name})=\n{table_formats.render(table, 'markdown', DIGITS)}\n"
        f"```console\n$ nceref tables {table.name}\n```\n"
        for table in every
        if table.name not in own_page
    ]
    return (
        f"# Published tables, computed again\n\n{table_formats.tally(every)} `nceref tables` lists them.\n\n"
        + "\n".join(shown)
    )
