"""Help in groups: commands by what one wants, and options by what they are about."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

Groups = Mapping[str, Sequence[str]]


def by_group(groups: Groups, rows: Mapping[str, Any], rest: str) -> Iterator[tuple[str, list[Any]]]:
    """Titles with the rows of their names; what no group names comes last, under `rest`."""
    named = {name for names in groups.values() for name in names}
    for title, names in {**groups, rest: [name for name in rows if name not in named]}.items():
        if shown := [rows[name] for name in names if name in rows]:
            yield title, shown


class GroupedOptions(click.Command):
    """A command whose help has its options in groups."""

    def __init__(self, *args: Any, groups: Groups, **more: Any) -> None:
        super().__init__(*args, **more)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, a section for each group."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option.opts[0]: record for option in options if (record := option.get_help_record(ctx))}
        for title, rows in by_group(self.groups, records, "Other options"):
            with formatter.section(title):
                formatter.write_dl(rows)
