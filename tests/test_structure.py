"""The house, read from the code: imports point down, there is no circle, and the machinery knows no loss by name."""

import ast
import graphlib
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from sweep import sweep

import nceref

ROOT = Path(nceref.__file__).parent
FLOORS = (
    {"errors", "spec"},
    {"output"},
    {"engine", "registry"},
    {"chunked"},
    {"family", "tolerance", "losses"},
    {"training", "exact"},
    {"checks", "theory", "torch", "jax"},
    {"verification", "experiments"},
    {"cli", "testing"},
    {"__main__"},
)
"""Rooms of one floor do not import one another, but for `losses`, which wraps the files of `family`, by name."""
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
KNOWLEDGE = (
    "family",
    "theory/claims",
    "theory/derivations",
    "theory/figures",
    "theory/scenarios",
    "theory/tables",
    "training/quadrants",
    "experiments",
    "verification/dense/losses",
    "verification/probe/losses",
    "verification/bugs/wrong",
    "verification/bugs/right",
    "verification/bugs/independent",
    "verification/bugs/distributed",
    "verification/peers/packages",
)
"""Folders of declarations about particular losses; the rest is machinery."""
FILES = sorted(ROOT.rglob("*.py"))
MODULES = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__") for path in FILES}
ORDINARY_WORDS = {"simple", "alignment", "nce", "uniformity"}
"""Names of losses that are words of other things too."""


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


LOOKED_AT = (
    ast.Module, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Name, ast.Attribute, ast.arg,
    ast.keyword, ast.Constant,
)  # fmt: skip


@cache
def nodes(tree):
    """Those of a file that any test looks at, walked through once for all tests."""
    return [node for node in ast.walk(tree) if isinstance(node, LOOKED_AT)]


def module(path):
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def room(name):
    return name.split(".")[1]


def imports(tree):
    """Modules of this package that a file imports, function-level imports included."""
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nceref":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "nceref")


@cache
def graph():
    """Module by module, what it imports."""
    return {module(path): set(imports(parsed(path))) for path in FILES if module(path) != "nceref"}


def upward(edges):
    return [
        (name, other)
        for name, others in edges.items()
        for other in others - {"nceref"}
        if room(name) != room(other) and FLOOR[room(other)] >= FLOOR[room(name)]
    ]


def circle(edges):
    """The modules of one circle, or nothing. A package's door opens its own rooms, and they may not use the door."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_every_room_has_a_floor():
    assert set(FLOOR) == {room(name) for name in graph()}
    assert len([path for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"]) <= 12
    assert len(list(ROOT.glob("*.py*"))) <= 10


def test_imports_point_down():
    assert upward(graph()) == []


def test_there_is_no_circle():
    assert circle(graph()) == []


def test_an_arrow_that_points_up_and_a_circle_are_seen():
    assert upward({**graph(), "nceref.engine.heads": {"nceref.family.clip"}}) == [
        ("nceref.engine.heads", "nceref.family.clip")
    ]
    assert upward({"nceref.checks.run": {"nceref.theory.claim"}})
    low, high = "nceref.engine.heads", "nceref.engine.passes"
    assert {low, high} <= set(circle({**graph(), low: {high}, high: graph()[high] | {low}}))
    assert set(imports(ast.parse("def f():\n    from nceref.engine import heads"))) == {low}


def test_no_package_imports_a_leftover():
    assert {other for others in graph().values() for other in others} <= MODULES


def is_knowledge(path):
    return path.relative_to(ROOT).as_posix().startswith(tuple(f"{folder}/" for folder in KNOWLEDGE))


@sweep("path", [path for path in FILES if not is_knowledge(path)], ids=lambda path: str(path.relative_to(ROOT)))
def test_the_machinery_knows_no_loss_by_name(path):
    tree = parsed(path)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    docstrings = {
        id(n.body[0].value) for n in nodes(tree) if isinstance(n, documented) and ast.get_docstring(n, clean=False)
    }
    texts = {n.value for n in nodes(tree) if isinstance(n, ast.Constant) and id(n) not in docstrings}
    names = set(nceref.all_losses()) - ORDINARY_WORDS
    assert not names & {text for text in texts if isinstance(text, str)}


def length(function):
    """Lines of a function without its docstring."""
    doc = function.body[0].end_lineno - function.body[0].lineno + 1 if ast.get_docstring(function, clean=False) else 0
    return function.end_lineno - function.lineno + 1 - doc


def test_functions_are_short():
    functions = ((path, node) for path in FILES for node in nodes(parsed(path)) if isinstance(node, ast.FunctionDef))
    assert [f"{path}: {node.name}" for path, node in functions if length(node) > 40] == []


def test_every_loss_has_its_hand_worked_example():
    tests = {path.stem.removeprefix("test_") for path in (Path(__file__).parent / "family").glob("test_*.py")}
    assert tests == set(nceref.all_losses())


def test_class_names_are_unique():
    classes = defaultdict(set)
    for path in FILES:
        for node in nodes(parsed(path)):
            if isinstance(node, ast.ClassDef):
                classes[node.name].add(module(path))
    assert {name: where for name, where in classes.items() if len(where) > 1} == {}


BANNED = re.compile(
    "found|told|asked|noted|said|lonely|telling|endless|spoken|heats?|scenes?|knobs?|worlds?|sightings?|canary|canaries|"
    "allowances?|asks?|tells?|knows?|wants?|fly|flies|says"
)
"""Words of our own, and what programs do not do; CONTRIBUTING.md has the words that stand for them."""
PYTHONS_OWN = {"FileNotFoundError", "ModuleNotFoundError", "PackageNotFoundError"}
FRAMEWORKS_OWN = {"world_size", "get_world_size"}
_STILL_BANNED_IN = {
    "nceref/verification/diagnosis",
    "tests/theory",
    "tests/verification/dense",
    "tests/verification/diagnosis",
}


def is_sentence(node):
    """Whether a function's name is one: a test, or a known bug, whose id is its name."""
    return node.name.startswith("test_") or any("bug(" in ast.unparse(by) for by in node.decorator_list)


def identifiers(tree):
    """Names of variables, attributes, parameters, functions and classes."""
    for node in nodes(tree):
        match node:
            case ast.FunctionDef() if is_sentence(node):
                continue
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.arg(arg=str(name)) | ast.keyword(arg=str(name)):
                yield name


def banned_words(tree):
    """Identifiers in which one of the words is a word."""
    return {name for name in set(identifiers(tree)) - PYTHONS_OWN - FRAMEWORKS_OWN if is_banned(name)}


@cache
def is_banned(name):
    return any(BANNED.fullmatch(word.lower()) for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))


def test_names_are_those_of_the_field():
    folders = (ROOT, ROOT.parent / "benchmarks", Path(__file__).parent)
    names = defaultdict(set)
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        where = path.parent.relative_to(ROOT.parent).as_posix()
        names[where] |= banned_words(parsed(path))
    assert {where: words for where, words in names.items() if words and where not in _STILL_BANNED_IN} == {}


def test_a_banned_word_is_seen_wherever_a_name_stands():
    for source in ("found = 1", "x.told", "def f(asked): ...", "def _endless(): ...", "class Scene: ...", "f(knobs=1)"):
        assert banned_words(ast.parse(source)), source
    for source in ("profound = 1", "FileNotFoundError", "def test_is_found(): ...", "'found'", "foundation.x"):
        assert not banned_words(ast.parse(source)), source
