"""The textbook formula of a loss in a number system: floats, complex step, 50 digits, balls, symbols."""

from nceref.exact.certified import Enclosure, NotProvenError, certified
from nceref.exact.reference import (
    Symbolic,
    arguments,
    as_floats,
    complex_step,
    reduce_rows,
    reference,
    value,
)

__all__ = [
    "Enclosure",
    "NotProvenError",
    "Symbolic",
    "arguments",
    "as_floats",
    "certified",
    "complex_step",
    "reduce_rows",
    "reference",
    "value",
]
