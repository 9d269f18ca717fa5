"""The second catalogue against the reference: a wrong program differs somewhere, a correct one nowhere."""

import inspect
from functools import cache

import numpy as np
import pytest
from sweep import sweep

from mutants.bug import _collected, bugs, correct_programs, in_one_dtype, target
from nceref.losses import get_loss
from nceref.spec import Array, Labels, Scalar

pytestmark = pytest.mark.machine

WRONG, RIGHT = (_collected(f"mutants.independent.{kind}") for kind in ("wrong", "right"))
# Rows, features, and how far into the typical range of the scalars; gradients of the small ones only.
SMALL = ((4, 2, 0.6), (7, 3, 0.2))
ALL_SIZES = (*SMALL, (5, 4, 0.0), (6, 4, -1.0), (70, 3, 0.3), (3, 80, 0.3))


def _number(parameter, depth):
    low, high = parameter.typical
    beyond = {"temperature": 0.001, "logit_scale": 150.0, "scale": 1000.0}
    return beyond.get(parameter.name, low) if depth < 0 else low + depth * (high - low)


def _array(parameter, sizes, rng):
    shape = tuple(sizes[letter] for letter in parameter.shape)
    if parameter.like == "counts":
        return rng.integers(1, 50, shape).astype(float)
    if parameter.like == "prior":
        return rng.dirichlet(np.ones(shape[0]))
    x = rng.standard_normal(shape)
    return abs(x) if parameter.low is not None else 1.5 * x


def _labels(parameter, sizes, alone):
    """Two and more rows a class, but for the first row where one may be alone."""
    n = sizes[parameter.shape[0]]
    if parameter.classes:
        return np.arange(n) % sizes[parameter.classes]
    labels = np.arange(n) % min(max(1, n // 2), 12)
    return np.where(np.arange(n) == 0, n, labels) if alone else labels


def _names(program, optional):
    """Arguments that a program gets; those with a default only if `optional`."""
    signature = inspect.signature(program.function).parameters
    return tuple(name for name, p in signature.items() if optional or p.default is inspect.Parameter.empty)


@cache
def _inputs(loss, names, size, alone):
    """Arguments of a loss by name."""
    n, d, depth = size
    sizes = {"N": n, "D": d, "E": d, "V": 2, "K": n + 2, "M": n + 1, "C": max(3, (n + d) // 6)}
    rng = np.random.default_rng(n + d)
    given = {}
    for parameter in get_loss(loss).declaration.parameters:
        if parameter.name not in names:
            continue
        if isinstance(parameter, Scalar):
            given[parameter.name] = _number(parameter, depth)
        elif isinstance(parameter, Array):
            given[parameter.name] = _array(parameter, sizes, rng)
        elif isinstance(parameter, Labels):
            given[parameter.name] = _labels(parameter, sizes, alone)
    return given


@cache
def _case(loss, names, size, dtype, settings):
    """Arguments in a format, and the value and the gradients of the reference."""
    given = _cast(_inputs(loss, names, size, "no_positive" in dict(settings)), dtype)
    return given, *get_loss(loss).value_and_grad(**given, **dict(settings))


def _prepared(program, size, optional, dtype):
    return _case(program.loss, _names(program, optional), size, dtype, tuple(program.settings.items()))


def _cast(given, dtype):
    arrays = {k: v.astype(dtype) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v for k, v in given.items()}
    return in_one_dtype(arrays)


def _value(program, given):
    with np.errstate(all="ignore"):
        return float(np.real(program.function(**given)))


def _cases(program):
    choices = (False,) if _names(program, False) == _names(program, True) else (False, True)
    return [(size, optional) for size in ALL_SIZES for optional in choices]


def _differs(program, size, optional):
    """Whether value or, in a small case, a gradient is off by more than rounding."""
    given, value, grads = _prepared(program, size, optional, program.dtypes[0])
    bound = 1e-9 if program.dtypes[0] == "float64" else 1e-3
    if not np.isclose(_value(program, given), value, rtol=bound, atol=bound):
        return True
    if size not in SMALL:
        return False
    own = target(program)(**given)[1]
    return any(not np.allclose(own[name], grads[name], rtol=bound, atol=bound) for name in own)


def test_ids_are_new_and_each_has_a_source():
    assert not {*WRONG} & {*RIGHT}
    assert not {*WRONG, *RIGHT} & {*bugs(), *correct_programs()}
    assert [program.id for program in WRONG.values() if bool(program.thread) == bool(program.seen)] == []
    assert [program.id for program in WRONG.values() if not program.named or not program.sentence] == []
    assert [program.id for program in RIGHT.values() if program.named or not program.sentence] == []


@sweep("name", WRONG)
def test_a_wrong_program_differs_from_the_reference(name):
    assert any(_differs(WRONG[name], *case) for case in _cases(WRONG[name]))


@sweep("name", RIGHT)
def test_a_correct_program_agrees_with_the_reference(name):
    program = RIGHT[name]
    assert [case for case in _cases(program) if _differs(program, *case)] == []
    given, value, _ = _prepared(program, SMALL[0], False, "float32")
    np.testing.assert_allclose(_value(program, given), value, rtol=2e-5, atol=2e-6)
