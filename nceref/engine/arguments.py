"""Checks of a caller's arguments: each is converted, or an `InputError` says what to do. Nothing is modified."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from array_api_compat import is_array_api_obj

from nceref import spec
from nceref.engine.arrays import (
    Library,
    as_plain,
    check_range,
    checked_array,
    checked_labels,
    refuse_autograd,
    refuse_chunked,
    refuse_masked,
)
from nceref.engine.namespaces import array_namespace, has_kind, on_host
from nceref.engine.shapes import Sizes, got_text, shapes_text
from nceref.errors import InputError, NcerefError
from nceref.output.text import printable, reason, shown
from nceref.output.words import alike, as_code, counted, did_you_mean

T = TypeVar("T")

_MISSING = object()


def bind(loss: spec.Loss, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Match positional and named arguments to the parameters of a loss, and check every one.

    The dict has every parameter by name, in the order of declaration; optional ones that were left out are None. Raises
    `InputError` for the first argument that does not fit: its name, its value, what was expected, what to do.
    """
    given = named(loss, args, kwargs)
    for name in _arrays(loss, given):
        refuse_chunked(name, given[name])
    return checked_arguments(loss, given)


def _arrays(loss: spec.Loss, given: Mapping[str, Any]) -> list[str]:
    return [p.name for p in loss.parameters if isinstance(p, spec.Array | spec.Labels) and p.name in given]


def checked_arguments(loss: spec.Loss, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter of a loss by name, from arguments by name of which none is an array of Dask; errors of `bind`."""
    library = Library({name: given[name] for name in _arrays(loss, given)})
    sizes: Sizes = {}
    out: dict[str, Any] = {}
    for parameter in loss.parameters:
        value = given.get(parameter.name, _MISSING)
        out[parameter.name] = converted(parameter.name, value, _checked, loss, parameter, value, library, sizes)
    # Once all sizes are known: the number of classes may come from a later argument.
    for parameter in loss.parameters:
        if isinstance(parameter, spec.Labels) and parameter.classes and out[parameter.name] is not None:
            check_range(parameter.name, out[parameter.name], sizes[parameter.classes])
    return out


def converted(
    name: str, value: Any, convert: Callable[..., T], *args: Any, remedy: str = "pass plain numbers or NumPy arrays"
) -> T:
    """The result of ``convert(*args)``; whatever an object of the caller raises on the way is an `InputError`.

    The message names the argument, shows `value` as the caller gave it, and ends in `remedy`. Exceptions of this
    package and MemoryError pass.
    """
    try:
        return convert(*args)
    except (NcerefError, MemoryError):
        raise
    except Exception as error:
        msg = f"`{name}` cannot be read: {reason(error)}; got {shown(value)}, {remedy}"
        raise InputError(msg) from error


def named(loss: spec.Loss, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given, by name and as they are.

    Raises `InputError` for one that the loss does not have, or that is given twice.
    """
    names = [p.name for p in loss.parameters]
    positional = [p.name for p in loss.parameters if isinstance(p, spec.Array | spec.Labels) and p.positional]
    if len(args) > len(positional):
        takes = f"at most {counted(len(positional), 'positional argument')} ({', '.join(positional)})"
        rest = " or ".join(as_code(name) for name in names if name not in positional)
        msg = f"{loss.name} takes {takes}, got {len(args)}; pass {rest} by name"
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
    name = printable(name)
    meant = alike(name, [*names, "reduction"])
    hint = did_you_mean(meant, as_code) or f"it takes {', '.join(map(as_code, names))}"
    return f"{loss.name} has no argument `{name}`; {hint}"


def _checked(loss: spec.Loss, parameter: spec.Parameter, value: Any, library: Library, sizes: Sizes) -> Any:
    if isinstance(parameter, spec.Scalar):
        absent = value is _MISSING and (parameter.default is None or isinstance(parameter.default, float))
        return parameter.default if absent else _scalar(loss, parameter, value)
    if isinstance(parameter, spec.Choice):
        return parameter.default if value is _MISSING else one_of(parameter.name, value, parameter.options)
    if value is _MISSING or value is None:
        if parameter.required:
            kind = "integers" if isinstance(parameter, spec.Labels) else "floats"
            got = ", got None" if value is None else ""
            needed = f"`{parameter.name}`, an array of {kind} of shape {shapes_text(parameter)}"
            msg = f"{loss.name} needs {needed}{got}: {parameter.meaning}"
            raise InputError(msg)
        return None
    if isinstance(parameter, spec.Labels):
        return checked_labels(parameter, value, library, sizes)
    return checked_array(parameter, value, library, sizes)


def check_cotangent(loss: spec.Loss, reduction: str, cotangent: Any) -> None:
    """Raise unless a cotangent is given where the rows are returned, and only there."""
    if reduction == "none" and cotangent is None:
        msg = f"with reduction='none', {loss.name} needs `cotangent`, one number for each row: shape {loss.rows}"
        raise InputError(msg)
    if reduction != "none" and cotangent is not None:
        msg = f"`cotangent` goes with reduction='none' only, got it with reduction={shown(reduction)}"
        raise InputError(msg)


def checked_cotangent(loss: spec.Loss, value: Any, rows: Any) -> Any:
    """The cotangent, if it is an array of one finite float for each row, in the library of the rows.

    Parameters
    ----------
    loss : Loss
        Whose rows.
    value : object
        As the caller gave it.
    rows : array
        Row values of the loss.

    Raises
    ------
    InputError
        If it is anything else.
    """
    cotangent = spec.Array("cotangent", tuple(map(str, rows.shape)), "", embedding=False)
    library = Library({"rows": rows})
    x = converted("cotangent", value, library.array, cotangent, value)
    if x.shape != rows.shape:
        expected = f"{tuple(rows.shape)}, one number for each row"
        msg = f"`cotangent` must be {expected}, got {got_text(x.shape)}; rows of {loss.name} are {loss.rows}"
        raise InputError(msg)
    return converted("cotangent", value, checked_array, cotangent, x, library, {})


def _scalar(loss: spec.Loss, parameter: spec.Scalar, value: Any) -> float | None:
    if value is _MISSING:
        value = parameter.default
    if value is ...:
        msg = f"{loss.name} needs `{parameter.name}`, a number {domain(parameter)}. {parameter.meaning}"
        raise InputError(msg)
    if value is None and parameter.optional:
        return None
    return checked_number(parameter, value)


def checked_number(parameter: spec.Scalar, value: Any) -> float:
    """The value as a float, if it is one real number in the domain of the parameter.

    A number of another type (integers, fractions, decimals, 0-d arrays) gives the nearest float. Raises `InputError`
    for anything else, truth values and complex numbers among it.
    """
    number = value if type(value) is float else converted(parameter.name, value, _as_float, parameter, value)
    low_ok = number >= parameter.low if parameter.low_closed else number > parameter.low
    high_ok = number <= parameter.high if parameter.high_closed else number < parameter.high
    if not (math.isfinite(number) and low_ok and high_ok):
        finite = "" if math.isfinite(number) or domain(parameter) == "finite" else "finite and "
        # The float nearest to a fraction or a decimal may be inf or 0, which is not what was given.
        got = number if isinstance(value, int | float) else shown(value)
        msg = f"`{parameter.name}` must be {finite}{domain(parameter)}, got {got}"
        raise InputError(msg)
    return number


def _as_float(parameter: spec.Scalar, value: Any) -> float:
    refuse_autograd(parameter.name, value)
    refuse_masked(parameter.name, value)
    # `float` alone would also take truth values, text, arrays with one entry, and the real part of a complex number.
    if is_array_api_obj(value):
        number = value.shape == () and has_kind(array_namespace(value), value.dtype, ("integral", "real floating"))
    else:
        number = not isinstance(value, bool | str | bytes | bytearray | complex) and getattr(value, "shape", ()) == ()
    try:
        if number:
            return float(value)
    except OverflowError:
        msg = f"`{parameter.name}` must be {domain(parameter)} and fit into a 64-bit float, got {shown(value)}"
        raise InputError(msg) from None
    except (TypeError, ValueError):
        # No number, such as None, or one that no float is, such as a signaling NaN.
        pass
    msg = f"`{parameter.name}` must be one number, {domain(parameter)}, got {shown(value)}; pass a float"
    raise InputError(msg)


def domain(parameter: spec.Scalar) -> str:
    """The domain of a scalar in words: ``> 0``, ``>= 0 and < 1``, ``finite``."""
    low = f"{'>=' if parameter.low_closed else '>'} {_exact(parameter.low)}" if math.isfinite(parameter.low) else ""
    high = f"{'<=' if parameter.high_closed else '<'} {_exact(parameter.high)}" if math.isfinite(parameter.high) else ""
    return " and ".join(part for part in (low, high) if part) or "finite"


def _exact(x: float) -> str:
    return f"{x:g}" if float(f"{x:g}") == x else f"{x:.17g}"


def one_of(name: str, value: Any, options: Iterable[T]) -> T:
    """The option that the value is.

    Parameters
    ----------
    name : str
        The argument, for the message.
    value : object
        Anything.
    options : iterable
        Words, or truth values.

    Raises
    ------
    InputError
        If it is none of them.
    """
    # By identity but for text: 1 equals True, and an array is compared entry by entry.
    options = tuple(options)
    text = str.__str__(value) if isinstance(value, str) else value
    for option in options:
        if text is option or (isinstance(option, str) and type(text) is str and text == option):
            return option
    msg = f"`{name}` must be one of {', '.join(map(repr, options))}, got {shown(value)}"
    raise InputError(msg)


def real_array(name: str, value: Any) -> Any:
    """The value as a plain NumPy array of real numbers, of any shape; it is copied only where it has to be.

    Raises `InputError` for what is not numbers, or not real ones.
    """
    converted(name, value, refuse_chunked, name, value)
    x = converted(name, value, as_plain, name, value)
    if x.dtype.kind not in "biuf":
        msg = f"`{name}` must be real numbers, got {x.dtype}; convert it first"
        raise InputError(msg)
    return x


def declared(loss: Any) -> spec.Loss:
    """The declaration of a loss that was given as such, or as a callable; an `InputError` if it is neither."""
    declaration = getattr(loss, "declaration", loss)
    if not isinstance(declaration, spec.Loss):
        msg = f"`declaration` must be a loss, such as losses.nt_xent, got {shown(loss)}"
        raise InputError(msg)
    return declaration


def refuse_other_libraries(inputs: Mapping[str, Any], what: str) -> None:
    """Raise an `InputError` for the first argument that is an array, but not NumPy's.

    `inputs` is what `bind` returned; `what` names the computation that needs NumPy arrays.
    """
    for name, x in inputs.items():
        if not (x is None or isinstance(x, float | str | bool) or on_host(x)):
            msg = f"`{name}` is no NumPy array, which {what} need; pass numpy.asarray({name})"
            raise InputError(msg)


def integer(what: str, value: Any, least: int, most: int | None = None) -> int:
    """The value as an int, if it is an integer in the range; NumPy's integers are, truth values are not.

    `what` is the name of the value in the message, such as ``"`seed`"``. Raises `InputError` if it is no integer, or
    outside of `least` to `most`.
    """
    # Below the range, so that the check that follows refuses it.
    number = least - 1
    # A Boolean of NumPy was an index, with a warning, before NumPy 2.3.
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        try:
            number = operator.index(value)
        except TypeError:
            pass
        except Exception as error:
            msg = f"{what} cannot be read: {reason(error)}; pass an integer"
            raise InputError(msg) from error
    if number < least or (most is not None and number > most):
        allowed = f">= {least}" if most is None else f"from {least} to {most:,}"
        msg = f"{what} must be an integer {allowed}, got {shown(value)}"
        raise InputError(msg)
    return number


def choose_reduction(loss: spec.Loss, reduction: Any) -> str:
    """The reduction, if the loss has it; an `InputError` if not."""
    if not isinstance(reduction, str) or reduction not in ("mean", "sum", "none"):
        msg = f"`reduction` must be 'mean', 'sum' or 'none', got {shown(reduction)}"
        raise InputError(msg)
    if reduction != "mean" and not loss.has_rows:
        msg = f"{loss.name} has no rows, so `reduction` must be 'mean', got {reduction!r}"
        raise InputError(msg)
    return reduction
