"""The common part of the doors of PyTorch and JAX: losses as functions whose gradients a framework takes."""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

from nceref.engine.arguments import choose_reduction, converted, named
from nceref.errors import DerivativeError, InputError
from nceref.losses import FAMILY, LossFunction
from nceref.registry import names, unknown
from nceref.spec import Scalar

Evaluate = Callable[[LossFunction, tuple[Any, ...], dict[str, Any]], Any]


def function_of(loss: LossFunction, evaluate: Evaluate, module: str, returns: type) -> Callable[..., Any]:
    """A loss as a function of a framework's arrays.

    `evaluate` takes the loss, its arguments by position and those by name. The function has the signature of the loss,
    but for `compute`, and belongs to `module`; by the annotation `returns`, `nceref verify` recognizes the framework.
    """

    def function(*arrays: Any, **arguments: Any) -> Any:
        return evaluate(loss, arrays, arguments)

    signature = loss.__signature__
    kept = [p for p in signature.parameters.values() if p.name != "compute"]
    source = f"`nceref.losses.{loss.name}` has its arguments, errors and sources."
    function.__name__ = function.__qualname__ = loss.name
    function.__module__ = module
    function.__annotations__ = {"return": returns}
    function.__doc__ = f"{loss.declaration.summary}\n\n{source}"
    vars(function)["__signature__"] = signature.replace(parameters=kept, return_annotation=returns)
    return function


def arguments_of(
    loss: LossFunction, arrays: tuple[Any, ...], arguments: dict[str, Any], of_framework: type
) -> tuple[dict[str, Any], str]:
    """The arguments by name, and the reduction.

    Arrays of the framework stay what they are; everything else is copied, since the backward pass reads arguments once
    more.
    """
    reduction = choose_reduction(loss.declaration, arguments.get("reduction", "mean"))
    given = named(loss.declaration, arrays, {name: x for name, x in arguments.items() if name != "reduction"})
    copies = {name: x if isinstance(x, of_framework) else converted(name, x, deepcopy, x) for name, x in given.items()}
    return copies, reduction


def check_numbers(loss: LossFunction, arrays: Mapping[str, Any], kind: str) -> None:
    """Check that numbers, where they are arrays, have no dimensions.

    `kind` is the framework's word for an array, with its article. Raises `InputError` for one that has.
    """
    for p in loss.parameters:
        if isinstance(p, Scalar) and p.name in arrays and arrays[p.name].ndim:
            shape = tuple(arrays[p.name].shape)
            one = f"{kind} without dimensions, such as {p.name}{'[0]' * len(shape)}"
            msg = f"`{p.name}` must be one number, got {kind} of shape {shape}; pass {one}"
            raise InputError(msg)


def member(name: str, get: Callable[[str], Any]) -> Any:
    """The function of a loss in a door; for another name, an AttributeError lists the losses that are alike."""
    if name in names(FAMILY):
        return get(name)
    raise AttributeError(str(unknown("loss", name, names(FAMILY), "nceref losses")))


def members() -> list[str]:
    """Names that a door has."""
    return ["get_loss", *names(FAMILY)]


def check_learned(loss: LossFunction, learned: Iterable[str], constant: str) -> None:
    """Check that every argument of which a framework takes the gradient has one.

    `constant` is the framework's code that makes a constant of one, with ``{}`` for its name. Raises `InputError` for a
    constant of the loss: its gradient would be missing without a word.
    """
    for name in learned:
        if name not in loss.declaration.differentiable:
            msg = f"`{name}` gets no gradient: {loss.name} takes it as a constant; pass {constant.format(name)}"
            raise InputError(msg)


def no_derivative(loss: LossFunction, what: str, remedy: str) -> DerivativeError:
    """The error for a derivative that is not there.

    `what` is the derivative, and `remedy` says what to do.
    """
    return DerivativeError(f"{loss.name} has no {what}: its gradient alone is derived by hand; {remedy}")
