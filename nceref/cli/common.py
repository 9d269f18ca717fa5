"""The common part of all commands: exit statuses, and the printing of pages, records and lines."""

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nceref.output import streams
from nceref.output.text import harmless

if TYPE_CHECKING:
    from nceref.output.pages import Page

C = TypeVar("C", bound=Callable[..., Any] | click.Command)
FINDING, WRONG_INPUT, CHANGED_FILE, INTERRUPTED = 1, 2, 7, 130
"""Exit statuses other than 0: a finding, a wrong call, vectors that are not those of their manifest, an interrupt."""
LONGEST_ERROR = 4000
"""Characters of a message that are shown: a name in it may have any length."""

figure_folder = click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    default="figures",
    show_default=True,
    help="Write into this folder; it is created if it does not exist.",
)
"""Option of the commands that draw figures."""
figure_formats = click.option(
    "--format",
    "formats",
    type=click.Choice(["svg", "png", "pdf"]),
    multiple=True,
    help="Draw this alone, without manifest and index; may be repeated.",
)
"""Option of the commands that draw figures."""


class FileName(click.types.StringParamType):
    """The name of a file; an option in its place is refused."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is."""
        options = ctx.command.get_params(ctx) if ctx else []
        if value.startswith("-") and any(value.partition("=")[0] in option.opts for option in options):
            self.fail(f"{value} is an option; a file of that name is ./{value}", param, ctx)
        return value


class OutputFile(FileName):
    """The name of a file to write; - is standard output, under any of its names."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is, or -."""
        name = super().convert(value, param, ctx)
        return "-" if name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1") else name


file_name, output_file = FileName(), OutputFile()
suites = click.Choice(["quick", "standard", "full"])


def json_file(about: str) -> Callable[[C], C]:
    """The option --json of commands that print a page: JSON in its place, or in a file beside it."""
    return click.option(
        "--json", "json_file", metavar="[FILE]", is_flag=False, flag_value="-", type=output_file, help=about
    )


def page_format(json: str = "", *, file: bool = False) -> Callable[[C], C]:
    """The option --format of a command that prints a page, as its argument `form`.

    `json` says what is printed as JSON, which has an option of its own as well; empty: nothing is, but where this may
    name a `file`, see `json_file`.
    """
    from nceref.output.pages import FORMS

    def add(command: C) -> C:
        if file:
            command = json_file("Print JSON; with FILE, write it beside the page.")(command)
        elif json:
            about = f"Print JSON{json}."
            command = click.option("--json", "form", flag_value="json", default="text", help=about)(command)
        forms = click.Choice(["text", *FORMS, *(["json"] if json or file else [])])
        return click.option(
            "--format", "form", type=forms, default="text", show_default=True, help="Print the page in this format."
        )(command)

    return add


def show(page: "Page", form: str = "text") -> None:
    """Print a page; text is as wide as the terminal, and in its colors."""
    if form != "text":
        (echo_xml if form == "html" else partial(echo, nl=False))(page.written(form))
        return
    from nceref.output.terminal import screen

    click.echo(page.text(**screen()), nl=False)


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text, on standard error if `err`; what is not printable in it is escaped."""
    click.echo(harmless(str(text)), err=err, nl=nl)


def echo_json(content: Any) -> None:
    """Print JSON."""
    from nceref.output.json_text import json_text

    echo_json_text(json_text(content))


def echo_json_text(text: str) -> None:
    """Print what is JSON already, so that it is the same data in every encoding."""
    import json
    import re

    plain = text if streams.is_utf8() else re.sub(r"[^\x00-\x7f]", lambda one: json.dumps(one[0])[1:-1], text)
    click.echo(plain, nl=False)


def echo_xml(text: str) -> None:
    """Print XML."""
    click.echo(text if streams.is_utf8() else text.encode("ascii", "xmlcharrefreplace").decode(), nl=False)


def echo_error(message: str) -> None:
    """Print what was wrong on standard error; of a message that is too long, the beginning and the end."""
    half = LONGEST_ERROR // 2
    cut = message if len(message) <= LONGEST_ERROR else f"{message[:half]} [...] {message[-half:]}"
    echo(cut, err=True)


@contextlib.contextmanager
def changed_files() -> Iterator[None]:
    """End the command with a status of its own where vectors are not those of their manifest."""
    from nceref.verification.vectors.store import ChecksumError

    try:
        yield
    except ChecksumError as error:
        echo_error(f"Error: {error}")
        click.get_current_context().exit(CHANGED_FILE)


def wrote(path: str | os.PathLike[str]) -> None:
    """Say that a file was written: on standard error, for JSON on standard output must stay JSON."""
    echo(f"wrote {os.fspath(path)}", err=True)
