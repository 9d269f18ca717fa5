"""The array namespace of an array, looked up once for each type: a small batch asks for it fifty times."""

from typing import Any

import array_api_compat

_KNOWN: dict[type, Any] = {}


def array_namespace(first: Any, *others: Any) -> Any:
    """The namespace of the first array; that all arrays of a call share one is checked at the door."""
    try:
        return _KNOWN[type(first)]
    except KeyError:
        return _KNOWN.setdefault(type(first), array_api_compat.array_namespace(first))
