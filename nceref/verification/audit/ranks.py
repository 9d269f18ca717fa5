"""Distributed losses of released packages, judged on two ranks: what data-parallel training gets from them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nceref.output.files import replace as replace_file
from nceref.output.markdown import markdown_table
from nceref.targets.peers.peer import Peer, PeerTarget, get, peers
from nceref.verification.audit.audit import AGREES, MISSING, NEW, STALE, AuditRow, audit, row
from nceref.verification.audit.known import known
from nceref.verification.audit.page import markdown

if TYPE_CHECKING:
    from nceref.verification.report import Report

RANKS, SUITE, DTYPE = 2, "quick", "float64"


@dataclass(frozen=True)
class RanksRow:
    """The result for one way to use a loss on several ranks.

    Attributes
    ----------
    judged : AuditRow
    init : mapping
        With what it was constructed.
    value, gradient : str
        What data-parallel training gets, in words: the joined value, the gradient of the embeddings.
    """

    judged: AuditRow
    init: Mapping[str, Any]
    value: str = ""
    gradient: str = ""

    @property
    def command(self) -> str:
        """What judges it."""
        init = "".join(f" --init {name}={value}" for name, value in self.init.items())
        return f"nceref verify {self.judged.target}{init} --ranks {RANKS} --suite {SUITE}"


def ways() -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Every declared way to use a loss on several ranks: the name of the target, and what it is constructed with."""
    return tuple((t.name, way) for peer in peers().values() for t in peer.targets for way in t.ranks)


def judged_on_ranks(name: str, init: Mapping[str, Any]) -> RanksRow:
    """Judge one way to use a loss on several ranks.

    Parameters
    ----------
    name : str
        Of the target.
    init : mapping
        One of its `ranks`.

    Returns
    -------
    RanksRow
        As missing, with the command that installs it, where it is not there.
    """
    from nceref.verification.verifier import verify

    peer, target = get(name)
    if peer.version is None:
        return RanksRow(AuditRow(name, peer.name, "", target.loss, "", MISSING, why=(peer.command,)), init)
    report = verify(name, init=init, ranks=RANKS, suite=SUITE, dtype=DTYPE)
    return ranks_row(peer, target, init, peer.version, report)


def ranks_row(peer: Peer, target: PeerTarget, init: Mapping[str, Any], version: str, report: "Report") -> RanksRow:
    """Compare a report with what is known of this way to use it.

    Parameters
    ----------
    peer, target : Peer, PeerTarget
    init : mapping
    version : str
    report : Report

    Returns
    -------
    RanksRow
    """
    here = [e for e in known() if e.target == target.name and version in e.versions and DTYPE in e.dtypes]
    own = [e for e in here if e.ranks == init]
    # What is known of one process shows here too, where the suite has its cases.
    judged = row(peer, target, version, DTYPE, report, [*(e for e in here if e.ranks is None), *own], strict=False)
    failing = [r.id for r in report.results if r.status in ("fail", "error")]
    stale = tuple(why for entry in own for why in entry.outdated(failing, judged.diagnosis))
    judged = replace(judged, status=STALE, why=stale) if stale and judged.status != NEW else judged
    return RanksRow(judged, dict(init), *_words(report))


def _words(report: "Report") -> tuple[str, str]:
    """The value and the gradient of the embeddings, where the temperature is an ordinary one."""
    training = report.training
    if report.verdict == "error":
        return "", ""
    named = {id for d in report.diagnosis for id in d.id.split("+")}
    right = training.get("right", ("value", "gradient"))
    value = "right" if "value" in right else "W times the right one" if "value-times-ranks" in named else "another"
    if "gradient" in right:
        return value, "right"
    if training.get("angle") is None or training.get("length") is None:
        return value, "none"
    times = f"{_range(*training['length'])} times"
    low, high = (math.cos(math.radians(angle)) for angle in reversed(training["angle"]))
    if high > _PARALLEL and low > _PARALLEL:
        return value, f"{times} the right one"
    return value, f"cosine {_range(low, high)} with the right one, {times} its length"


_PARALLEL = 1 - 1e-6


def _range(low: float, high: float) -> str:
    ends = f"{low:.2g}", f"{high:.2g}"
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


_ABOUT = f"""## On several ranks

What data-parallel training gets from losses that are released for several processes: {RANKS} processes, gradients
averaged over them, against the loss of the joined batch and its gradient. The {SUITE} suite in {DTYPE}; numbers of the
gradient of the embeddings, at temperatures around 0.15. With the arguments of a line as `--init`,
`nceref verify TARGET --init NAME=VALUE --ranks {RANKS} --suite {SUITE}` prints the whole report.

"""


def section(rows: Iterable[RanksRow]) -> str:
    """The rows as a section of the page, in GitHub Markdown: a table, and below it what is known.

    Parameters
    ----------
    rows : iterable of RanksRow
    """
    rows = [each for each in rows if each.judged.status != MISSING]
    head = ("target", "constructed with", "release", "value", "gradient", "differs by")
    lines = [
        (
            f"`{each.judged.target}`",
            ", ".join(f"`{name}={value}`" for name, value in each.init.items()) or "defaults",
            f"{each.judged.peer} {each.judged.version}",
            each.value,
            each.gradient,
            _named(each.judged),
        )
        for each in rows
    ]
    return _ABOUT + "\n".join([markdown_table(head, lines), "", *_reasons(rows), ""])


def _named(judged: AuditRow) -> str:
    words = " or ".join(f"`{id}`" for id in judged.diagnosis)
    return words if judged.status != AGREES or words else "nothing"


def _reasons(rows: Iterable[RanksRow]) -> Iterable[str]:
    for each in rows:
        for e in known():
            if e.target == each.judged.target and e.ranks == each.init and each.judged.version in e.versions:
                init = ", ".join(f"`{name}={value}`" for name, value in each.init.items()) or "defaults"
                yield f"- `{e.target}`, {init}: {e.reason} [Source]({e.link})"


def whole_page(rows: Iterable[AuditRow], on_ranks: Iterable[RanksRow]) -> str:
    """The page of the audit: losses in one process, then on several ranks."""
    return markdown(rows) + "\n" + section(on_ranks)


def update(path: str) -> None:
    """Write the page of the audit anew, for what is installed."""
    on_ranks = [judged_on_ranks(name, way) for name, way in ways()]
    replace_file(path, whole_page(audit(), on_ranks).encode())
