"""The catalogue of programs of several ranks: well-formed, and independent of what must find them."""

import ast
import inspect
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from nceref.losses import get_loss  # noqa: E402
from nceref.verification.bugs import distributed  # noqa: E402
from nceref.verification.bugs.bug import bugs, correct_programs, distributed_programs  # noqa: E402
from nceref.verification.conventions import CONVENTIONS  # noqa: E402
from nceref.verification.ranks.contract import Contract  # noqa: E402

AXES = {"ranks", "ranks-value", "ranks-scalar", "gather"}
BETWEEN_RANKS = {id for id, convention in CONVENTIONS.items() if convention.axis in AXES}


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
    assert {id for program in wrong for id in program.named} >= BETWEEN_RANKS
    assert len({program.thread for program in wrong if program.thread}) >= 24
    assert not set(programs) & {*bugs(), *correct_programs()}


def test_programs_share_no_code_with_what_must_find_them():
    for path in Path(distributed.__file__).parent.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        whole = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        parts = {node.module for node in nodes if isinstance(node, ast.ImportFrom)} - {"typing"}
        collectives = f"{distributed.__name__}.collectives"
        assert whole | parts <= {"torch", "nceref.verification.bugs.bug", collectives}, path.name
