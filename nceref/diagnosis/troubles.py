"""Where a target gives no number: it raises, ends the process, does not return, or returns what is no number."""

from collections.abc import Sequence

from nceref.cases.judge import UNSUPPORTED
from nceref.cases.records import Diagnosis, DiagnosisPart, Observation, Outcome
from nceref.diagnosis.features import where
from nceref.output.words import out_of
from nceref.targets.frameworks.call import ROWS, WHICH
from nceref.targets.process.child import NOT_TRIED
from nceref.targets.protocol import BROKEN

MOST = 3
"""Kinds that are named."""


def troubles(observations: Sequence[Observation]) -> tuple[Diagnosis, ...]:
    """Events in the place of an answer, each with its cases.

    `observations`: all of a run. Result: one for each exception, or other event, with its name as the id; at most
    `MOST`.
    """
    judged = [o for o in observations if not o.probe.skip and o.outcome.trouble != UNSUPPORTED]
    kinds: dict[tuple[str, str], list[Observation]] = {}
    for observation in judged:
        outcome = observation.outcome
        if outcome.trouble:
            kinds.setdefault((outcome.trouble, _kind(outcome)), []).append(observation)
    # What was not called has no cause of its own: it is counted beside what kept it from being called.
    left = [o for o in judged if o.outcome.trouble == NOT_TRIED]
    called = [kind for kind in kinds if kind[0] != NOT_TRIED] or [*kinds]
    last = max(called, key=lambda kind: judged.index(kinds[kind][-1]), default=None)
    return tuple(_diagnosis(*kind, kinds[kind], judged, left if kind == last else ()) for kind in called[:MOST])


_NAMES = {
    BROKEN: "breaks the protocol",
    "not-a-number-type": "returns something else than numbers",
    "wrong-shape": "returns what has another shape",
}
"""What has one cause, however it is said of each case."""


def _kind(outcome: Outcome) -> str:
    """The kind of an event, which several cases share: of an exception its type, which stands before its message."""
    return _NAMES.get(outcome.trouble) or outcome.sentence.partition(":")[0]


def _diagnosis(
    id: str, beginning: str, seen: Sequence[Observation], judged: Sequence[Observation], left: Sequence[Observation]
) -> Diagnosis:
    first = seen[0]
    same = all(o.outcome.sentence == first.outcome.sentence for o in seen)
    text = (first.outcome.sentence if same else beginning).partition(WHICH)[0]
    example = "" if same else f"; on {first.probe.id} it {first.outcome.sentence}"
    # Where nothing else is known, what it is called with may be wrong as well.
    fix = f"Let it answer wherever the reference does, as on {first.probe.id}."
    if id == BROKEN:
        fix = "Write one line a call there, the answer; all else belongs on standard error."
    elif all(ROWS in o.outcome.sentence for o in seen):
        fix = "Return the mean of the rows; to have the rows judged: --set reduction=none."
    elif id in _NAMES:
        fix = f"Return the loss on {first.probe.id} in the form that it has on the other cases."
    rest = f"; not tried after that: {out_of(len(left), len(judged), 'case')}" if left and seen != left else ""
    part = DiagnosisPart(f"your loss {text}", f"{where(seen, judged)}{example}{rest}")
    return Diagnosis(id, (part,), fix=fix if id == BROKEN or len(seen) + len(left) < len(judged) else "")
