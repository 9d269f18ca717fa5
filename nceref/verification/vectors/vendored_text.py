"""The text of a vendored test: a file of Python 3.8 and later whose only package is that of the loss under test."""

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from types import MappingProxyType


@dataclass(frozen=True)
class Library:
    """The part of a test that depends on the library: the words for a result of call(), imports, and the evaluation.

    `without_gradients` are lines of judge(), for a library without automatic differentiation; `more` is another
    choice for whoever edits the test.
    """

    title: str
    returned: str
    imports: str
    evaluated: str
    without_gradients: str = ""
    more: str = ""


_TORCH = '''\
def evaluated(case, dtype):
    """The value of a case, and its gradients by autograd."""
    inputs = inputs_of(case, lambda x, integers: torch.tensor(x, dtype=None if integers else getattr(torch, dtype)))
    leaves = {name: inputs[name].requires_grad_() for name in GRADIENTS if name in inputs}
    value = torch.as_tensor(call(inputs))
    if not (leaves and value.requires_grad):
        return value, dict.fromkeys(leaves)
    grads = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
    return value.detach(), dict(zip(leaves, grads))'''
_JAX = '''\
def program_of(case):
    """Constants, and the last index of each array: cases that share them share a compiled program."""
    constant = {name for name, x in case["inputs"].items() if isinstance(x, float) and name not in GRADIENTS}
    return str([case["settings"], [x if n in constant else entries(x)[-1][0] for n, x in case["inputs"].items()]])


PROGRAMS = [program_of(case) for case in CASES.values()]
KEPT = sorted(dict.fromkeys(PROGRAMS), key=PROGRAMS.count, reverse=True)[:COMPILED]
CASES = {name: case for name, case in CASES.items() if program_of(case) in KEPT}


@functools.partial(jax.jit, static_argnums=0)
def compiled(fixed, moved, constants):
    return jax.value_and_grad(lambda given: call({**dict(fixed), **constants, **given}))(moved)


def evaluated(case, dtype):
    """The value of a case, and its gradients by jax.value_and_grad."""
    with enable_x64(dtype == "float64"), jax.default_device(jax.devices("cpu")[0]):
        inputs = inputs_of(case, lambda x, integers: jnp.asarray(x, dtype=None if integers else dtype))
        moved = {name: inputs.pop(name) for name in GRADIENTS if name in inputs}
        constants = {name: inputs.pop(name) for name in case["inputs"] if isinstance(inputs.get(name), jax.Array)}
        return compiled(tuple(inputs.items()), moved, constants)'''
_JAX_IMPORTS = """\
import jax
import jax.experimental
import jax.numpy as jnp

enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64"""
_NUMPY = '''\
def evaluated(case, dtype):
    """The value of a case, and the gradients that call() returns, if any."""
    inputs = inputs_of(case, lambda x, integers: np.array(x, dtype=None if integers else dtype)[()])
    returned = call(inputs)
    value, grads = returned if isinstance(returned, tuple) else (returned, None)
    grads = dict(zip(GRADIENTS, grads)) if isinstance(grads, (list, tuple)) else grads or {}
    return np.asarray(value), {name: np.asarray(x) for name, x in grads.items()}'''
_NONE_RETURNED = """
    if quantity != "value" and not any(quantity in answer(case["id"], dtype) for case in cases):
        raise unittest.SkipTest(f"call() returns no {quantity}: it is not compared")"""
_COMPILED = """
# Each shape of the inputs is compiled anew: cases of this many are judged, the most frequent ones. None: of all.
COMPILED = 2"""
LIBRARIES: Mapping[str, Library] = MappingProxyType(
    {
        "torch": Library("PyTorch", "a tensor that autograd follows", "import torch", _TORCH),
        "numpy": Library(
            "NumPy",
            'or (loss, {"NAME OF AN INPUT": gradient, ...})',
            "import numpy as np",
            _NUMPY,
            _NONE_RETURNED,
        ),
        "jax": Library(
            "JAX",
            "a number that jax.grad follows",
            _JAX_IMPORTS,
            _JAX,
            more=_COMPILED,
        ),
    }
)
"""By the name of the library."""


@dataclass(frozen=True)
class Runner:
    """A runner of the tests: its command, and the end of the file."""

    command: str
    tests: str


_PYTEST = """\
def pytest_generate_tests(metafunc):
    for name, values in (("quantity", QUANTITIES), ("dtype", DTYPES)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, values)


def test_vectors_are_those_of_this_file():
    check_vectors()


def test_agrees_with_the_reference(quantity, dtype):
    judge(quantity, dtype)


def test_value_is_finite_at_small_temperatures(dtype):
    judge_cold(dtype)
"""
_UNITTEST = """\
class ReferenceVectors(unittest.TestCase):
    def test_vectors_are_those_of_this_file(self):
        check_vectors()

    def test_agrees_with_the_reference(self):
        for quantity in QUANTITIES:
            for dtype in DTYPES:
                with self.subTest(quantity=quantity, dtype=dtype):
                    judge(quantity, dtype)

    def test_value_is_finite_at_small_temperatures(self):
        for dtype in DTYPES:
            with self.subTest(dtype=dtype):
                judge_cold(dtype)
"""
RUNNERS: Mapping[str, Runner] = MappingProxyType(
    {
        "pytest": Runner("python -m pytest", _PYTEST),
        "unittest": Runner("python -m unittest", _UNITTEST),
    }
)
"""By name."""

TEXT = Template('''\
# Tests of a loss on reference vectors of $loss: mean over a batch and gradients, float64 and float32.
# Name your function below, edit call(), and run `$runs`.
# This file needs $title and, beside it, $data, but no nceref.
# Both files are under CC0-1.0: copy them into your repository.

from my_package import my_loss as loss  # <- the function under test


def call(inputs):
    """The mean loss of a batch, $returned. inputs has the settings below, and
$inputs
    """
$call


# Inputs whose gradients are compared; one that is not listed is handed over as a constant.
GRADIENTS = [$gradients]
# Settings of the cases that are judged; add the values that call() supports.
SETTINGS = {$settings}
# Inputs of the cases that are judged, a list for each way to call the loss; add those that call() supports.
INPUTS = [
$ways
]
# Colder cases are left out; raise it only for a loss that is not made for them.
LOWEST_TEMPERATURE = 0.0$more

# Made by nceref $version:
#     $command
# It has $kept of $count cases of corpus $corpus. Left out: $left_out.
#
# These tests cannot see larger batches or more features than these small cases have, other ranks of arrays, reductions
# other than the mean, bfloat16, float16 and mixed precision, accelerators, compile modes, several processes, what an
# object remembers from call to call, memory layouts, and speed. `nceref verify` looks at most of these.

import functools
import hashlib
import json
import math
import unittest
from pathlib import Path

$imports

VECTORS = Path(__file__).with_name("$data")
SHA256 = "$sha256"
TEXT = VECTORS.read_text(encoding="utf-8")
DTYPES, COLD = ["float64", "float32"], 0.05
QUANTITIES = ["value"] + ["grad." + name for name in GRADIENTS]


def judged(case):
    """Whether the loss is made for a case, as the lists above have it."""
    way = set(case["inputs"]) in map(set, INPUTS) and case.get("temperature", 1.0) >= LOWEST_TEMPERATURE
    return way and all(case["settings"][name] in values for name, values in SETTINGS.items())


CASES = {case["id"]: case for case in json.loads(TEXT)["cases"] if judged(case)}


def entries(x, place=()):
    """The numbers of nested lists, each with its place."""
    if not isinstance(x, list):
        return [(place, x)]
    return [one for i, each in enumerate(x) for one in entries(each, (*place, i))]


def inputs_of(case, array):
    """What call() is handed: arrays, numbers and settings by name."""
    inputs = dict(case["settings"])
    for name, x in case["inputs"].items():
        constant = isinstance(x, float) and name not in GRADIENTS
        inputs[name] = x if constant else array(x, isinstance(entries(x)[0][1], int))
    return inputs


$evaluated


@functools.lru_cache(maxsize=None)
def answer(name, dtype):
    """What call() gives on a case, as nested lists by quantity."""
    try:
        value, grads = evaluated(CASES[name], dtype)
    except Exception as error:
        raise AssertionError(f"case {name} in {dtype}: call() raised {error!r}") from error
    numbers = {"value": value, **{"grad." + given: x for given, x in grads.items()}}
    return {quantity: None if x is None else x.tolist() for quantity, x in numbers.items()}


def difference(case, quantity, dtype):
    """What is wrong with a quantity of a case; empty where nothing is."""
    where = f"case {case['id']}, {quantity} in {dtype}"
    got = answer(case["id"], dtype).get(quantity)
    if got is None:
        return f"{where}: got none; remove it from GRADIENTS if the loss takes it for a constant"
    got, expected = entries(got), entries(case["outputs"][quantity])
    if [place for place, _ in got] != [place for place, _ in expected]:
        return f"{where}: got {len(got)} numbers, expected {len(expected)} in the shape of the reference"
    rooms = case["allowed"][dtype][quantity]
    rows = [(abs(x - y), place, x, y, room) for (place, x), (_, y), room in zip(got, expected, rooms)]
    wrong = [row for row in rows if not row[0] <= row[4]]  # NaN is
    if not wrong:
        return ""
    _, place, x, y, room = max(wrong, key=lambda row: (not math.isfinite(row[0]), row[0]))
    entry = f" at {list(place)}, the worst of {len(wrong)} wrong entries," if place else ""
    return f"{where}:{entry} got {x!r}, expected {y!r}, allowed error {room:.4g}"


def judge(quantity, dtype):
    """Fail with the first cases on which a quantity is wrong."""
    cases = [case for case in CASES.values() if quantity in case["allowed"][dtype]]
    assert cases, f"no case that is judged has {quantity} in {dtype}"$without_gradients
    wrong = [text for text in (difference(case, quantity, dtype) for case in cases) if text]
    first = "\\n".join(wrong[:5])
    if wrong:
        raise AssertionError(f"{quantity} in {dtype} is wrong, cases: {len(wrong)} of {len(cases)}:\\n{first}")


def judge_cold(dtype):
    """Fail where the value at a small temperature is not finite."""
    cold = [case for case in CASES.values() if case.get("temperature", 1.0) <= COLD]
    if not cold:
        raise unittest.SkipTest(f"no case that is judged has a temperature of at most {COLD}")
    values = {case["id"]: entries(answer(case["id"], dtype)["value"]) for case in cold}
    wrong = [case for case in cold if not all(math.isfinite(x) for _, x in values[case["id"]])]
    first = "\\n".join(difference(case, "value", dtype) for case in wrong[:5])
    if wrong:
        raise AssertionError(f"value in {dtype} is not finite on {len(wrong)} of {len(cold)} cold cases:\\n{first}")


def check_vectors():
    """Fail for vectors that are not those of this file, and where no case is left."""
    got = hashlib.sha256(TEXT.encode("utf-8")).hexdigest()
    assert got == SHA256, f"{VECTORS}: got the SHA-256 {got}, expected {SHA256}; export both files anew"
    assert CASES, "SETTINGS, INPUTS and LOWEST_TEMPERATURE leave out every case"


$tests''')
