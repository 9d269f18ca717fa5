"""Measurements that the performance claims of the package rest on: one file per question.

    python -m benchmarks [QUESTION...] [--quick] [--json FILE] [--report FILE]

Every program runs in a process of its own, ours and PyTorch's in alternating rounds; see `clock`.
"""


class RefusedError(Exception):
    """A benchmark that cannot be run, or that would compare different things; the message says why."""
