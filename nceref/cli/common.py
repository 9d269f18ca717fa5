"""The commands, one file each: a command parses, calls and prints; what it needs is imported when it runs."""

from typing import Any

import click

FINDING, WRONG_INPUT, INTERRUPTED = 1, 2, 130
"""Exit statuses other than 0: something was found, the call was wrong, the user interrupted."""


def echo_json(content: Any) -> None:
    """Print JSON."""
    import json

    click.echo(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False))
