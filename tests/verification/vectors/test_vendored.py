"""Vendored tests: they pass a right loss and fail a wrong one where there is no nceref.

`make vendored` runs them with an interpreter of its own, whose environment has nothing but a library:
NCEREF_VENDORED_PYTHON is its path.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import programs
import pytest
from click.testing import CliRunner
from sweep import sweep

from nceref.cli.vectors import export as command
from nceref.errors import InputError
from nceref.verification.vectors import vendored
from nceref.verification.vectors.packed import is_large
from nceref.verification.vectors.store import read_vectors
from nceref.verification.vectors.vendored import MOST, export_tests
from nceref.verification.vectors.vendored_text import LIBRARIES, RUNNERS

LOSSES = ("nt_xent", "info_nce", "supcon_out")
OWN = os.environ.get("NCEREF_VENDORED_PYTHON", "")
BLOCKED = "assert importlib.util.find_spec('nceref') is None" if OWN else "sys.modules['nceref'] = None"
START = f"import importlib.util\nimport sys\nsys.path[:0] = {{paths!r}}\n{BLOCKED}\n"
RUN = {
    "unittest": START + "import unittest\nunittest.main(module=None, argv=['unittest', *sys.argv[1:]])",
    "pytest": START + "import pytest\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', *sys.argv[1:]]))",
}
"""Programs that have no nceref, wherever it is installed."""


def packages():
    """Folders of packages; of an environment of its own, none has to be named."""
    return [] if OWN else [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]


def need(library):
    """Skip where a library is missing."""
    found = find_spec(library)
    if OWN:
        found = not subprocess.run([OWN, "-c", f"import {library}"], capture_output=True, check=False).returncode
    if not found:
        pytest.skip(f"{library} is not installed")


def vendor(folder, library, runner="unittest", losses=LOSSES):
    """Export tests of some losses, and name the functions of `programs` in them."""
    for one in export_tests(folder, losses, library=library, runner=runner):
        text = one.test.read_text(encoding="utf-8")
        assert text.count("import my_loss as loss") == 1
        one.test.write_text(text.replace("import my_loss", f"import {one.loss}"), encoding="utf-8")
    shutil.copy(Path(programs.__file__).with_name(f"dense_{library}.py"), folder / "my_package.py")


def ran(folder, runner="unittest", bug="", losses=LOSSES):
    """The exit status of the tests, and what they print."""
    program = RUN[runner].format(paths=[str(folder), *packages()])
    names = [f"test_{loss}" + (".py" if runner == "pytest" else "") for loss in losses]
    # Isolated, and without the paths that an editable installation adds.
    flags = ["-I"] if OWN else ["-I", "-S"]
    around = os.environ | {"BUG": bug, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [OWN or sys.executable, *flags, "-c", program, *names],
        cwd=folder, env=around, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def wrong_quantities(text):
    """What the failures name, with the formats."""
    return {*re.findall(r"^(?:\w*Error: |E +AssertionError: )(\S+) in (\w+) is wrong, cases: \d+ of \d+", text, re.M)}


MESSAGE = re.compile(
    r"case [\w.-]+, [\w.]+ in float\d\d:(?: at \[\d+, \d+\], the worst of \d+ wrong entries,)? "
    r"got \S+, expected \S+, allowed error \S+"
    r"|case [\w.-]+, grad.\w+ in float\d\d: got none; remove it from GRADIENTS .*"
)
KEYS = {"nt_xent": "grad.z2", "info_nce": "grad.keys", "supcon_out": "grad.embeddings"}


@pytest.fixture(scope="module", params=LIBRARIES)
def exported(request, tmp_path_factory):
    need(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    # A folder of tests has other files.
    (folder / "test_other.py").write_text("assert True\n", encoding="utf-8")
    vendor(folder, request.param)
    assert (folder / "test_other.py").read_text(encoding="utf-8") == "assert True\n"
    return request.param, folder


@pytest.mark.machine
def test_a_right_loss_passes_without_nceref(exported):
    status, text = ran(exported[1])
    assert (status, text.splitlines()[-1]) == (0, "OK"), text


@pytest.mark.machine
@pytest.mark.parametrize("bug", ["factor", "temperature", "gradient"])
def test_a_wrong_loss_fails_and_the_quantity_is_named(exported, bug):
    library, folder = exported
    losses = LOSSES if library == "numpy" else LOSSES[1:2]
    status, text = ran(folder, bug=bug, losses=losses)
    wrong = {quantity for quantity, _ in wrong_quantities(text)}
    assert status == 1
    assert {KEYS[loss] for loss in losses} <= wrong
    assert ("value" in wrong) == (bug != "gradient")
    assert {dtype for _, dtype in wrong_quantities(text)} == {"float64", "float32"}
    lines = [line for line in text.splitlines() if line.startswith("case ")]
    assert lines
    assert all(map(MESSAGE.fullmatch, lines)), lines


@pytest.mark.machine
@pytest.mark.skipif(bool(OWN), reason="its environment has no pytest")
@pytest.mark.parametrize(("bug", "status"), [("", 0), ("gradient", 1)])
def test_pytest_runs_them(tmp_path, bug, status):
    vendor(tmp_path, "numpy", "pytest", losses=("info_nce",))
    got, text = ran(tmp_path, "pytest", bug, losses=("info_nce",))
    expected = set(product(["grad.keys"], ["float64", "float32"])) if bug else set()
    assert (got, wrong_quantities(text)) == (status, expected), text
    assert ("11 passed" if not bug else "2 failed, 9 passed") in text


def edited(text, old, new):
    assert text.count(old) == 1
    return text.replace(old, new)


PASSES = {
    "value only": ("return loss(", "return (lambda *given: loss(*given)[0])(", "skipped=6"),
    "in order": ("return loss(", "return (lambda *x: (loss(*x)[0], [*loss(*x)[1].values()]))(", "OK\n"),
    "fewer gradients": ('GRADIENTS = ["queries", "keys", "temperature"]', 'GRADIENTS = ["keys"]', "OK\n"),
    "one of two settings": ('"normalize": ["l2"]', '"normalize": ["none", "l2"]', "OK\n"),
}  # fmt: skip
FAILS = {
    "no case": ("LOWEST_TEMPERATURE = 0.0", "LOWEST_TEMPERATURE = 9.0", "leave out every case"),
    "other vectors": ('SHA256 = "', 'SHA256 = "0', "export both files anew"),
    "an error": ("return loss(", "return loss(0,", "case designed-0.3-0194576c in float64: call() raised TypeError"),
    "a row for a mean": ("return loss(", "return (lambda *given: np.ones(2))(", "got 2 numbers, expected 1"),
    "not finite": (
        "return loss(",
        "return (lambda *given: np.nan)(",
        "value in float32 is not finite on 13 of 13 cold",
    ),
    "another way to call": ('# ["queries", "keys", "negatives"', '["queries", "keys", "negatives"', "is wrong, cases"),
    "an unknown input": ('GRADIENTS = ["queries"', 'GRADIENTS = ["negatives"', "no case that is judged has"),
}


EDITS = PASSES | FAILS
ONE_BY_ONE = """
import unittest
for name in sys.argv[1:]:
    done = unittest.main(module=None, exit=False, argv=["unittest", name])
    print("status", int(not done.result.wasSuccessful()), file=sys.stderr, flush=True)
"""


@pytest.fixture(scope="module")
def obeyed(tmp_path_factory):
    """Exit status and output of the tests by the edit of their file, all in one process."""
    folder = tmp_path_factory.mktemp("edited")
    vendor(folder, "numpy", losses=("info_nce",))
    text = (folder / "test_info_nce.py").read_text(encoding="utf-8")
    for i, (old, new, _) in enumerate(EDITS.values()):
        (folder / f"test_{i}.py").write_text(edited(text, old, new), encoding="utf-8")
    program = START.format(paths=[str(folder), *packages()]) + ONE_BY_ONE
    names = [f"test_{i}" for i in range(len(EDITS))]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, *names], cwd=folder, capture_output=True, text=True, check=False
    )
    parts = re.findall(r"(.*?)^status (\d)\n", done.stderr, re.DOTALL | re.MULTILINE)
    return {name: (int(status), said) for name, (said, status) in zip(EDITS, parts, strict=True)}


@pytest.mark.machine
@pytest.mark.skipif(bool(OWN), reason="one environment is enough")
@sweep("name, said", [(name, said) for name, (_, _, said) in EDITS.items()])
def test_what_a_maintainer_edits_is_obeyed(obeyed, name, said):
    status, text = obeyed[name]
    assert (status, said in text) == (int(name in FAILS), True), text


ALL = ("numpy", "pytest")
IMPORTED = {"functools", "hashlib", "json", "math", "unittest", "pathlib", "my_package"}


SLOW = pytest.mark.slow(reason="the files of other losses, by the same template")
MORE = (*LOSSES, "clip", "cross_entropy", "multi_direction", "nce")


@pytest.fixture(scope="module", params=[MORE, pytest.param((), marks=SLOW)], ids=["some", "all"])
def vectors(request):
    return read_vectors(losses=request.param)


@pytest.fixture(scope="module")
def every(tmp_path_factory, vectors):
    """The files of each library and runner: of one of these for more losses than of the others."""
    folder = tmp_path_factory.mktemp("every")
    few = replace(vectors, cases={name: vectors.cases[name] for name in LOSSES})
    made = {}
    for library, runner in product(LIBRARIES, RUNNERS):
        with pytest.MonkeyPatch.context() as patched:
            key = library, runner
            patched.setattr(vendored, "read_vectors", lambda losses, key=key: vectors if key == ALL else few)
            made[key] = [*export_tests(folder / f"{library}-{runner}", library=library, runner=runner)]
    return made


def test_a_file_is_short_and_of_python_3_8_and_imports_its_library_alone(every):
    for (library, runner), one in ((key, one) for key, each in every.items() for one in each):
        text = one.test.read_text(encoding="utf-8")
        tree = ast.parse(text, feature_version=(3, 8))
        names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {name.partition(".")[0] for name in names} <= IMPORTED | {library}
        assert len(text.splitlines()) < 200
        assert max(map(len, text.splitlines())) <= 120
        first = next(line for line in text.splitlines() if not line.startswith("#") and line)
        assert first == "from my_package import my_loss as loss  # <- the function under test"
        command = f"nceref vectors export --loss {one.loss} --as test --for {library} --runner {runner} --out DIR"
        data = sha256(one.data.read_bytes()).hexdigest()
        assert all(said in text for said in (command, data, "CC0-1.0", "cannot see", "bfloat16"))
        assert f"{one.kept} of {one.count} cases" in text


def test_vectors_are_small_and_have_each_geometry_temperature_and_setting(every, vectors):
    for one in every[ALL]:
        content = one.data.read_bytes()
        assert len(content) <= MOST
        known = {case.id: case for case in vectors.cases[one.loss]}
        ids = [record["id"] for record in json.loads(content)["cases"]]
        assert (len(ids), len({*ids}), one.count) == (one.kept, one.kept, len(known))
        small = {name for name, case in known.items() if not is_large(case) and case.outputs}
        for part in ("geometry", "temperature"):
            parts = [{vendored._NAME.fullmatch(name)[part] for name in names} for names in (small, ids)]
            assert parts[0] == parts[1]
        assert {*map(settings, map(known.get, ids))} == {settings(known[name]) for name in small}
        left_out = sum(map(int, re.findall(r"(\d+) cases?", one.left_out)))
        assert left_out == one.count - one.kept > 0


def settings(case):
    return str(sorted(case.settings.items()))


def test_numbers_are_those_of_the_vectors_bit_by_bit(every, vectors):
    known = {case.id: case for case in vectors.cases["supcon_out"]}
    (one,) = (each for each in every["torch", "pytest"] if each.loss == "supcon_out")
    for record in json.loads(one.data.read_bytes())["cases"]:
        case = known[record["id"]]
        given = {name: getattr(x, "tolist", lambda x=x: x)() for name, x in case.arguments.items()}
        assert {name: x for name, x in {**record["inputs"], **record["settings"]}.items() if x is not None} == given
        assert record["outputs"] == {name: x.numbers.tolist() for name, x in case.outputs.items()}
        for dtype, rooms in record["allowed"].items():
            assert rooms == {name: x.allowed[dtype].ravel().tolist() for name, x in case.outputs.items()}


def test_fewer_bytes_leave_out_what_there_is_more_of(monkeypatch, tmp_path):
    monkeypatch.setattr(vendored, "MOST", 60_000)
    (one,) = export_tests(tmp_path, ("nt_xent",), library="numpy")
    assert one.data.stat().st_size <= 60_000
    assert re.fullmatch(r"1 case with 131 rows, \d+ cases beyond 60 kB", one.left_out)
    ids = [record["id"] for record in json.loads(one.data.read_bytes())["cases"]]
    assert len({name.partition("-")[0] for name in ids}) == 14
    assert len({name.split("-")[1] for name in ids}) == 11


def test_a_file_of_somebody_is_not_replaced(tmp_path):
    [one] = export_tests(tmp_path, ("nce",), library="numpy")
    assert [*export_tests(tmp_path, ("nce",), library="numpy")] == [one]
    one.test.write_text("# with another call()\n", encoding="utf-8")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=re.escape(f"`out` has {one.test} already, with other contents; `force`")):
        # Of the first loss nothing is written either.
        next(export_tests(tmp_path, ("simple", "nce"), library="numpy"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    [*_] = export_tests(tmp_path, ("nce",), library="numpy", force=True)
    assert "def call(" in one.test.read_text(encoding="utf-8")


WRONG = {
    "--as test --loss nce": "--as test needs the library that the loss uses: --for torch",
    "--for torch --loss nce": "--for is an option of --as test: add --as test, or leave --for out",
    "--runner pytest": "--runner is an option of --as test",
    "--force": "--force is an option of --as test",
    "--as test --for jax --dtype float32": "leave --dtype out",
    "--as test --for jax --format npz": "leave --format out",
    "--as test --for jax --full": "leave --full out",
    "--as test --for cupy": "'cupy' is not one of 'torch', 'numpy', 'jax'",
    "--as test --for jax --loss nt_xnet": "no loss with vectors named 'nt_xnet'; did you mean 'nt_xent'?",
}


@sweep("words, said", WRONG.items())
def test_wrong_options_are_refused_with_what_to_do(tmp_path, words, said):
    given = CliRunner().invoke(command, [*words.split(), "--out", str(tmp_path / "new")])
    assert given.exit_code
    assert said in " ".join((given.output + str(given.exception)).split())
    assert not (tmp_path / "new").exists()
