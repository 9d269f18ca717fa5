"""Explanations of several runs, such as formats, joined: once where they agree, with the runs that have them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nceref.cases.records import Diagnosis, DiagnosisPart
from nceref.diagnosis.gaps import listed


@dataclass(frozen=True)
class ExplainedRun:
    """The explanations of one run.

    Attributes
    ----------
    words : str
        The run in a sentence, such as ``in float32``; empty where there is no other.
    diagnoses : tuple of Diagnosis
        The first is the explanation.
    training : mapping
        Effect of the difference on training, as plain data; empty where nothing was measured.
    """

    words: str
    diagnoses: tuple[Diagnosis, ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)


def joined_diagnoses(runs: Sequence[ExplainedRun]) -> tuple[Diagnosis, ...]:
    """Each explanation once, with the runs that have it; what comes first in a run stands before what comes second."""
    alike: dict[tuple[str, ...], list[tuple[str, Diagnosis]]] = {}
    for place in range(max((len(run.diagnoses) for run in runs), default=0)):
        for run in runs:
            for one in (replace(each, first=place == 0) for each in run.diagnoses[place : place + 1]):
                alike.setdefault((one.id, one.lead.text, one.formula, one.fix), []).append((run.words, one))
    return tuple(map(_joined, alike.values()))


def _joined(group: Sequence[tuple[str, Diagnosis]]) -> Diagnosis:
    first = group[0][1]
    where = f"{listed(dict.fromkeys(words for words, _ in group))} {first.where}".strip()
    if len(group) == 1:
        return replace(first, where=where)
    same = dict.fromkeys((s.text, s.role) for _, one in group for s in one.parts)
    parts = [_joined_part([(words, s) for words, one in group for s in one.parts if (s.text, s.role) == each],
                             len(group)) for each in same]  # fmt: skip
    return replace(first, parts=tuple(parts), where=where)


def _joined_part(own: Sequence[tuple[str, DiagnosisPart]], runs: int) -> DiagnosisPart:
    """The part of an explanation that several runs have, with the cases of each where these differ."""
    cases: dict[str, list[str]] = {}
    for words, part in own:
        cases.setdefault(part.cases, []).append(words)
    first = own[0][1]
    text = first.text if len(own) == runs else f"{listed(words for words, _ in own)} {first.text}"
    if len(cases) == 1:
        return replace(first, text=text)
    return replace(first, text=text, cases=", and ".join(f"{listed(words)} {each}" for each, words in cases.items()))


def joined_training(runs: Sequence[ExplainedRun]) -> dict[str, Any]:
    """The effect of the difference on training: numbers of the first run, and with several runs those of each.

    The sentences of all runs are joined to one; `training_lines` has them line by line.
    """
    measured = [run for run in runs if run.training]
    if not measured:
        return {}
    by_run = [{"run": run.words, **run.training} for run in measured]
    whole = {**measured[0].training, "sentence": "; ".join(training_lines({"runs": by_run}))}
    return {**whole, "runs": by_run} if len(measured) > 1 else whole


def training_lines(training: Mapping[str, Any]) -> Iterator[str]:
    """The effect on training, `Report.training`, in a sentence for each group of runs that have the same."""
    alike: dict[str, list[str]] = {}
    for each in training.get("runs", [training] if training else []):
        alike.setdefault(str(each["sentence"]), []).append(str(each["run"]) if "runs" in training else "")
    for sentence, words in alike.items():
        yield f"{listed(words)} {sentence}".strip()
