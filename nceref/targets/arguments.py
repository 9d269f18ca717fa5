"""Matching of a target's parameters with the inputs of the loss: by name, by alias, by position."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from tokenize import TokenError
from typing import Any

from nceref.cases.aliases import FORMS, kind, match_input, plain
from nceref.errors import LackingInputError, SignatureError, TargetError
from nceref.output.words import as_code
from nceref.spec import Array, Choice, Labels, Loss, Parameter, Scalar

_ROWS, _FEATURES, _CLASSES = 8, 16, 5
_CONSTRUCTED_WITH: dict[str, tuple[Any, str]] = {
    "device": ("cpu", ""),
    "rank": (0, ""),
    "world_size": (1, ""),
    **dict.fromkeys(("batch_size", "bs"), (_ROWS, "rows")),
    **dict.fromkeys(("embedding_size", "embedding_dim", "feat_dim", "feature_dim", "in_features"), (_FEATURES, "rows")),
    **dict.fromkeys(("num_classes", "n_classes", "out_features"), (_CLASSES, "classes")),
}
"""Arguments that a constructor may need, with what they are given, and which sizes of the cases that fixes."""
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
"""Kinds of a parameter that may be given by name."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of one callable: parameters, each with the input that it is handed.

    Attributes
    ----------
    positional : tuple of (str, str)
        Parameter and input, for what goes by position.
    named : tuple of (str, str)
        Parameter and input, for what goes by keyword.
    truths : frozenset of str
        Parameters that take a truth value where the loss has a word.
    """

    positional: tuple[tuple[str, str], ...] = ()
    named: tuple[tuple[str, str], ...] = ()
    truths: frozenset[str] = frozenset()

    @property
    def names(self) -> dict[str, str]:
        """Parameter to input, in the order of the target."""
        return dict((*self.positional, *self.named))

    def handed(self, function: Callable[..., Any], inputs: Mapping[str, Any]) -> Any:
        """Call the function with its share of the inputs."""
        args = [self._value(p, inputs[name]) for p, name in self.positional]
        kwargs = {p: self._value(p, inputs[name]) for p, name in self.named if name in inputs}
        return function(*args, **kwargs)

    def _value(self, parameter: str, value: Any) -> Any:
        return value != "none" if parameter in self.truths and isinstance(value, str) else value


def signature_of(function: Any) -> inspect.Signature:
    """The signature, or that of any number of arrays where a compiled function shows none."""
    try:
        return inspect.signature(function)
    # The last: from Python 3.12 on, for a text that is no signature.
    except (TypeError, ValueError, TokenError):
        return inspect.Signature([inspect.Parameter("arrays", inspect.Parameter.VAR_POSITIONAL)])


def match_arguments(
    signature: inspect.Signature,
    given: Iterable[Parameter],
    chosen: Iterable[str],
    name: str,
    loss: str,
    lacking: Iterable[str] = (),
) -> Arguments:
    """Match the parameters of a target with the inputs that are given.

    Arrays and labels of `given` must all find a parameter; scalars need not. `chosen` has the choices (and
    ``reduction``) that the user set; the target keeps its own default for the others. `name` and `loss` are words of
    messages, and `lacking` names what the loss takes and this run has not. Raises `TargetError` if a required parameter
    is left without an input, or an array without a parameter.
    """
    inputs = {p.name: p for p in given}
    parameters = {n: p for n, p in signature.parameters.items() if p.kind not in _VARIADIC}
    matched = _by_name(parameters, inputs, frozenset(chosen))
    matched |= _by_position(parameters, inputs, matched)
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in matched]
    if missing:
        required = [n for n, p in parameters.items() if p.default is p.empty or n in matched]
        if wanted := [fit for n in missing if (fit := match_input(n, lacking))]:
            raise _lacking(name, loss, missing[0], wanted)
        raise _unmatched(name, loss, missing[0], required, matched)
    left = [n for n, p in inputs.items() if isinstance(p, Array | Labels) and n not in matched.values()]
    spare = {p.kind for p in signature.parameters.values()} & _VARIADIC
    # One letter means anything: b is a bias, or the second of two arrays.
    letters = {name for n, name in matched.items() if len(n) == 1 and isinstance(inputs.get(name), Scalar)}
    if left and not spare and letters:
        rest = [p for n, p in inputs.items() if n not in letters]
        return match_arguments(signature, rest, chosen, name, loss, lacking)
    if left and not spare:
        raise _homeless(name, loss, left[0], parameters, inputs)
    return _arranged(parameters, matched, inputs, left, spare)


_VARIADIC = frozenset({inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD})


@dataclass(frozen=True)
class CallByForms:
    """The call of a target whose parameters' names say that they take functions of inputs.

    Attributes
    ----------
    text : str
        Call expression.
    names : mapping
        Parameter to input, in the order of the target.
    forms : frozenset of str
        Parameters that take a function of their input.
    """

    text: str
    names: Mapping[str, str]
    forms: frozenset[str]


def call_by_forms(
    signature: inspect.Signature, given: Sequence[Parameter], chosen: Iterable[str], log: str
) -> CallByForms | None:
    """The call with functions of inputs; None for a target that takes the inputs themselves.

    `log` is the framework's expression for a logarithm. The other arguments are those of `match_arguments`.
    """
    parameters, inputs = signature.parameters, [p.name for p in given]
    forms = {}
    for name in FORMS.keys() & {*inputs}:
        form, words = FORMS[name]
        taking = [n for n in parameters if plain(n) in words and not match_input(n, inputs)]
        # What takes the input itself needs no function of it.
        if len(taking) == 1 and not any(match_input(n, [name]) for n in parameters):
            forms[taking[0]] = name, form.replace("log {}", log).format(name)
    reduction = parameters.get("reduction")
    # By name, and by the reduction that the target has of itself.
    by_name = all(p.kind in NAMED for p in parameters.values())
    if not (forms and by_name and (reduction is None or reduction.default in ("mean", reduction.empty))):
        return None
    handed = {name for name, _ in forms.values()}
    rest = signature.replace(parameters=[p for n, p in parameters.items() if n not in forms])
    try:
        others = match_arguments(rest, [p for p in given if p.name not in handed], chosen, "f", "")
    except TargetError:
        return None
    named = {**others.names, **{n: name for n, (name, _) in forms.items()}}
    named |= {"reduction": "reduction"} if reduction is not None else {}
    names = {n: named[n] for n in parameters if n in named}
    arguments = [f"{n}={forms[n][1] if n in forms else name}" for n, name in names.items()]
    names.pop("reduction", None)
    return None if others.truths else CallByForms(f"f({', '.join(arguments)})", names, frozenset(forms))


def match_by_name(
    signature: inspect.Signature, given: Iterable[Parameter], chosen: Iterable[str], name: str
) -> Arguments:
    """The arguments of a constructor, by name or alias only, and only inputs that need no graph.

    The arguments are those of `match_arguments`. Raises `TargetError` if a required parameter fits none of these
    inputs.
    """
    inputs = {p.name: p for p in given if not isinstance(p, Array | Labels) or (isinstance(p, Array) and p.constant)}
    parameters = {n: p for n, p in signature.parameters.items() if p.kind not in _VARIADIC}
    matched = _by_name(parameters, inputs, frozenset(chosen))
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in matched]
    if missing:
        raise _unconstructed(name, missing)
    return Arguments(named=tuple(matched.items()), truths=_truths(parameters, matched, inputs))


def constructed_with(needs: Sequence[str]) -> dict[str, Any]:
    """The usual values of arguments that a constructor needs, and the shape of cases that fit them.

    >>> constructed_with(["num_classes", "embedding_size", "margin"])
    {'init': {'num_classes': 5, 'embedding_size': 16}, 'shape': (8, 16, 5)}
    """
    init = {name: _CONSTRUCTED_WITH[name][0] for name in needs if name in _CONSTRUCTED_WITH}
    sizes = {_CONSTRUCTED_WITH[name][1] for name in init} - {""}
    shape = (_ROWS, _FEATURES, _CLASSES) if "classes" in sizes else (_ROWS, _FEATURES)
    return ({"init": init} if init else {}) | ({"shape": shape} if sizes else {})


def _by_name(
    parameters: Mapping[str, inspect.Parameter], inputs: Mapping[str, Parameter], chosen: frozenset[str]
) -> dict[str, str]:
    """Exact names first, so that an alias never takes what another parameter is called."""
    matched: dict[str, str] = {}
    for exact in (True, False):
        for parameter, p in parameters.items():
            free = [n for n in inputs if n not in matched.values() and (n in chosen or _by_itself(inputs[n], p))]
            free = [n for n in free if n == parameter] if exact else free
            if parameter not in matched and (name := match_input(parameter, free)):
                matched[parameter] = name
    # The target keeps a default of its own, since that is judged too.
    reduction = parameters.get("reduction")
    if reduction is not None and ("reduction" in chosen or reduction.default is reduction.empty):
        matched["reduction"] = "reduction"
    return {n: matched[n] for n in parameters if n in matched}


def _by_itself(declared: Parameter, parameter: inspect.Parameter) -> bool:
    """Whether an input is handed over without being set by the user: a choice only where the target has no default."""
    return not isinstance(declared, Choice) or parameter.default is parameter.empty


def _by_position(
    parameters: Mapping[str, inspect.Parameter], inputs: Mapping[str, Parameter], matched: Mapping[str, str]
) -> dict[str, str]:
    """Required parameters that no name fits: arrays in the order of declaration, then scalars."""
    left = [n for n in inputs if n not in matched.values()]
    arrays = [n for n in left if isinstance(inputs[n], Array | Labels)]
    # A scalar with a default need not be handed over.
    scalars = [n for n in left if isinstance(inputs[n], Scalar) and inputs[n].default is ...]  # type: ignore[union-attr]
    waiting, out = arrays + scalars, {}
    for parameter, p in parameters.items():
        if parameter in matched or p.default is not p.empty or p.kind not in _PLACED:
            continue
        fits = [n for n in waiting if _KINDS[type(inputs[n])] in kind(parameter)]
        if fits:
            out[parameter] = fits[0]
            waiting.remove(fits[0])
    # What goes by keyword has no place; of one that is left and one input there is no other choice.
    by_keyword = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    alone = [n for n in by_keyword if n not in matched]
    if len(alone) == len(waiting) == 1 and _KINDS[type(inputs[waiting[0]])] in kind(alone[0]):
        out[alone[0]] = waiting[0]
    return out


_KINDS = {Array: "array", Labels: "labels", Scalar: "scalar", Choice: "choice"}


def _arranged(
    parameters: Mapping[str, inspect.Parameter],
    matched: Mapping[str, str],
    inputs: Mapping[str, Parameter],
    left: list[str],
    spare: set[Any],
) -> Arguments:
    """The arguments, by keyword where possible; by position what must go so, and everything before ``*arrays``."""
    many, any_name = (kind in spare for kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD))
    scalars = [n for n, p in inputs.items() if isinstance(p, Scalar) and n not in matched.values()]
    required = [n for n in scalars if inputs[n].default is ...]  # type: ignore[union-attr]
    # With ``*arrays`` alone required scalars follow the arrays; with ``**names`` every scalar goes by name.
    rest = (left if any_name else left + required) if many else []
    extra = (scalars if many else left + scalars) if any_name else []
    ordered = {n: matched[n] for n in parameters if n in matched}
    first = [
        n
        for n in ordered
        if parameters[n].kind is inspect.Parameter.POSITIONAL_ONLY or (rest and parameters[n].kind in _PLACED)
    ]
    positional = [(n, ordered[n]) for n in first] + [(n, n) for n in rest]
    named = [(n, name) for n, name in ordered.items() if n not in first] + [(n, n) for n in extra]
    return Arguments(tuple(positional), tuple(named), _truths(parameters, matched, inputs))


def _truths(
    parameters: Mapping[str, inspect.Parameter], matched: Mapping[str, str], inputs: Mapping[str, Parameter]
) -> frozenset[str]:
    """Parameters with a truth value for a default, where the loss has words."""
    choices = [n for n, name in matched.items() if isinstance(inputs.get(name), Choice)]
    return frozenset(n for n in choices if isinstance(parameters[n].default, bool))


def _lacking(name: str, loss: str, parameter: str, wanted: Sequence[str]) -> LackingInputError:
    return LackingInputError(
        f"{name} needs `{parameter}`, which {loss} may be given and this run does not give; run with"
        f" {' '.join(f'--set {each}=given' for each in wanted)}"
    )


def _unmatched(
    name: str, loss: str, parameter: str, parameters: Iterable[str], matched: Mapping[str, str]
) -> SignatureError:
    return SignatureError(
        f"{name} needs `{parameter}`, and no input of {loss} fits it; give it with --init {parameter}=VALUE,"
        f" or map the inputs with --call{SUCH_AS}{_example(parameters, matched)}"
    )


def _unconstructed(name: str, missing: Sequence[str]) -> TargetError:
    needed = " and ".join(map(as_code, missing))
    usual = constructed_with(missing)
    words = [f"--init {each}={usual.get('init', {}).get(each, 'VALUE')}" for each in missing]
    words += [f"--shape {','.join(map(str, usual['shape']))}"] if "shape" in usual else []
    return TargetError(f"{name} needs {needed}, and {UNKNOWN_TO_REFERENCE}: {' '.join(words)}")


def _homeless(
    name: str,
    loss: str,
    left: str,
    parameters: Iterable[str],
    inputs: Mapping[str, Parameter],
) -> SignatureError:
    # What the target has instead of it cannot be known: every case has its own.
    constant = getattr(inputs[left], "constant", False) and f" let its constructor or its call take `{left}`, or"
    return SignatureError(
        f"{name} takes {listed(parameters)}, and none of these is `{left}` of {loss};{constant or ''}"
        f" map the inputs with --call"
    )


UNKNOWN_TO_REFERENCE = "the reference has no such scalar or setting"
"""In the reason of a class that cannot be constructed."""
SUCH_AS = ", such as --call "
"""Words before the example of a call; where a call was tried, it replaces that example."""


def _example(parameters: Iterable[str], matched: Mapping[str, str]) -> str:
    """The call in the target's own words, with a number for what no input fits."""
    given = [f"{p}={matched.get(p, 1.0)}" for p in parameters]
    return f'"f({", ".join(given)})"'


def listed(names: Iterable[str]) -> str:
    """Names in backquotes, separated by commas."""
    return ", ".join(f"`{n}`" for n in names) or "nothing"


def given_parameters(loss: Loss, names: Iterable[str]) -> tuple[Parameter, ...]:
    """The declared parameters of those names, in the order of declaration."""
    chosen = frozenset(names)
    return tuple(p for p in loss.parameters if p.name in chosen)


def expected_names(loss: Loss, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The inputs of a corpus for these settings, in the order of declaration: required ones, and those that are set.

    Which optional arrays are set is said by `settings`, the conventions of the run, if they have any array or labels,
    and else by the first variant of the loss.
    """
    arrays = [p for p in loss.parameters if isinstance(p, Array | Labels)]
    source = settings if any(p.name in settings for p in arrays) else loss.variants[0]
    left_out = [p.name for p in arrays if not p.required and source.get(p.name) is None]
    return tuple(p.name for p in loss.parameters if p.name not in left_out)
