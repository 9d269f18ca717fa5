"""What is needed: NumPy and array-api-compat to verify, click and Rich for the command; the rest for other commands.

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

import pytest
from targets import plain

from nceref import cli
from nceref.cli import version_page

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
"""
JOBS = """
    import contextlib, io, json, sys

    import losses
    import nceref
    from nceref import testing

    def shown(report):
        pages = [str(report), report.to_json(), report.to_junit(), report.to_html(), report._repr_html_()]
        ids = [one.id for one in report.diagnosis]
        return {"verdict": report.verdict, "ids": ids, "sizes": [len(page) for page in pages]}

    targets = (losses.with_gradients, losses.doubled)
    done = {one.__name__: shown(nceref.verify(one, "info_nce", suite="quick")) for one in targets}
    done["alone"] = shown(nceref.verify("losses.py:alone", "info_nce", suite="quick"))
    testing.assert_conforms(losses.with_gradients, "info_nce", suite="quick")
    try:
        testing.assert_conforms(losses.doubled, "info_nce", suite="quick")
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
        refusing[0].allowed.update(("click", "rich"))
        done["one"] = output("verify", "losses.py:doubled", "--loss", "info_nce", "--suite", "quick")
        done["manifest"] = output("verify", "--manifest", "nceref.toml", "--json")
        done["version"] = output("--version", "--verbose")
        done["derive"] = output("derive", "tau-zero")
        done["figures"] = output("figures", "softmax-temperature", "--out", "figures")
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
    assert alone["failure"].startswith("outer-factor-2: the value fails on 27 of 28 cases")


def test_nothing_else_is_imported_where_it_is_installed(alone, installed):
    assert installed["alone"]["verdict"] == "error"
    both = [{name: one[name] for name in ("with_gradients", "doubled", "failure")} for one in (alone, installed)]
    assert both[0] == both[1]
    # What runs as Python starts, from .pth files of an installation, is not imported by the package.
    assert not set(installed["imported"]) & packages() - NEEDED - {"threadpoolctl"}


def test_without_threadpoolctl_results_are_within_rounding(alone, installed):
    assert alone["large"] == pytest.approx(installed["large"], rel=1e-13)
    assert "threadpoolctl" in installed["imported"]


def test_the_command_needs_click_and_rich_besides(alone):
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
