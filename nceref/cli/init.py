"""`nceref init`: a manifest of the losses of a package."""

import click

from nceref.cli.common import FINDING, echo, file_name, output_file, page_format, show, wrote


@click.command(short_help="Write a manifest of the losses of a package.")
@click.argument("package", type=file_name)
@click.option(
    "--out",
    metavar="FILE",
    type=output_file,
    default="nceref.toml",
    show_default=True,
    help="The manifest; - prints it.",
)
@click.option("--force", is_flag=True, help="Replace an existing FILE.")
@click.option(
    "--timeout",
    type=float,
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds for importing one module, and for one call.",
)
@click.option("--isolate", is_flag=True, help="Run PACKAGE without network and write access.")
@page_format()
@click.pass_context
def init(
    context: click.Context, /, package: str, out: str, force: bool, timeout: float, isolate: bool, form: str
) -> None:
    """Recognize the losses of PACKAGE, and write a manifest for `nceref verify` and `pytest --nceref`.

    PACKAGE is package, package.module, file.py or a folder. It is executed, in a process of its own: its public modules
    are imported, and public functions and classes that take the inputs of a loss are called.

    The exit status is 0 if a manifest was written, 1 if nothing was recognized, and 4 if PACKAGE could not be imported
    or has nothing that can be called.
    """
    from pathlib import Path

    from nceref.errors import TargetError
    from nceref.output.files import must_be_writable, write_text
    from nceref.output.terminal import progress
    from nceref.verification.manifest import write
    from nceref.verification.manifest.package import package_name
    from nceref.verification.report import TARGET_FAILED

    name = package_name(package)
    must_be_writable({}, {"--out": out}, {"PACKAGE": name if name.endswith(".py") else None})
    _refuse_to_replace(out, force)
    try:
        with progress("recognizing losses") as on_progress:
            draft = write.draft_manifest(name, timeout, isolate, on_progress)
    except TargetError as error:
        echo(f"Error: {error}", err=True)
        context.exit(TARGET_FAILED)
    if not draft.recognized:
        show(write.page_of(draft), form)
        context.exit(FINDING)
    text = write.manifest_text(draft, "" if out == "-" else Path(out).parent)
    if out == "-":
        echo(text, nl=False)
        return
    write_text(out, text, "--out")
    wrote(out)
    show(write.page_of(draft, out), form)


def _refuse_to_replace(out: str, force: bool) -> None:
    """Raise `click.UsageError` for a file that is there: people write in a manifest."""
    from pathlib import Path

    from nceref.output.text import printable

    path = Path(out)
    if out != "-" and not force and path.is_file() and path.stat().st_size:
        msg = f"{printable(out)} is there already; --force replaces it, --out FILE writes another one, --out - prints"
        raise click.UsageError(msg)
