"""From a caller's arguments to checked ones, or to an `InputError` that says what to do. Nothing is modified."""

import math
import operator
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from nceref import spec
from nceref.engine.arrays import (
    Library,
    Sizes,
    check_range,
    checked_array,
    checked_labels,
    refuse_autograd,
    shape_text,
)
from nceref.errors import InputError

_MISSING = object()


def bind(loss: spec.Loss, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Match positional and named arguments to the parameters of a loss, and check every one.

    Parameters
    ----------
    loss : Loss
        Whose parameters.
    args, kwargs : tuple, mapping
        As the caller gave them.

    Returns
    -------
    dict
        Every parameter by name, in the order of declaration; optional ones that were left out are None.

    Raises
    ------
    InputError
        For the first argument that does not fit: its name, its value, what was expected, what to do.
    """
    given = _named(loss, args, kwargs)
    arrays = [p.name for p in loss.parameters if isinstance(p, spec.Array | spec.Labels)]
    library = Library(given[name] for name in arrays if name in given)
    sizes: Sizes = {}
    out: dict[str, Any] = {}
    for parameter in loss.parameters:
        out[parameter.name] = _checked(loss, parameter, given.get(parameter.name, _MISSING), library, sizes)
    # Once all sizes are known: the number of classes may come from a later argument.
    for parameter in loss.parameters:
        if isinstance(parameter, spec.Labels) and parameter.classes and out[parameter.name] is not None:
            check_range(parameter.name, out[parameter.name], sizes[parameter.classes][0])
    return out


def _named(loss: spec.Loss, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    names = [p.name for p in loss.parameters]
    positional = [p.name for p in loss.parameters if isinstance(p, spec.Array | spec.Labels) and p.positional]
    if len(args) > len(positional):
        listed = ", ".join(positional)
        msg = f"{loss.name} takes at most {len(positional)} positional arguments ({listed}), got {len(args)}"
        raise InputError(msg)
    given = dict(zip(positional, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise InputError(_unknown_argument(loss, name, names))
        if name in given:
            msg = f"{loss.name} got `{name}` both by position and by name; pass it once"
            raise InputError(msg)
        given[name] = value
    return given


def _unknown_argument(loss: spec.Loss, name: str, names: list[str]) -> str:
    if name == "cotangent":
        return f"`cotangent` belongs to {loss.name}.value_and_grad, with reduction='none'"
    if name == "reduction":
        return f"`reduction` means nothing to this view of {loss.name}; leave it out"
    close = get_close_matches(name, [*names, "reduction"], n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"it takes {', '.join(f'`{n}`' for n in names)}"
    return f"{loss.name} has no argument `{name}`; {hint}"


def _checked(loss: spec.Loss, parameter: spec.Parameter, value: Any, library: Library, sizes: Sizes) -> Any:
    if isinstance(parameter, spec.Scalar):
        absent = value is _MISSING and (parameter.default is None or isinstance(parameter.default, float))
        return parameter.default if absent else _scalar(loss, parameter, value)
    if isinstance(parameter, spec.Choice):
        return parameter.default if value is _MISSING else _choice(parameter, value)
    if value is _MISSING or value is None:
        if parameter.required:
            what = f"a {shape_text(parameter.shape)} array"
            msg = f"{loss.name} needs `{parameter.name}`, {what}: {parameter.meaning}"
            raise InputError(msg)
        return None
    if isinstance(parameter, spec.Labels):
        return checked_labels(parameter, value, library, sizes)
    return checked_array(parameter, value, library, sizes)


def checked_cotangent(value: Any, rows: Any) -> Any:
    """The cotangent, if it is an array of one finite float for each row, in the library of the rows.

    Parameters
    ----------
    value : object
        As the caller gave it.
    rows : array
        Row values of the loss.

    Raises
    ------
    InputError
        If it is anything else.
    """
    # A letter for each axis, with its size known already: the shape is then checked as that of any argument.
    letters = tuple(f"row{i}" for i in range(rows.ndim))
    sizes: Sizes = {letter: (size, "rows") for letter, size in zip(letters, rows.shape, strict=True)}
    return checked_array(spec.Array("cotangent", letters, ""), value, Library([rows]), sizes)


def _scalar(loss: spec.Loss, parameter: spec.Scalar, value: Any) -> float | None:
    if value is _MISSING:
        value = parameter.default
    if value is ...:
        msg = f"{loss.name} needs `{parameter.name}`, a number {domain(parameter)}. {parameter.meaning}"
        raise InputError(msg)
    if value is None and parameter.optional:
        return None
    number = _as_float(parameter, value)
    low_ok = number >= parameter.low if parameter.low_closed else number > parameter.low
    high_ok = number <= parameter.high if parameter.high_closed else number < parameter.high
    if not (math.isfinite(number) and low_ok and high_ok):
        finite = "" if math.isfinite(number) or domain(parameter) == "finite" else "finite and "
        msg = f"`{parameter.name}` must be {finite}{domain(parameter)}, got {number}"
        raise InputError(msg)
    return number


def _as_float(parameter: spec.Scalar, value: Any) -> float:
    refuse_autograd(parameter.name, value)
    # `float` alone would also take truth values, text, and arrays with one entry.
    if not isinstance(value, bool | str | bytes) and getattr(value, "shape", ()) == ():
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    msg = f"`{parameter.name}` must be one number, {domain(parameter)}, got {value!r}"
    raise InputError(msg)


def domain(parameter: spec.Scalar) -> str:
    """The domain of a scalar in words: ``> 0``, ``>= 0 and < 1``, ``finite``."""
    low = f"{'>=' if parameter.low_closed else '>'} {parameter.low:g}" if math.isfinite(parameter.low) else ""
    high = f"{'<=' if parameter.high_closed else '<'} {parameter.high:g}" if math.isfinite(parameter.high) else ""
    return " and ".join(part for part in (low, high) if part) or "finite"


def _choice(parameter: spec.Choice, value: Any) -> Any:
    # By identity but for text: 1 equals True, and an array is compared entry by entry.
    if any(value is option or (isinstance(value, str) and value == option) for option in parameter.options):
        return value
    options = ", ".join(repr(option) for option in parameter.options)
    msg = f"`{parameter.name}` must be one of {options}, got {value!r}"
    raise InputError(msg)


def integer(what: str, value: Any, least: int, most: int | None = None) -> int:
    """The value as an int, if it is an integer in the range; NumPy's integers are, truth values are not.

    Parameters
    ----------
    what : str
        How the message names the value, such as ``"`seed`"``.
    value : object
        Anything.
    least : int
        The smallest allowed value.
    most : int, optional
        The largest allowed value.

    Returns
    -------
    int

    Raises
    ------
    InputError
        If it is no integer, or outside the range.
    """
    try:
        # Below the range, so that the check that follows refuses it.
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        allowed = f">= {least}" if most is None else f"from {least} to {most:,}"
        msg = f"{what} must be an integer {allowed}, got {value!r}"
        raise InputError(msg)
    return number


def choose_reduction(loss: spec.Loss, reduction: Any) -> str:
    """The reduction, if the loss has it; an `InputError` if not."""
    if not isinstance(reduction, str) or reduction not in ("mean", "sum", "none"):
        msg = f"`reduction` must be 'mean', 'sum' or 'none', got {reduction!r}"
        raise InputError(msg)
    if reduction != "mean" and not loss.has_rows:
        msg = f"{loss.name} has no rows, so `reduction` must be 'mean', got {reduction!r}"
        raise InputError(msg)
    return reduction
