"""Adapters for a target where a plain call fails: the usual ones, each tried before it is named."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain, islice, product, zip_longest
from typing import Any

from nceref.cases.aliases import ARRAYS, FORMS, SCALARS, kind, match_input, plain
from nceref.cases.records import Result
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.spec import Array, Labels, Loss, Parameter, Scalar
from nceref.targets.arguments import expected_names, given_parameters
from nceref.targets.frameworks.call import ROWS, WHICH
from nceref.targets.frameworks.frameworks import FRAMEWORKS
from nceref.targets.runner import child_runner
from nceref.targets.search import Search
from nceref.verification.request import Request
from nceref.verification.target_run import begun
from nceref.verification.trials import CALLED, Trial, Trials, until_ended, until_right

MOST = 150
"""Calls that are tried: each is a few milliseconds, and the target has failed already."""
SHORT, LOADING = 30.0, 120.0
"""Seconds for a case and for loading, after which a target hangs: the first case of a call may import a framework."""
_CALLED_WRONGLY = ("behavior.raises", "behavior.wrong-shape", "behavior.not-a-number-type")
"""Results of a call whose arguments or whose answer have another form."""
_OUTPUTS = tuple(output for each in FRAMEWORKS.values() for output in each.outputs)
"""Expressions that turn logits with labels into a loss."""
_UNIT = "({} / ({}**2).sum(1, keepdims=True) ** 0.5)"
_OF_MEMORY = ("{}.T", _UNIT, f"{_UNIT}.T")
"""Forms in which an array of earlier batches may be handed over: rows as columns, and rows of length 1."""
_KEPT = tuple(
    tuple(form.replace("{}", constant) for form in ("{}", *_OF_MEMORY))
    for constant in sorted({each.constant for each in FRAMEWORKS.values()}, key=len, reverse=True)
)
"""Forms of the same for a memory that an object keeps, which has no gradient: as tensors, and as other arrays."""


def called_wrongly(results: Sequence[Result]) -> bool:
    """Whether no case was answered, by a target that ends each call by itself."""
    errors = [r for r in results if r.status == "error"]
    # Rows in place of one number, or gradients that are no gradients of the inputs, come of no other call.
    own = (ROWS, "returns a gradient")
    return any(r.quantity in _CALLED_WRONGLY for r in errors) and not any(why in r.why for r in errors for why in own)


def adapted(request: Request, search: Search, child: Any = None) -> str:
    """A call expression that works where a plain call does not, as the rest of a sentence.

    `search` counts the calls. `child` is a process that is there already. The result is empty where a call was given,
    or none was better than the plain one.
    """
    if request.call:
        return ""
    search.goal = "another call"
    # What a call is like does not depend on the ranks.
    own = replace(request, suite="quick", cases=(), contracts=(), old=None, timeout=min(request.timeout, SHORT))
    with ExitStack() as stack:
        if child is None and issubclass(type(request.thing), str):
            child = child_runner(None, request.device, SHORT, LOADING, request.isolate)
            stack.callback(child.stop)
        trials = Trials(lambda loss, **options: begun(replace(own, **options), child, search), search)
        tried = until_right(until_ended(calls(trials, request.loss, request.settings, request.framework)))
        best = max(tried, key=lambda trial: trial.reached, default=None)
        return best.words if best is not None else ""


def layers(loss: Loss, environment: Mapping[str, Any]) -> str:
    """The rest of a sentence about layers that a module has of its own, which change what the loss is computed from.

    `environment` is that of the report. The result is empty where there are no such layers.
    """
    if not (others := environment.get("other_parameters")):
        return ""
    arrays = ", ".join(p.name for p in loss.parameters if isinstance(p, Array | Labels) and p.required)
    return (
        f"; the module computes with {', '.join(others)}, which {loss.name} does not have: name what is called"
        f" after them, such as --call 'f.METHOD({arrays})'"
    )


@dataclass
class Known:
    """Findings of trials of a target as one loss that hold for it as another.

    `signature` is that of `ResolvedTarget`; None where it is not known yet. `refused` has calls that gave no number,
    with arrays of a shape for each array, and attributes that it does not keep.
    """

    signature: Mapping[str, bool] | None = None
    refused: set[str] = field(default_factory=set)


def calls(
    trials: Trials,
    loss: Loss,
    settings: Mapping[str, Any],
    framework: str = "",
    known: Known | None = None,
    **options: Any,
) -> Iterator[Trial]:
    """The usual calls of a target as a loss, each tried; at most `MOST`, and of each what turns its output.

    `settings` are those of the loss in all trials; `options` are what says so to `trials`, where that does not know.
    """
    known = Known() if known is None else known
    if not framework and (as_arrays := trials.of(loss.name, framework="numpy", **options)).right:
        yield as_arrays
    inputs = expected_names(loss, settings)
    if known.signature is None:
        known.signature = trials.signature(loss.name, inputs, **options)

    def keeps(name: str) -> bool:
        """Whether the target has a number or an array of that name, which an expression returns in place of a loss."""
        if (kept := f"f.{name}") in known.refused:
            return False
        trial = trials.of(loss.name, call=f"({', '.join([*inputs, kept])})[-1]", **options)
        if not (found := trial.ran or trial.trouble == "wrong-shape"):
            known.refused.add(kept)
        return found

    for call in islice(_calls(loss, settings, keeps, known.signature or {}), MOST):
        if (shapes := _kind(call, loss)) in known.refused:
            continue
        yield (trial := trials.of(loss.name, call=call, **options))
        # Only what returns something else than a loss needs another output.
        if trial.trouble == "wrong-shape":
            entries = re.findall(r"\[(?:\d+|'[^']*')\]", trial.reason.partition(WHICH)[2])
            for text in (*(output.format(call) for output in _OUTPUTS), *(call + entry for entry in entries)):
                yield (turned := trials.of(loss.name, call=text, **options))
                trial = turned if turned.ran else trial
        # What has not been called lacks something of this loss alone.
        if trial.reached == CALLED:
            known.refused.add(shapes)


def _kind(call: str, loss: Loss) -> str:
    """A call with the kind of each input in the place of its name."""
    kinds = {p.name: f"{type(p).__name__}{getattr(p, 'shape', '')}" for p in loss.parameters}
    return re.sub(r"\w+(?!\w|=)", lambda word: kinds.get(word[0], word[0]), call)


Expressions = Sequence[tuple[str, str]]
"""Expressions to hand over, each with the arrays or the labels that it is a form of."""


def _calls(
    loss: Loss, settings: Mapping[str, Any], keeps: Callable[[str], bool], signature: Mapping[str, bool]
) -> Iterator[str]:
    """Call expressions, the plainest arrays first, each with the usual ways to hand over the scalars."""
    given = given_parameters(loss, expected_names(loss, settings))
    tables = [p for p in given if isinstance(p, Array) and not p.constant]
    labels = [p.name for p in given if isinstance(p, Labels)]
    constants = [p for p in given if isinstance(p, Array) and p.constant]
    scalars = [p.name for p in given if isinstance(p, Scalar) and p.default is ...]
    # Labels are handed over in 64 bits; some want 32.
    for integer in ("{}", *(form for each in FRAMEWORKS.values() for form in each.integers if labels)):
        rest = [*((name, integer.format(name)) for name in labels), *_as_they_are(constants)]
        forms = _forms(tables) if integer == "{}" else [_as_they_are(tables)]
        for form in forms:
            yield from _handing([*form, *rest], scalars, signature)
    whole = _as_they_are(p for p in given if isinstance(p, Array | Labels))
    for memory in (p.name for p in constants if p.shape[0] != "N" and len(p.shape) == 2):
        yield from _with_memory(memory, whole, scalars, keeps, signature)
    for scalar in scalars if signature else ():
        yield from _with_kept_scalar(scalar, whole, [n for n in scalars if n != scalar], keeps, signature)


def _as_they_are(parameters: Iterable[Parameter]) -> Expressions:
    return [(p.name, p.name) for p in parameters]


def _with_memory(
    memory: str,
    arguments: Expressions,
    scalars: Sequence[str],
    keeps: Callable[[str], bool],
    signature: Mapping[str, bool],
) -> Iterator[str]:
    """Calls with an array of earlier batches in another form, or in the place of what the target keeps."""
    for form in _OF_MEMORY:
        handed = [(name, form.replace("{}", name) if name == memory else x) for name, x in arguments]
        yield from _handing(handed, scalars, signature)
    rest = [(name, x) for name, x in arguments if name != memory]
    for kept in filter(keeps, (memory, *ARRAYS[memory])):
        for forms, call in product(_KEPT, _handing(rest, scalars, signature)):
            for form in forms:
                yield _keeping(kept, form.replace("{}", memory), call)


def _with_kept_scalar(
    scalar: str,
    arguments: Expressions,
    others: Sequence[str],
    keeps: Callable[[str], bool],
    signature: Mapping[str, bool],
) -> Iterator[str]:
    """Calls with a scalar in the place of a number that the target keeps: itself, its inverse, or the logarithm."""
    power = INVERSE_TEMPERATURES.get(scalar, 0)
    alike = {n: x for n, x in INVERSE_TEMPERATURES.items() if power} or {scalar: power}
    words = {word: x for n, x in alike.items() for word in (n, *SCALARS.get(n, ())) if len(word) > 1}
    if any(plain(n) in map(plain, words) for n in signature):
        return
    logarithms = [each.logarithm for each in FRAMEWORKS.values()]
    for name, forms in (("{}", ["{}"]), ("log_{}", logarithms)):
        for word in words:
            if keeps(kept := name.format(word)):
                value = scalar if words[word] == power else f"1 / {scalar}"
                for form, call in product(forms, _handing(arguments, others, signature)):
                    yield _keeping(kept, form.format(value), call)


def _keeping(attribute: str, value: str, call: str) -> str:
    """A call of an object that keeps another value."""
    return f"vars(f).update({attribute}={value}) or {call}"


def _handing(given: Expressions, scalars: Sequence[str], signature: Mapping[str, bool]) -> Iterator[str]:
    """Calls that hand over expressions in their order and scalars by name; what nobody knows is a constant.

    `signature` is that of `ResolvedTarget`. Of a target whose parameters are not known the scalars go by usual names.
    """
    if not signature:
        yield from (f"f({', '.join([*(x for _, x in given), *spelled])})" for spelled in _spellings([*scalars]))
        return
    named = {n: x for n in signature if (x := _scalar_of(n, scalars))}
    if len(signature) - len(named) < len(given):
        # One letter means anything.
        named = {n: x for n, x in named.items() if len(n) > 1}
    names = [name for name, _ in given]
    own = {n: name for n in signature if n not in named and (name := match_input(n, names))}
    arrays = {n: x for n, name in own.items() for array, x in given if array == name}
    left = [x for name, x in given if name not in own.values()]
    free = [n for n in signature if n not in named and n not in arrays]
    arrays |= dict(zip([n for n in free if kind(n) != {"scalar"}], left, strict=False))
    inputs = ", ".join(names).split(", ")
    free = [n for n in free if n not in arrays and "scalar" in kind(n) and not match_input(n, inputs)]
    unknown = [n for n, required in signature.items() if required and n not in arrays and n not in named]
    # An array is left over, or a parameter that can be no scalar.
    if len(arrays) < len(given) or not {*unknown} <= {*free}:
        return
    loose = [name for name in scalars if not any(name in re.findall(r"\w+", x) for x in named.values())]
    for constant in CONSTANTS if unknown else ("",):
        yield _written(signature, arrays, named | dict.fromkeys(unknown, constant))
    # Nothing is called before each scalar has a place: a constructor or an object may have that.
    if loose and len(unknown) <= len(loose) and (places := unknown or free[: len(loose)]):
        yield _written(signature, arrays, named | dict(zip(places, loose, strict=False)))


CONSTANTS = ("1.0", "0.0")
"""Numbers that a required argument is given that nobody knows: with one of them a factor or a term is none."""


def _scalar_of(parameter: str, scalars: Sequence[str]) -> str | None:
    """The scalar that a parameter takes, or the function of it that its name says; None for another parameter."""
    if name := match_input(parameter, scalars):
        return name
    forms = (FORMS[name][0].format(name) for name in scalars if name in FORMS and plain(parameter) in FORMS[name][1])
    return next(forms, None)


def _written(signature: Mapping[str, bool], arrays: Mapping[str, str], named: Mapping[str, str]) -> str:
    """A call with arrays by position, as far as none is left out before them, and all else by name."""
    parts, is_next = [], True
    for n in signature:
        is_next = is_next and n in arrays
        if n in arrays or n in named:
            parts.append(arrays[n] if is_next else f"{n}={arrays.get(n) or named[n]}")
    return f"f({', '.join(parts)})"


def _forms(tables: Sequence[Array]) -> Iterator[Expressions]:
    """The arrays, as they are and adapted."""
    arrays = _as_they_are(tables)
    yield arrays
    if len(arrays) >= 2:
        pair, more = ", ".join(p.name for p in tables[:2]), arrays[2:]
        # A function of another framework fails on its arrays, or is not there.
        for one in (*filter(None, chain(*zip_longest(*(each.joined for each in FRAMEWORKS.values())))), "[{}]"):
            yield [(pair, one.format(pair)), *more]
    if arrays:
        yield [(arrays[0][0], f"{arrays[0][0]}[:, None]"), *arrays[1:]]
    # Several rows of a sample one below the other.
    if any(len(p.shape) == 3 for p in tables):
        flat = "{0}.reshape(-1, {0}.shape[-1])"
        yield [(p.name, (flat if len(p.shape) == 3 else "{}").format(p.name)) for p in tables]


def _spellings(scalars: list[str]) -> Iterator[list[str]]:
    """The scalars by name, by another name, by position, and not at all: a constructor may take them."""
    if not scalars:
        yield []
        return
    for name in (scalars[0], *SCALARS.get(scalars[0], ())[:3]):
        yield [f"{name}={scalars[0]}", *(f"{n}={n}" for n in scalars[1:])]
    yield scalars
    yield []
    if scalars[0] in INVERSE_TEMPERATURES and scalars[0] != "temperature":
        yield [f"temperature=1 / {scalars[0]}"]
