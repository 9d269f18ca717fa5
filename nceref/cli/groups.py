"""Help of a command whose options stand in groups."""

from collections.abc import Mapping, Sequence
from typing import Any

import click


class GroupedOptions(click.Command):
    """A command whose help has its options by what they are about; `groups` has their names by title."""

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A section for each group, and one for the options that no group has."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option.opts[0]: record for option in options if (record := option.get_help_record(ctx))}
        for title, names in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section("Other options"):
            formatter.write_dl(list(records.values()))
