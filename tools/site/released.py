"""The section of a loss's page about released packages: in one process, and on several ranks."""

from collections.abc import Iterable, Sequence

from nceref.losses import LossFunction
from nceref.output.markdown_parts import escaped, markdown_table
from nceref.targets.peers.peer import PeerTarget, get, peers
from nceref.verification.audit.audit import command_of, is_on_ranks, known


def section(loss: LossFunction) -> str:
    """Targets of released packages, how to judge them, and known differences; empty where no package has this loss."""
    targets = [t for p in peers().values() for t in p.targets if t.loss == loss.name]
    if not targets:
        return ""
    parts = [
        _table(targets, "known differences in one process", on_ranks=False),
        _on_ranks(targets),
        "[The audit](../../audit.md) has the releases and the verdicts.",
    ]
    return "\n\n".join(filter(None, parts))


def _table(targets: Iterable[PeerTarget], title: str, *, on_ranks: bool) -> str:
    """A row for each of these targets in the manifest of released packages; empty where it has none."""
    rows = []
    for entry, differences in known():
        peer, target = get(entry.table["target"])
        if target in targets and is_on_ranks(entry) == on_ranks:
            reasons = dict.fromkeys(f"{escaped(each['reason'])} [Source]({each['link']})" for each in differences)
            rows.append((f"[{peer.name}]({peer.link})", f"`{command_of(entry)}`", " ".join(reasons) or "none"))
    return markdown_table(("package", "judged by", title), rows) if rows else ""


def _on_ranks(targets: Sequence[PeerTarget]) -> str:
    """A table of every way to use them on several ranks; where none is declared, a sentence."""
    apart = [f"`{t.name}`" for t in targets if not t.ranks]
    words = f"Not judged on several ranks: {', '.join(apart)}." if apart else ""
    if not (table := _table(targets, "known differences on several ranks", on_ranks=True)):
        return words
    about = (
        "On several ranks, what data-parallel training gets from 2 processes is compared with the loss of the "
        "joined batch and its gradient; W is the number of ranks. [The audit](../../audit.md#on-several-ranks) has "
        "the factors and the angles that were measured."
    )
    return "\n\n".join(filter(None, (about, table, words)))
