"""A framework is one file and one entry: tables of numbers, whose gradients are complex steps."""

import subprocess
import sys

TABLES = '''
"""The arrays of a framework."""

import numpy as np


class Table:
    def __init__(self, numbers):
        self.numbers = np.asarray(numbers)

    def __sub__(self, other):
        return Table(self.numbers - other.numbers)

    def mean_of_squares(self):
        return Table((self.numbers**2).sum() / len(self.numbers))
'''
FRAMEWORK = """
import numpy as np

from nceref.targets.frameworks.call import Answer, gradient_of, value_of
from nceref.targets.frameworks.framework import Dialect, Framework

STEP = 1e-30


def check(request):
    import tables


def answer(target, request, floats, gradients):
    from tables import Table

    arrays = {n: x for n, x in request.inputs.items() if isinstance(x, np.ndarray)}

    def value(moved):
        given = {n: Table(x) for n, x in (arrays | moved).items()}
        return target.program({**request.inputs, **given}, request.reduction, lambda x: x).numbers

    def gradient(name):
        steps = 1j * STEP * np.eye(arrays[name].size).reshape(-1, *arrays[name].shape)
        slopes = [value({name: arrays[name] + step}).imag / STEP for step in steps]
        return gradient_of(name, np.reshape(slopes, arrays[name].shape), request)

    return Answer(value_of(value({}), request), {n: gradient(n) for n in arrays if n in request.differentiable})


def program(reply):
    from tables import Table

    def returned(inputs, reduction, placed):
        parts = {n: x.numbers for n, x in inputs.items() if isinstance(x, Table)}
        value, grads = reply({**inputs, **{n: x.real for n, x in parts.items()}})
        moved = sum((grads[n] * x.imag).sum() for n, x in parts.items() if n in grads)
        return Table(value + 1j * moved if any(map(np.iscomplexobj, parts.values())) else value)

    return returned


FRAMEWORK = Framework(
    "tables",
    check,
    answer,
    program,
    Dialect(
        imports=("import tables",),
        array="tables.Table({literal})",
        scalar="{literal}",
        labels="{literal}",
        call="value = {call}.numbers",
        grads="grads = {{}}",
    ),
    modules={"tables": "tables"},
    packages=("tables",),
    ways=("again", "after-larger"),
    advice={"outer-factor-2": "Halve the table."},
)
"""
RUN = """
import nceref.targets.frameworks as folder

folder.__path__.append("frameworks")
folder.NAMES += ("tables",)

import pathlib
import losses
import nceref

call = "f(x - tables.Table(y.numbers))"
options = {"normalize": "none", "suite": "quick", "case": "designed", "repro": True}
for loss in (losses.right, losses.doubled):
    report = nceref.verify(loss, "alignment", call=call, **options)
    first = report.diagnosis[0] if report.diagnosis else None
    print(report.environment["framework"], report.verdict, *([first.id, first.fix] if first else []))
pathlib.Path("case.py").write_text(report.repro)
"""
LOSSES = """
import tables


def right(difference):
    return difference.mean_of_squares()


def doubled(difference):
    return tables.Table(2 * right(difference).numbers)
"""


def test_a_file_and_an_entry_are_enough(tmp_path):
    (tmp_path / "frameworks").mkdir()
    (tmp_path / "frameworks" / "tables.py").write_text(FRAMEWORK)
    (tmp_path / "tables.py").write_text(TABLES)
    (tmp_path / "losses.py").write_text(LOSSES)

    def printed(*words, status=0):
        ended = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == status, ended.stderr
        return ended.stdout

    found = printed("-c", RUN).splitlines()
    assert found == ["tables conforms", "tables differs outer-factor-2 Halve the table."]
    assert "yours 8.0" in printed("case.py", status=1)
