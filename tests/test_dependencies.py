"""What is needed: NumPy and array-api-compat to verify, click for the command; the rest for other commands.

Everything runs in two processes: in one of them, nothing else but Python's own modules can be imported.
"""

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from types import ModuleType

import click
import pytest
from programs import plain

from nceref import cli
from nceref.cli import version_page
from nceref.errors import UnavailableError
from nceref.output.system import OLDEST, refuse_older

ROOT = Path(cli.__file__).parents[2]
NEEDED = {"numpy", "array_api_compat"}
# Every process reads it as it starts, also that in which a target runs.
REFUSING = """
    import os, sys

    class Refusing:
        allowed = {*sys.stdlib_module_names, *os.environ["ALLOWED"].split()}

        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] not in Refusing.allowed:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Refusing())
"""
ALONE = """

def alone(q, k, tau):
    try:
        import sympy
    except ModuleNotFoundError:
        return with_gradients(q, k, tau)
    raise ValueError("there is SymPy")
"""
MANIFEST = """
    [[target]]
    target = "losses.py:with_gradients"
    loss = "info_nce"
    suite = "quick"

    [[target]]
    target = "losses.py:doubled"
    loss = "info_nce"
    suite = "quick"
    calls = 0
"""
JOBS = """
    import contextlib, io, json, re, sys

    import losses
    import nceref
    from nceref import testing

    def shown(report):
        # A page of JUnit has the seconds that it took.
        junit = re.sub(r' time="[^"]*"', "", report.to_junit())
        pages = [str(report), report.to_json(), junit, report.to_html(), report._repr_html_()]
        ids = [one.id for one in report.diagnosis]
        return {"verdict": report.verdict, "ids": ids, "sizes": [len(page) for page in pages]}

    targets = (losses.with_gradients, losses.doubled)
    some = {"suite": "quick", "case": ("designed-0.3", "seven-0.5", "aligned-0.07", "n17-0.3")}
    done = {one.__name__: shown(nceref.verify(one, "info_nce", **some)) for one in targets}
    done["alone"] = shown(nceref.verify("losses.py:alone", "info_nce", calls=0, **some))
    testing.assert_conforms(losses.with_gradients, "info_nce", **some)
    try:
        testing.assert_conforms(losses.doubled, "info_nce", **some)
    except AssertionError as error:
        done["failure"] = str(error)
    with nceref.config(threads=2, block=256):
        import numpy as np

        z1, z2 = np.random.default_rng(0).standard_normal((2, 600, 4))
        done["large"] = float(nceref.losses.nt_xent(z1, z2, temperature=0.5))
    # Where nothing is refused, what was imported all the same.
    done["imported"] = sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
"""
COMMANDS = """
    def output(*words):
        from nceref.cli import main

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(list(words))
            except SystemExit as error:
                code = error.code
        return code, out.getvalue(), err.getvalue()

    # Those of the test: the command needs them besides.
    if refusing := [one for one in sys.meta_path if hasattr(one, "allowed")]:
        refusing[0].allowed.add("click")
        case = ("--suite", "quick", "--case", "seven-0.5")
        done["one"] = output("verify", "losses.py:doubled", "--loss", "info_nce", *case)
        done["manifest"] = output("verify", "--manifest", "nceref.toml", "--json")
        done["version"] = output("--version", "--verbose")
        done["derive"] = output("derive", "tau-zero")
        done["figures"] = output("figures", "temperature-easy-hard", "--out", "figures")
    sys.__stdout__.write(json.dumps(done))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    losses = Path(plain.__file__).read_text(encoding="utf-8") + ALONE
    for name, text in (("sitecustomize.py", REFUSING), ("losses.py", losses), ("nceref.toml", MANIFEST)):
        (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
    return folder


def outcome(folder, words, **environment):
    ended = subprocess.run(
        [sys.executable, *words, "-c", textwrap.dedent(JOBS) + textwrap.dedent(COMMANDS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))), **environment},
        cwd=folder, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def alone(folder):
    """What is done where nothing can be imported but what is needed."""
    return outcome(folder, [], ALLOWED=" ".join({*NEEDED, "nceref", "losses"}))


@pytest.fixture(scope="module")
def installed(folder):
    """The same where everything is installed."""
    (folder / "sitecustomize.py").rename(folder / "not_read.py")
    return outcome(folder, [])


def test_verify_needs_numpy_and_array_api_compat_alone(alone):
    assert alone["with_gradients"]["verdict"] == alone["alone"]["verdict"] == "conforms"
    assert (alone["doubled"]["verdict"], alone["doubled"]["ids"]) == ("differs", ["outer-factor-2"])
    assert min(alone["doubled"]["sizes"]) > 300
    assert alone["failure"].startswith("outer-factor-2: the value fails on 4 of 4 cases")


def test_nothing_else_is_imported_where_it_is_installed(alone, installed):
    assert installed["alone"]["verdict"] == "error"
    both = [{name: one[name] for name in ("with_gradients", "doubled", "failure")} for one in (alone, installed)]
    assert both[0] == both[1]
    # What runs as Python starts, from .pth files of an installation, is not imported by the package.
    assert not set(installed["imported"]) & packages() - NEEDED - {"threadpoolctl"}


def test_without_threadpoolctl_results_are_within_rounding(alone, installed):
    assert alone["large"] == pytest.approx(installed["large"], rel=1e-13)
    assert "threadpoolctl" in installed["imported"]


def test_the_command_needs_click_besides(alone):
    code, page, errors = alone["one"]
    assert (code, errors) == (1, "")
    assert "outer-factor-2" in page
    code, text, errors = alone["manifest"]
    assert (code, errors) == (1, "")
    assert [one["verdict"] for one in json.loads(text)["targets"]] == ["conforms", "differs"]
    code, page, errors = alone["version"]
    assert (code, errors) == (0, "")
    assert "kernel and threads need threadpoolctl" in " ".join(page.split())


@pytest.mark.parametrize(("command", "package"), [("derive", "sympy"), ("figures", "matplotlib")])
def test_a_command_that_needs_more_names_what_is_missing(alone, command, package):
    code, page, error = alone[command]
    assert (code, page) == (2, "")
    assert error == f"Error: this needs the package {package}, which is not installed: pip install {package}\n"


def packages():
    """Those that are installed by default, as they are imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[<>=]", one)[0].replace("-", "_") for one in project["dependencies"]}


def test_the_default_installation_has_what_every_command_needs():
    assert packages() == {"click", *cli._PACKAGES} == {name.replace("-", "_") for name in version_page.PACKAGES}


def test_the_oldest_versions_are_those_that_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = dict(one.split(">=") for one in project["dependencies"])
    assert {name: declared[name.replace("_", "-")] for name in OLDEST} == OLDEST
    assert OLDEST.keys() > NEEDED


@pytest.mark.parametrize("name", OLDEST)
def test_a_package_that_is_too_old_is_refused_and_any_other_is_not(name):
    package, oldest = ModuleType(name), OLDEST[name]
    numbers = [int(number) for number in oldest.split(".")]
    # click has had no version since 8.2.
    refuse_older(package)
    for version in (oldest, f"{oldest}.0", f"{oldest}rc1", f"{numbers[0]}.{numbers[1] + 10}", f"{numbers[0] + 1}.0"):
        package.__version__ = version
        refuse_older(package)
    for version in (f"{numbers[0]}.{numbers[1] - 1}.9", f"{numbers[0] - 1}.{numbers[1] + 5}", f"{numbers[0]}"):
        package.__version__ = version
        with pytest.raises(UnavailableError) as caught:
            refuse_older(package)
        called = name.replace("_", "-")
        needed = f"nceref needs {called} {oldest} or later, and this Python has {called} {version}"
        assert str(caught.value) == f"{needed}: pip install '{called}>={oldest}'"


OLD = """
    import contextlib, importlib, io, json, sys

    def command(*words):
        from nceref.cli import main

        err = io.StringIO()
        try:
            with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
                main(list(words))
        except SystemExit as error:
            return error.code, err.getvalue()

    def imported(name):
        try:
            importlib.import_module(name)
        except ImportError as error:
            return str(error)

    package = importlib.import_module(sys.argv[1])
    package.__version__ = "0.9"
    done = {"bare": imported("nceref"), "version": command("--version"), "verify": command("verify")}
    done["list"] = command("losses")
    done |= {name: imported(f"nceref.{name}") for name in ("losses", "testing", "exact", "tolerance")}
    import pytest

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        load = ["-p", "nceref.verification.manifest.pytest_plugin", "-p", "no:cacheprovider"]
        done["pytest"] = [int(pytest.main([*load, *more, "--co", "-q"])) for more in ([], ["--nceref"])]
    print(json.dumps({**done, "printed": out.getvalue()}))
"""


@pytest.mark.parametrize("package", ["numpy", "array_api_compat"])
def test_with_an_older_package_every_command_and_import_says_what_is_needed(folder, package):
    """In place of an older version, the one that is there says that it is."""
    (folder / "test_one.py").write_text("def test_one(): pass")
    code = [sys.executable, "-c", textwrap.dedent(OLD), package]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(code, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    done = json.loads(ended.stdout)
    called, oldest = package.replace("_", "-"), OLDEST[package]
    needed = (
        f"nceref needs {called} {oldest} or later, and this Python has {called} 0.9: pip install '{called}>={oldest}'"
    )
    for command in ("verify", "list"):
        assert done[command] == [2, f"Error: {needed}\n"]
    for module in ("losses", "testing", "exact", "tolerance"):
        assert done[module] == needed
    # What computes nothing still runs, pytest in other projects above all: it imports the plugin everywhere.
    assert (done["bare"], done["version"], done["pytest"]) == (None, [0, ""], [0, 4])
    assert needed in done["printed"]
    assert "Traceback" not in done["printed"] + ended.stderr


def test_with_an_older_click_every_command_says_what_is_needed(monkeypatch, capsys):
    monkeypatch.setitem(vars(click), "__version__", "8.1.7")
    with pytest.raises(SystemExit) as caught:
        cli.main(["--help"])
    needed = f"nceref needs click {OLDEST['click']} or later, and this Python has click 8.1.7"
    assert (caught.value.code, capsys.readouterr().err) == (2, f"Error: {needed}: pip install 'click>=8.3'\n")
