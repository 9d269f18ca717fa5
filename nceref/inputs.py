"""From a caller's arguments to checked ones, or to an `InputError` that says what to do. Nothing is modified."""

import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from array_api_compat import array_namespace, is_array_api_obj

from nceref import spec
from nceref.errors import InputError

COMMON = ("reduction", "cotangent")


def bind(loss: spec.Loss, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Match positional and named arguments to the parameters of `loss` and check every one.

    Returns
    -------
    dict
        Every parameter by name, in the order of declaration; optional ones that were left out are None.
    """
    given = _named(loss, args, kwargs)
    sizes: dict[str, tuple[int, str]] = {}
    out: dict[str, Any] = {}
    for parameter in loss.parameters:
        out[parameter.name] = _checked(loss, parameter, given.get(parameter.name, _MISSING), sizes)
    for parameter in loss.parameters:
        if isinstance(parameter, spec.Labels) and parameter.classes and out[parameter.name] is not None:
            _check_range(parameter.name, out[parameter.name], sizes[parameter.classes][0])
    _one_library(loss, out)
    return out


_MISSING = object()


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
            close = get_close_matches(name, [*names, *COMMON], n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"it takes {', '.join(f'`{n}`' for n in names)}"
            msg = f"{loss.name} has no argument `{name}`; {hint}"
            raise InputError(msg)
        if name in given:
            msg = f"{loss.name} got `{name}` both by position and by name; pass it once"
            raise InputError(msg)
        given[name] = value
    return given


def _checked(loss: spec.Loss, parameter: spec.Parameter, value: Any, sizes: dict[str, tuple[int, str]]) -> Any:
    if isinstance(parameter, spec.Scalar):
        return _scalar(loss, parameter, value)
    if isinstance(parameter, spec.Choice):
        return _choice(parameter, value)
    if value is _MISSING or value is None:
        if parameter.required:
            msg = f"{loss.name} needs `{parameter.name}`, a {_shape(parameter.shape)} array: {parameter.meaning}"
            raise InputError(msg)
        return None
    if isinstance(parameter, spec.Labels):
        return _labels(parameter, value, sizes)
    return _array(parameter, value, sizes)


def _shape(letters: tuple[str, ...]) -> str:
    return f"({', '.join(letters)}{',' if len(letters) == 1 else ''})"


def _as_array(name: str, value: Any) -> Any:
    if is_array_api_obj(value):
        return value
    import numpy as np

    try:
        return np.asarray(value)
    except ValueError as error:
        msg = f"`{name}` must be a rectangular array, got {type(value).__name__}: {error}"
        raise InputError(msg) from None


def _array(parameter: spec.Array, value: Any, sizes: dict[str, tuple[int, str]]) -> Any:
    name, x = parameter.name, _as_array(parameter.name, value)
    xp = array_namespace(x)
    if not _is_real_float(x):
        msg = f"`{name}` must be an array of real floats, got dtype {x.dtype}; convert it to float32 or float64 first"
        raise InputError(msg)
    _check_shape(name, x, _letters(parameter, x), sizes)
    _check_entries(parameter, x, ~xp.isfinite(x), "finite")
    if parameter.low is not None:
        outside = x < parameter.low if parameter.closed else x <= parameter.low
        _check_entries(parameter, x, outside, f"{'>=' if parameter.closed else '>'} {parameter.low:g}")
    return x


def _is_real_float(x: Any) -> bool:
    xp = array_namespace(x)
    # Half precision is no type of the standard, but of NumPy and CuPy; `isdtype` knows it there.
    return bool(xp.isdtype(x.dtype, "real floating"))


def _letters(parameter: spec.Array, x: Any) -> tuple[str, ...]:
    alternative = parameter.alternative
    return alternative if alternative is not None and x.ndim == len(alternative) else parameter.shape


def _check_entries(parameter: spec.Array, x: Any, bad: Any, expected: str) -> None:
    xp = array_namespace(x)
    if not bool(xp.any(bad)):
        return
    flat = int(xp.argmax(xp.astype(xp.reshape(bad, (-1,)), xp.int8)))
    place: list[int] = []
    for size in reversed(x.shape):
        flat, rest = divmod(flat, size)
        place.insert(0, rest)
    entry = float(x[tuple(place)])
    msg = f"`{parameter.name}` must be {expected} everywhere, got {entry} at index {tuple(place)}"
    raise InputError(msg)


def _check_shape(name: str, x: Any, letters: tuple[str, ...], sizes: dict[str, tuple[int, str]]) -> None:
    known = tuple(sizes.get(letter) for letter in letters)
    fits = x.ndim == len(letters) and all(k is None or k[0] == size for k, size in zip(known, x.shape, strict=False))
    if not fits:
        raise InputError(_shape_message(name, x, letters, sizes))
    if 0 in x.shape:
        msg = f"`{name}` is empty: its shape is {x.shape}; pass at least one row and one feature"
        raise InputError(msg)
    for letter, size in zip(letters, x.shape, strict=True):
        sizes.setdefault(letter, (size, name))


def _shape_message(name: str, x: Any, letters: tuple[str, ...], sizes: dict[str, tuple[int, str]]) -> str:
    expected = [str(sizes[letter][0]) if letter in sizes else letter for letter in letters]
    others = sorted({sizes[letter][1] for letter in letters if letter in sizes} - {name})
    matching = f" to match {' and '.join(f'`{other}`' for other in others)}" if others else ""
    wanted = _shape(letters)
    if others:
        wanted = f"{wanted} = {_shape(tuple(expected))}"
    return f"`{name}` must be {wanted}{matching}, got {tuple(x.shape)}"


def _labels(parameter: spec.Labels, value: Any, sizes: dict[str, tuple[int, str]]) -> Any:
    x = _as_array(parameter.name, value)
    xp = array_namespace(x)
    if not xp.isdtype(x.dtype, "integral"):
        msg = f"`{parameter.name}` must be an array of integers, got dtype {x.dtype}"
        raise InputError(msg)
    _check_shape(parameter.name, x, parameter.shape, sizes)
    return x


def _check_range(name: str, labels: Any, classes: int) -> None:
    xp = array_namespace(labels)
    low, high = int(xp.min(labels)), int(xp.max(labels))
    if low < 0 or high >= classes:
        bad = low if low < 0 else high
        msg = f"`{name}` must lie in 0 ... {classes - 1} for {classes} classes, got {bad}"
        raise InputError(msg)


def _scalar(loss: spec.Loss, parameter: spec.Scalar, value: Any) -> float | None:
    if value is _MISSING:
        value = parameter.default
    if value is ...:
        msg = f"{loss.name} needs `{parameter.name}`: {parameter.meaning}, {domain(parameter)}"
        raise InputError(msg)
    if value is None and parameter.optional:
        return None
    number = _as_float(parameter, value)
    low_ok = number >= parameter.low if parameter.low_closed else number > parameter.low
    high_ok = number <= parameter.high if parameter.high_closed else number < parameter.high
    if not (math.isfinite(number) and low_ok and high_ok):
        msg = f"`{parameter.name}` must be {domain(parameter)}, got {number}"
        raise InputError(msg)
    return number


def _as_float(parameter: spec.Scalar, value: Any) -> float:
    if not isinstance(value, bool) and getattr(value, "shape", ()) == ():
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
    if value is _MISSING:
        return parameter.default
    if any(value is option or (isinstance(value, str) and value == option) for option in parameter.options):
        return value
    options = ", ".join(repr(option) for option in parameter.options)
    msg = f"`{parameter.name}` must be one of {options}, got {value!r}"
    raise InputError(msg)


def _one_library(loss: spec.Loss, arguments: dict[str, Any]) -> None:
    arrays = {name: x for name, x in arguments.items() if is_array_api_obj(x)}
    libraries = {array_namespace(x).__name__.removeprefix("array_api_compat."): name for name, x in arrays.items()}
    if len(libraries) > 1:
        listed = ", ".join(f"`{name}` is {library}" for library, name in libraries.items())
        msg = f"{loss.name} needs all arrays from one library, but {listed}; convert them first"
        raise InputError(msg)


def choose_reduction(loss: spec.Loss, reduction: Any) -> str:
    """Check `reduction` against what the loss supports."""
    if reduction not in ("mean", "sum", "none"):
        msg = f"`reduction` must be 'mean', 'sum' or 'none', got {reduction!r}"
        raise InputError(msg)
    if reduction != "mean" and not loss.has_rows:
        msg = f"{loss.name} has no rows, so `reduction` must be 'mean', got {reduction!r}"
        raise InputError(msg)
    return str(reduction)
