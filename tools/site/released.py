"""The section of a loss's page about released packages: in one process, and on several ranks."""

from collections.abc import Iterable, Mapping
from typing import Any

from nceref.losses import LossFunction
from nceref.output.markdown import escaped, markdown_table
from nceref.targets.peers.peer import Peer, PeerTarget, peers
from nceref.verification.audit import known
from nceref.verification.audit.ranks import RANKS


def section(loss: LossFunction) -> str:
    """Targets of released packages, how to judge them, and known differences; empty where no package has this loss."""
    targets = [(p, t) for p in peers().values() for t in p.targets if t.loss == loss.name]
    if not targets:
        return ""
    rows = [(_link(peer), f"`nceref verify {t.name}`", _reasons(t, None)) for peer, t in targets]
    parts = [
        markdown_table(("package", "judged by", "known differences in one process"), rows),
        _on_ranks(targets),
        "[The audit](../../audit.md) has the releases and the verdicts.",
    ]
    return "\n\n".join(filter(None, parts))


def _on_ranks(targets: Iterable[tuple[Peer, PeerTarget]]) -> str:
    """A table of every way to use them on several ranks; where none is declared, a sentence."""
    targets = list(targets)
    rows = [
        (_link(peer), f"`nceref verify {t.name}{_arguments(way)} --ranks {RANKS}`", _reasons(t, way))
        for peer, t in targets
        for way in t.ranks
    ]
    apart = [f"`{t.name}`" for _, t in targets if not t.ranks]
    words = f"Not judged on several ranks: {', '.join(apart)}." if apart else ""
    if not rows:
        return words
    table = markdown_table(("package", "judged by", "known differences on several ranks"), rows)
    about = (
        f"On several ranks, what data-parallel training gets from {RANKS} processes is compared with the loss of the "
        "joined batch and its gradient; W is the number of ranks. [The audit](../../audit.md#on-several-ranks) has "
        "the factors and the angles that were measured."
    )
    return "\n\n".join(filter(None, (about, table, words)))


def _link(peer: Peer) -> str:
    return f"[{peer.name}]({peer.link})"


def _arguments(way: Mapping[str, Any]) -> str:
    return "".join(f" --init {name}={value}" for name, value in way.items())


def _reasons(target: PeerTarget, way: Mapping[str, Any] | None) -> str:
    """Known differences of a target in one process (`way` is None), or of one way to use it on several ranks."""
    entries = (entry for entry in known.known() if entry.target == target.name and entry.ranks == way)
    said = dict.fromkeys(f"{escaped(entry.reason)} [Source]({entry.link})" for entry in entries)
    return " ".join(said) or "none"
