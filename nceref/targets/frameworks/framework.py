"""A framework: everything that the verifier knows of it, as one object."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nceref.targets.frameworks.call import Answer, CallRequest
from nceref.targets.target import Program, ResolvedTarget

Reply = Callable[[dict[str, Any]], tuple[Any, Mapping[str, Any]]]


def unchanged(probe: Any, others: Sequence[Any]) -> Any:
    """The same case: of a way of calling that changes no numbers."""
    return probe


@dataclass(frozen=True)
class Mode:
    """A way of calling.

    Attributes
    ----------
    words : str
        End of the sentence "the target is wrong ...".
    id : str
        Convention that a failure stands for.
    made : callable
        Function from a probe, and the others that are right, to the probe that is called; None where the mode has none.
    optional : bool
        Whether it is judged only if it is named.
    value_only : bool
        Whether there are no gradients.
    needs_reduction : bool
        Whether the target must be told the reduction.
    family : str
        Ways that are one test in pytest have one; empty for a way of its own.
    """

    words: str
    id: str
    made: Callable[[Any, Sequence[Any]], Any] = unchanged
    optional: bool = False
    value_only: bool = False
    needs_reduction: bool = False
    family: str = ""


@dataclass(frozen=True)
class Dialect:
    """The lines of a script that a framework writes in its own way, as templates.

    ``{literal}`` and ``{dtype}`` make an input; ``{call}`` is the call of the target, ``{arguments}`` the inputs whose
    gradients are compared, ``{by_name}`` these as entries of a dictionary, ``{names}`` as strings, ``{numbers}`` as
    positions, and ``{returned}`` the names of all gradients that a target returns in order.

    Attributes
    ----------
    imports : tuple of str
    array, scalar, labels : str
        An input that is differentiated, and one that is not.
    call : str
        Sets `value`.
    grads : str
        Sets `grads`, by name, after the call.
    number : str
        Turns `value` into a NumPy number after that.
    cast : str
        Brings an object with arrays of its own into the dtype.
    setup : mapping
        Settings of the framework by dtype.
    holding : str
        Puts inputs in the place of parameters that a module holds, ``{held}`` by path.
    """

    imports: tuple[str, ...]
    array: str
    scalar: str
    labels: str
    call: str
    grads: str
    number: str = ""
    cast: str = ""
    setup: Mapping[str, str] = field(default_factory=dict)
    holding: str = ""


@dataclass(frozen=True, eq=False)
class Framework:
    """The framework of a target.

    Attributes
    ----------
    name : str
        Name, which is also that of its package.
    check : callable
        Raises an `InputError` for a format or a device that the framework does not have here.
    answer : callable
        Calls a target once, and reads its value and gradients. Scalars in the third argument are handed over as Python
        numbers; the fourth says whether to differentiate, or to read the gradients that a target returns. Raises
        `Trouble` if the target answers with something that is no loss, or with gradients that fit no input.
    program : callable
        A program of the framework with a known value and known gradients. Its argument takes the inputs by name as
        float64 NumPy arrays and floats, and returns the value and the gradients by input.
    dialect : Dialect
        The lines of a script that shows a failure without nceref.
    modules : mapping
        Names in a call expression, with the modules that they stand for.
    packages : tuple of str
        Packages whose use shows that a target is of this framework.
    ways : tuple of str
        Ways of calling that it shares with others, by name; `modes` are those that it alone has.
    advice : mapping
        What to change, by convention, where the words of the convention itself do not fit.
    autodiff : bool
        Whether it differentiates: what refuses tensors is called with plain numbers then.
    ranks : str
        What several ranks are: ``processes``, or ``devices`` of one process; empty for a framework without.
    joined, integers, outputs : tuple of str
        Expressions that adapt a call: two arrays as one, labels in 32 bits, another output as a loss.
    constant, logarithm : str
        Expressions for an array that gets no gradient, and for its logarithm.
    module_base : str
        Module of the base class of objects that hold parameters; empty for a framework without.
    called_with : callable or None
        The result of a call during which tensors stand in the place of the parameters of such an object.
    array, content : str, callable or None
        Name of the class of arrays that can be written into, and a fingerprint of one.
    """

    name: str
    check: Callable[[CallRequest], None]
    answer: Callable[[ResolvedTarget, CallRequest, frozenset[str], bool], Answer]
    program: Callable[[Reply], Program]
    dialect: Dialect
    modules: Mapping[str, str]
    packages: tuple[str, ...]
    ways: tuple[str, ...]
    modes: Mapping[str, Mode] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)
    autodiff: bool = True
    ranks: str = ""
    joined: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    constant: str = "{}"
    logarithm: str = ""
    module_base: str = ""
    called_with: Callable[[Any, Mapping[str, Any], Callable[[], Any]], Any] | None = None
    array: str = ""
    content: Callable[[Any], Any] | None = None
