"""The command line: the group of the commands in `nceref.commands`, and what becomes of errors.

Exit status: 0, all is well; 1, a finding; 2, wrong usage or input; 130, interrupted.
"""

import sys
from collections.abc import Sequence

import click

from nceref import __version__
from nceref.commands import INTERRUPTED, WRONG_INPUT
from nceref.commands.check import check
from nceref.commands.claims import claims
from nceref.commands.derive import derive
from nceref.commands.expect import expect
from nceref.commands.experiment import experiment
from nceref.commands.figures import figures
from nceref.commands.identify import identify
from nceref.commands.losses import losses
from nceref.commands.mutants import mutants
from nceref.commands.plot_limits import plot_limits
from nceref.commands.prove import prove
from nceref.commands.quadrants import quadrants
from nceref.commands.tables import tables
from nceref.commands.verify import verify
from nceref.errors import NcerefError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of those of the process.
    """
    _die_quietly_of_a_closed_pipe()
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
    import signal

    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(__version__, message="%(prog)s %(version)s")
def nceref() -> None:
    """Check contrastive losses against exact values, hand-derived gradients and theorems."""


for _command in (
    verify, identify, mutants, losses, tables, check, expect, claims, prove, derive, figures, plot_limits,
    quadrants, experiment,
):  # fmt: skip
    nceref.add_command(_command)


if __name__ == "__main__":
    main()
