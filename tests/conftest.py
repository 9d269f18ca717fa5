"""What all tests share: every loss by name, and the command line in this process."""

import os
import signal

import pytest

from nceref import cli, registry
from nceref.targets.search import RAISES

# A verdict stands whatever becomes of its explanation, but here an error of the search is a failure.
os.environ[RAISES] = "1"
# Of the processes of pytest that tests start, none needs hypothesis, whose import is half of their time.
os.environ["PYTEST_ADDOPTS"] = f"-p no:hypothesispytest {os.environ.get('PYTEST_ADDOPTS', '')}"
LOSSES = registry.names("nceref.family")


def pytest_configure():
    """A shell lets its background jobs ignore Ctrl-C, and children inherit that: tests that interrupt would wait."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_generate_tests(metafunc):
    """A test that asks for `loss_name` runs for every loss."""
    if "loss_name" in metafunc.fixturenames:
        metafunc.parametrize("loss_name", LOSSES)


@pytest.fixture
def in_this_process(monkeypatch):
    """Run targets that are named by text here, as where no process can start: to start one takes 0.4 seconds."""
    monkeypatch.setattr("nceref.targets.runner.processes_available", lambda: False)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line in this process; returns exit status, standard output and standard error."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments):
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        return caught.value.code or 0, *capsys.readouterr()

    return run
