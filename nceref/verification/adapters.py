"""Adapters for a target where a plain call fails: the usual ones, each tried before it is named."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice, product, zip_longest
from typing import Any

from nceref.cases.aliases import ARRAYS, SCALARS
from nceref.cases.records import Result
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.spec import Array, Labels, Loss, Scalar
from nceref.targets.arguments import expected_names, given_parameters
from nceref.targets.frameworks.call import ROWS
from nceref.targets.frameworks.frameworks import FRAMEWORKS
from nceref.targets.runner import child_runner
from nceref.targets.search import Search
from nceref.verification.request import Request
from nceref.verification.target_run import begun
from nceref.verification.trials import Trial, Trials, nearest

MOST = 150
"""Calls that are tried: each is a few milliseconds, and the target has failed already."""
SHORT, LOADING = 30.0, 120.0
"""Seconds for a case and for loading, after which a target hangs: the first case of a call may import a framework."""
_CALLED_WRONGLY = ("behavior.raises", "behavior.wrong-shape", "behavior.not-a-number-type")
"""Results of a call whose arguments or whose answer have another form."""
_OUTPUTS = (
    *(output for each in FRAMEWORKS.values() for output in each.outputs),
    *("{}[0]", "{}[1]"),
    *("[*{}.values()][0]", "[*{}.values()][1]"),
)
"""Expressions that turn another output into a loss: logits with labels, or one of two numbers, in a dict as well."""
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
        trials = Trials(lambda loss, **options: begun(replace(own, **options), child), search)
        best = nearest(calls(trials, request.loss, request.settings, request.framework))
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


def calls(
    trials: Trials, loss: Loss, settings: Mapping[str, Any], framework: str = "", refused: set[str] | None = None
) -> Iterator[Trial]:
    """The usual calls of a target as a loss, each tried; at most `MOST`, and of each what turns its output.

    `refused` has calls as other losses that gave no number, with arrays of a shape for each array: they are left out.
    """
    if not framework and (plain := trials.of(loss.name, framework="numpy")).right:
        yield plain
    refused = set() if refused is None else refused

    def keeps(name: str) -> bool:
        """Whether the target has an array of that name, which a call expression returns in place of a loss."""
        # With all inputs, so that the constructor is handed none of them.
        inputs = ", ".join(expected_names(loss, settings))
        return trials.of(loss.name, call=f"({inputs}, f.{name})[-1]").trouble == "wrong-shape"

    for call in islice(_calls(loss, settings, keeps), MOST):
        if (kind := _kind(call, loss)) in refused:
            continue
        for text in (call, *(output.format(call) for output in _OUTPUTS)):
            yield (trial := trials.of(loss.name, call=text))
            # Only what returns something else than a loss needs another output.
            if text == call and trial.trouble != "wrong-shape":
                break
        if not trial.ran:
            refused.add(kind)


def _kind(call: str, loss: Loss) -> str:
    """A call with the kind of each input in the place of its name."""
    kinds = {p.name: f"{type(p).__name__}{getattr(p, 'shape', '')}" for p in loss.parameters}
    return re.sub(r"\w+(?!\w|=)", lambda word: kinds.get(word[0], word[0]), call)


def _calls(loss: Loss, settings: Mapping[str, Any], keeps: Callable[[str], bool]) -> Iterator[str]:
    """Call expressions, the plainest arrays first, each with the usual ways to hand over the scalars."""
    given = given_parameters(loss, expected_names(loss, settings))
    tables = [p for p in given if isinstance(p, Array) and not p.constant]
    arrays = [p.name for p in tables]
    labels = [p.name for p in given if isinstance(p, Labels)]
    constants = [p for p in given if isinstance(p, Array) and p.constant]
    scalars = [p.name for p in given if isinstance(p, Scalar) and p.default is ...]
    names = [p.name for p in constants]
    # Labels are handed over in 64 bits; some want 32.
    for kind in ("{}", *(form for each in FRAMEWORKS.values() for form in each.integers if labels)):
        rest = [kind.format(name) for name in labels] + names
        forms = _forms(tables) if kind == "{}" else [arrays]
        for form, spelled in product(forms, _spellings(scalars)):
            yield f"f({', '.join([*form, *rest, *spelled])})"
    for memory in (p.name for p in constants if p.shape[0] != "N" and len(p.shape) == 2):
        yield from _with_memory(memory, [*arrays, *labels, *names], list(_spellings(scalars)), keeps)


def _with_memory(
    memory: str, arguments: Sequence[str], spellings: Sequence[list[str]], keeps: Callable[[str], bool]
) -> Iterator[str]:
    """Calls with an array of earlier batches in another form, or in the place of what the target keeps."""
    for form, spelled in product(_OF_MEMORY, spellings):
        handed = [form.replace("{}", name) if name == memory else name for name in arguments]
        yield f"f({', '.join([*handed, *spelled])})"
    rest = [name for name in arguments if name != memory]
    for kept in filter(keeps, (memory, *ARRAYS[memory])):
        for forms, spelled in product(_KEPT, spellings):
            for form in forms:
                assigned = f"{kept}={form.replace('{}', memory)}"
                yield f"vars(f).update({assigned}) or f({', '.join([*rest, *spelled])})"


def _forms(tables: Sequence[Array]) -> Iterator[list[str]]:
    """The arrays, adapted."""
    arrays = [p.name for p in tables]
    if len(arrays) >= 2:
        pair, more = ", ".join(arrays[:2]), arrays[2:]
        # A function of another framework fails on its arrays, or is not there.
        for one in (*filter(None, chain(*zip_longest(*(each.joined for each in FRAMEWORKS.values())))), "[{}]"):
            yield [one.format(pair), *more]
    if arrays:
        yield [f"{arrays[0]}[:, None]", *arrays[1:]]
    yield arrays
    # Several rows of a sample one below the other.
    if any(len(p.shape) == 3 for p in tables):
        yield [f"{p.name}.reshape(-1, {p.name}.shape[-1])" if len(p.shape) == 3 else p.name for p in tables]


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
