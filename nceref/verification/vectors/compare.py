"""Judges what an implementation in any language answered on reference vectors, as `verify` judges a target."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nceref.cases.judge import UNSUPPORTED
from nceref.cases.records import Observation, Outcome, Probe
from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.output.text import printable
from nceref.output.words import alike, counted, did_you_mean
from nceref.targets import protocol
from nceref.targets.frameworks.call import ROWS, Trouble, call_request
from nceref.targets.json_answer import answer_of, refusal
from nceref.targets.recorded import Answer, RecordedTarget
from nceref.verification import report as codes
from nceref.verification.report import Report
from nceref.verification.vectors.outputs import OutputLine, RecordedOutputs, read_outputs
from nceref.verification.vectors.ranks import RanksCase, ranks_diagnoses, ranks_observation
from nceref.verification.vectors.ranks_file import read_ranks
from nceref.verification.vectors.records import ERROR, VectorCase, probe_of
from nceref.verification.vectors.rows import whole
from nceref.verification.vectors.store import DATA, MANIFEST, ChecksumError, Vectors, losses_of, read_vectors

NO_LINE = Outcome(trouble=UNSUPPORTED, sentence="the outputs have no line for it")
PathLike = str | os.PathLike[str]


def compare(folder: PathLike, outputs: PathLike, on_progress: Callable[..., Any] | None = None) -> tuple[Report, ...]:
    """Judge a file of outputs, JSON lines in any order, on the vectors of a folder.

    The folder is what ``nceref vectors export`` wrote. There is a report for each loss that the outputs have an answer
    to, for all of the folder where they have none. `on_progress` is as for `verify_with`. Raises `ChecksumError` for
    outputs of another manifest, and for a file of vectors that is not the one of the manifest; `InputError` for a file,
    or a line of one, that is not as it must be.
    """
    recorded = read_outputs(outputs)
    vectors = _answered(folder, recorded)
    if recorded.manifest != vectors.sha256:
        msg = (
            f"{printable(recorded.path)} has answers to other vectors: it names the manifest {recorded.manifest}, and"
            f" the SHA-256 of {Path(folder, MANIFEST)} is {vectors.sha256}; name the folder that was read"
        )
        raise ChecksumError(msg)
    _check_format(vectors, recorded)
    if not Path(folder).samefile(DATA):
        _check_numbers(vectors)
    single = {case.id for each in vectors.cases.values() for case in each}
    # A folder with the files of one loss alone may lack that of ranks.
    ranks = read_ranks(vectors.manifest, folder) if recorded.lines.keys() - single else ()
    cases = single | {case.id for case in ranks}
    for id, line in recorded.lines.items():
        if id not in cases:
            same_name = [known for known in cases if known.rpartition("-")[0] == id.rpartition("-")[0]]
            meant = did_you_mean(sorted(same_name) or alike(id, sorted(cases)), str) or "see nceref vectors list"
            msg = f"{line.where}: {printable(os.fspath(folder))} has no case {printable(id)}; {meant}"
            raise InputError(msg)
    from nceref.verification.verifier import verify_recorded

    judged = tuple(verify_recorded(target, on_progress) for target in _targets(vectors, ranks, recorded))
    return (*judged, *_unanswered(vectors, recorded, {report.loss for report in judged}))


def _check_format(vectors: Vectors, recorded: RecordedOutputs) -> None:
    """Refuse answers in a format that no case of the folder has."""
    formats = {dtype for each in vectors.cases.values() for case in each if case.outputs for dtype in case.formats}
    if recorded.dtype not in formats:
        msg = (
            f"{printable(recorded.path)}, line 1: the answers are in {recorded.dtype}, and the vectors are of"
            f' {", ".join(sorted(formats))}; name the format in the first line, "dtype": "{min(formats)}"'
        )
        raise InputError(msg)


def _check_numbers(vectors: Vectors) -> None:
    """Refuse cases of the package whose numbers were changed: a checksum can be made anew."""
    known = read_vectors(losses=tuple(vectors.cases))
    if known.manifest["corpus"] != vectors.manifest["corpus"]:
        return
    for loss, cases in vectors.cases.items():
        own = {case.id: case for case in known.cases[loss]}
        for case in cases:
            if case.id not in own or not _same_outputs(own[case.id], case):
                corpus = vectors.manifest["corpus"]
                msg = f"case {case.id}: its outputs are not those of corpus {corpus}; export the vectors anew"
                raise ChecksumError(msg)


def _same_outputs(own: VectorCase, case: VectorCase) -> bool:
    """Whether the outputs are those of the package, as far as it has their rows and the folder their formats."""
    if own.outputs.keys() != case.outputs.keys():
        return False
    for name, output in case.outputs.items():
        wanted = own.outputs[name]
        pick = slice(None) if output.rows == wanted.rows or wanted.rows is None else list(wanted.rows)
        pairs = [(output.numbers, wanted.numbers)]
        pairs += [(room, wanted.allowed.get(dtype)) for dtype, room in output.allowed.items()]
        if not all(np.array_equal(x if x.ndim == 0 else x[pick], y) for x, y in pairs):
            return False
    return True


def _unanswered(vectors: Vectors, recorded: RecordedOutputs, judged: Collection[str]) -> Iterator[Report]:
    """A report for each loss of the folder of which no case is answered: too little, whatever the others say."""
    for loss, count in vectors.manifest["counts"].items():
        if loss not in judged:
            reason = f"none of {counted(count, 'case')} is answered; export with --loss the losses that you have"
            yield Report(recorded.implementation, loss, "inconclusive", codes.TOO_LITTLE, reason)


def _targets(vectors: Vectors, ranks: Sequence[RanksCase], recorded: RecordedOutputs) -> Iterator[RecordedTarget]:
    """The losses of which a case is answered, in one process and on several ranks; without an answer, all losses."""
    for loss, cases in vectors.cases.items():
        if not recorded.lines or any(case.id in recorded.lines for case in cases):
            yield _target(vectors, loss, recorded)
        several = {case.id: case for case in ranks if case.joined.loss == loss}
        if several.keys() & recorded.lines.keys():
            yield _target_on_ranks(vectors, loss, several, recorded)


def _answered(folder: PathLike, recorded: RecordedOutputs) -> Vectors:
    """The cases of the losses that are answered; of all losses where an id is in none of their files."""
    losses = losses_of(recorded.lines.keys(), folder)
    every = not losses or recorded.lines.keys() - losses
    return read_vectors(folder, () if every else tuple(sorted(set(losses.values()))))


def _target(vectors: Vectors, loss: str, recorded: RecordedOutputs) -> RecordedTarget:
    """The answers to the cases of a loss, each read in the shapes of its case."""
    seen = [_observation(case, recorded) for case in vectors.cases[loss]]
    # A format of less range has fewer cases.
    possible = sum(o.probe.must_refuse or not o.probe.skip for o in seen)
    return _made(vectors, loss, seen, recorded, max(1, min(vectors.manifest["min_cases"][loss], possible)))


def _target_on_ranks(
    vectors: Vectors, loss: str, cases: Mapping[str, RanksCase], recorded: RecordedOutputs
) -> RecordedTarget:
    made = _made(vectors, loss, [_on_ranks(case, recorded) for case in cases.values()], recorded, 1)
    explained = lambda seen: ranks_diagnoses([(cases[o.probe.id], o) for o in seen if o.outcome.ranks])  # noqa: E731
    return replace(made, name=f"{made.name} on several ranks", explained=explained)


def _made(
    vectors: Vectors, loss: str, seen: Sequence[Observation], recorded: RecordedOutputs, least: int
) -> RecordedTarget:
    return RecordedTarget(
        recorded.implementation,
        get_loss(loss).declaration,
        tuple(o.probe for o in seen),
        {o.probe.id: o.outcome for o in seen},
        _handed_over,
        f"vectors {vectors.manifest['corpus']}",
        {"recorded": printable(Path(recorded.path).name), "manifest": vectors.sha256},
        least,
    )


def _observation(case: VectorCase, recorded: RecordedOutputs) -> Observation:
    """A case with what its line says; raises `InputError`, with its place, for what is no answer to it."""
    probe, line = _probe(case, recorded.dtype), recorded.lines.get(case.id)
    if line is None:
        return Observation(probe, NO_LINE)
    record = dict(line.record)
    if isinstance(grads := record.get("grad"), dict):
        rows = {name: case.outputs[f"grad.{name}"].rows for name in probe.grads}
        record["grad"] = {name: whole(x, probe.grads.get(name), rows.get(name)) for name, x in grads.items()}
    with _placed(line, case.id):
        return Observation(probe, _read(probe, record))


def _on_ranks(case: RanksCase, recorded: RecordedOutputs) -> Observation:
    """The recorded answer to a case on several ranks."""
    line = recorded.lines.get(case.id)
    if line is None or _is_refusal(line.record):
        return _observation(case.joined, recorded)
    with _placed(line, case.id):
        return ranks_observation(case, line.record.get("ranks"), recorded.dtype)


@contextmanager
def _placed(line: OutputLine, id: str) -> Iterator[None]:
    try:
        yield
    except Trouble as error:
        # There are no options here.
        msg = f"{line.where}, case {id}: the target {str(error).removesuffix(f'; {ROWS}')}"
        raise InputError(msg) from None


def _probe(case: VectorCase, dtype: str) -> Probe:
    if dtype not in case.formats:
        declared = get_loss(case.loss).declaration
        return Probe(case.id, declared, case.arguments, dtype, skip=f"the vectors allow no error in {dtype} here")
    return replace(probe_of(case, dtype), must_refuse=case.expect == ERROR)


def _is_refusal(record: Mapping[str, Any]) -> bool:
    return "error" in record or "unsupported" in record


def _read(probe: Probe, record: Mapping[str, Any]) -> Outcome:
    if _is_refusal(record):
        return refusal(record)
    answer = answer_of(record, call_request(probe))
    return Outcome(answer.value, answer.grads, answer.unjudged)


def _handed_over(probe: Probe, answer: Answer) -> Outcome:
    """An answer written as a line, and read as the lines of the file are."""
    _, line = protocol.record(protocol.result(probe.id, *answer), ["result"])
    return _read(probe, line)
