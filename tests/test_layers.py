"""The architecture, read from the code: arrows point down, families do not leak, files stay short."""

import ast
from pathlib import Path

import pytest

import nceref

ROOT = Path(nceref.__file__).parent
ORDER = (
    {"errors", "files"},
    {"spec", "registry"},
    {"namespaces"},
    {"arrays", "embeddings", "formulas", "number_systems", "verdicts"},
    {"entries", "inputs", "similarity", "tiles", "pages", "parameters"},
    {"distances", "layouts"},
    {"labels"},
    {"exponentials"},
    {"rows", "heads"},
    {"plan"},
    {"comparisons"},
    {"family"},
    {"settings"},
    {"threads"},
    {"engine"},
    {"anatomy"},
    {"losses"},
    {"network"},
    {"optimizers"},
    {"training", "quadrants"},
    {"claim"},
    {"worlds", "statements"},
    {"claims", "prove", "chain", "derivation", "derivations"},
    {"exact", "cases", "rounding_forward"},
    {"rounding_backward"},
    {"tolerance"},
    {"properties"},
    {"check", "sizes", "allowance"},
    {"scenes"},
    {"dense", "peer", "mutation"},
    {"peers", "mutants", "variants"},
    {"verification"},
    {"score", "audit", "testing"},
    {"expect", "place", "report", "terminal"},
    {"tables", "figure", "quadrant_panels"},
    {"experiment"},
    {"analogues"},
    {"experiments"},
    {"figures", "drawing"},
    {"listing", "stubs", "claim_pages", "score_pages", "quadrant_pages", "quadrant_pictures", "experiment_pages"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
KNOWLEDGE = (
    "family",
    "tables",
    "claims",
    "worlds",
    "derivations",
    "figures",
    "dense",
    "mutants",
    "variants",
    "peers",
    "analogues",
    "experiments",
)
"""Folders of declarations about particular losses; the rest is machinery."""
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
FILES = sorted(ROOT.rglob("*.py"))


def room(path):
    """The module, or the folder, that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path):
    """Modules of this package that a file imports, function-level imports included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nceref":
            parts = node.module.split(".")[1:]
            yield from [parts[0]] if parts else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from [a.name.split(".")[1] for a in node.names if a.name.startswith("nceref.")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
    here = room(path)
    if here == "__init__":
        pytest.skip("the lazy public door names every home")
    assert here in LEVEL, f"{here} has no place in the order of layers"
    up = [name for name in imported(path) if name in LEVEL and LEVEL[name] > LEVEL[here]]
    assert not up, f"{here} imports {up}, which stand above it"


@pytest.mark.parametrize("path", [p for p in FILES if room(p) not in KNOWLEDGE], ids=lambda p: p.name)
def test_the_machinery_knows_no_loss_by_name(path):
    names = set(nceref.all_losses()) - {"simple", "alignment", "nce", "uniformity"}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(n.body[0].value) for n in ast.walk(tree)
            if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(n)}  # fmt: skip
    said = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docs}
    assert not names & {word for word in said if isinstance(word, str)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_functions_are_short(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            doc = node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node) else 0
            assert node.end_lineno - node.lineno + 1 - doc <= 40, node.name


def test_every_loss_has_its_hand_worked_example():
    tests = {p.stem.removeprefix("test_") for p in (Path(__file__).parent / "family").glob("test_*.py")}
    assert tests == set(nceref.all_losses())
