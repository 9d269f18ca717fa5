"""The command line: the group of the commands in `nceref.cli`, and what becomes of errors.

Exit status: 0, all is well; 1, a finding; 2, wrong usage or input, or output that cannot be written; 130, interrupted;
143, interrupted by SIGTERM.
"""

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from nceref import __version__
from nceref.cli.common import INTERRUPTED, WRONG_INPUT, echo_error, show
from nceref.errors import NcerefError, RenamedWarning
from nceref.output import streams
from nceref.output.system import refuse_older

_PACKAGES = ("numpy", "array_api_compat", "scipy", "sympy", "mpmath", "matplotlib", "threadpoolctl")
"""Packages that are installed with this one, and not needed by every command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    `arguments` stand in place of those of the process.
    """
    received: list[int] = []
    try:
        with _terminable(received), streams.guarded(), _warnings():
            status = _status(arguments)
    except streams.ClosedPipeError:
        status = _end_of_pipe()
    except streams.OutputError as error:
        streams.discard()
        click.echo(f"Error: {error}", err=True)
        status = WRONG_INPUT
    sys.exit(128 + received[0] if received else status)


def _status(arguments: Sequence[str] | None) -> int:
    """Run a command; what went wrong is one message on standard error."""
    # Not standalone: by itself, click would exit with 1 when interrupted, which is the status of a finding.
    try:
        refuse_older(click)
        return nceref.main(arguments, prog_name="nceref", standalone_mode=False) or 0
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        echo_error(_usage(error))
    except streams.OutputError:
        raise
    except (NcerefError, OSError) as error:
        echo_error(f"Error: {error}")
    except ModuleNotFoundError as error:
        if (name := (error.name or "").partition(".")[0]) not in _PACKAGES:
            raise
        echo_error(f"Error: this needs the package {name}, which is not installed: pip install {name}")
    except MemoryError as error:
        echo_error(f"Error: out of memory: {error}" if str(error) else "Error: out of memory")
    return WRONG_INPUT


def _usage(error: click.ClickException) -> str:
    """The message as click prints it: usage, a hint, and what was wrong."""
    import io

    if isinstance(error, click.NoSuchOption) and (way := _option_for(error)):
        error = click.UsageError(f"{error.message.rstrip('.')}. Did you mean '{way}'?", error.ctx)
    paper = io.StringIO()
    error.show(file=paper)
    return paper.getvalue().rstrip("\n")


def _option_for(error: click.NoSuchOption) -> str:
    """The option that does what was asked for by another name, such as ``--tau``; empty for other names."""
    from nceref.cases.aliases import SCALARS, match_input

    flags = {flag for option in error.ctx.command.params for flag in option.opts} if error.ctx else set()
    # A report is written into a file, in the format that the option is named after.
    if error.option_name == "--format" and "--markdown" in flags:
        return "--markdown FILE"
    name = match_input(error.option_name.lstrip("-").replace("-", "_"), SCALARS)
    if not name or not flags & {own := f"--{name.replace('_', '-')}", "--set"}:
        return ""
    return own if own in flags else f"--set {name}=VALUE"


@contextlib.contextmanager
def _warnings() -> Iterator[None]:
    """Print warnings about names of ours as a sentence, without the place in the code."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, RenamedWarning):
                echo_error(f"Warning: {message}")
            else:
                usual(message, category, *place, **more)

        warnings.showwarning = show_warning
        yield


@contextlib.contextmanager
def _terminable(received: list[int]) -> Iterator[None]:
    """Have SIGTERM end a command as Ctrl-C does: what it has is saved, and its processes end; it is noted."""

    def interrupt(number: int, frame: object) -> None:
        received.append(number)
        # Ctrl-C reaches every process of the terminal.
        if multiprocessing := sys.modules.get("multiprocessing"):
            import threading

            # The thread that waits for the workers would print that they are gone.
            threading.excepthook = lambda _: None
            for worker in multiprocessing.active_children():
                worker.terminate()
        raise KeyboardInterrupt

    with contextlib.ExitStack() as stack:
        # Who ignores it goes on doing so; in another thread than the first, there are no handlers.
        with contextlib.suppress(ValueError):
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, interrupt)
                stack.callback(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        yield


def _end_of_pipe() -> int:
    """End as other tools do: `nceref losses | head -1` is no error, and a shell sees the signal."""
    streams.discard()
    # Python ignores the signal, and so it must be while a command runs: a pipe to a target may close as well.
    if hasattr(signal, "SIGPIPE"):  # not on Windows
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    return 128 + 13


GROUPS = {
    "Check my loss": {
        "verify": "Check an implementation, and name its bug.",
        "equal": "Say whether two programs are the same loss.",
        "init": "Write a manifest of the losses of a package.",
        "vectors": "Reference vectors for implementations in any language.",
        "expect": "Print the value that a loss should have, and what yours means.",
    },
    "What the papers say": {
        "losses": "List the losses, or show all about one.",
        "tables": "Recompute the published tables and compare.",
        "plot-limits": "Draw the limits of low and high temperature.",
        "figures": "Draw the figures, or check those in a folder.",
        "claims": "List the claims of the sources, show one, or prove them.",
        "derive": "Print a derivation, every step of it checked.",
        "quadrants": "Replay the toy run on four quadrants.",
        "experiment": "Run a small analogue of a published result.",
    },
    "Check nceref itself": {
        "check": "Check the losses against formulas and theorems.",
        "mutants": "List known bugs, show one, or measure how many are found.",
    },
}
"""Purposes of users, each with its commands, the likeliest first, and a line on what each command does."""
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}
"""Every command. Its file is imported when it runs: `nceref --help` must stay fast."""
ALIASES: Mapping[str, tuple[str, ...]] = {
    "identify": ("verify",),
    "compare": ("vectors", "compare"),
    "prove": ("claims", "--prove"),
    "certify": ("check", "--certify"),
}
"""Names that commands had before they became variants of another, which go on working."""


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = [*ALIASES.get(args[0], args[:1]), *args[1:]]
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from nceref.output.text import printable
            from nceref.registry import names_object, unknown

            if names_object(args[0]):
                msg = f"{printable(args[0])} is no command; to check it: nceref verify {printable(args[0])}"
                raise click.UsageError(msg)
            error = unknown("command", args[0], tuple(COMMANDS), "nceref --help")
            raise error
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # click would import every command for its help.
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    verbose = context.params["verbose"]
    if wanted and verbose:
        from nceref.cli.version_page import page_of

        show(page_of())
    elif wanted:
        click.echo(f"nceref {__version__}")
    elif verbose:
        msg = "--verbose goes with --version"
        raise click.UsageError(msg)
    if wanted:
        context.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
# Eager: it is read before --version, wherever it stands.
@click.option("--verbose", is_flag=True, is_eager=True, help="With --version: packages, BLAS, threads and platform.")
@click.option("--version", is_flag=True, expose_value=False, callback=_print_version, help="Show the version and exit.")
def nceref(verbose: bool) -> None:
    """Check contrastive losses against exact values, hand-derived gradients and theorems.

    Output files are replaced. Output folders are created; parents of files must exist.
    """


if __name__ == "__main__":
    main()
