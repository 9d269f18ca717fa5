"""`nceref prove`: the evidence of the claims is run, and the verdicts are derived from it."""

import click

from nceref.cli.common import FINDING, echo_json, show


@click.command(short_help="Run the evidence of the claims and derive their verdicts.")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: what held, and what it took.")
@click.pass_context
def prove(context: click.Context, /, ids: tuple[str, ...], as_json: bool) -> None:
    """Run the evidence of all claims, or of each ID, and derive the verdicts.

    The exit status is 1 if evidence does not hold, or if a verdict is not the one that the claim states.
    """
    from nceref.cli import claims_page
    from nceref.output.terminal import progress
    from nceref.theory import prove as proving

    chosen = proving.chosen(ids)
    with progress("running evidence", len(proving.tasks(chosen))) as on_progress:
        evidence = [on_progress(piece) for piece in proving.prove(chosen)]
    proofs = [proving.proof(claim, [e for e in evidence if e.id == claim.id]) for claim in chosen]
    if as_json:
        echo_json(claims_page.proof_record(proofs))
    else:
        show(claims_page.proofs_page(proofs))
    if not all(proof.as_expected for proof in proofs):
        context.exit(FINDING)
