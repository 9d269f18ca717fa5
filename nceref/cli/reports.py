"""The common part of commands with a report: its files and formats, and the words of the call that made it."""

import shlex
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nceref.cli.common import C, echo, echo_json_text, echo_xml, json_file, output_file, show, wrote

if TYPE_CHECKING:
    from nceref.output.pages import Page

_FILES = {"json_file", "html_file", "markdown_file", "junit_file", "repro_file"}
_PRINTED: dict[str, Callable[[str], object]] = {
    "json": echo_json_text,
    "junit": echo_xml,
    "html": echo_xml,
    "markdown": partial(echo, nl=False),
    "badge": echo_xml,
}
"""The function that prints a format in place of the page; of several formats, the first is printed."""


def report_files(command: C) -> C:
    """The options that name the files of a report."""
    page = "Write it as a page for a browser; - prints it."
    for option in (
        click.option(
            "--junit", "junit_file", metavar="FILE", type=output_file, help="Write it as JUnit XML; - prints it."
        ),
        click.option("--html", "html_file", metavar="FILE", type=output_file, help=page),
        click.option(
            "--markdown", "markdown_file", metavar="FILE", type=output_file, help="Write it as Markdown; - prints it."
        ),
        json_file("Print the report as JSON; with FILE, write it beside the page."),
    ):
        command = option(command)
    return command


def is_page_printed(given: Mapping[str, Any]) -> bool:
    """Whether a page is printed, and no other format in its place; `given` as for `show_report`."""
    return not any(given.get(f"{name}_file") == "-" for name in _PRINTED)


def show_report(
    makers: Mapping[str, Callable[[], str]], given: Mapping[str, Any], page: Callable[[], "Page"], form: str = "text"
) -> None:
    """Write the files of a report, each of which is named on standard error, and print it.

    `makers` has the function that makes the text of each format: ``json``, ``html``, ``junit``, ``markdown``,
    ``badge``, ``repro``. `given` has for each the option ``FORMAT_file``: a path, - for standard output in place of the
    page, or None. `form` is the format that is printed: one of these, or one of pages.
    """
    # What took long to find is shown also if a file cannot be written.
    try:
        for option, make in makers.items():
            if given[f"{option}_file"] not in (None, "-"):
                _write(given[f"{option}_file"], make(), f"--{option}")
    finally:
        wanted = [n for n in _PRINTED if n in makers and (given.get(f"{n}_file") == "-" or n == form)]
        if wanted:
            _PRINTED[wanted[0]](makers[wanted[0]]())
        else:
            show(page(), form)


def _write(path: str, text: str, option: str) -> None:
    from nceref.output.files import write_text

    if text:
        write_text(path, text, option)
        wrote(path)
    else:
        echo(f"{path} is not written: no small failing input was found", err=True)


def command_of(context: click.Context) -> str:
    """The words of this call, but for the files that it writes."""
    words = context.command_path.split()
    for option in context.command.params:
        name = option.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE or name in _FILES:
            continue
        value = context.params[name]
        if isinstance(option, click.Argument):
            words.append(str(value))
        elif isinstance(option, click.Option) and option.is_flag:
            words.append(option.opts[0])
        else:
            for each in value if option.multiple else [value]:
                words += [f"{option.opts[0]}={each}"] if str(each).startswith("-") else [option.opts[0], str(each)]
    return shlex.join(words)
