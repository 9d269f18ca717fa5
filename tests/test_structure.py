"""The structure, read from the code: imports of a folder form no circle, and the machinery knows no loss by name."""

import ast
import graphlib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from sweep import sweep

import nceref

ROOT = Path(nceref.__file__).parent
CLONE = ROOT.parent
KNOWLEDGE = (
    "family",
    "theory/claims",
    "theory/derivations",
    "theory/figures",
    "theory/scenarios",
    "theory/tables",
    "training/quadrants",
    "experiments",
    "diagnosis/dense/losses",
    "targets/peers/packages",
)
"""Folders of declarations about particular losses; the rest is machinery."""
FILES = sorted(ROOT.rglob("*.py"))
ORDINARY_WORDS = {"simple", "alignment", "nce", "uniformity"}
"""Names of losses that are words of other things too."""


def parsed(code):
    """The import statements of a program, and its texts that are no docstrings."""
    nodes = list(ast.walk(ast.parse(code)))
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    docstrings = {id(n.body[0].value) for n in nodes if isinstance(n, documented) and ast.get_docstring(n, clean=False)}
    texts = (n.value for n in nodes if isinstance(n, ast.Constant) and id(n) not in docstrings)
    imports = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
    return imports, {text for text in texts if isinstance(text, str)}


@cache
def parsed_file(path):
    """The same of a file; trees of all files would fill the memory."""
    return parsed(path.read_text(encoding="utf-8"))


def module(path):
    return ".".join(path.relative_to(CLONE).with_suffix("").parts).removesuffix(".__init__")


def imports(statements, modules):
    """Modules that a file imports, of those given; also inside functions and for types alone."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules else node.module


def arrows(imported):
    """For each folder, which of its files and subfolders import which: from modules and what each imports."""
    folders = defaultdict(lambda: defaultdict(set))
    for name, others in imported.items():
        for other in others:
            one, two = name.split("."), other.split(".")
            # Where both paths part. A file is no part of its own folder's `__init__`, and the other way round.
            parting = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), None)
            if parting is not None:
                folders[".".join(one[:parting])][one[parting]].add(two[parting])
    return folders


def circle(edges):
    """The members of one circle, or nothing."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def graph(package):
    paths = {module(path): path for path in sorted((CLONE / package).rglob("*.py"))}
    return {name: {x for x in imports(parsed_file(path)[0], paths) if x in paths} for name, path in paths.items()}


@pytest.mark.parametrize("package", ["nceref", "tools", "benchmarks", "mutants"])
def test_the_imports_of_no_folder_form_a_circle(package):
    assert {folder: circle(edges) for folder, edges in arrows(graph(package)).items() if circle(edges)} == {}


def test_a_circle_is_seen_in_every_folder_and_inside_functions():
    line = "def f():\n    from nceref.engine import heads"
    assert set(imports(parsed(line)[0], {"nceref.engine.heads"})) == {"nceref.engine.heads"}
    for one, two, folder in (
        ("nceref.engine.heads", "nceref.family.clip", "nceref"),
        ("nceref.targets.process.messages", "nceref.targets.child", "nceref.targets"),
        ("nceref.theory.claim", "nceref.theory.claims.siglip", "nceref.theory"),
    ):
        assert circle(arrows({one: {two}, two: {one}})[folder])
        assert not circle(arrows({one: {two}, two: set()})[folder])


def test_what_is_imported_is_there():
    known = set(graph("nceref"))
    for path in FILES:
        absent = {x for x in imports(parsed_file(path)[0], known) if x.split(".")[0] == "nceref"} - known
        assert absent == set(), path


def is_knowledge(path):
    return path.relative_to(ROOT).as_posix().startswith(tuple(f"{folder}/" for folder in KNOWLEDGE))


@sweep("path", [path for path in FILES if not is_knowledge(path)], ids=lambda path: str(path.relative_to(ROOT)))
def test_the_machinery_knows_no_loss_by_name(path):
    names = set(nceref.all_losses()) - ORDINARY_WORDS
    assert not names & parsed_file(path)[1]


EXAMPLES = {path.stem.removeprefix("test_"): path for path in (Path(__file__).parent / "family").glob("test_*.py")}


def test_every_loss_has_its_hand_worked_example():
    assert EXAMPLES.keys() == nceref.all_losses().keys()


@sweep("name", EXAMPLES)
def test_the_printed_gradient_stands_above_the_one_that_is_worked_by_hand(name):
    printed, example = nceref.get_loss(name).declaration.gradient, EXAMPLES[name].read_text(encoding="utf-8")
    assert " ".join(printed.split()) in " ".join(example.split())
