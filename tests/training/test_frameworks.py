"""Doors of frameworks: what they are without the framework, and what their functions show."""

import inspect
import subprocess
import sys

import pytest
from sweep import every_loss

from nceref import losses
from nceref.errors import DerivativeError, InputError
from nceref.training.frameworks import arguments_of, check_learned, function_of, member, members, no_derivative


def evaluated(loss, given, reduction):
    return loss.name, given, reduction


def test_without_the_framework_its_door_says_how_to_install_it():
    program = """
import importlib, sys
sys.modules |= {"torch": None, "jax": None}
import nceref, nceref.losses, nceref.testing
for framework in ("torch", "jax"):
    try:
        importlib.import_module(f"nceref.{framework}")
    except nceref.UnavailableError as error:
        print(isinstance(error, ImportError), error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "True nceref.torch needs PyTorch: pip install 'nceref[torch]'",
        "True nceref.jax needs JAX: pip install 'nceref[jax]'",
    ]


def test_the_package_imports_no_framework():
    program = "import sys, nceref.losses; nceref.losses.nt_xent; print({'torch', 'jax'} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"
    )


@every_loss
def test_a_function_has_the_name_and_the_signature_of_its_loss(loss_name):
    loss = losses.get_loss(loss_name)
    function = function_of(loss, evaluated, "somewhere", tuple)
    assert (function.__name__, function.__module__) == (loss_name, "somewhere")
    shown = dict(inspect.signature(loss).parameters)
    del shown["compute"]
    assert inspect.signature(function).parameters == shown
    assert inspect.signature(function).return_annotation is tuple
    assert loss.declaration.summary in inspect.getdoc(function)


def test_arguments_have_names_and_what_is_no_array_of_the_framework_is_copied():
    own, labels = (1.0, 2.0), [0, 1]
    given, reduction = arguments_of(losses.supcon_out, (own, labels), {"temperature": 3}, tuple)
    assert (given, reduction) == ({"embeddings": own, "labels": labels, "temperature": 3}, "mean")
    assert given["embeddings"] is own
    assert given["labels"] is not labels
    assert arguments_of(losses.nt_xent, (1, 2), {"temperature": 3, "reduction": "none"}, tuple)[1] == "none"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reduction": "avg"}, "`reduction` must be 'mean', 'sum' or 'none', got 'avg'"),
        ({"temperatur": 1}, "nt_xent has no argument `temperatur`; did you mean `temperature`?"),
        ({"compute": True}, "nt_xent has no argument `compute`"),
        ({"z1": 1}, "nt_xent got `z1` both by position and by name"),
    ],
)
def test_arguments_that_a_loss_does_not_have_are_refused(arguments, message):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        arguments_of(losses.nt_xent, (1, 2), arguments, tuple)


def test_a_door_has_every_loss_and_no_other_name():
    assert {"get_loss", *losses.all_losses()} == set(members())
    assert member("clip", str.upper) == "CLIP"
    with pytest.raises(AttributeError, match=r"no loss named 'ntxent'; did you mean 'nt_xent'\? See `nceref losses`"):
        member("ntxent", str.upper)


def test_a_gradient_by_a_constant_is_refused():
    check_learned(losses.moco, ["queries", "temperature"], "{}.detach()")
    with pytest.raises(InputError, match=r"`keys` gets no gradient: moco takes it as a constant; pass keys.detach\(\)"):
        check_learned(losses.moco, ["queries", "keys"], "{}.detach()")


def test_a_missing_derivative_is_named_with_its_loss():
    error = no_derivative(losses.clip, "second derivative", "take one")
    assert isinstance(error, DerivativeError | NotImplementedError)
    assert str(error) == "clip has no second derivative: its gradient alone is derived by hand; take one"
