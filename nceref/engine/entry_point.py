"""The context of every public computation, whatever the caller's floating-point state is."""

import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def entry_point(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that callers' arrays enter by.

    Our arithmetic neither warns nor raises by the caller's `np.seterr`: what left the range is seen in the result,
    which is checked. Where memory runs out, the arrays made so far are released, and the message has the sizes of the
    arguments beside that of the array that did not fit.

    Raises
    ------
    MemoryError
        If an array cannot be allocated.
    """

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with np.errstate(all="ignore"):
                return function(*args, **kwargs)
        except MemoryError as error:
            # The frames of the call hold what was allocated before, for as long as someone holds the exception.
            traceback.clear_frames(error.__traceback__)
            raise MemoryError(_message(error, args, kwargs)) from None

    return inside


def _message(error: MemoryError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    named = [("", x) for x in args] + list(kwargs.items())
    given = [f"`{name}` {x.shape} {x.dtype}".replace("`` ", "") for name, x in named if isinstance(x, np.ndarray)]
    remedy = "pass a smaller batch, or set nceref.config(keep=0, block=64)"
    return f"out of memory for {', '.join(given) or 'these arguments'}: {error or 'no size was reported'}; {remedy}"
