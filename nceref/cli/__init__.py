"""The command line: the group of the commands in `nceref.cli`, and what becomes of errors.

Exit status: 0, all is well; 1, a finding; 2, wrong usage or input; 130, interrupted.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from nceref import __version__
from nceref.cli.common import INTERRUPTED, WRONG_INPUT
from nceref.errors import NcerefError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of those of the process.
    """
    _die_quietly_of_a_closed_pipe()
    # Not standalone: by itself, click would exit with 1 when interrupted, which is the status of a finding.
    try:
        status = nceref.main(arguments, prog_name="nceref", standalone_mode=False)
    except click.Abort:
        status = INTERRUPTED
    except click.ClickException as error:
        error.show()
        status = WRONG_INPUT
    except (NcerefError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        status = WRONG_INPUT
    sys.exit(status)


def _die_quietly_of_a_closed_pipe() -> None:
    # As other tools do: `nceref losses | head` is no error, but Python would raise BrokenPipeError.
    import signal

    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


COMMANDS = {
    "verify": "Judge an implementation, and name what is different.",
    "identify": "Say which loss of the family an implementation is.",
    "mutants": "List known bugs, show one, or score the verifier on them.",
    "losses": "List the losses, or show all about one.",
    "tables": "Recompute the published tables and compare.",
    "check": "Check the losses against formulas and theorems.",
    "expect": "Say what a loss should read, and what a reading means.",
    "claims": "List the claims of the sources, or show all about one.",
    "prove": "Run the evidence of the claims and derive their verdicts.",
    "derive": "Print a derivation, every step of it checked.",
    "figures": "Draw the figures, or check those in a folder.",
    "plot-limits": "Draw the limits of low and high temperature.",
    "quadrants": "Replay the toy run on four quadrants.",
    "experiment": "Run a small analogue of a published result.",
}
"""What each command does. Its file is imported when it runs: `nceref --help` must stay fast."""


class _Commands(click.Group):
    """A group that lists its commands by name, and imports one when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"nceref.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # click would import every command for its help.
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(__version__, message="%(prog)s %(version)s")
def nceref() -> None:
    """Check contrastive losses against exact values, hand-derived gradients and theorems."""


if __name__ == "__main__":
    main()
