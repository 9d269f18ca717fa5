"""`nceref vectors`: reference vectors for implementations in any language: list, show, export and check them."""

import click

from nceref.cli.common import FINDING, changed_files, echo_json, show, wrote

_FORMATS = click.Choice(["float64", "float32", "bfloat16", "float16"])


@click.group(short_help="Reference vectors for implementations in any language.")
def vectors() -> None:
    """Inputs with proven outputs and allowed errors, for implementations that no Python can call.

    `nceref compare` judges what an implementation made of them.
    """


@vectors.command("list", short_help="List the losses with vectors, or the cases of some.")
@click.argument("losses", metavar="[LOSS]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the manifest, or one object for each case.")
def list_(losses: tuple[str, ...], as_json: bool) -> None:
    """List how many cases each loss has, or the cases of each LOSS with how many known bugs they see."""
    from nceref.cli import vectors_page
    from nceref.verification.vectors.ranks_file import read_ranks
    from nceref.verification.vectors.store import read_vectors

    read = read_vectors(losses=losses)
    ranks = read_ranks(read.manifest, losses=losses)
    if as_json:
        cases = [*(case for each in read.cases.values() for case in each), *(case.joined for case in ranks)]
        echo_json(
            [vectors_page.line_of(case) for case in cases] if losses else {**read.manifest, "sha256": read.sha256}
        )
    else:
        show(vectors_page.cases(read, ranks) if losses else vectors_page.overview(read, ranks))


@vectors.command(short_help="Show all about one case.")
@click.argument("id_", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the record as it is exported.")
def info(id_: str, as_json: bool) -> None:
    """Show the inputs of one case, its proven outputs, what errors are allowed, and which known bugs it sees."""
    from nceref.cli import vectors_page
    from nceref.registry import choose
    from nceref.verification.vectors.ranks_file import ranks_record, read_ranks
    from nceref.verification.vectors.records import record_of
    from nceref.verification.vectors.store import read_vectors

    read = read_vectors()
    ranks = {case.id: case for case in read_ranks(read.manifest)}
    cases = {case.id: case for each in read.cases.values() for case in each} | {id: x.joined for id, x in ranks.items()}
    if id_ in read.cases:
        msg = f"{id_} is a loss, and ID that of a case; its cases are listed by `nceref vectors list {id_}`"
        raise click.UsageError(msg)
    (case,) = choose("case", [id_], cases, "nceref vectors list LOSS")
    if as_json:
        echo_json(ranks_record(ranks[case.id]) if case.id in ranks else {"loss": case.loss, **record_of(case)})
    else:
        show(vectors_page.page_of(case, ranks.get(case.id)))


@vectors.command(short_help="Write vectors for another program to read.")
@click.option("--loss", "losses", metavar="LOSS", multiple=True, help="May be repeated.  [default: all]")
@click.option("--dtype", type=_FORMATS, help="Only the cases of this format, with what it is allowed.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "npz", "safetensors", "c-header"]),
    default="json",
    show_default=True,
    help="Another one stands beside the JSON.",
)
@click.option("--full", is_flag=True, help="Large cases with all rows of their gradients; takes minutes.")
@click.option("--out", type=click.Path(file_okay=False), required=True, help="Folder.")
def export(losses: tuple[str, ...], dtype: str | None, format_: str, full: bool, out: str) -> None:
    """Write MANIFEST.json and a file for each loss; docs/vectors.md has the format."""
    from nceref.verification.vectors.export import export

    with changed_files():
        for path in export(out, losses, dtype or "", format_, full):
            wrote(path)


@vectors.command(short_help="Compare vectors with the formulas.")
@click.argument("folder", required=False)
@click.option("--loss", "losses", metavar="LOSS", multiple=True, help="May be repeated.  [default: all]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check(context: click.Context, folder: str | None, losses: tuple[str, ...], as_json: bool) -> None:
    """Check the vectors of this package, or those in FOLDER: checksums, contents, and the formulas anew.

    Numbers of small cases are enclosed again, by python-flint (pip install 'nceref[certify]') or, without it, by
    decimals; large cases are compared with the program. The exit status is 1 if a number is contradicted, 7 if a file
    was changed.
    """
    from nceref.cli import vectors_page
    from nceref.output.terminal import progress
    from nceref.verification.vectors.check import check_all, summary
    from nceref.verification.vectors.ranks_check import check_cases
    from nceref.verification.vectors.ranks_file import read_ranks
    from nceref.verification.vectors.store import check_files, read_vectors

    with changed_files():
        files = check_files(folder)
        read = read_vectors(folder, losses)
        ranks = read_ranks(read.manifest, folder, losses)
    cases = {loss: [*each, *(r for r in ranks if r.joined.loss == loss)] for loss, each in read.cases.items()}
    with progress("computing outputs", len(cases)) as on_progress:
        results = [on_progress(result) for result in check_all(cases, check_cases)]
    if as_json:
        echo_json(summary(results))
    else:
        show(vectors_page.checked(results, files))
    if any(result.wrong for result in results):
        context.exit(FINDING)
