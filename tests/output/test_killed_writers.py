"""Every writing command, killed at every call that may write: nothing truncated, nothing lost, the next run works."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands.examples import commands
from output import killed_writers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
READS = {"--checkout", "--expected-failures", "--inputs", "--rates"}


def test_every_command_that_writes_is_killed():
    """Each option that names a file or a folder stands in a command."""
    missing = []
    for name, command in commands():
        tried = {
            word for words in killed_writers.COMMANDS if f"{words} ".startswith(f"{name} ") for word in words.split()
        }
        for option in command.params:
            files = option.name == "out" or "FILE" in (option.metavar or "")
            missing += [(name, option.opts[0])] * (
                files and not tried & set(option.opts) and option.opts[0] not in READS
            )
    assert missing == []


@pytest.mark.slow(reason="hundreds of kills; the commands share what writes, and one of them is killed in `make test`")
def test_a_kill_at_any_moment_loses_nothing_and_the_next_run_works(tmp_path):
    assert_survives(tmp_path, killed_writers.COMMANDS)


def test_a_kill_while_a_table_is_written_loses_nothing(tmp_path):
    assert_survives(tmp_path, ["tables paco-optimum --format csv --out new"])


def assert_survives(folder, commands):
    paths = [str(Path(killed_writers.__file__).parent), *sys.path]
    threads = dict.fromkeys(("NCEREF_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, killed_writers.__file__, str(folder), *commands],
        env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report) == set(commands)
    assert [finding for each in report.values() for finding in each["findings"]] == []
    for command, each in report.items():
        moments, leftovers, kills, refusals = each["counts"]
        # Of every file, at least: before it, an empty draft, a whole one, after it; from two starts.
        assert moments > leftovers >= 8, command
        # Three sizes; each ends in a kill or in a refusal.
        assert (kills >= 3, refusals) == (True, 3), command
