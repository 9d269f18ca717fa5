"""What all commands share: exit statuses, and how a page or a record is printed."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from nceref.output.pages import Page

FINDING, WRONG_INPUT, INTERRUPTED = 1, 2, 130
"""Exit statuses other than 0: there is a finding, the call was wrong, the user interrupted."""


def show(page: "Page") -> None:
    """Print a page as wide as the terminal, in its colors."""
    from nceref.output.terminal import screen

    click.echo(page.text(**screen()), nl=False)


def echo_json(content: Any) -> None:
    """Print JSON."""
    from nceref.output.files import json_text

    click.echo(json_text(content), nl=False)
