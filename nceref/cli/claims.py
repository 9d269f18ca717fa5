"""`nceref claims`: every statement of the sources with its verdict, all about one, and the proof of the verdicts."""

import click

from nceref.cli.common import FINDING, echo_json, page_format, show


@click.command(short_help="List the claims of the sources, show one, or prove them.")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--verdict", help="Only claims with this verdict, as in --verdict wrong.")
@click.option("--source", help="Only claims whose source has this in its name, as in --source 004.")
@click.option("--latex", is_flag=True, help="With an ID: its formula in LaTeX, in one line, to be copied.")
@click.option("--prove", is_flag=True, help="Run the evidence now, and derive the verdicts from it.")
@page_format(", one object for each claim")
@click.pass_context
def claims(
    context: click.Context,
    /,
    ids: tuple[str, ...],
    verdict: str | None,
    source: str | None,
    latex: bool,
    prove: bool,
    form: str,
) -> None:
    """List the claims of the sources with their verdicts, or show all about each ID.

    Words in place of an ID list the claims that have them, as in `nceref claims "hard negatives"`.

    The verdicts are those that `--prove` derives; numbers and counterexamples of an ID are computed now.

    With `--prove` the exit status is 1 if evidence does not hold, or if a verdict is not the one that the claim states.
    """
    from nceref.cli import claims_page
    from nceref.output.pages import joined

    shown, in_full = claims_page.select(ids, verdict, source), any(map(claims_page.is_id, ids))
    if latex and (prove or form != "text" or not in_full):
        without = "--prove" if prove else f"--format {form}, which has it" if form != "text" else ""
        msg = f"--latex goes {f'without {without}' if without else 'with an ID, as in --latex WL-13'}"
        raise click.UsageError(msg)
    if prove:
        _prove(context, tuple(claim.id for claim in shown), form)
    elif form == "json":
        echo_json([claims_page.record(claim) for claim in shown])
    elif in_full:
        show(joined(claims_page.page_of(claim, latex) for claim in shown), form)
    else:
        show(claims_page.overview(shown), form)


def _prove(context: click.Context, ids: tuple[str, ...], form: str) -> None:
    from nceref.cli import claims_page
    from nceref.output.terminal import progress
    from nceref.theory import prove as proving

    chosen = proving.chosen(ids)
    with progress("running evidence", len(proving.tasks(chosen))) as on_progress:
        evidence = [on_progress(piece) for piece in proving.prove(chosen)]
    proofs = [proving.proof(claim, [e for e in evidence if e.id == claim.id]) for claim in chosen]
    if form == "json":
        echo_json(claims_page.proof_record(proofs))
    else:
        show(claims_page.proofs_page(proofs), form)
    if not all(proof.as_expected for proof in proofs):
        context.exit(FINDING)
