"""The page "beyond one machine": its scripts run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nceref import losses

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'nceref[dask]'")
da = pytest.importorskip("dask.array", reason="Dask is not installed: pip install 'nceref[dask]'")

PAGE = (Path(__file__).parents[3] / "docs/beyond-one-machine.md").read_text(encoding="utf-8")
SCRIPTS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.slow
def test_two_processes_compute_what_lies_on_the_disk(tmp_path):
    pytest.importorskip("distributed", reason="distributed is not installed: pip install 'nceref[dask]'")
    (tmp_path / "two_processes.py").write_text(SCRIPTS["two_processes.py"])
    queries, keys = np.random.default_rng(0).standard_normal((2, 600, 8)).astype(np.float32)
    np.save(tmp_path / "queries.npy", queries)
    np.save(tmp_path / "keys.npy", keys)
    (command,) = re.findall(r"^python (two_processes.py .*) 4096$", PAGE, re.MULTILINE)
    done = subprocess.run([sys.executable, *command.split(), "128"], cwd=tmp_path, capture_output=True, text=True)
    value, grad = losses.info_nce.value_and_grad(queries, keys, temperature=0.05)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"{value:.4f}", f"{grad['temperature']:.2f}"]
    written = np.asarray(da.from_npy_stack(tmp_path / "gradient"))
    np.testing.assert_allclose(written, grad["queries"], rtol=1e-3, atol=1e-6)


def test_the_job_of_a_slurm_worker(tmp_path, monkeypatch):
    jobs = pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    script = {}
    exec(SCRIPTS["slurm.py"], script)
    # Any free port: another scheduler may be at work beside the tests.
    free = dask.config.set({"jobqueue.slurm.scheduler-options": {"dashboard_address": ":0"}})
    monkeypatch.setattr(jobs.SLURMCluster, "scale", lambda cluster, jobs: None)
    with free, script["start"](4) as cluster:
        job = cluster.job_script()
    for line in ("#SBATCH -p cpu", "#SBATCH --mem=8G", "#SBATCH -t 02:00:00", "export OPENBLAS_NUM_THREADS=1"):
        assert line in job
    assert "distributed.cli.dask_worker" in job or "dask worker" in job
