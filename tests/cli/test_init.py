"""`nceref init`: what it writes and refuses to replace, and what it says of a PACKAGE that has no losses."""

import tomllib

import pytest

import nceref
from nceref.verification import loss_search

INFO_NCE = """
import numpy as np


def info_nce(queries, keys, temperature):
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
    s = q @ k.T / temperature
    top = s.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - np.diag(s))
"""
COUNTED = """
with open("executions", "a") as file:
    file.write(".")
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """The working folder; two losses are tried in place of all."""
    monkeypatch.chdir(tmp_path)
    some = {name: nceref.get_loss(name) for name in ("info_nce", "uniformity")}
    monkeypatch.setattr(loss_search, "all_losses", lambda: some)
    (tmp_path / "losses.py").write_text(INFO_NCE)
    return tmp_path


@pytest.mark.usefixtures("in_this_process")
def test_a_loss_that_its_name_does_not_say_is_pointed_out(run, project):
    (project / "losses.py").write_text(INFO_NCE.replace("info_nce", "clip_loss"))
    assert run("init", "losses")[1].endswith("\n  clip_loss  info_nce: value-only; its name says clip\n")


@pytest.mark.usefixtures("in_this_process")
def test_a_manifest_is_written_that_verify_reads_and_is_not_replaced_by_itself(run, project):
    status, out, err = run("init", "losses")
    assert (status, err) == (0, "wrote nceref.toml\n")
    assert out == "losses: the only callable recognized as losses\n  info_nce  info_nce: value-only\n"
    assert run("verify")[0] == 0
    text = (project / "nceref.toml").read_text()
    status, out, err = run("init", "losses")
    assert (status, out) == (2, "")
    assert "nceref.toml is there already; --force replaces it" in err
    (project / "nceref.toml").write_text("# mine")
    assert run("init", "losses", "--force")[0] == 0
    assert (project / "nceref.toml").read_text() == text


@pytest.mark.usefixtures("in_this_process")
def test_it_is_printed_with_files_named_from_the_folder_that_it_will_stand_in(run, project):
    status, out, _ = run("init", "losses.py", "--out", "-")
    assert status == 0
    assert [each["target"] for each in tomllib.loads(out)["target"]] == ["losses.py:info_nce"]
    (project / "made").mkdir()
    assert run("init", "losses.py", "--out", "made/own.toml")[0] == 0
    assert tomllib.loads((project / "made/own.toml").read_text())["target"][0]["target"] == "../losses.py:info_nce"
    assert run("verify", "--manifest", "made/own.toml")[0] == 0
    assert not (project / "nceref.toml").exists()


def test_a_file_is_executed_once_as_a_package_is(run, project):
    """Also by each loss that it is tried as, and for each of its callables."""
    (project / "counted.py").write_text(COUNTED + INFO_NCE + "def double(x):\n    return 2 * x\n")
    assert run("init", "counted.py", "--out", "-")[0] == 0
    assert (project / "executions").read_text() == "."


@pytest.mark.usefixtures("in_this_process")
def test_without_a_loss_nothing_is_written_and_reasons_are_printed(run, project):
    (project / "others.py").write_text("def double(x):\n    return 2 * x\ndef five(a, b, c, d, e):\n    return 1\n")
    status, out, err = run("init", "others")
    assert (status, err) == (1, "")
    text = " ".join(out.split())
    assert text.startswith("others: 0 of 2 callables recognized as losses others:double: returns shape (")
    assert text.endswith("others:five: it fits the inputs of no loss")
    assert not (project / "nceref.toml").exists()


BAD = {
    "nowhere": (4, "no module 'nowhere', neither in "),
    "losses.gone": (4, "no module 'gone' in losses"),
    "losses.py:info_nce": (2, "leave out :info_nce, or see which loss it is: nceref verify losses.py:info_nce"),
    "gone.py": (2, "'gone.py' is not there"),
    "data.json": (2, "'data.json' is no Python file"),
    "..": (2, "no folder that can be imported from the working folder"),
    "a b": (2, "PACKAGE must be a package, a module, a file that ends in .py or a folder, got 'a b'"),
    "": (2, "PACKAGE must be"),
    "https://example.org/losses.py": (2, "is not there"),
    "constants": (4, "constants has no public function or class of its own that can be called"),
    "exits": (4, "exits while it is imported (SystemExit: 3)"),
    "dies": (4, "importing it ends the process with exit code 3"),
    "slow": (4, "importing it does not return within 0.5 s (--timeout)"),
    "broken.py": (4, "NameError"),
}
FILES = {
    "constants": "from math import sin\nTEMPERATURE = 0.1\nclass Settings:\n    pass\n",
    "exits": "print('hello')\nraise SystemExit(3)\n",
    "dies": "import os\nos._exit(3)\n",
    "slow": "import time\ntime.sleep(60)\n",
    "broken": "losses\n",
}


@pytest.mark.parametrize("package", BAD)
def test_a_package_that_cannot_be_read_is_one_sentence(run, project, package):
    for name, text in FILES.items():
        (project / f"{name}.py").write_text(text)
    (project / "data.json").write_text("{}")
    before = sorted(path.name for path in project.iterdir())
    status, out, err = run("init", package, "--timeout", "0.5")
    expected, words = BAD[package]
    assert (status, out) == (expected, ""), err
    assert words in " ".join(err.split())
    assert "hello" not in err
    assert sorted(path.name for path in project.iterdir() if path.name != "__pycache__") == before


@pytest.mark.parametrize("seconds", ["-1", "nan", "0"])
def test_a_timeout_that_is_no_time_is_refused(run, seconds):
    status, _, err = run("init", "losses", "--timeout", seconds)
    assert (status, "`timeout` must be" in err) == (2, True)


NEEDY = """
class Prototypes:
    def __init__(self, backbone, prototypes):
        self.backbone = backbone

    def __call__(self, queries, keys):
        return 0.0
"""


@pytest.mark.usefixtures("in_this_process")
def test_modules_are_counted_by_themselves_and_a_class_names_all_that_it_needs(run, project):
    (project / "some").mkdir()
    files = {"__init__": INFO_NCE, "needy": NEEDY, "broken": "import no_such_package\n"}
    for name, text in files.items():
        (project / "some" / f"{name}.py").write_text(text)
    status, out, _ = run("init", "some")
    assert status == 0
    assert "some: 1 of 2 callables recognized" in out
    assert "1 other is not, 1 module cannot be imported; nceref.toml has the reasons" in " ".join(out.split())
    text = " ".join((project / "nceref.toml").read_text().replace("\n#", " ").split())
    assert (
        "the constructor of some.needy:Prototypes needs `backbone` and `prototypes`, and the reference has no such"
        " scalar or setting: --init backbone=VALUE --init prototypes=VALUE" in text
    )


def test_a_package_that_prints_is_read(run, project):
    (project / "loud.py").write_text(f"print('loud')\n{INFO_NCE}")
    status, out, err = run("init", "loud", "--out", "-")
    assert (status, err) == (0, "")
    assert "print" not in out
    assert tomllib.loads(out)["target"][0]["loss"] == "info_nce"
