"""The target that is judged: a program with its framework, and how the inputs of a loss reach it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nceref.spec import Loss

Program = Callable[[Mapping[str, Any], str, Callable[[Any], Any]], Any]
"""``program(inputs, reduction, placed)``: inputs by canonical name, as arrays of the framework; `placed` puts an object
that has arrays of its own, such as a torch module, into the dtype and on the device of the run."""


@dataclass(frozen=True)
class Deferred:
    """An argument that is known only where the target is called; `value` gives it there."""

    value: Callable[[], Any]


def given_now(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, with what is known now."""
    return {name: x.value() if isinstance(x, Deferred) else x for name, x in arguments.items()}


@dataclass(frozen=True, eq=False)
class ResolvedTarget:
    """Somebody else's loss, ready to be called.

    Attributes
    ----------
    name : str
        Name in a report.
    framework : str
        ``numpy``, ``torch`` or ``jax``.
    loss : str
        Name of the loss that it claims to be.
    program : callable or None
        None in a description that came out of a child process.
    binding : str
        One line: which input goes where.
    names : mapping
        The target's parameter to the input that it is handed, in the target's order.
    forms : frozenset of str
        Parameters that are handed a function of their input.
    fixed : mapping
        Scalars that have one value in every call: the corpus uses it.
    one_value : tuple of str
        Scalars of `fixed` that an object was constructed with.
    floats : mapping
        Scalars that are handed over as Python numbers, so that their gradient cannot be judged, with the reason.
    has_reduction : bool
        Whether the target takes the reduction.
    constructed : tuple of str
        Inputs that the constructor is handed: an object has those of the case that it was made for.
    parameters : mapping
        Inputs that take the place of a parameter of the module, with its path as ``named_parameters`` has it.
    sizes : mapping
        The shape of that parameter, by input.
    others : tuple of str
        Paths of parameters that it computes with beside, and that stand for no input.
    defaults : mapping
        Numbers and truth values that the target has by default, and that no input reaches, by parameter.
    signature : mapping
        Parameters of its call, each with whether it must be given; empty where they are not known by name.
    text, call, init
        The TARGET text (empty for an object), the call expression, and the constructor's arguments.
    """

    name: str
    framework: str
    loss: str
    program: Program | None = None
    binding: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    forms: frozenset[str] = frozenset()
    fixed: Mapping[str, float] = field(default_factory=dict)
    one_value: tuple[str, ...] = ()
    floats: Mapping[str, str] = field(default_factory=dict)
    has_reduction: bool = False
    constructed: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    defaults: Mapping[str, float | bool] = field(default_factory=dict)
    signature: Mapping[str, bool] = field(default_factory=dict)
    text: str = ""
    call: str = ""
    init: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LoadRequest:
    """The request that a child is started for, with the arguments of `load.resolve_target`.

    `group` has the ``rank`` and the ``world_size`` of a child that is one of several, and the path of the ``store``
    through which they meet; without it they do not meet yet. Where one child has all ranks, as devices of JAX, it has
    the name of their ``axis`` and the ``world_size``.
    """

    text: str
    loss: Loss
    options: Mapping[str, Any]
    group: Mapping[str, Any] = field(default_factory=dict)
