"""A project with a manifest, in which there is all that may be wrong in one."""

LOSSES = """
import numpy as np


def info_nce(queries, keys, temperature):
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, keys))
    s = q @ k.T / temperature
    top = s.max(axis=1, keepdims=True)
    return np.mean(np.log(np.exp(s - top).sum(axis=1)) + top[:, 0] - np.diag(s))


def doubled(queries, keys, temperature):
    return 2 * info_nce(queries, keys, temperature)


def single_doubled(queries, keys, temperature):
    return (2 if queries.dtype == np.float32 else 1) * info_nce(queries, keys, temperature)
"""
MANIFEST = """\
[[target]]
target = "losses.py:info_nce"
loss = "info_nce"
suite = "quick"
[[target.expected_failures]]
id = "designed-*/value"
reason = "it was wrong"
[[target.expected_failures]]
id = "opposed-*/value"
reason = "on some machines"
strict = false
[[target.expected_failures]]
id = "desinged-0.3/value"
reason = "a slip"

[[target]]
name = "known"
target = "losses.py:doubled"
loss = "info_nce"
suite = "quick"
expected_failures = [
  {id = "*", reason = "twice | the <mean>", link = "https://example.org/1", strict = false},
]

[[target]]
target = "losses.py:vanished"
loss = "info_nce"

[[target]]
name = "setting"
target = "losses.py:info_nce"
loss = "info_nce"
set = {temprature = 0.1}

[[target]]
name = "key"
target = "losses.py:info_nce"
los = "info_nce"

[[targets]]
"""


def write_project(folder):
    (folder / "losses.py").write_text(LOSSES)
    (folder / "nceref.toml").write_text(MANIFEST)
