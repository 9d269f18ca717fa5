"""The catalogue of programs of several ranks: well-formed, and independent of what must find them."""

import ast
import inspect
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from mutants import distributed  # noqa: E402
from mutants.bug import bugs, correct_programs, distributed_programs  # noqa: E402
from mutants.score import CORRECT, Score, in_order, jobs, measure  # noqa: E402
from mutants.source import source  # noqa: E402
from nceref.cli import mutants_page  # noqa: E402
from nceref.diagnosis.conventions import CONVENTIONS  # noqa: E402
from nceref.errors import InputError  # noqa: E402
from nceref.losses import get_loss  # noqa: E402
from nceref.targets.ranks.contract import Contract  # noqa: E402

AXES = {"ranks", "ranks-value", "ranks-scalar", "gather"}
BETWEEN_RANKS = {
    id
    for id, convention in CONVENTIONS.items()
    # The programs of this catalogue take no steps.
    if convention.axis in AXES and not re.search("step|accumulated", id)
}


def test_an_entry_is_well_formed():
    for program in distributed_programs().values():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", program.id)
        assert program.sentence.endswith("."), program.id
        assert "\n" not in program.sentence
        declared = {p.name for p in get_loss(program.loss).parameters}
        assert set(inspect.signature(program.function).parameters) | set(program.settings) <= declared
        named = {*program.named, *(part for other in program.also for part in other.split("+"))}
        assert named <= set(CONVENTIONS) - {"unexplained"}
        assert bool(program.named) == (bool(program.thread) != bool(program.seen)), program.id
        assert re.fullmatch(r"([\w.-]+/[\w.-]+#\d+)?", program.thread)
        assert set(program.options) <= set(Contract.__dataclass_fields__), program.id


def test_the_catalogue_has_the_size_that_was_promised():
    programs = distributed_programs()
    wrong = [program for program in programs.values() if program.named]
    assert len(wrong) >= 24
    assert len(programs) - len(wrong) >= 10
    assert len(BETWEEN_RANKS) >= 12
    # A mix is that of two targets.
    assert {id for program in wrong for id in program.named} >= BETWEEN_RANKS - {"mix-depends-on-ranks"}
    assert len({program.thread for program in wrong if program.thread}) >= 24
    assert not set(programs) & {*bugs(), *correct_programs()}


def test_programs_share_no_code_with_what_must_find_them():
    for path in Path(distributed.__file__).parent.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        whole = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        parts = {node.module for node in nodes if isinstance(node, ast.ImportFrom)} - {"typing"}
        collectives = f"{distributed.__name__}.collectives"
        assert whole | parts <= {"torch", "mutants.bug", collectives}, path.name


def test_a_sample_is_scored_in_processes_that_are_kept():
    sample = jobs(["clip-joined-loss-of-constants", "clip-gather-of-torch"], ["float64"], "distributed", ranks=2)
    score = Score(in_order(measure(sample, processes=1, ranks=2), sample))
    assert [(r.group, r.verdict) for r in score.results] == [("distributed", "differs"), (CORRECT, "conforms")]
    assert score.met, score.results


def test_programs_of_other_shards_are_left_out():
    uneven = [program.id for program in distributed_programs().values() if "shards" in program.options]
    assert {name for name, _ in jobs((), ["float64"], "distributed", ranks=3)}.isdisjoint(uneven)
    with pytest.raises(InputError, match="on 3 ranks"):
        jobs(uneven, ["float64"], "distributed", ranks=3)


def test_the_page_of_a_program_has_its_gather_and_its_options():
    program = distributed_programs()["nt-xent-averaging-gather"]
    assert "class _AveragingGather" in source(program)
    assert (
        "--shards 3,1"
        in mutants_page.page_of(mutants_page.records("distributed")["moco-mean-over-uneven-shards"]).text()
    )
