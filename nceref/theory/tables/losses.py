"""The losses of this package, listed because they are declared."""

from typing import Any

from nceref.registry import discover
from nceref.spec import Loss
from nceref.theory.table import Table


def rows() -> list[dict[str, Any]]:
    """One row for each loss."""
    return [
        {"loss": loss.name, "summary": loss.summary, "sources": " ".join("; ".join(map(str, loss.sources)).split())}
        for loss in discover("nceref.family", "LOSS", Loss).values()
    ]


TABLE = Table(
    name="losses",
    title="The losses",
    source="Declarations in nceref.family",
    columns=("loss", "summary", "sources"),
    rows=rows,
)
