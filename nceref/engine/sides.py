"""What the two sides of a relation are made of: the arguments of one loss, for another."""

from collections.abc import Mapping
from typing import Any


def shared(other: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that another loss takes by the same names."""
    names = {p.name for p in other.declaration.parameters}
    return {name: x for name, x in inputs.items() if name in names}


def compared(inputs: Mapping[str, Any], *names: str) -> list[Any]:
    """Rows of embedding inputs as the loss compares them: of length 1 unless it takes them as given."""
    import numpy as np

    rows = [np.asarray(inputs[name], dtype=np.float64) for name in names]
    if inputs.get("normalize", "l2") == "none":
        return rows
    return [x / np.linalg.norm(x, axis=-1, keepdims=True) for x in rows]
