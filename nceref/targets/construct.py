"""Construction and calls of a target, once it is known what it is: a function, a class or an object."""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nceref.cases.aliases import match_input
from nceref.errors import InputError, TargetError
from nceref.spec import Array, Choice, Labels, Loss, Scalar
from nceref.targets.arguments import (
    NAMED,
    Arguments,
    CallByForms,
    given_parameters,
    listed,
    match_arguments,
    match_by_name,
    signature_of,
)
from nceref.targets.call_expression import Expression
from nceref.targets.kept_state import KeptObjects
from nceref.targets.own_parameters import find_parameters, holder_of
from nceref.targets.target import given_now


@dataclass(frozen=True)
class BoundCall:
    """The inputs that reach a target, in its constructor and in its call.

    With a call expression `names` are the inputs that it uses.
    """

    construct: Arguments
    called: Arguments
    names: Mapping[str, str]

    @property
    def inputs(self) -> frozenset[str]:
        """The inputs, by their canonical names."""
        return frozenset(self.names.values()) | frozenset(self.construct.names.values())


@dataclass(frozen=True, eq=False)
class Callee:
    """A target that can be called with the inputs of a loss.

    Attributes
    ----------
    thing : object
        A function, a class or an object.
    chosen : frozenset of str
        Settings that the user gave: they are passed on where the target takes them.
    presets : mapping
        Arguments that were given beforehand: of the constructor, or of every call of a function.
    held : mapping
        Inputs that take the place of a parameter of the module, with its path: nobody hands them over.
    sizes : mapping
        The shape of that parameter, by input.
    others : tuple of str
        Paths of its parameters that are trained, and that stand for no input.
    by_forms : CallByForms or None
        What `written` was made of, where that is no expression of the user.
    """

    thing: Any
    name: str
    loss: Loss
    chosen: frozenset[str]
    presets: Mapping[str, Any]
    written: Expression | None
    held: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    by_forms: CallByForms | None = None
    _bound: dict[tuple[tuple[str, ...], str], BoundCall] = field(default_factory=dict, init=False, repr=False)

    @property
    def constructor(self) -> inspect.Signature:
        """The signature of the constructor, without arguments that are given already; empty where there is no class."""
        return self._open(signature_of(self.thing)) if inspect.isclass(self.thing) else inspect.Signature()

    @property
    def call(self) -> inspect.Signature:
        """The signature of the call, without arguments that are given already."""
        if inspect.isclass(self.thing):
            method = inspect.signature(_method(self.thing, self.name, self.loss))
            return method.replace(parameters=list(method.parameters.values())[1:])
        # The `__call__` of a module takes anything; `forward` has the parameters.
        forward = getattr(self.thing, "forward", None)
        return self._open(signature_of(self.thing if forward is None else forward))

    @property
    def signature(self) -> dict[str, bool]:
        """Parameters of the call, each with whether it must be given; empty where they are not known by name."""
        try:
            parameters = self.call.parameters
        # Of a class without a call, an expression names a method.
        except TargetError:
            return {}
        named = all(p.kind in NAMED for p in parameters.values())
        return {n: p.default is p.empty for n, p in parameters.items()} if named else {}

    def _open(self, signature: inspect.Signature) -> inspect.Signature:
        return signature.replace(parameters=[p for n, p in signature.parameters.items() if n not in self.presets])

    def defaults(self, bound: "BoundCall") -> dict[str, float | bool]:
        """Numbers and truth values that a class or a function has by default, and that no input reaches."""
        signature = self.constructor if inspect.isclass(self.thing) else self.call
        taken = {*bound.construct.names, *bound.called.names, "reduction"}
        free = {n: p.default for n, p in signature.parameters.items() if n not in taken}
        return {n: x for n, x in free.items() if isinstance(x, bool | int | float)} if self.written is None else {}

    @property
    def has_reduction(self) -> bool:
        """Whether the target takes the reduction."""
        parameters = self.written.names if self.written is not None else frozenset(self.call.parameters)
        return "reduction" in parameters or "reduction" in self.constructor.parameters

    def bind(self, names: Iterable[str], reduction: str = "mean") -> BoundCall:
        """Assign given inputs to the constructor or the call, with a reduction other than the mean where it is taken.

        Raises `TargetError` if something that the target needs fits no input, or an array fits no parameter.
        """
        given = given_parameters(self.loss, frozenset(names) - self.held.keys())
        chosen = self.chosen | (frozenset() if reduction == "mean" else {"reduction"})
        # The constructor leaves to the call what both take, unless it cannot do without.
        by_call = self.taken_by_call([p.name for p in given])
        needed = {n for n, p in self.constructor.parameters.items() if p.default is p.empty}
        free = [p for p in given if p.name not in by_call or any(match_input(n, [p.name]) for n in needed)]
        construct = match_by_name(self.constructor, free, chosen, f"the constructor of {self.name}")
        if self.written is not None:
            used = {p.name: p.name for p in self.loss.parameters if p.name in self.written.names}
            return BoundCall(construct, Arguments(), used if self.by_forms is None else self.by_forms.names)
        inside = frozenset(construct.names.values()) - by_call
        rest = [p for p in given if p.name not in inside]
        lacking = [p.name for p in self.loss.parameters if not getattr(p, "required", True) and p not in given]
        called = match_arguments(self.call, rest, chosen, self.name, self.loss.name, lacking)
        return BoundCall(construct, called, {p: n for p, n in called.names.items() if n != "reduction"})

    def taken_by_call(self, given: Iterable[str]) -> frozenset[str]:
        """Inputs that the call takes by name: the constructor does without them if it can."""
        if self.written is not None:
            return self.written.names
        return frozenset(name for n in self.call.parameters if (name := match_input(n, given)))

    def program(self, inputs: Mapping[str, Any], reduction: str, placed: Callable[[Any], Any]) -> Any:
        """The result of a call with these inputs; a class is constructed first."""
        key = tuple(inputs), reduction
        if key not in self._bound:
            self._bound[key] = self.bind(inputs, reduction)
        bound = self._bound[key]
        words = {**inputs, "reduction": reduction}
        function = self._function(bound, words, placed)
        if not self.held:
            return self._called(function, bound, words)
        tensors = {path: inputs[name] for name, path in self.held.items() if name in inputs}
        holder = holder_of(self.thing)
        assert holder is not None
        assert holder.called_with is not None
        return holder.called_with(function, tensors, lambda: self._called(function, bound, words))

    def _called(self, function: Any, bound: BoundCall, words: Mapping[str, Any]) -> Any:
        if self.written is not None:
            return self.written.evaluated(function, words)
        return bound.called.handed(function, words)

    def holding(self, stated: Mapping[str, str], names: Iterable[str], unsought: Iterable[str] = ()) -> "Callee":
        """The target with parameters of its own in place of inputs that it is not handed.

        `stated` is input to path, as the user gave it; `names` are the inputs that there are. For those in `unsought`
        no parameter is looked for.
        """
        names = tuple(names)
        sought = [n for n in names if n not in {*self.taken_by_call(names), *unsought}]
        held, sizes, others = find_parameters(self.loss, self.name, self._example, stated, sought)
        # What a constructor demands it is given once: the parameter is replaced in every call.
        needed = {n for n, p in self.constructor.parameters.items() if p.default is p.empty}
        scalars = {p.name: _typical(p) for p in self.loss.parameters if isinstance(p, Scalar) and p.name in held}
        values = {n: scalars[name] for n in needed if (name := match_input(n, scalars))}
        return replace(self, held=held, sizes=sizes, others=others, presets={**self.presets, **values})

    def _example(self) -> Any:
        """The module, or one that is constructed with typical numbers."""
        if not inspect.isclass(self.thing):
            return self.thing
        given = [p for p in self.loss.parameters if isinstance(p, Scalar | Choice)]
        words = {p.name: _typical(p) if isinstance(p, Scalar) else p.default for p in given} | {"reduction": "mean"}
        construct = match_by_name(self.constructor, given, (), f"the constructor of {self.name}")
        return construct.handed(partial(self.thing, **given_now(self.presets)), words)

    def _function(self, bound: BoundCall, inputs: Mapping[str, Any], placed: Callable[[Any], Any]) -> Any:
        kept = _KEPT.get()
        # Constructed anew for each case, so that no state is carried over.
        if kept is None:
            return self._constructed(bound, inputs, placed)
        return kept.the(id(self), lambda: self._constructed(bound, inputs, placed))

    def _constructed(self, bound: BoundCall, inputs: Mapping[str, Any], placed: Callable[[Any], Any]) -> Any:
        if inspect.isclass(self.thing):
            return _callable(placed(bound.construct.handed(partial(self.thing, **given_now(self.presets)), inputs)))
        if holder_of(self.thing) is not None:
            # A copy, so that what one case leaves behind in it cannot reach the next.
            return _callable(placed(copy.deepcopy(self.thing)))
        return placed(partial(self.thing, **given_now(self.presets)) if self.presets else _callable(self.thing))


_KEPT: ContextVar[KeptObjects | None] = ContextVar("kept", default=None)


@contextmanager
def same_instance() -> Iterator[KeptObjects]:
    """A context in which a class is constructed once: a second call shows what the first has left behind."""
    token = _KEPT.set(kept := KeptObjects())
    try:
        yield kept
    finally:
        _KEPT.reset(token)


def callee_of(
    thing: Any, name: str, loss: Loss, chosen: frozenset[str], init: Mapping[str, Any], written: Expression | None
) -> Callee:
    """The target with the arguments that the user gave beforehand.

    `thing` is a function, a class, a partial of either, or an object, and `name` is what messages call it. `chosen` are
    the settings that the user gave; `init` are arguments of the constructor, or of every call of a function. Raises
    `InputError` if `init` names an argument that the target does not take.
    """
    if isinstance(thing, partial):
        # A partial of a class is the class with presets: it too is constructed for each case.
        init = {**thing.keywords, **init}
        thing = thing.func if inspect.isclass(thing.func) and not thing.args else thing
    taker = thing if inspect.isclass(thing) or inspect.isroutine(thing) or isinstance(thing, partial) else None
    if taker is None and init:
        msg = f"`init` is for classes and functions, but {name} is constructed already; give the class, or leave it out"
        raise InputError(msg)
    parameters = signature_of(taker).parameters if taker is not None else {}
    unknown = [n for n in init if n not in parameters]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        msg = f"`init` gives `{unknown[0]}`, but {name} takes {listed(parameters)}"
        raise InputError(msg)
    return Callee(thing, name, loss, chosen, init, written)


def _method(kind: type, name: str, loss: Loss) -> Any:
    """The method that is called on an instance: its ``forward``, or else its ``__call__``."""
    if hasattr(kind, "forward"):
        return kind.forward
    if any("__call__" in vars(base) for base in kind.__mro__):
        return kind.__call__
    inputs = ", ".join(p.name for p in loss.parameters if isinstance(p, Array | Labels) and p.required)
    remedy = f"name its method, as in --call 'f.METHOD({inputs})'"
    msg = f"{name} is a class whose instances cannot be called: no forward, no __call__; {remedy}"
    raise TargetError(msg)


def _callable(instance: Any) -> Any:
    return instance if callable(instance) else getattr(instance, "forward", instance)


def _typical(scalar: Scalar) -> float:
    return float(scalar.default) if isinstance(scalar.default, float | int) else scalar.typical[1]
