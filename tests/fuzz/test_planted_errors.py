"""The fuzzer can fail: each of these small errors, planted into the package, is a finding of the expected kind."""

import warnings
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from fuzz import backend
from fuzz.cases import cases
from fuzz.judge import judge
from hypothesis import HealthCheck, Phase, find, settings

import nceref
from nceref.engine import arguments, embeddings, passes, shapes
from nceref.engine.embeddings import Rows
from nceref.engine.plan import Plan

INPUTS = 2000
"""At most: the first finding ends the search."""


def without_projection(original):
    """Gradients that keep the part along the row."""

    def vjp(self, g, *args):
        return original(replace(self, values=np.zeros_like(self.values)), g, *args)

    return vjp


def half(original):
    """Similarities that are divided by half the temperature."""
    return lambda temperature, name="temperature": original(temperature / 2, name)


def by_rows(original):
    """A mean that is divided by the number of rows, whatever they weigh."""

    def weights(plan, stats, rows, reduction):
        w = original(plan, stats, rows, "sum")
        return w / rows.size if reduction == "mean" else w

    return weights


def in_float32(original):
    """Everything in single precision."""
    return lambda inputs: original({
        name: x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
        for name, x in inputs.items()
    })  # fmt: skip


def unchecked(original):
    return lambda *args, **named: None


def warns(original):
    def wrapped(*args, **named):
        warnings.warn("a warning of our own", RuntimeWarning, stacklevel=2)
        return original(*args, **named)

    return wrapped


def raises(original):
    def wrapped(*args, **named):
        raise ZeroDivisionError

    return wrapped


def writes(original):
    """The first entry of an input is changed."""

    def wrapped(rows, parts, *args):
        if rows.flags.writeable:
            rows[0, 0] += 1
        return original(rows, parts, *args)

    return wrapped


def misnamed(original):
    """A refusal that names nothing."""
    return lambda *args: "this shape does not fit"


PLANTED = {
    "without the projection": (Rows, "vjp", without_projection, "nt_xent", "wrong gradient"),
    "half the temperature": ("nceref.engine.layouts", "divided_by", half, "nt_xent", "wrong value"),
    "weights by rows": (Plan, "weights", by_rows, "supcon_out", "wrong value"),
    "single precision": ("nceref.engine.bound_loss", "promoted", in_float32, "clip", "wrong value"),
    "labels unchecked": (arguments, "check_range", unchecked, "cross_entropy", "accepted"),
    "range unchecked": (passes, "check_finite", unchecked, "alignment", "not finite"),
    "a warning": ("nceref.engine.bound_loss", "promoted", warns, "moco", "warning"),
    "an exception": (Plan, "weights", raises, "simple", "foreign exception"),
    "an input changed": (embeddings, "Rows", writes, "siglip", "changed input"),
    "another name": (shapes, "_shape_message", misnamed, "nce", "names not the argument at fault"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_a_finding(name, monkeypatch):
    where, attribute, plant, loss, expected = PLANTED[name]
    module = import_module(where) if isinstance(where, str) else where
    chosen = settings(
        backend=backend.NAME, max_examples=INPUTS, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), deadline=None,
    )  # fmt: skip
    strategy = cases(nceref.get_loss(loss).declaration)
    monkeypatch.setattr(module, attribute, plant(getattr(module, attribute)))
    find(strategy, lambda case: judge(case).cause == expected, settings=chosen)
