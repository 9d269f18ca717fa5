"""Every writing command, killed at every call that may write: nothing truncated, nothing lost, the next run works."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from output import killed_writers

from nceref import cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
READS = {"--checkout", "--expected-failures"}


def test_every_command_that_writes_is_killed():
    """Each option that names a file or a folder stands in a command."""
    missing = []
    for name in cli.COMMANDS:
        tried = {word for words in killed_writers.COMMANDS if words.split()[0] == name for word in words.split()}
        for option in cli.nceref.get_command(click.Context(cli.nceref), name).params:
            files = option.name == "out" or "FILE" in (option.metavar or "")
            missing += [(name, option.opts[0])] * (
                files and not tried & set(option.opts) and option.opts[0] not in READS
            )
    assert missing == []


def test_a_kill_at_any_moment_loses_nothing_and_the_next_run_works(tmp_path):
    paths = [str(Path(killed_writers.__file__).parent), *sys.path]
    threads = dict.fromkeys(("NCEREF_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, killed_writers.__file__, str(tmp_path)],
        env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [finding for each in report.values() for finding in each["findings"]] == []
    for command, each in report.items():
        moments, leftovers, kills, refusals = each["counts"]
        # Of every file, at least: before it, an empty draft, a whole one, after it; from two starts.
        assert moments > leftovers >= 8, command
        # Three sizes; each ends in a kill or in a refusal.
        assert (kills >= 3, refusals) == (True, 3), command
