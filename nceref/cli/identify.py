"""`nceref identify`: which loss of the family this is."""

from typing import Any

import click

from nceref.cli.common import echo, echo_json, show


@click.command(short_help="Say which loss of the family an implementation is.")
@click.argument("target")
@click.option("--init", metavar="K=V", multiple=True, help="Constructor argument of a class.")
@click.option("--call", metavar="EXPR", help='How it is called, as in "f(z1, z2, tau=temperature)".')
@click.option("--set", "settings", metavar="K=V", multiple=True, help="What TARGET intends: normalize=none, factor=ID.")
@click.option(
    "--framework", type=click.Choice(["numpy", "torch", "jax"]), help="Framework of TARGET; default: recognized."
)
@click.option("--timeout", type=float, default=30.0, show_default=True, metavar="S", help="Seconds for one case.")
@click.option("--isolate", is_flag=True, help="Run TARGET without network and write access.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object for each loss that was tried.")
@click.pass_context
def identify(context: click.Context, /, target: str, as_json: bool, **given: Any) -> None:
    """Try TARGET against every loss whose inputs fit, and name the one it is, or the one it is with a difference.

    The exit status is 0 if it is exactly one of them, with or without gradients, 1 if it is not, and 4 if it could not
    be run as any. TARGET is executed, once for all losses.
    """
    from nceref.cli.options import pairs
    from nceref.errors import TargetError
    from nceref.output.terminal import progress
    from nceref.verification.identify import candidates, page_of, record
    from nceref.verification.report import TARGET_FAILED

    options = {name: given[name] for name in ("call", "framework", "timeout", "isolate")}
    settings = {"init": pairs("--init", given["init"]), **options, **pairs("--set", given["settings"])}
    try:
        with progress("trying losses") as on_progress:
            tried = candidates(target, on_progress=on_progress, **settings)
    except TargetError as error:
        echo(f"Error: {error}", err=True)
        context.exit(TARGET_FAILED)
    if as_json:
        echo_json([record(candidate) for candidate in tried])
    else:
        show(page_of(target, tried))
    context.exit(0 if tried and tried[0].report.ok else 1)
