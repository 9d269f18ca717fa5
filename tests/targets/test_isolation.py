"""A target that is isolated changes nothing and reaches nobody; where that is not possible it does not run."""

import itertools
import json
import os
import re
import socket
import sys
import textwrap

import pytest
from targets.test_targets import NT_XENT, probe_of

from nceref import get_loss, testing
from nceref.cli import main
from nceref.errors import InputError, UnavailableError
from nceref.targets import runner
from nceref.targets.process import isolation
from nceref.verification import request
from nceref.verification.conformance.verification import verification_of
from nceref.verification.verifier import verify

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no namespaces")
SOURCE = """
    import os, socket, tempfile

    def escapes(z1, z2, temperature):
        def write():
            open(__file__ + ".written", "w")
        def signal():
            os.kill({pid}, 0)
        def connect():
            socket.create_connection(("127.0.0.1", {port}), 5)
        def devices():
            os.chmod("/dev/null", 0o666)
        def look():
            open({secret!r})
        def own():
            tempfile.TemporaryFile().write(b"x")
            open("/dev/null", "w").write("x")
            raise OSError
        done = []
        for attempt in (write, signal, connect, devices, look, own):
            try:
                attempt()
                done.append(attempt.__name__)
            except OSError as error:
                if attempt is own and error.args:
                    done.append(str(error))
        if done:
            raise RuntimeError(str(done))
        return 1.0

    def killed(z1, z2, temperature):
        os.kill(os.getpid(), 9)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


@pytest.fixture(autouse=True)
def _anew():
    isolation._chosen.cache_clear()
    yield
    isolation._chosen.cache_clear()


@linux
def test_a_target_writes_signals_and_connects_nowhere(folder):
    try:
        assert isolation.isolation(folder).name in ("bubblewrap", "namespaces")
    except UnavailableError as error:
        pytest.skip(str(error))
    secret = folder.parent / "secret"
    secret.write_text("of the user", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        facts = {"pid": os.getpid(), "port": server.getsockname()[1], "secret": str(secret)}
        (folder / "theirs.py").write_text(textwrap.dedent(SOURCE.format(**facts)), encoding="utf-8")
        with runner.in_child(f"{folder}/theirs.py:escapes", NT_XENT.declaration, timeout=600.0) as run:
            assert all(f"'{done}'" in run(probe_of()).sentence for done in ("write", "signal", "connect", "look"))
        (folder / "theirs.py.written").unlink()
        with runner.in_child(f"{folder}/theirs.py:escapes", NT_XENT.declaration, timeout=600.0, isolate=True) as run:
            outcome = run(probe_of())
            assert (outcome.sentence, outcome.value) == ("", 1.0)
            run.load(run._load_request.__class__(f"{folder}/theirs.py:killed", NT_XENT.declaration, {}))
            assert run(probe_of()).sentence == "ends the process with signal SIGKILL"


FAKE = """#!/bin/sh
printf '%s\\n' "$@" > {record}
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


@linux
def test_bubblewrap_goes_first_where_it_is_installed(folder, monkeypatch):
    record, program = folder.parent / "record", folder.parent / "bwrap"
    program.write_text(FAKE.format(record=record), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder.parent), prepend=os.pathsep)
    (folder / "theirs.py").write_text("def f(z1, z2, temperature):\n    return 1.0\n", encoding="utf-8")
    with runner.in_child(f"{folder}/theirs.py:f", NT_XENT.declaration, timeout=600.0, isolate=True) as run:
        assert run(probe_of()).value == 1.0
    given = record.read_text().split("\n")
    assert isolation.isolation(folder).name == "bubblewrap"
    for option in ("--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent"):
        assert option in given[: given.index("--")]
    pairs = list(itertools.pairwise(given))
    assert {("--ro-bind", "/"), ("--tmpfs", "/tmp"), ("--cap-drop", "ALL"), ("--proc", "/proc")} <= set(pairs)
    assert ("--ro-bind", str(folder)) in pairs
    assert pairs.index(("--tmpfs", "/tmp")) < pairs.index(("--ro-bind", str(folder)))
    assert given[given.index("--") + 1] == sys.executable


@pytest.mark.parametrize("command", [["verify", "--loss", "alignment", "--list-cases"], ["identify"]])
def test_nothing_runs_that_cannot_be_isolated(folder, monkeypatch, capsys, command):
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(isolation, "_failure", lambda candidate: "no permission")
    path = folder / "theirs.py"
    path.write_text(f"open({str(folder / 'ran')!r}, 'w')\ndef f(x, y):\n    return 1.0\n", encoding="utf-8")
    with pytest.raises(SystemExit) as exited:
        main([*command, f"{path}:f", "--isolate"])
    assert exited.value.code == 2
    words = (
        "bwrap is not installed; namespaces: no permission" if sys.platform == "linux" else "needs namespaces of Linux"
    )
    assert words in " ".join(capsys.readouterr().err.split())
    assert not (folder / "ran").exists()


def test_the_report_has_how_it_was_isolated(folder, monkeypatch):
    monkeypatch.setattr(request, "isolation", lambda folder: isolation.Isolation("bubblewrap"))
    in_process = runner.in_process
    monkeypatch.setattr(runner, "in_child", lambda text, loss, timeout, isolate, **more: in_process(text, loss, **more))
    path = folder / "theirs.py"
    path.write_text("def f(x, y):\n    return ((x - y) ** 2).sum() / len(x)\n", encoding="utf-8")
    options = {"loss": "alignment", "normalize": "none", "suite": "quick", "case": "designed"}
    isolated, plain = (verify(f"{path}:f", isolate=isolate, **options) for isolate in (True, False))
    assert json.loads(isolated.to_json())["environment"]["isolation"] == "bubblewrap"
    assert "isolated by bubblewrap" in str(isolated)
    assert "isolation" not in plain.environment


OWN_LOSS = """
    from pathlib import Path
    from nceref.family.alignment import LOSS

    Path({ran!r}).touch()
"""
MANIFEST = """
    [defaults]
    isolate = true
    suite = "quick"

    [[target]]
    target = "theirs.py:f"
    loss = "own.py:LOSS"
"""
REFUSED = (
    "'own.py:LOSS', which runs in this process with all rights that you have, and `isolate` covers the target alone"
)


@pytest.fixture
def own_loss(folder, monkeypatch):
    """A project with a loss of its own, and the file that exists once that was executed."""
    ran = folder / "ran"
    (folder / "own.py").write_text(textwrap.dedent(OWN_LOSS.format(ran=str(ran))), encoding="utf-8")
    (folder / "theirs.py").write_text("def f(x, y):\n    return ((x - y) ** 2).sum() / len(x)\n", encoding="utf-8")
    (folder / "nceref.toml").write_text(textwrap.dedent(MANIFEST), encoding="utf-8")
    monkeypatch.chdir(folder)
    return ran


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["verify", "theirs.py:f", "--loss", "own.py:LOSS", "--isolate"], 2),
        (["verify", "theirs.py:f", "--loss", "own.py", "--isolate", "--list-cases"], 2),
        (["verify", "theirs.py:f", "--loss", "own:LOSS", "--isolate", "--repro", "script.py"], 2),
        (["verify"], 4),
        (["verify", "--manifest", "nceref.toml"], 4),
    ],
)
def test_a_file_of_the_loss_is_refused_beside_isolate_and_not_executed(own_loss, capsys, arguments, status):
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    captured = capsys.readouterr()
    words = " ".join((captured.out + captured.err).split())
    assert exited.value.code == status
    assert "which runs in this process with all rights that you have, and `isolate` covers the target alone" in words
    assert ("nceref.toml:8: " in words) == (status == 4)
    assert not own_loss.exists()


def test_a_file_of_the_loss_is_refused_beside_isolate_in_python_and_a_declaration_is_taken(
    own_loss, folder, monkeypatch
):
    options = {"isolate": True, "normalize": "none", "suite": "quick", "case": "designed"}
    target = testing.Target("theirs.py:f", "own.py:LOSS", options=options)
    for call in (
        lambda: verify("theirs.py:f", loss="own.py:LOSS", **options),
        lambda: verify("theirs.py:f", loss=type("Text", (str,), {})("own.py:LOSS"), **options),
        lambda: verification_of(target, "quick").report,
        lambda: verification_of(target, "quick").planned,
    ):
        with pytest.raises(InputError, match=re.escape(REFUSED)):
            call()
    assert not own_loss.exists()
    monkeypatch.setattr(request, "isolation", lambda folder: isolation.Isolation("bubblewrap"))
    in_process = runner.in_process
    monkeypatch.setattr(runner, "in_child", lambda text, loss, timeout, isolate, **more: in_process(text, loss, **more))
    assert verify("theirs.py:f", loss=get_loss("alignment").declaration, **options).exit_code == 0


def test_an_object_cannot_be_isolated():
    with pytest.raises(InputError, match=r"`isolate` is for a target that is named by text"):
        verify(lambda x, y: 0.0, loss="alignment", isolate=True)
    with pytest.raises(InputError, match=r"`isolate` must be one of True, False, got 'yes'"):
        verify("theirs.py:f", loss="alignment", isolate="yes")
